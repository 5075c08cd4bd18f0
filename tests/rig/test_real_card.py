"""A real card: the runs of its slot reach it where stages have users; nobody else is told of it.

At levels `none` and `namespaces` Landlock keeps /proc from being written in, which cuInit needs.
"""

from pathlib import Path

import pytest

from tests.levels import OWN_USER, rig_at, why_not
from tests.open_folder import open_folder
from tests.requirement import shows
from thermite.rig.device.cuda import judge_cards
from thermite.schema.stage import LevelName, Limits

CARDS = sorted(path.name for path in Path("/proc/driver/nvidia/gpus").glob("*"))
ASK = """
import ctypes, sys
try:
    cuda = ctypes.CDLL("libcuda.so.1")
except OSError:
    sys.exit("no driver")
count, device = ctypes.c_int(), ctypes.c_int()
context, memory = ctypes.c_void_p(), ctypes.c_uint64()
def ask(name, *parts):
    code = getattr(cuda, name)(*parts)
    if code:
        sys.exit(f"{name}: {code}")
ask("cuInit", 0)
ask("cuDeviceGetCount", ctypes.byref(count))
ask("cuDeviceGet", ctypes.byref(device), 0)
ask("cuCtxCreate_v2", ctypes.byref(context), 0, device)
ask("cuMemAlloc_v2", ctypes.byref(memory), ctypes.c_size_t(1 << 20))
print("cards", count.value)
"""


@shows("K-103")
@pytest.mark.skipif(not CARDS, reason="no NVIDIA card here")
@pytest.mark.parametrize("level", OWN_USER)
def test_a_run_has_its_card(level: LevelName) -> None:
    if (why := why_not(level)) is not None:
        pytest.skip(why)
    (card,) = judge_cards(CARDS[:1])
    slot_env = {"run-0": card.variables}
    with (
        open_folder() as place,
        rig_at(level, place, slot_env=slot_env, cards=[card.number]) as rig,
    ):
        env = {"PATH": rig.path_variable}
        with rig.slot("run-0") as slot:
            found = slot.run(
                ["python3", "-I", "-c", ASK],
                env=env | {"CUDA_VISIBLE_DEVICES": ""},
                limits=Limits(timeout_s=60),
            )
            assert (found.stdout, found.stderr) == (b"cards 1\n", b"")
        with rig.slot("builder-0") as slot:
            told = slot.run(["env"], env=env, limits=Limits(timeout_s=20)).stdout
            assert b"CUDA" not in told
