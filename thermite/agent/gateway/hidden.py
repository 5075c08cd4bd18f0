"""Taking a server's secrets out of what it says: results, lists of tools, errors.

PURE. A server may repeat what it was sent, and an agent must not read it there. Only the secret
itself is found, and as JSON, Python and addresses write it; not what else a server makes of it:
who sends a secret trusts its server.
"""

import json
from collections.abc import Iterable, Iterator
from typing import Any, Final
from urllib.parse import quote, quote_plus

MARK: Final = "…"
LEAST: Final = 8
"""Characters of a part that is hidden by itself, as the token of `Bearer TOKEN` (our figure)."""


class Hidden:
    """The texts that must not be told on."""

    def __init__(self, secrets: Iterable[str] = ()) -> None:
        texts = set(secrets)
        parts = {part for text in texts for part in text.split() if len(part) >= LEAST}
        written = {form for text in filter(None, texts | parts) for form in _written(text)}
        self._texts = sorted(written, key=len, reverse=True)

    def __bool__(self) -> bool:
        """Return whether there is anything to hide."""
        return bool(self._texts)

    def out_of(self, said: str) -> str:
        """Return a text without what is hidden."""
        for text in self._texts:
            said = said.replace(text, MARK)
        return said

    def out_of_all(self, said: Any) -> Any:  # noqa: ANN401 - any JSON value
        """Return a JSON value without what is hidden, wherever in it a text stands."""
        match said:
            case str():
                return self.out_of(said)
            case dict():
                return {self.out_of(key): self.out_of_all(value) for key, value in said.items()}
            case list():
                return [self.out_of_all(one) for one in said]
            case _:
                return said


def _written(text: str) -> Iterator[str]:
    """Give a text as it is, and as it stands in a JSON text, in a Python literal, in an address."""
    yield text
    yield json.dumps(text)[1:-1]
    yield repr(text)[1:-1]
    yield quote(text)
    yield quote(text, safe="")
    yield quote_plus(text)
