"""From a commit to a stored build: made once for each key, hashed, read-only.

`key` names a build, `source` lays out what the builder gets, `make` runs the kit's build
in slot `builder-0` as user `builder`, `store` keeps builds and failed builds and hashes
them again before every run. This step must not know what a build is run on.
"""
