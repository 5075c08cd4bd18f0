"""Put the numbers of the rules that a test shows into its id: `test_a_run[K-101+K-103]`."""

import pytest


def shows(*numbers: str) -> pytest.MarkDecorator:
    """Return a mark that carries requirement numbers in a test's id, and changes nothing else."""
    return pytest.mark.parametrize((), [pytest.param(id="+".join(numbers))])
