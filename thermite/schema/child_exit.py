"""How supervisor and harness tell the spawner that another start would not help.

The spawner reads the code and nothing else: it imports nothing of ours and has the number as its
own constant, which a test compares with this one.
"""

from typing import Final

REFUSED: Final = 78
"""What the child says on stderr must be mended first (sysexits(3), EX_CONFIG)."""
