"""The kit's own word on what a run left behind.

`examine` runs the kit's check in slot `check` with the collected outputs to read; `result`
reads the last line that it printed, strictly: what can be read in two ways is no result.
This step must not know how long the run took.
"""
