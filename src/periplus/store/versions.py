"""When is a page another one than before, and what of the former one is kept?"""

from __future__ import annotations

from collections.abc import Sequence

FIELDS = (
    "media_type", "size", "charset", "language", "title", "description", "h1", "canonical", "robots", "cut", "etag", "last_modified_field",
    "text_chars", "body_md5", "text_md5", "body_id",
)  # fmt: skip
COMPARED = frozenset({"media_type", "language", "title", "description", "h1", "canonical", "robots", "text_md5"})  # what makes a page another one
UNREAD = COMPARED | {"size", "etag", "last_modified_field"}  # where there is no text to compare


def is_another(before: Sequence[object], after: Sequence[object] | None) -> bool:
    """Whether a page is another one now. Both: the values of FIELDS, in their order; None: it is gone."""
    read = dict(zip(FIELDS, after or (), strict=False)).get("text_chars")
    return after is None or any(FIELDS[at] in (COMPARED if read else UNREAD) and was != after[at] for at, was in enumerate(before))
