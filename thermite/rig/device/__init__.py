"""Drivers: what the judge must know of the device that a run is measured on.

A driver has the program that does nothing, whose time is the start-up share of every run,
and says which CPUs are near its device. Which values can't be believed is the same for all
targets, and decided in `judge.measure`. One file per target.
"""
