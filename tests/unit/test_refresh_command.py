"""The syntax of a period."""

import click
import pytest

from periplus.cli.crawl import Period


@pytest.mark.parametrize(
    ("text", "seconds"),
    [("24h", 86_400), ("90m", 5400), ("7d", 604_800), ("24", 86_400), ("1.5h", 5400), ("3600s", 3600), (" 2 H ", 7200)],
)
def test_a_period_is_parsed(text, seconds):
    assert Period().convert(text, None, None) == seconds


@pytest.mark.parametrize("text", ["", "h", "0h", "30s", "-1h", "1w", "1h30m", "1e9h"])
def test_an_invalid_period_is_refused(text):
    with pytest.raises(click.BadParameter, match="24h, 90m or 7d"):
        Period().convert(text, None, None)
