"""Vectors of the user: files, exact search, fusion with the word search."""

from __future__ import annotations

import json
import random
import sys
from pathlib import Path

import numpy as np
import pyarrow as arrow
import pytest
from click.testing import CliRunner
from pyarrow import feather, parquet

from periplus.api.collection import Collection
from periplus.cli.search import index, search
from periplus.errors import StoreError, UsageError
from periplus.model.web import UrlId
from periplus.retrieval import vectors
from periplus.urls.canonical import canonical, url_id
from periplus_agents import embedding
from stored import copied, page, stored

WORDS = {
    "/": "home",
    "/sea": "harbour lights",
    "/hill": "castle walls",
    "/bay": "anchors and ropes",
    "/tower": "stones",
}
NEAR = {"/sea": (1.0, 0.1), "/bay": (0.9, 0.2), "/tower": (0.1, 1.0), "/hill": (0.2, 0.9), "/": (0.7, 0.7)}


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    pages = {f"https://e.org{path}": page(text, *WORDS) for path, text in WORDS.items()}
    return stored(tmp_path_factory.mktemp("vectors") / "e.periplus", pages, ["https://e.org/"])


@pytest.fixture
def folder(made: Path, tmp_path: Path) -> Path:
    return copied(made.parent, tmp_path) / "e.periplus"


def chunk(path: str, number: int = 1) -> str:
    return f"{url_id(canonical(f'https://e.org{path}')) & (2**64 - 1):016x}-{number}"


def write(
    path: Path, keys: list[str | None], rows: list[list[float] | None], *, key: str = "url", **form: object
) -> Path:
    kind = form.get("kind", arrow.list_(arrow.float32()))
    table = arrow.table({"text": ["x"] * len(keys), key: keys, "vector": arrow.array(rows, kind)})
    if path.suffix == ".parquet":
        parquet.write_table(table, path)
    elif form.get("stream"):
        with arrow.ipc.new_stream(path, table.schema) as out:
            out.write_table(table)
    else:
        feather.write_feather(table, path, compression="uncompressed")
    return path


def near(path: Path, name: str = "v.parquet", **form: object) -> Path:
    return write(
        path / name, [f"https://e.org{page_path}" for page_path in NEAR], [list(row) for row in NEAR.values()], **form
    )


def found(folder: Path, query: str, like: object) -> list[str]:
    with Collection(folder) as collection:
        return [hit.url.removeprefix("https://e.org") for hit in collection.search(query, like=like).hits]


@pytest.mark.parametrize("form", [
    {"name": "v.parquet"}, {"name": "v.parquet", "kind": arrow.list_(arrow.float64(), 2)},
    {"name": "v.parquet", "kind": arrow.list_(arrow.float16())},
    {"name": "v.parquet", "kind": arrow.large_list(arrow.float32())},
    {"name": "v.arrow"}, {"name": "v.feather"}, {"name": "v.arrow", "stream": True},
])  # fmt: skip
def test_each_file_format_gives_the_same_vectors(folder, tmp_path, form):
    note = embedding.import_vectors(folder, near(tmp_path, **form))
    assert (note.rows, note.dimensions, note.pages, note.pages_here, note.skipped) == (5, 2, 5, 5, 0)
    assert found(folder, "", [1, 0]) == ["/sea", "/bay", "/", "/hill", "/tower"]


def test_numpy_files_have_their_keys_in_a_text_file(folder, tmp_path):
    np.save(tmp_path / "v.npy", np.array(list(NEAR.values()), np.float16))
    (tmp_path / "v.txt").write_text("\n".join(map(chunk, NEAR)), "utf-8")
    assert embedding.import_vectors(folder, tmp_path / "v.npy").pages_here == 5
    (tmp_path / "v.txt").write_text("https://e.org/", "utf-8")
    with pytest.raises(UsageError, match="but there are 1 keys"):
        embedding.import_vectors(folder, tmp_path / "v.npy")


def test_the_similarity_of_a_page_is_that_of_its_nearest_chunk(folder, tmp_path):
    keys = [chunk("/hill"), chunk("/hill", 2), chunk("/sea"), "no page", None, chunk("/bay"), chunk("/tower")]
    rows = [[0, 1], [1, 0.01], [1, 0.2], [1, 1], [1, 1], [0, 0], None]
    note = embedding.import_vectors(folder, write(tmp_path / "c.parquet", keys, rows, key="chunk"))
    assert (note.rows, note.pages, note.skipped) == (3, 2, 3)
    assert found(folder, "", [1, 0]) == ["/hill", "/sea"]


