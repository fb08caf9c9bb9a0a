"""An editor's text and picture of an entry: stored with the portal, on its pages, in its feeds."""

from dataclasses import replace

import pytest
from click.testing import CliRunner
from lxml import etree

from newsroom import BUOY, DREDGE, NOW, edition, entry
from periplus.api.homes import home_of
from periplus.cli.main import main
from periplus.errors import UsageError
from periplus.model.web import Url
from periplus_topics import store as portal_rows
from periplus_topics.api import portal as portals
from periplus_topics.model import EntryKey, Portal
from periplus_topics.present.portal import picture_type, portal_files
from stored import stored

PNG = b"\x89PNG\r\n\x1a\n" + b"\0" * 40
KEY = EntryKey("aaaaaaa2")
PORTAL = Portal("coast", "Coast", NOW, address="https://p.example/")
XHTML, ATOM = "{http://www.w3.org/1999/xhtml}", "{http://www.w3.org/2005/Atom}"


@pytest.fixture
def folder(tmp_path):
    folder = stored(tmp_path / "c.periplus", {"https://a.example/": "<p>A"}, ["https://a.example/"])
    portals.create(folder, PORTAL)
    keys = {Url("https://a.example/"): KEY, Url("https://b.example/"): EntryKey("bbbbbbb2")}
    home_of(folder).change(lambda statements: portal_rows.store_entry_keys(statements, "coast", keys))
    return folder


def words(folder):
    return home_of(folder).read(lambda statements: portal_rows.words_of(statements, "coast")).get(KEY)


def test_unchanged_fields_are_kept_and_empty_fields_removed(folder):
    assert portals.edit(folder, PORTAL, "aaaa", portals.Edit("It is back.", PNG, "A buoy"), NOW) == KEY
    assert words(folder) == ("It is back.", PNG, "A buoy")
    assert portals.review_of(folder, "coast").decided
    portals.edit(folder, PORTAL, KEY, portals.Edit("It was found."), NOW)
    assert words(folder) == ("It was found.", PNG, "A buoy")
    portals.edit(folder, PORTAL, KEY, portals.Edit(picture=b""), NOW)
    assert words(folder) == ("It was found.", b"", "")
    portals.remove(folder, "coast")
    assert words(folder) is None


@pytest.mark.parametrize(
    ("subject", "changes", "why"),
    [
        ("zzzz", portals.Edit("x"), "is not the key"),
        ("", portals.Edit("x"), "is not the key"),
        (KEY, portals.Edit(picture=PNG), "--alt"),
        (KEY, portals.Edit(picture=PNG, alt="  "), "--alt"),
        (KEY, portals.Edit(alt="A buoy"), "--picture"),
        (KEY, portals.Edit(picture=b"<svg/>", alt="A buoy"), "PNG, JPEG"),
        (KEY, portals.Edit(picture=PNG + b"\0" * portals.PICTURE_BYTES, alt="A buoy"), "2 MB"),
    ],
)
def test_an_invalid_edit_is_refused_and_not_stored(folder, subject, changes, why):
    with pytest.raises(UsageError, match=why):
        portals.edit(folder, PORTAL, subject, changes, NOW)
    assert words(folder) is None


@pytest.mark.parametrize(
    ("begin", "kind"),
    [(PNG, "png"), (b"\xff\xd8\xff\xe0", "jpeg"), (b"GIF89a", "gif"), (b"RIFF....WEBPVP8 ", "webp"), (b"<svg", "")],
)
def test_the_type_of_a_picture_is_detected_from_its_first_bytes(begin, kind):
    assert picture_type(begin) == kind


def test_text_and_picture_are_on_pages_and_in_feeds():
    shown = replace(
        entry(BUOY, KEY, 2.0, "Its chain broke."), words='Back <b> & "safe".', picture=PNG, alt='A "buoy" & a <ship>'
    )
    files = portal_files(edition(shown, entry(DREDGE, "aaaaaaa4", 1.0, "Open again."), portal=PORTAL))
    assert files[f"story/{KEY}.png"] == PNG
    for path, source in (("index.html", f"story/{KEY}.png"), (f"story/{KEY}.html", f"../story/{KEY}.png")):
        page = etree.fromstring(files[path])
        images = [image for image in page.iter(f"{XHTML}img") if image.get("src") == source]
        assert [image.get("alt") for image in images] == ['A "buoy" & a <ship>']
        assert 'Back <b> & "safe".' in "".join(page.itertext())
    assert "Its chain broke." in "".join(etree.fromstring(files[f"story/{KEY}.html"]).itertext())
    links = etree.fromstring(files["feed.atom"]).findall(f"{ATOM}entry/{ATOM}link[@rel='enclosure']")
    assert [(link.get("type"), link.get("length"), link.get("title")) for link in links] == [
        ("image/png", str(len(PNG)), 'A "buoy" & a <ship>')
    ]


def test_the_command_reads_a_picture_from_a_file_and_not_from_a_url(folder, tmp_path):
    file = tmp_path / "buoy.png"
    file.write_bytes(PNG)
    given = [
        "portal",
        "edit",
        "coast",
        KEY,
        "-c",
        str(folder),
        "--words",
        "It is back.",
        "--alt",
        "A buoy",
        "--picture",
    ]
    refused = CliRunner().invoke(main, [*given, "https://a.example/buoy.png"])
    assert refused.exit_code != 0
    assert words(folder) is None
    done = CliRunner().invoke(main, [*given, str(file)])
    assert done.exit_code == 0, done.output
    assert words(folder) == ("It is back.", PNG, "A buoy")
