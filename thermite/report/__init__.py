"""PURE. state -> text and JSON for people and programs.

What comes in: folded state and recorded events. What goes out: plain values and plain text,
without colour, width or terminal; `cli` dresses them. Text that came from a candidate is
escaped before it reaches this room.
"""
