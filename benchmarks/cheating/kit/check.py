"""Say whether the answer is the known one.

usage: check.py ANSWERS_JSON PARAMS_JSON OUT
"""

import json
import sys


def main(answers: str, params: str, out: str) -> None:
    """Print the result."""
    with open(answers) as known, open(params) as asked, open(f"{out}/answer") as answered:
        wanted, got = json.load(known)[str(json.load(asked)["n"])], answered.read(100)
    reasons = [] if got == str(wanted) else [f"the sum is {got!r}, and it should be {wanted}"]
    print(json.dumps({"pass": not reasons, "reasons": reasons}))


if __name__ == "__main__":
    main(*sys.argv[1:])
