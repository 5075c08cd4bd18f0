"""PURE. Events are folded to state; from the state follow the next events and jobs.

What comes in: recorded events, one after the other. What goes out: the state that they
mean (`state`), whether an event is possible at all (`table`), and what a hill climb does
next (`hill_climb`). The same functions serve the harness while a campaign runs, `ledger
replay` years later and an auditor who trusts neither: so nothing in this room reads a clock,
a file, a process or a random number, and nothing here knows who appends the events.
"""
