"""The MCP gateway: the one way from a campaign's agents to the servers of its kit.

It is a process of its own, `python -m thermite.agent.gateway` in slot `gateway-i`: MCP servers
are foreign programs and foreign bytes. The harness starts it for one campaign, tells it over a
socket who may call what (`wire`), and hears of every call. Agents speak MCP to it, streamable
HTTP on loopback, each with a token of its own. What comes in: servers, grants, calls. What goes
out: results, cut to what an agent can take, and what to record. It knows no kit, no ledger and
no key, decides nothing about a campaign, and whatever fails in it is a tool's error.

`wire` and `names` are the harness's to import too; the rest needs the extra `mcp`.
Source: agents and control, A1 and A9.
"""
