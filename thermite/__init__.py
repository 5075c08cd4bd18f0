"""Thermite: an event-sourced rig harness with signed commands.

A rig takes signed orders, lets agents propose commits, and has a judge that
the agents can't see, reach or fool. The rooms, in the order in which a campaign
walks through them: schema, command, control, kit, ledger, campaign, spawner,
rig, judge, agent, report, audit, harness, cli. The process `supervisor` is a
package of its own, because it has network and is a stranger to the judge.
"""

__version__ = "0.1.0"
