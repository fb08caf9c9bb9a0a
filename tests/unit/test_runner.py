"""The reason of a failed job, from its output, and the remedy."""

from __future__ import annotations

import pytest

from periplus.jobs.runner import error_of
from periplus.present.wording import job_remedy, why_not


@pytest.mark.parametrize(("lines", "sentence"), [
    (["Failed: no page was read — after 1 s", "0 fetched in this run", "Kept in a — next: periplus status"],
     "Failed: no page was read — after 1 s"),
    (["12 pages", "periplus: there is none", "0 known"], "there is none"),
    (["Usage: periplus crawl", "", "Error: No such option '--nope'."], "No such option '--nope'."),
    (["Traceback (most recent call last):", '  File "x.py"', "ValueError: no"], "ValueError: no"),
    ([], ""),
])  # fmt: skip
def test_the_reason_of_a_failed_job_is_its_error_message(lines: list[str], sentence: str) -> None:
    assert error_of(lines) == sentence


def test_reasons_are_written_in_words() -> None:
    assert why_not("https://e.org/", "host-down", "name-not-found: no such host") == (
        "https://e.org/: host given up (name not found: no such host)"
    )
    assert why_not("https://e.org/", "unreachable", "not-http") == "https://e.org/: no answer (not HTTP)"
    assert why_not("https://e.org/", "not-found", "") == "https://e.org/: not found"
    assert why_not("https://e.org/", "robots", "robots.txt line 2: /x") == (
        "https://e.org/: disallowed by robots.txt (robots.txt line 2: /x)"
    )
    assert "DNS" in job_remedy(f"Failed: {why_not('https://e.org/', 'host-down', 'name-not-found')}")


def test_a_remedy_is_added_if_the_message_has_none() -> None:
    assert "certificate" in job_remedy("Failed: no page was read; https://e.org/: certificate or TLS failure (expired)")
    assert job_remedy("nope.periplus has no collection. `periplus crawl URL -o nope.periplus` makes one.") == ""
