"""File names of URLs: valid on every file system, unique and stable."""

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from periplus.urls.canonical import canonical
from periplus.urls.files import PATH_CHARS, FileNames, file_path

HTML = "text/html"


@pytest.mark.parametrize(
    ("url", "media_type", "path"),
    [
        ("https://e.org/", HTML, "e.org/index.html"),
        ("https://e.org/a", HTML, "e.org/a.html"),
        ("https://e.org/a/", HTML, "e.org/a/index.html"),
        ("https://e.org/a.htm", HTML, "e.org/a.htm"),
        ("https://e.org/a.php?x=1", HTML, "e.org/a.php~x=1.html"),
        ("https://e.org/?q=a/b", HTML, "e.org/index~026bd41f0740.html"),
        ("http://e.org:8080/v1.2", HTML, "e.org-8080/v1.2.html"),
        ("http://[::1]:80/", HTML, "_--1/index.html"),
        ("https://e.org/-rf", HTML, "e.org/_-rf.html"),
        ("https://e.org/=1+1/--x?x=1", "text/markdown", "e.org/_=1+1/_--x~x=1.md"),
        ("https://-e.org/", HTML, "_-e.org/index.html"),
        ("https://e.org/a.html", "application/x-what", "e.org/a.html.bin"),
        ("https://e.org/a.XHT?x", "application/rss+xml", "e.org/a.XHT~x"),
        ("https://e.org/s.css?v=3", "text/css", "e.org/s~v=3.css"),
        ("https://e.org/p.PNG", "image/png", "e.org/p.PNG"),
        ("https://e.org/photo", "image/jpeg", "e.org/photo.jpg"),
        ("https://e.org/data.bin", "application/x-what", "e.org/data.bin"),
        ("https://e.org/con", HTML, "e.org/_con.html"),
        ("https://e.org/Aux.h/lpt1.html", HTML, "e.org/_Aux.h/_lpt1.html"),
        ("https://e.org/console/nul1", HTML, "e.org/console/nul1.html"),
        ("https://e.org/a:b*c%3Fd%22e", HTML, "e.org/a_b_c_d_e.html"),
        ("https://e.org/ends./with%20/x.", HTML, "e.org/ends_/with_/x_.html"),
        ("https://e.org/a//b", HTML, "e.org/a/_/b.html"),
        ("https://e.org/a%2Fb", HTML, "e.org/a_b.html"),
        ("https://e.org/%C4%8Cesko/%E4%BD%A0", HTML, "e.org/Česko/你.html"),
        ("https://e.org/%FF", HTML, "e.org/%FF.html"),
        ("https://e.org/.hidden", HTML, "e.org/.hidden.html"),
    ],
)
def test_a_url_has_a_readable_path(url, media_type, path):
    assert file_path(canonical(url), media_type) == path


def test_names_that_differ_only_in_case_get_distinct_paths():
    names = FileNames()
    paths = [
        names.of(canonical(f"https://e.org/{name}"), HTML) for name in ("A", "a", "STRASSE", "straße", "é", "e%CC%81")
    ]
    assert len({path.casefold() for path in paths}) == 6


def test_a_file_and_a_folder_with_the_same_name_get_distinct_paths():
    names = FileNames()
    first = names.of(canonical("https://e.org/a.html"), HTML)
    second = names.of(canonical("https://e.org/a.html/b"), HTML)
    assert (first, second.count("/")) == ("e.org/a.html", 1)
    names = FileNames()
    first = names.of(canonical("https://e.org/a.html/b"), HTML)
    second = names.of(canonical("https://e.org/a.html"), HTML)
    assert first == "e.org/a.html/b.html" and re.fullmatch(r"e\.org/a~[0-9a-f]{12}\.html", second)


def test_long_paths_are_shortened():
    names = FileNames()
    urls = [canonical(f"https://e.org/{'x' * 300}/{'y' * 300}/{number}") for number in range(3)]
    paths = [names.of(url, HTML) for url in urls]
    assert len(set(paths)) == 3 and all(len(path) <= PATH_CHARS and path.endswith(".html") for path in paths)


def test_a_reserved_path_is_given_to_no_url():
    assert FileNames(("e.org/index.html",)).of(canonical("https://e.org/"), HTML) != "e.org/index.html"


PLACES = st.text(st.sampled_from("aAbB.~-= %:?*/\\éß你\u202e\x01"), max_size=12)


@given(st.lists(st.tuples(PLACES, PLACES, st.sampled_from([HTML, "text/css", "x/y"])), max_size=8, unique=True))
def test_every_url_has_a_safe_and_unique_path(parts):
    """Valid on Windows, at most 255 bytes per part, inside the folder, unique."""
    names, files = FileNames(), []
    for path, query, media_type in {
        canonical(f"http://e.org/{path}?{query}"): (path, query, kind) for path, query, kind in parts
    }.values():
        files.append(names.of(canonical(f"http://e.org/{path}?{query}"), media_type))
    folded = [file.casefold() for file in files]
    assert len(set(folded)) == len(files)
    for file in files:
        for place in file.split("/"):
            assert (
                place not in ("", ".", "..")
                and place[0] not in "-="
                and place[-1] not in ". "
                and len(place.encode()) <= 255
            )
            assert not re.search(r'[<>:"|?*\\\x00-\x1f]', place)
        assert not any(other.startswith(file.casefold() + "/") for other in folded)
