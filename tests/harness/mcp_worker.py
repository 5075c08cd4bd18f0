"""A worker that calls tools as its brief says, with the standard library alone.

Arguments: `tool` or `tool=JSON` each; prints one JSON object a call. It runs in a slot, under
whatever Python the stage's PATH has.
"""

import json
import os
import sys
import urllib.error
import urllib.request
from typing import Any

URL = os.environ.get("THERMITE_MCP_URL", "")
TOKEN = os.environ.get("THERMITE_MCP_TOKEN", "")


def ask(method: str, **params: object) -> "dict[str, Any]":
    body = json.dumps({"jsonrpc": "2.0", "id": 1, "method": method, "params": params})
    headers = {
        "content-type": "application/json",
        "accept": "application/json, text/event-stream",
        "authorization": f"Bearer {TOKEN}",
    }
    request = urllib.request.Request(URL, body.encode(), headers)
    with urllib.request.urlopen(request, timeout=60) as answer:
        found: dict[str, Any] = json.load(answer)["result"]
    return found


def main() -> None:
    if not URL:
        sys.stdout.write("no tools\n")
        return
    for word in sys.argv[1:]:
        name, _, arguments = word.partition("=")
        said: object
        try:
            if name == "list":
                tools = ask("tools/list")["tools"]
                said = sorted(one["name"] for one in tools)
            else:
                result = ask("tools/call", name=name, arguments=json.loads(arguments or "{}"))
                said = [result.get("isError", False), result["content"][0]["text"][-200:]]
        except (OSError, KeyError, ValueError) as error:
            said = f"{type(error).__name__}: {error}"
        sys.stdout.write(json.dumps(said) + "\n")
        sys.stdout.flush()


main()