def test_filters_and_operators_apply_to_vector_search(folder, tmp_path):
    embedding.import_vectors(folder, near(tmp_path))
    assert found(folder, "-harbour", [1, 0])[:2] == ["/bay", "/"]
    assert found(folder, "site:other.org", [1, 0]) == []
    assert found(folder, "inurl:tower", [1, 0]) == ["/tower"]
    assert found(folder, "before:1990", [1, 0]) != []
    assert found(folder, "after:1990", [1, 0]) == []
    assert found(folder, '"castle walls"', [1, 0]) == ["/hill"]


def test_ranks_of_words_and_vectors_are_fused(folder, tmp_path):
    embedding.import_vectors(folder, near(tmp_path))
    assert found(folder, "stones", None) == ["/tower"]
    assert found(folder, "stones", [1, 0])[0] == "/tower"  # the only page with the word, the last by the vector
    assert found(folder, "walls", [0, 1])[:2] == ["/hill", "/tower"]
    with Collection(folder) as collection:
        first, second = (collection.search("", like=[1, 0], limit=2, page=number) for number in (1, 2))
        assert (first.total, [hit.url for hit in first.hits + second.hits][3]) == (5, "https://e.org/hill")
        similar = [hit.url for hit in collection.search("", like="https://e.org/sea").hits]
        assert similar[:2] == ["https://e.org/bay", "https://e.org/"]  # without the page itself
        assert {facet.name for facet in collection.search("", like=[1, 0], facets=True).facets} >= {"site"}


def test_fusion_follows_the_published_formula():
    pages = [UrlId(number) for number in range(4)]
    lists = [[pages[0], pages[1], pages[2]], [pages[2], pages[3]]]
    plain = {page: sum(1 / (60 + order.index(page) + 1) for order in lists if page in order) for page in pages}
    assert vectors.fuse(lists) == sorted(plain.items(), key=lambda item: (-item[1], item[0]))
    assert vectors.fuse([[], []]) == []


