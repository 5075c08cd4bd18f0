"""The ledger: one append-only SQLite file that holds every fact of a rig.

What comes in: complete events (`thermite.schema.event`), the rig's key and a function
that tells the time. What goes out: sequence numbers, once the events are durable, and
later the same events again. `append` is the only writer of the file: it turns an event
into its JSON (`encode`), links those bytes to the event before (`chain`), adds them to a
Merkle tree (`merkle`) and signs where both stand (`checkpoint`), many callers' events in
one transaction. `opening` looks at a file before anything is written to it; `replay`
reads events back and trusts none whose hash does not fit; `reading` opens a file, live
or copied, without changing it.

The one process that writes runs as the rig's harness. This room must not know what an
event means, who is trusted, or what time it is.
"""
