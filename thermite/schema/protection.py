"""What a rig's canaries prove. Source: isolation, 4.2; kit requirements, 20."""

from thermite.schema.event import IsolationProbe


def is_protected(probe: IsolationProbe) -> bool:
    """Return whether canaries proved that no stage or worker reads kit, ledger or keys."""
    reads = [result for name, result in probe.canaries.items() if "read" in name]
    return bool(reads) and all(result == "blocked" for result in reads)


def applied(probe: IsolationProbe, target: str) -> set[str]:
    """Return which needs of an `expect.toml` a rig meets; target: what it measures on."""
    met = {target}
    if is_protected(probe):
        met.add("protected")
    met |= {word for word in ("users", "namespaces") if word in probe.level.split("+")}
    if any(feature.startswith("landlock") for feature in probe.features):
        met.add("landlock")
    if "network" not in probe.gaps:
        met.add("no_network")
    return met
