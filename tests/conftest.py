"""What all tests share: hypothesis' profile, and the isolation of what they start."""

import os

from hypothesis import settings

# Whatever can reach a kill(-1) asks for level users by name, inside a pid namespace of its
# own (tests/namespaced.py); every other test, and every process it starts, gets level none.
os.environ.setdefault("THERMITE_ISOLATION", "none")

settings.register_profile("here", deadline=None)
settings.register_profile("ci", deadline=None, derandomize=True, print_blob=True)
settings.load_profile("ci" if os.environ.get("CI") else "here")
