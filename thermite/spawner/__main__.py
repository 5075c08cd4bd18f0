"""Entry: `python -I -S -B -X utf8 thermite/spawner FD`.

Everything that the spawner or a fork of it will ever need is imported now; then the
import path is emptied, so that a late import is an error at once and not only where a
folder can't be read any more after a change of user.
"""

import importlib
import os
import sys

if __name__ == "__main__":
    here = os.path.dirname(os.path.realpath(__file__))
    sys.path[:] = [*(path for path in sys.path if path != here), os.path.dirname(here)]
    for name in ("encodings.utf_8", "encodings.ascii"):
        importlib.import_module(name)
    main = importlib.import_module("spawner.serve").main
    sys.path.clear()
    sys.meta_path.clear()
    sys.exit(main(sys.argv))
