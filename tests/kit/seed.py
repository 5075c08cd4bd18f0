"""The manifest of the reference page, to the letter but for white space, and ways to bend it."""

import copy
import json
from typing import Any

from thermite.kit.manifest import read_manifest
from thermite.schema.kit import Kit

SEED: dict[str, Any] = {
    "schema_version": 1,
    "name": "smoke-cpu",
    "target": "cpu",
    "build": {
        "copy": ["bench"],
        "command": ["sh", ".kit/bench/build.sh"],
        "outputs": ["out/bench"],
        "timeout_s": 120,
        "rss_mib": 1024,
        "disk_mib": 256,
    },
    "cells": {
        "small": {"n": 128, "reps": 240, "seed": 11, "work": 1006632960},
        "large": {"n": 256, "reps": 40, "seed": 23, "work": 1342177280},
        "held": {"n": 192, "reps": 60, "seed": 37, "work": 849346560},
    },
    "run": {
        "command": ["{build:out/bench}", "{params}", "{out}"],
        "timeout_s": 60,
        "rss_mib": 256,
        "disk_mib": 32,
    },
    "metrics": {"flops_per_s": {"unit": "FLOP/s", "work": "work"}},
    "check": {"command": ["node", "{kit:check.mjs}", "{params_json}", "{out}"], "timeout_s": 60},
}

GONE = object()
"""In the place of a value: take the field out."""


def bent(*changes: tuple[str, object]) -> dict[str, Any]:
    """Return the seed's manifest with values set at dotted places (`build.copy`), or taken out."""
    whole = copy.deepcopy(SEED)
    for place, value in changes:
        *folders, last = place.split("/")
        here = whole
        for name in folders:
            here = here.setdefault(name, {})
        if value is GONE:
            del here[last]
        else:
            here[last] = value
    return whole


def problems(*changes: tuple[str, object]) -> list[str]:
    """Return the texts of a bent manifest's problems."""
    found = read_manifest(json.dumps(bent(*changes)).encode())
    return [] if isinstance(found, Kit) else [str(one) for one in found]


def kit(*changes: tuple[str, object]) -> Kit:
    """Return the kit of a bent manifest, which must have no problem."""
    found = read_manifest(json.dumps(bent(*changes)).encode())
    assert isinstance(found, Kit), [str(one) for one in found]
    return found
