"""Lanes and their workers: what an attempt is made from.

A worker never decides anything: it leaves files in its lane's folder, or a proposer makes
them without any foreign code. What comes in: the base tree, the brief and the backend's
options. What goes out: changed files. The harness makes the candidate commit, and the judge
the verdict; this room knows neither kit nor judge.
"""
