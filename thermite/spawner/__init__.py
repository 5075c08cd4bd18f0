"""The one process that keeps privileges: it starts, stamps, freezes, ends and proves.

What comes in: JSON requests of a closed vocabulary over SOCK_SEQPACKET pairs, with
descriptors beside them (`vocabulary`). What goes out: one reply to each request, when
what it asked for is done or refused. Who asks is known by the socket; which user a slot
has stands in this process's own table and never in a request.

Single-threaded. `loop` runs one generator per request, which yields what it waits for;
nothing else in here waits. Whatever costs time or touches foreign bytes is a fork with
an identity of its own:

    place, sweep       the slot's user                  unpack and remove files
    attendant          the harness's user, may read all pump output, sample memory and disk
    collector          the same, confined by Landlock   copy outputs, hash on the way
    killer             ids (R, slot, R)                 one kill(-1, signal)
    nursery            the spawner's                    start the process of each stage, its sibling
    stage              the slot's user, confined        waits for the go byte, then executes

A stage's time is t1 - t0 on CLOCK_MONOTONIC_RAW: t0 before the go byte is written, t1
when the main process's pidfd is readable, so it can only be overstated. The stage has
ended when its user's processes are proven zero, and only then is anything of it read.

Standard library only: it runs by folder path under `python -I -S -B`, imports nothing of
ours, and nothing of ours imports it; `thermite.rig` holds the other end of the socket.
"""
