"""Drivers: what the judge must know of the device that a run is measured on.

A driver refuses values that it can't believe, and has the program that does nothing,
whose time is the start-up share of every run. One file per target.
"""
