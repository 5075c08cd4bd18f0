"""What an agent gets of a tool's result: all of it, or its beginning and a mark."""

import hashlib
import json
from typing import Any, Final, NamedTuple

from mcp_types import CallToolResult, TextContent

_MARK: Final = "\n[cut: the first {kept} of {size} bytes; sha256 of the whole: {digest}]"
_ROOM: Final = 1024
"""Bytes of a cut result that are not the tool's text: the mark, and JSON around both."""


class Cut(NamedTuple):
    """A result as an agent gets it; size: of the whole, bytes; whole: only if it was cut."""

    result: CallToolResult
    size: int
    whole: bytes | None


def cut(result: CallToolResult, most: int) -> Cut:
    """Cut a result to `most` bytes of JSON; what is cut keeps its text only.

    Most servers say everything twice, as text and as a value: the value goes first.
    """
    whole = _json(result)
    if len(whole) <= most:
        return Cut(result, len(whole), None)
    said = result.model_copy(update={"structured_content": None})
    if result.content and len(_json(said)) <= most:
        return Cut(said, len(whole), whole)
    digest = hashlib.sha256(whole).hexdigest()
    text = _text(result).encode()
    kept = _fitting(text, most - _ROOM)
    mark = _MARK.format(kept=len(kept.encode()), size=len(text), digest=digest)
    said = CallToolResult(
        content=[TextContent(type="text", text=kept + mark)], is_error=result.is_error
    )
    return Cut(said, len(whole), whole)


def failure(text: str) -> CallToolResult:
    """Return a tool's error with its words."""
    return CallToolResult(content=[TextContent(type="text", text=text)], is_error=True)


def _json(result: CallToolResult) -> bytes:
    return result.model_dump_json(by_alias=True, exclude_none=True).encode()


def _text(result: CallToolResult) -> str:
    parts = [part.text for part in result.content if isinstance(part, TextContent)]
    if parts:
        return "\n".join(parts)
    structured: Any = result.structured_content
    return "" if structured is None else json.dumps(structured, ensure_ascii=False)


def _fitting(text: bytes, most: int) -> str:
    """Return the longest beginning whose JSON text fits: an escape takes up to six bytes."""
    size = min(len(text), most)
    while size > 0:
        said = text[:size].decode("utf-8", "ignore")
        over = len(json.dumps(said, ensure_ascii=False).encode()) - most
        if over <= 0:
            return said
        size -= max(over // 6, 1)
    return ""
