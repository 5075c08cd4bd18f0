"""What came out when a ledger's projections were made anew, for people. PURE."""

from thermite.schema.rebuilt import Rebuilt


def lines(found: Rebuilt) -> list[str]:
    """Return the result line by line; the first says what was compared."""
    if not found.compared:
        return ["made anew: nothing to compare, no views.db and no trust.json is beside the ledger"]
    differ = len(found.mismatches) + found.unlisted
    return [
        f"made anew: {' and '.join(found.compared)}"
        + (f", {found.rows} rows of views.db" if found.rows else ""),
        *(
            f"{one.file}, {one.place}"
            + (f" at {one.key}" if one.key else "")
            + f": stands {one.stands}, the events say {one.events_say}"
            for one in found.mismatches
        ),
        *([f"{found.unlisted} more"] if found.unlisted else []),
        "what is derived from the events differs from them: make views.db anew with thermite"
        " ledger views, trust.json by starting the rig"
        if differ
        else "all of it follows from the events",
    ]
