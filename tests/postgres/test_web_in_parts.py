"""Several collections crawl a web in parts like one collection: the same pages and links, each host in one part."""

from __future__ import annotations

import contextlib
import itertools
import subprocess
from pathlib import Path

import pytest
from click.testing import CliRunner
from postgres_voyage import StoredCollection
from voyage import PATIENCE_S, Collection, command, crawled, environment, flags_for, plain, until

from periplus.cli.main import main
from periplus.model.visit import Reason
from periplus.urls.hosts import host_key, part_of
from postgres_server import empty_collection
from testweb import Web, serve
from testweb.graphs import linked_sites

PARTS = 4
DELAY_S, LATENESS_S = (
    0.5,
    0.02,
)  # as for foreign hosts; for the tolerance of arrival times see test_manners


def web() -> Web:
    """Twelve sites that link to one another."""
    return linked_sites(seed=3, sites=12, pages=8, links_between=8, links_per_page=5)


@pytest.fixture(params=["folders", "databases"])
def places(request, tmp_path):
    """Four empty places for collections."""
    if request.param == "folders":
        yield [str(tmp_path / f"part{number}") for number in range(1, PARTS + 1)]
        return
    with contextlib.ExitStack() as stack:
        yield [stack.enter_context(empty_collection()) for _ in range(PARTS)]


def begin(server, place, part, exchange, starts, **values):
    words = [
        "crawl",
        *starts,
        "-o",
        place,
        "--part",
        f"{part}/{PARTS}",
        "--exchange",
        exchange,
        "--until-all-done",
        "-q",
    ]
    words += flags_for(server.resolve, **values)
    return subprocess.Popen(command(*words), env=environment(), stdout=subprocess.PIPE, stderr=subprocess.STDOUT)


def ended(crawls):
    outputs = [crawl.communicate(timeout=PATIENCE_S)[0].decode() for crawl in crawls]
    assert [crawl.returncode for crawl in crawls] == [0] * len(crawls), "\n\n".join(outputs)
    return outputs


def collection_at(place):
    return StoredCollection(place) if "://" in place else Collection(Path(place))


def together(places):
    """Tables of all parts; rows of a URL come from its own part."""
    tables = {"url": set(), "link": set(), "page": set()}
    for number, place in enumerate(places, 1):
        collection = collection_at(place)
        assert collection.sane() == []
        for name, rows in collection.tables.items():
            own = {row for row in rows if name != "url" or part_of(host_key(row[0]), PARTS) == number}
            assert not own & tables[name]
            tables[name] |= own
    return tables


def asked(place):
    """Hosts requested by a part."""
    return {host_key(url) for url, *_ in collection_at(place).visits() if url}


def test_four_parts_crawl_the_same_as_one_collection(tmp_path, places):
    with serve(web()) as server:
        hosts = [f"{chr(97 + at)}.test" for at in range(12)]
        starts = [server.url(host) for host in hosts]
        whole, _ = crawled(tmp_path / "whole", server, *hosts)
        crawls = [begin(server, place, at, tmp_path / "exchange", starts) for at, place in enumerate(places, 1)]
        outputs = ended(crawls)
        assert together(places) == whole.tables, outputs
        for number, place in enumerate(places, 1):
            assert {part_of(host, PARTS) for host in asked(place)} <= {number}
            others = {url for url, row in collection_at(place).urls.items() if row.reason is Reason.OTHER_PART}
            assert all(part_of(host_key(url), PARTS) != number for url in others)


def test_frequently_killed_parts_crawl_the_same_and_keep_delays(tmp_path):
    places = [str(tmp_path / f"part{number}") for number in range(1, PARTS + 1)]
    hosts = [f"{chr(97 + at)}.test" for at in range(12)]
    with serve(web()) as server:
        whole, _ = crawled(tmp_path / "whole", server, *hosts)
        before = len(server.log.entries)
        starts = [server.url(host) for host in hosts]

        def begun(number):
            values = {"delay_s": DELAY_S, "user_agent": f"part {number}"}
            return begin(server, places[number - 1], number, tmp_path / "exchange", starts, **values)

        crawls = {number: begun(number) for number in range(1, PARTS + 1)}
        for turn in range(2):
            for number in range(1, PARTS + 1):
                until(lambda turn=turn: len(server.log.entries) > before + 20 * turn, "they crawl")
                crawls[number].kill()
                crawls[number].communicate()
                crawls[number] = begun(number)
        ended(crawls.values())
        assert together(places) == whole.tables
        of_parts = [entry for entry in server.log.entries if entry.user_agent.startswith("part ")]
        for host in hosts:
            entries = sorted((entry for entry in of_parts if entry.host == host), key=lambda entry: entry.arrived)
            assert {entry.user_agent for entry in entries} == {f"part {part_of(host + ':80', PARTS)}"}
            gaps = [later.arrived - entry.arrived for entry, later in itertools.pairwise(entries)]
            assert min(gaps) >= DELAY_S - LATENESS_S


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        ("--part 1/2", "--exchange"),
        ("--exchange here", "--exchange needs --part"),
        ("--part 3/2 --exchange here", "is not a part"),
        ("--part 1/2 --exchange memory://x", "is lost when this process ends"),
        ("--part 1/2 --exchange sftp://me:s3cret@host/x", "a password in --exchange"),
        ("--part 1/2 --exchange here --from-archive x.warc.gz", "exclude each other"),
    ],
)
def test_invalid_parts_are_refused_by_commands(tmp_path, monkeypatch, words, sentence):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "x.warc.gz").touch()
    ran = CliRunner().invoke(main, ["crawl", "http://a.test/", "-o", "one", "-q", *words.split()])
    assert ran.exit_code == 2 and sentence in plain(ran.output) and "s3cret" not in ran.output


def test_a_collection_keeps_its_part(tmp_path):
    number = part_of("a.test:80", 2)
    with serve(web()) as server:
        words = [server.url("a.test"), "-q", *flags_for(server.resolve)]

        def crawl(*more):
            return CliRunner().invoke(main, ["crawl", *words, *map(str, more)])

        assert crawl("-o", tmp_path / "all").exit_code == 0
        whole = crawl("-o", tmp_path / "all", "--part", "1/2", "--exchange", tmp_path / "exchange")
        assert whole.exit_code == 2 and "periplus split" in whole.output
        part = ("-o", tmp_path / "part")
        first = crawl(*part, "--part", f"{number}/2", "--exchange", tmp_path / "exchange")
        assert first.exit_code == 0 and "no work until other parts send URLs" in plain(first.output)
        assert crawl(*part).exit_code == 0, "the collection remembers"
        other = crawl(*part, "--part", f"{3 - number}/2")
        assert other.exit_code == 2 and f"is part {number}/2" in other.output
        peer = crawl("-o", tmp_path / "peer", "--part", f"{3 - number}/2", "--exchange", tmp_path / "exchange")
        assert peer.exit_code == 0 and f"no URL belongs to part {3 - number}/2" in plain(peer.output)
        assert crawl(*part).exit_code == 0
        anew = crawl("-o", tmp_path / "anew", "--part", f"{3 - number}/2", "--exchange", tmp_path / "exchange")
        assert anew.exit_code == 0
        refused = crawl(*part)
        assert refused.exit_code == 2 and "was restarted" in plain(refused.output)
