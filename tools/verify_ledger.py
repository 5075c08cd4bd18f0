"""Check a rig's ledger, or one promotion in one file, trusting neither rig nor control.

Written from the design pages alone. Prints a line for the whole, then PASS or FAIL per promotion.
Exit codes: 0 clean, 8 a finding, 1 unreadable or not all checked, 3 no such file, 2 usage.
"""

# fmt: off
import argparse
import base64
import hashlib
import json
import math
import re
import sqlite3
from bisect import bisect
from collections import defaultdict
from collections.abc import Callable, Iterator
from functools import partial, reduce
from itertools import pairwise
from pathlib import Path
from typing import Any

try:
    from cryptography.exceptions import InvalidSignature
    from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PublicKey as Ed25519
except ImportError:
    Ed25519, InvalidSignature = None, ValueError  # type: ignore[assignment, misc]
Event = dict[str, Any]
MOST_BYTES, MOST_LINE, BETWEEN, NEAR = 64 * 2**20, 500, 1000, 1e-6  # NEAR: of judging.md 3.2
near = partial(math.isclose, rel_tol=NEAR, abs_tol=NEAR)
b64 = partial(base64.b64decode, validate=True)
NOTE = re.compile(r"((thermite/(.+)/(.+))\n(\d+)\n(\S+)\nhead (\S+)\ntime .+\n)\n— (\S+) (\S+)\n")
DROPS = {"steal", "suspended", "throttled", "foreign_process", "infra", "interrupted", "not_exact"}
CREATED = ("assignment_created", "local_job")
ONCE = {"command_accepted": "command:{issuer}:{id}", "assignment_created": "assignment:{of}",
        "mcp_servers": "mcp_servers:{of}", "verdict": "verdict:{of}:{attempt}:{tries}",
        "champion_promoted": "promoted:{of}:{attempt}", "assignment_ended": "ended:{of}"}
FAULTS = (InvalidSignature, ValueError, LookupError, TypeError, AttributeError, ArithmeticError,
          RecursionError)
BUSY = {5, 8, 10, 14}  # SQLite's codes: locked, read-only, disk, can't open: not the file's fault
ODD = "SELECT 1 FROM sqlite_schema s, pragma_table_xinfo(s.name) WHERE s.type = 'view' OR hidden"
def need(good: object, why: str) -> None:
    if not good:
        raise ValueError(why)
def sha(*parts: bytes) -> bytes:
    return hashlib.sha256(b"".join(parts)).digest()
def once(pairs: list[tuple[str, Any]]) -> Event:
    need(len(dict(pairs)) == len(pairs), "a key stands twice in one object")
    return dict(pairs)
def note(text: str, opened: Event) -> tuple[int, bytes, bytes]:
    """Return (size, root, head) of a note that the rig signed for this ledger."""
    key, found = b64(opened["rig_key"]), NOTE.fullmatch(text)
    if found is None:
        raise ValueError("a checkpoint is no signed note")
    body, name, rig, ledger, size, root, head, signer, signed = found.groups()
    whose = (sha(key).hex()[:32], opened["ledger"], name, sha(name.encode(), b"\n\x01", key)[:4])
    need((rig, ledger, signer, b64(signed)[:4]) == whose, f"checkpoint {size} is of another rig")
    if Ed25519 is not None:
        Ed25519.from_public_bytes(key).verify(b64(signed)[4:], body.encode())
    return int(size), b64(root), b64(head)
def log_e(values: list[float]) -> float:  # judging.md 3.2
    logs = [sum(math.log1p(0.98 * ((x > 0) - (x < 0))) for x in values)]
    logs += [sum(math.log(2) + min(2 * a * x, 0) - math.log1p(math.exp(-2 * a * abs(x)))
                 for x in values) for a in (25, 50, 100, 200, 400, 800, 1600)]
    return max(logs) + math.log(sum(math.exp(x - max(logs)) for x in logs) / 8)
