"""What is shipped is found, in a checkout as in an installed wheel."""

import pytest

from thermite.errors import UsageError
from thermite.shipped import shipped


@pytest.mark.parametrize("name", ["kits/nonsense", "kits", "kits/../thermite", "/etc", ""])
def test_only_what_is_shipped_is_found(name: str) -> None:
    with pytest.raises(UsageError, match=r"nothing is shipped as .*: there are"):
        shipped(name)
