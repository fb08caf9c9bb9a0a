"""Which fragments have a target on the page."""

import pytest

from periplus.document.links import anchors_of, fragment_verdict
from periplus.model.audit import FragmentVerdict

PAGE = """<!doctype html><title id=head>t</title><h1 id="a">A</h1><a name="old">x</a><a name=x id=y></a><p id="café">c</p>
<p id="100%25">raw</p><map name="m"></map><template><i id="later"></i></template><p id="">e</p><p id="a b">s</p><p id="user-content-readme">g</p>"""  # noqa: E501
TEXT = "The first block\nSecond  block with Words in it\nand an end here"


@pytest.mark.parametrize(
    ("fragment", "expected"),
    [
        ("", "top"),
        ("top", "top"),
        ("TOP", "top"),
        ("%74op", "top"),
        ("a", "found"),
        ("A", "missing"),
        ("missing", "missing"),
        ("old", "found"),
        ("x", "found"),
        ("y", "found"),
        ("caf%C3%A9", "found"),
        ("caf%E9", "missing"),
        ("100%25", "found"),  # compared as written first, then decoded
        ("100%2525", "found"),
        ("a%20b", "found"),
        ("m", "missing"),  # the name of a map is not a target
        ("later", "found"),
        (":~:text=first", "top"),
        ("a:~:text=first", "found"),
        ("b:~:text=first", "missing"),
    ],
)
def test_html_standard_finds_the_indicated_part(fragment, expected):
    assert fragment_verdict(fragment, anchors_of(PAGE)) == expected


@pytest.mark.parametrize(
    ("fragment", "media_type", "expected"),
    [
        ("page=3", "application/pdf", "unknown"),
        ("t=10", "video/mp4", "unknown"),
        ("view", "image/svg+xml", "unknown"),
        ("missing", "application/xhtml+xml", "missing"),
        ("/inbox/3", "text/html", "unknown"),
        ("//", "text/html", "missing"),
        ("!/route", "text/html", "unknown"),
        ("readme", "text/html", "found"),
    ],
)
def test_ours_fragments_that_scripts_or_other_media_types_interpret_are_not_broken(fragment, media_type, expected):
    assert fragment_verdict(fragment, anchors_of(PAGE), media_type=media_type) == expected


@pytest.mark.parametrize(
    ("directive", "found"),
    [
        ("text=first", True),
        ("text=the%20first", True),
        ("text=FIRST%20block%20second", True),
        ("text=second,end", True),
        ("text=end,second", False),
        ("text=the-,first", True),
        ("text=a-,first", False),
        ("text=first,-block", True),
        ("text=first,-second", False),
        ("text=block-,second,words,-in", True),
        ("text=absent", False),
        ("text=absent&text=words", True),
        ("other=1", True),  # not a text directive, so nothing is searched
        ("text=", True),
    ],
)
def test_text_fragments_in_their_simple_form_are_searched(directive, found):
    verdict = fragment_verdict(":~:" + directive, frozenset(), text=TEXT)
    assert verdict is (FragmentVerdict.TOP if found else FragmentVerdict.TEXT_MISSING)


def test_a_hostile_text_fragment_is_searched_in_linear_time():
    text = "ab " * 100_000
    assert fragment_verdict(":~:text=x-,ab,c,-d", frozenset(), text=text) is FragmentVerdict.TEXT_MISSING
    assert fragment_verdict(":~:text=ab,ab,-d", frozenset(), text=text) is FragmentVerdict.TEXT_MISSING
