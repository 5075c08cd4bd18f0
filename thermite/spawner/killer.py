"""One kill(-1) as a slot's user, by a process that the slot's user cannot touch.

Source: isolation, finding 1 and section 4.1 (killer). The killer's real and saved uid is
the reaper's, R, its effective uid the slot's: kill(2) then reaches exactly the processes
of both, and nobody of the slot may signal it. A real uid of 0 would end every root process
of the machine, so any assertion that does not hold means: do not kill.
"""

from .ground import Ground, Slot
from .loop import Step, Until
from .vocabulary import RefusedError


def kill_uid(ground: Ground, slot: Slot, number: int) -> Step[None]:
    """Send one signal to every process of a slot's uid.

    Raises:
        RefusedError: an assertion does not hold; nothing was killed.
    """
    if ground.level.reaper is None:
        raise RefusedError(f"slot {slot.name} has no uid of its own to send {number} to")
    yield Until()
