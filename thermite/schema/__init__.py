"""Every type that is written to disk, signed or sent between processes.

What comes in: bytes from other rooms, and other people. What goes out: frozen values.
Nothing here touches a file, a clock or a process, and nothing here knows how a value
is used. Each Struct refuses unknown fields at every level (a test walks all of them).
Names are the documents' words; numbers carry their unit in the name.
"""