def test_the_search_is_exact(tmp_path):
    rng = random.Random(7)
    rows = [[rng.gauss(0, 1) for _ in range(24)] for _ in range(3 * vectors.BLOCK_ROWS // 2)]
    np.save(tmp_path / "v.npy", np.array(rows, np.float32))
    (tmp_path / "v.txt").write_text("\n".join(f"https://e.org/{number % 2500}" for number in range(len(rows))), "utf-8")
    vectors.take_in(tmp_path, tmp_path / "v.npy", len, lambda read: None)
    has, target = vectors.open_vectors(tmp_path), [rng.gauss(0, 1) for _ in range(24)]
    assert has is not None
    length = sum(number * number for number in target) ** 0.5
    best: dict[UrlId, float] = {}
    for row, number in zip(rows, range(len(rows)), strict=True):
        cosine = sum(map(float.__mul__, row, target)) / sum(one * one for one in row) ** 0.5 / length
        key = url_id(canonical(f"https://e.org/{number % 2500}"))
        best[key] = max(best.get(key, -1.0), cosine)
    answer = has.nearest(target, 20, lambda pages: pages)
    assert [page for page, _ in answer] == sorted(best, key=lambda page: -best[page])[:20]
    assert max(abs(best[page] - score) for page, score in answer) < 1e-3  # float16 has 11 bits
    odd = has.nearest(target, 20, lambda pages: [page for page in pages if page % 64 == 0])
    assert [page for page, _ in odd] == [page for page in sorted(best, key=lambda page: -best[page]) if page % 64 == 0][
        :20
    ]
    assert has.nearest(target, 20, lambda pages: []) == []


@pytest.mark.parametrize(("rows", "match"), [
    ([[1.0, 2.0], [1.0, 2.0, 3.0], [1.0]], "the same dimensions"), ([[1.0, float("nan")]], "not finite"),
    ([[1.0, 1.0]], "names no page"),
])  # fmt: skip
def test_an_invalid_file_keeps_the_existing_vectors(folder, tmp_path, rows, match):
    embedding.import_vectors(folder, near(tmp_path))
    with pytest.raises(UsageError, match=match):
        embedding.import_vectors(folder, write(tmp_path / "w.parquet", ["https://other.org/"] * len(rows), rows))
    assert found(folder, "", [1, 0])[0] == "/sea"
    assert not (folder / "vectors.part").exists()


def test_other_files_are_refused_with_a_reason(folder, tmp_path):
    parquet.write_table(arrow.table({"link": ["x"], "vec": [[1.0]]}), tmp_path / "a.parquet")
    (tmp_path / "b.parquet").write_bytes(b"no parquet")
    (tmp_path / "c.csv").write_text("url,vector", "utf-8")
    for name, match in (("a.parquet", "columns link, vec"), ("b.parquet", "cannot be read"), ("c.csv", "read from"),
                        ("d.parquet", "cannot be read")):  # fmt: skip
        with pytest.raises(UsageError, match=match):
            embedding.import_vectors(folder, tmp_path / name)
    with pytest.raises(UsageError, match="has no vectors"):
        found(folder, "", [1, 0])
    embedding.import_vectors(folder, near(tmp_path))
    for vector in ([1.0], [0.0, 0.0], [1.0, float("inf")]):
        with pytest.raises(UsageError):
            found(folder, "", vector)
    (folder / "vectors" / "pages.i64").write_bytes(b"")
    with pytest.raises(StoreError, match="damaged"):
        found(folder, "", [1, 0])


def test_printed_vectors_are_parsed():
    assert (
        vectors.parse_vector("[1, 2.5e-1]\n")
        == vectors.parse_vector("1 0.25")
        == vectors.parse_vector("1,0.25\n")
        == [1.0, 0.25]
    )
    for text in ("", "[]", "[[1]]", "one two", '{"a": 1}', "[" * 100_000, "0 " * 70_000):
        with pytest.raises(UsageError):
            vectors.parse_vector(text)


EMBED = f"""{sys.executable} -c 'import sys; text = sys.stdin.read(); print("1 0" if "ships" in text else "0 1")'"""


def test_the_search_command_accepts_files_vectors_and_programs(folder, tmp_path, monkeypatch):
    def run(*words: str, given: str | None = None) -> str:
        done = CliRunner().invoke(search, [*words, "-c", str(folder), "-f", "json"], input=given)
        if done.exception and not isinstance(done.exception, SystemExit):
            raise done.exception
        return json.loads(done.stdout)["hits"][0]["url"].removeprefix("https://e.org")

    file = near(tmp_path)
    CliRunner().invoke(index, ["-c", str(folder), "--vectors", str(file)])
    assert run("--like", "-", given="[0.1, 1]") == "/tower"
    assert run("--like", "/sea") == "/bay"
    (tmp_path / "q.json").write_text("[1.0, 0.1]", "utf-8")
    assert run("--like", str(tmp_path / "q.json")) == "/sea"
    np.save(tmp_path / "q.npy", np.array([0.1, 1.0]))
    assert run("--like", str(tmp_path / "q.npy")) == "/tower"
    assert run("ships", "site:e.org", "--embed-with", EMBED) == "/sea"
    for words, match in (((), "no query"),
                         (("x", "--like", "-", "--embed-with", "cat"), "use only one"),
                         (("x", "--embed-with", "cat"), "not a vector"),
                         (("x", "--embed-with", "false"), "exit code 1"),
                         (("x", "--embed-with", str(tmp_path / "none")), "cannot be run")):  # fmt: skip
        with pytest.raises(UsageError, match=match):
            run(*words)


def test_a_program_gets_the_words_without_filters_on_standard_input(tmp_path):
    assert embedding.text_of('"harbour lights" ships -storm site:e.org') == "harbour lights ships"
    assert embedding.text_of("site:e.org") == "site:e.org"
    echo = embedding.embedder(f"{sys.executable} -c 'import sys; print(len(sys.argv), len(sys.stdin.read()))'")
    assert echo("--help; rm -rf /") == [1.0, 16.0]


def test_the_index_command_reads_vectors_and_prints_their_counts(folder, tmp_path):
    file = write(tmp_path / "v.parquet", ["https://e.org/sea", "https://e.org/gone", "::"], [[1, 0], [1, 1], [1, 1]])
    done = CliRunner().invoke(index, ["-c", str(folder), "--vectors", str(file)])
    assert "2 vectors of 2 numbers, of 2 pages, 1 of them of the collection; 1 row without a page" in done.output
