"""One execution of a build on a cell, timed on the spawner's clock.

`execute` fills a fresh folder of slot `run-0` with the cell's parameters, runs the kit's
command in it as user `run`, and copies out what the run left; `kit_files` gathers what a
run may see of the kit. Neither a run's arguments nor its folder name the cell or the arm.
This step must not know whether the outputs are right.
"""
