"""From a run's record and its check's numbers to values, and from values to blocks: pure.

`metric` works out a value or says why there is none, `printed` takes the numbers out of a
check's result, `disturbance` names what the rig did to a run, `block` compares the arms.
A run never reports its own score.
"""