def coin(seed: bytes, k: int, stage: str, block: int, cells: list[str]) -> list[tuple[str, str]]:
    """Return the (cell, arm) order that the coin gives a block (judging.md 3.1)."""
    d = sha(seed, k.to_bytes(4, "big"), bytes([stage == "confirm"]), block.to_bytes(4, "big"))
    arms, swapped = ("champion", "candidate"), bool(d[0] & 1)
    return [(cell, arm) for i, cell in enumerate(sorted(cells, key=lambda c: sha(d, c.encode())))
            for arm in arms[:: -1 if (i < len(cells) // 2) == swapped else 1]]
def stage(of: Callable[..., list[Event]], start: Event, seed: bytes, name: str) -> float:
    """Return the trimmed mean of a stage that passed; raise where its runs do not show that."""
    p, rules, weights = start["params"], start["params"]["judging"], start["params"]["weights"]
    held, guards = (p["held_out_cells"], p["guards"]) if name == "confirm" else ([], [])
    aside = {"name": "held-out", "cells": held, "allowed_loss": rules["held_out_allowed_loss"]}
    guards, cells = [*guards, *[p["primary"] | aside] * bool(held)], [*p["cells"], *held]
    whole = sorted((c, a) for c in cells for a in ("candidate", "champion"))
    values, sides, seen = [], [], dict[Any, Any]()
    def d(goal: Event, cell: str) -> float:
        metric = p["metrics"][goal["metric"]]  # a rate's work cancels in the ratio
        a, b = (float(seen[cell, arm, metric["field"]]) for arm in ("candidate", "champion"))
        up = (goal["direction"] == "max") == (metric["kind"] != "rate")
        return math.log(a / b) * (1 if up else -1)
    for i, block in enumerate(of("block", stage=name)):
        need(block["block"] == i, f"{name} block {i} is missing")
        runs, checks = (of(kind, stage=name, block=i) for kind in ("run", "check"))
        ran = [(r["cell"], r["arm"]) for r in runs]
        order = ran if not seed else coin(seed, start["k"], name, i, cells)
        need(ran == order[: len(ran)], f"{name} block {i} did not run in the coin's order")
        if (why := block["dropped"]) is not None:
            need({*why.split(":")[0].split(", ")} <= DROPS, f"{name} block {i} dropped unfairly")
            continue
        ended = sorted((r["cell"], r["arm"]) for r in runs if r["outcome"] == "ok")
        passed = sorted((c["cell"], c["arm"]) for c in checks if c["pass"] is True)
        need(whole == sorted(ran) == ended == passed, f"{name} block {i} lacks a good run or check")
        seen = {(r["cell"], r["arm"], None): r["record"]["t_ns"] for r in runs}
        seen |= {(c["cell"], c["arm"], f): v for c in checks for f, v in c["fields"].items()}
        sides.append([sum(d(g, c) for c in g["cells"]) / len(g["cells"]) for g in guards])
        total = sum(weights[c] * d(p["primary"], c) for c in p["cells"]) / sum(weights.values())
        share, other = (rules["held_out_weight"], sides[-1][-1]) if held else (0, 0)
        values.append((1 - share) * total + share * other)
        need(near(block["D"], values[-1]), f"{name} block {i}: D is {values[-1]}")
    last = of("decision", stage=name)[-1]
    need(last["action"] in {"pass", "hold"} and last["n"] == len(values) > 0, f"{name}: {last}")
    ln_e, cut, exact = log_e(values), len(values) // 5, last["rule"] == "exact-1"
    mean = math.fsum(sorted(values)[cut : len(values) - cut]) / (len(values) - 2 * cut)
    need(near(last["lnE"], ln_e) and near(last["T"], mean), f"{name}: lnE is {ln_e}, T is {mean}")
    few, level = rules["min_blocks"], math.log(1 / rules["screen_alpha"])
    if name == "confirm":
        few, level = rules["confirm_min_blocks"], math.log(rules["screen_alpha"] / start["alpha_k"])
    if exact:
        fields = [p["metrics"][g["metric"]]["field"] for g in (p["primary"], *p["guards"])]
        need(all(fields) and max(values) - min(values) < NEAR, f"{name}: the values are not exact")
        few, level = (1 if name == "confirm" else 3), -math.inf
    need(len(values) >= few and ln_e >= level - NEAR, f"{name}: lnE {ln_e} in {len(values)} blocks")
    need(mean >= math.log1p(p["min_effect"]) - NEAR, f"{name}: T {mean} is below min_effect")
    for g, lost in zip(guards, zip(*sides, strict=True), strict=True):
        room = [x - math.log1p(-g["allowed_loss"]) for x in lost]
        kept = min(room) if exact else log_e(room) + math.log(rules["guard_alpha"])
        need(kept >= -NEAR, f"{g['name']} may have lost more than {g['allowed_loss']}")
    return mean
def judge(events: list[Event], promoted: Event) -> tuple[str, Event]:
    """Return what is shown and a summary; raise where the evidence carries no promotion."""
    data, whole = promoted["data"], [e for e in events if e["assignment"] == promoted["assignment"]]
    mine = [e for e in whole if e["data"].get("attempt") == data["attempt"]]
    verdict = [e["data"] for e in mine if e["data"].get("verdict") == "promoted"][-1]
    tried = [e for e in mine if e["data"].get("tries") == verdict["tries"]]
    need(mine.index(tried[-1]) < mine.index(promoted), "it was promoted before its verdict")
    def of(kind: str, **said: object) -> list[Event]:
        return [e["data"] for e in tried if e["type"] == kind and e["data"] | said == e["data"]]
    need(len(of("judge_started")) == 1, "not one judge_started in this try")
    start, created = of("judge_started")[0], [e["data"] for e in whole if e["type"] in CREATED][0]
    p, trees = start["params"], {b["arm"]: b["tree"] for b in of("build")}
    arms = (data["commit"], data["previous"])
    need((start["candidate"], start["champion"]) == arms, "it was judged on other commits")
    half, horizon = p["judging"]["alpha_campaign"] / 2, p["judging"]["alpha_horizon"]
    alpha = half * 2.0 ** -((start["k"] - 1) // horizon) / horizon
    need(math.isclose(start["alpha_k"], alpha), f"k {start['k']} gives alpha_k {alpha}")
    seeds = [e["data"]["order_seed"] for e in whole if e["type"] == "assignment_ended"]
    seed = bytes.fromhex("".join(seeds))
    need(not seed or sha(seed).hex() == created["order_commitment"], "the coin is another one")
    gain = math.expm1([stage(of, start, seed, name) for name in ("screen", "confirm")][1])
    need(near(verdict["gain"], gain) and near(data["gain"], gain), f"the gain is {gain}")
    counted = {s: len(of("block", stage=s, dropped=None)) for s in ("screen", "confirm")}
    grades = [e["data"]["grade"] for e in events if e["type"] == "rig_selftest"] or [None]
    summary = {arm: {"commit": start[arm], "tree": trees[arm]} for arm in ("candidate", "champion")}
    summary |= {key: created[key] for key in ("project", "kit")} | p["primary"]
    summary |= {key: start[key] for key in ("attempt", "k", "contract_sha256", "isolation")}
    summary |= {key: verdict[key] for key in ("gain", "interval")} | {"grade": grades[-1]}
    summary |= {key: p[key] for key in ("cells", "held_out_cells")} | {"blocks": counted}
    summary |= {"assignment": promoted["assignment"], "lnE": of("decision")[-1]["lnE"]}
    return f"gain {100 * gain:.2f} %" + ("" if seed else ", coin not yet revealed"), summary
def told(events: list[Event], *, whole: bool) -> Iterator[str]:
    """Yield a line per promotion; a whole ledger also shows k and the old champion."""
    ks, champions = defaultdict(list), {}
    for of, kind, data, e in ((e["assignment"], e["type"], e["data"], e) for e in events):
        if kind in CREATED:
            champions[of] = (data.get("champion") or data["project"])["commit"]
        elif kind == "judge_started":
            ks[of].append(data["k"])
        elif kind == "champion_promoted":
            name = f"{data['commit'][:12]} (attempt {data['attempt']})"
            try:
                shown, k, old = judge(events, e)[0], ks[of], champions[of]
                counts = k == [*range(k[0], k[0] + len(k))] and old == data["previous"]
                need(counts or not whole, f"k runs {k}, and the champion was {old}")
                yield f"PASS {name}: {shown}"
            except FAULTS as bad:
                yield f"FAIL {name}: {bad}"
            champions[of] = data["commit"]
def ledger(path: Path, events: list[Event]) -> str:  # fills events, raises at the first fault
    how = "mode=ro" if Path(f"{path}-wal").exists() else "immutable=1"
    db, stack, seq = sqlite3.connect(f"{path.absolute().as_uri()}?{how}", uri=True), [], 0
    ids = [*db.execute("SELECT * FROM pragma_application_id, pragma_user_version")]
    need(ids == [(0x54484D4C, 1)], f"application id and version are {ids}")
    need(not [*db.execute(ODD)], "a view or a computed column, which may be endless")
    head, notes = b"", dict(db.execute("SELECT size, note FROM checkpoints ORDER BY size"))
    for number, kind, body, hashed, key in db.execute("SELECT * FROM events ORDER BY seq"):
        seq, leaf = seq + 1, sha(b"\0", body)
        events.append(e := json.loads(body, object_pairs_hook=once))
        keys = (bytes.fromhex(events[0]["data"]["ledger"]), b64(events[0]["data"]["rig_key"]))
        before = head or sha(b"thermite.genesis.v1\0", *keys)
        head = sha(b"thermite.event.v1\0", before, seq.to_bytes(8, "big"), leaf)
        once_by = ONCE[kind].format(of=e["assignment"], **e["data"]) if kind in ONCE else None
        need((number, hashed) == (seq, head), f"event {seq} is not the one that was hashed")
        need((kind, key) == (e["type"], once_by), f"a column of event {seq} is unlike its body")
        stack.append((1, leaf))
        while len(stack) > 1 and stack[-1][0] == stack[-2][0]:
            stack[-2:] = [(2 * stack[-1][0], sha(b"\1", stack[-2][1], stack[-1][1]))]
        if seq in notes:
            root = reduce(lambda right, left: sha(b"\1", left, right), [h for _, h in stack[::-1]])
            need(note(notes[seq].decode(), events[0]["data"]) == (seq, root, head),
                 f"checkpoint {seq} is of another history")
    gaps = [b - a for a, b in pairwise([0, *notes, seq])]
    must = [i for i, e in enumerate(events, 1) if e["type"] in ONCE.keys() - {"verdict"}]
    need(max(must, default=1) <= max(notes, default=0), f"no checkpoint signs event {must[-1:]}")
    need(min(gaps) >= 0 and max(gaps) <= BETWEEN, f"events between the checkpoints: {gaps}")
    return f"{seq} events, {len(notes)} checkpoints, {gaps[-1]} events after the last"
def carried(path: Path, events: list[Event]) -> str:  # of a promotion file, else as `ledger`
    raw = path.read_bytes() if path.stat().st_size <= MOST_BYTES else b"{}"
    file = json.loads(raw, object_pairs_hook=once)
    need(file.get("format") == "thermite.promotion/1", "this is no thermite.promotion/1")
    events += [json.loads(e["body"], object_pairs_hook=once) for e in file["events"]]
    seqs, proof = [e["seq"] for e in file["events"]], [*file["proof"]]
    need(seqs[0] == 1 and all(a < b for a, b in pairwise(seqs)), "the events are not in order")
    need(file["rig_key"] == events[0]["data"]["rig_key"], "the rig key is not that of event 1")
    def root(low: int, high: int) -> bytes:
        if (at := bisect(seqs, low)) == bisect(seqs, high):
            return b64(proof.pop(0))
        if high - low == 1:
            return sha(b"\0", file["events"][at]["body"].encode())
        middle = low + (1 << ((high - low - 1).bit_length() - 1))
        return sha(b"\1", root(low, middle), root(middle, high))
    size, signed, _ = note(file["checkpoint"], events[0]["data"])
    need(size >= seqs[-1] and root(0, size) == signed and not proof, "the proof does not fit")
    true = judge(events, [e for e in events if e["type"] == "champion_promoted"][0])[1]
    wrong = [key for key in true | file["summary"] if true.get(key) != file["summary"].get(key)]
    need(not wrong, f"the summary does not say what the events say: {wrong}")
    if file["command"] is not None:
        sent = sha(b64(json.loads(b64(file["command"]), object_pairs_hook=once)["payload"])).hex()
        told_by = {e["command"] for e in events if e["type"] in {*CREATED, "command_accepted"}}
        need(told_by == {sent}, "the command is another one")
    return f"{len(events)} of {size} events signed; not proven: made, patch, command's signatures"
def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("path", type=Path)
    parser.add_argument("--rig-key", help="base64 of the raw public key, or a file that holds it")
    args, events, lines = parser.parse_args(), list[Event](), []
    if not args.path.is_file():
        parser.exit(3, f"no such file: {args.path}\n")
    try:
        whole, key = args.path.open("rb").read(16) == b"SQLite format 3\0", args.rig_key or ""
        lines = ["PASS " + (ledger if whole else carried)(args.path, events)]
        pinned = (Path(key).read_text() if Path(key).is_file() else key).split()
        need(not key or events[0]["data"]["rig_key"] in pinned, "the rig's key is another one")
    except (sqlite3.Error, OSError, *FAULTS) as bad:
        if isinstance(bad, OSError) or getattr(bad, "sqlite_errorcode", 0) & 255 in BUSY:
            parser.exit(1, f"unreadable: {bad}\n")
        lines = [f"FAIL {str(bad) or 'a checkpoint is not signed by the rig'}"]
    try:
        lines += told(events, whole=whole)
    except FAULTS as bad:
        lines.append(f"FAIL an event is not of its form: {bad!r}")
    lines = [ascii(line)[1:-1][:MOST_LINE] for line in lines]  # a stranger's text: one line each
    print(*lines, *["key not pinned"] * (not key), sep="\n")
    print(*["signatures not checked\n"] * (Ed25519 is None), end="")
    return 8 if any(line.startswith("FAIL") for line in lines) else int(Ed25519 is None)
if __name__ == "__main__":
    raise SystemExit(main())
