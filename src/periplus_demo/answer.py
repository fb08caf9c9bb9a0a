"""What a web answers for one path."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Answer:
    """status and body of a response. media_type empty: the header names none; wait_s: seconds before it is sent."""

    status: int
    media_type: str
    body: bytes
    location: str = ""
    wait_s: float = 0.0
