"""The response of a demo web to a path."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Answer:
    """A response. media_type empty: no Content-Type is sent; wait_s: delay before it is sent, seconds."""

    status: int
    media_type: str
    body: bytes
    location: str = ""
    wait_s: float = 0.0
