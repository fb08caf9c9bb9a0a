"""Search index: word forms, order, filters, folding, suggestions, snippets, files."""

import contextlib
import dataclasses
import random
from collections import Counter

import numpy as np
import pytest

import periplus.retrieval.index
from periplus.document.words import TextCutter, table
from periplus.model.page import NO_BLOCKS, Block, BlockKind, Blocks, Part, Position
from periplus.model.search import PageToIndex
from periplus.retrieval.asking import ENOUGH, MatchWindow, Searcher
from periplus.retrieval.index import (
    BETWEEN,
    FOLDER,
    FORMS,
    FRESH_SEARCH_S,
    NOTHING,
    STATE,
    TITLE,
    Drafts,
    IndexBusy,
    IndexWriter,
    Ranks,
    ask,
    definitions,
    document,
    draft_page,
    hosts,
    is_asked,
    read_state,
    type_names,
    whole_name,
    write_ranks,
)
from periplus.retrieval.query import parse
from periplus.retrieval.snippets import CHARS, Highlighter, PageLines, snippet
from periplus.settings import Searching

CUTTER = TextCutter(BETWEEN)
NOW = 1.7e9


def unranked(pages):
    return [0.0] * len(pages)


def text(*paragraphs, heading=""):
    blocks = [Block(BlockKind.HEADING, heading, "h2", level=2)] if heading else []
    return Blocks.of((*blocks, *(Block(BlockKind.PARAGRAPH, paragraph, "p") for paragraph in paragraphs)))


def page(
    number,
    title,
    blocks=NO_BLOCKS,
    *,
    url="",
    language="cs",
    anchors=(),
    media_type="text/html",
    when=0.0,
    parts=(),
    folded=b"",
):
    url = url or f"https://example.org/{number}"
    return PageToIndex(
        number,
        url,
        "example.org",
        media_type,
        language,
        title,
        blocks,
        parts,
        anchors,
        when,
        folded or number.to_bytes(16, "little"),
    )


def found(folder, query, ranks=unranked, **window):
    return Searcher(folder, Searching()).search(query, MatchWindow(**window), ranks)


def ids(folder, query, ranks=unranked):
    return [match.url_id for match in found(folder, query, ranks).matches]


@pytest.fixture
def fill(tmp_path):
    def filled(*pages):
        writer = IndexWriter(tmp_path, "c")
        writer.put(pages)
        writer.commit((1, 1))
        writer.close()
        return tmp_path

    return filled


def test_noindex_pages_are_found_only_on_request(fill):
    folder = fill(
        page(1, "Harbour", text("zanzibar")), dataclasses.replace(page(2, "Hidden", text("zanzibar")), noindex=True)
    )
    assert ids(folder, "zanzibar") == ids(folder, "zanzibar OR nothing") == [1]
    assert ids(folder, "zanzibar is:noindex") == [2]
    assert ids(folder, "zanzibar -is:noindex") == [1]


def test_words_match_with_and_without_diacritics_and_exact_spelling_first(fill):
    folder = fill(
        page(1, "Příliš žluťoučký", text("kůň")), page(2, "Prilis zlutoucky", text("prilis bez hacku")), page(3, "Nic")
    )
    assert ids(folder, "prilis") == [2, 1]
    assert ids(folder, "příliš") == [1, 2]
    assert ids(folder, "kun") == [1]


def test_the_position_of_a_word_decides_the_order(fill):
    filler = [page(number, f"other {number}", text("filler words of no import")) for number in range(10, 40)]
    folder = fill(
        page(1, "something", text("the lighthouse stands"), language="en"),
        page(2, "something else", text("it stands", heading="lighthouse"), language="en"),
        page(3, "lighthouse", text("it stands"), language="en"),
        page(4, "no name", text("it stands"), language="en", anchors=("that lighthouse",)),
        page(
            5,
            "menu",
            Blocks.of([Block(BlockKind.LINK, "lighthouse", "nav", position=Position.NAV)]),
            language="en",
            parts=(Part.NAVIGATION,),
        ),
        *filler,
    )
    assert ids(folder, "lighthouses") == [3, 4, 2, 1, 5]


def test_a_matching_title_comes_first_then_the_greater_rank(fill):
    folder = fill(
        page(1, "Harbour lights and harbour lights", text("harbour lights " * 9)),
        page(2, "Harbour lights - A site"),
        page(3, "Harbour"),
        page(4, "Harbour"),
    )
    assert ids(folder, "harbour lights")[0] == 2
    assert ids(folder, "harbour", lambda pages: [float(page == 4) for page in pages])[:2] == [4, 3]


def test_a_query_can_filter_by_field(fill):
    folder = fill(
        page(1, "harbour", url="https://docs.example.org/guide/a", language="en", when=1_700_000_000.0),
        page(2, "harbour storm", media_type="application/pdf", when=1_600_000_000.0),
    )
    for query, wanted in {
        "harbour site:docs.example.org": [1], "harbour site:example.org": [1, 2], "harbour -storm": [1],
        "harbour lang:cs": [2], "type:pdf": [2],
        "inurl:guide": [1], "intitle:storm": [2], "harb*": [1, 2], '"harbour storm"': [2], '"storm harbour"': [],
        "after:2022": [1], "before:2022": [2],
        "storm OR guide": [2, 1], "-storm": [1], "harbour (storm OR nothing)": [2],
    }.items():  # fmt: skip
        assert sorted(ids(folder, query)) == sorted(wanted), query


def test_pages_with_the_same_text_are_one_hit(fill):
    folder = fill(
        *(page(number, "same", text("same words"), folded=b"x" * 16) for number in (1, 2, 3)),
        page(4, "same", text("others")),
    )
    answer = found(folder, "same")
    assert answer.total == 4
    assert [len(match.twins) for match in sorted(answer.matches, key=lambda match: match.url_id)] == [2, 0]


def test_phrases_match_only_within_a_block(fill):
    folder = fill(page(1, "t", text("old harbour", "lights at night")))
    assert ids(folder, '"harbour lights"') == []
    assert ids(folder, '"lights at night"') == [1]


def test_partial_matches_are_shown_with_a_note_if_no_page_has_all_words(fill):
    answer = found(fill(page(1, "harbour", language="en")), "harbour zebra")
    assert [match.url_id for match in answer.matches] == [1]
    assert answer.notes == ("no page has zebra",)
    assert answer.matches[0].missing == ("zebra",)


def test_pages_with_some_of_the_words_come_after_those_with_all(fill):
    folder = fill(
        page(1, "harbour harbour harbour", text("lights")),
        page(2, "other", text("harbour " * 9)),
        page(3, "other", text("cranes of a harbour")),
        page(4, "other", text("nothing")),
    )
    answer = found(folder, "harbour cranes")
    assert (answer.matches[0].url_id, answer.total) == (3, 3)
    assert [match.missing for match in answer.matches] == [(), ("cranes",), ("cranes",)]
    assert answer.notes == ("pages with all words come first, 1 of them; then pages with some of them",)
    assert ids(folder, "+harbour cranes -lights") == [3, 2]
    assert ids(folder, 'cranes "harbour lights"') == []


def test_partial_matches_are_omitted_if_enough_pages_have_all_words(fill):
    folder = fill(*(page(number, "harbour", text(f"cranes {number}")) for number in range(ENOUGH)), page(99, "harbour"))
    answer = found(folder, "harbour cranes", limit=50)
    assert (answer.total, answer.notes) == (ENOUGH, ())


def test_a_word_of_most_pages_is_never_missing(fill):
    folder = fill(
        page(1, "the harbour"), page(4, "harbour storm"), *(page(number, "the storm") for number in range(10, 30))
    )
    assert [match.missing for match in found(folder, "the harbour").matches] == [(), ()]
    assert sorted(ids(folder, "the harbour")) == [1, 4]


def test_question_words_are_never_missing(fill):
    folder = fill(page(1, "harbour", text("build one"), language="en"), page(2, "how to", text("sail"), language="en"))
    assert [(match.url_id, match.missing) for match in found(folder, "how to build a harbour").matches] == [(1, ())]
    assert ids(folder, "how to") == [2]  # the query has no other words


def defining(*texts, path="main/dl.py.function/dt.sig"):
    return Blocks.of([Block(BlockKind.ITEM, line, path) for line in texts])


@pytest.mark.parametrize(
    ("blocks", "names"),
    [
        (defining("zip(*iterables, strict=False)¶"), {"zip"}),
        (defining("os.path.join(path, *paths)"), {"os.path.join", "~path.join", "~join"}),
        (defining("class collections.Counter([iterable])"), {"class collections.counter", "collections.counter",
            "~counter"}),
        (defining("-n, --dry-run=yes,no"), {"n", "dry-run"}),
        (defining("work_mem (integer)"), {"work_mem"}),
        (defining("object.__getattr__(self, name)"), {"object.__getattr__", "~__getattr__"}),
        (defining("row_number () → bigint", path="td/p.func_signature"), {"row_number"}),
        (defining("row_number ()", path="main/p"), set()),
        (Blocks.of([Block(BlockKind.HEADING, "The RewriteRule Directive", "h2", level=2)]), {"~rewriterule"}),
        (Blocks.of([Block(BlockKind.ITEM, "jsonb_set, JSON functions", "dl/dt", link_chars=14)]), set()),
    ],
)  # fmt: skip
def test_a_page_defines_names(blocks, names):
    assert definitions(blocks, blocks.texts().__getitem__) == names


def test_a_page_that_defines_a_name_comes_before_pages_that_use_it(fill):
    folder = fill(
        page(1, "zipped archives", text("zip zip zip"), language="en"),
        page(2, "functions", defining("zip(*iterables)"), language="en"),
        *(page(number, "other", text(f"{number} zip"), language="en") for number in range(10, 40)),
    )
    assert ids(folder, "zip")[0] == ids(folder, "zip()")[0] == 2


def test_exact_spelling_counts_only_against_other_spellings(fill):
    folder = fill(
        page(1, "Programme ausführe", text("ausführe"), language="de"),
        page(2, "x", text("sie ausführen"), language="de"),
    )
    assert ids(folder, "ausführen") == [1, 2]


@pytest.mark.parametrize("name", ["os.path.join", "create_task", "--force-with", "x-ray"])
def test_a_name_matches_as_a_whole_before_its_parts(fill, name):
    parts = name.replace("-", " ").replace("_", " ").replace(".", " ").split()
    folder = fill(page(1, "a", text(" of ".join(parts))), page(2, "b", text(f"say {name} here")), page(3, "c"))
    answer = found(folder, name)
    assert [match.url_id for match in answer.matches] == [2, 1]
    assert [match.missing for match in answer.matches] == [(), (name,)]


def test_another_spelling_is_suggested(fill):
    folder = fill(*(page(number, "žluťoučký harbour", text(str(number))) for number in range(1, 30)))
    assert found(folder, "harbuor").suggestion == "harbour"
    assert found(folder, "hrabour zlutoucki").suggestion == "harbour zlutoucky"
    assert found(folder, "harbour").suggestion == ""


@pytest.mark.parametrize(
    ("query", "suggestion"),
    [("light house keeper", "lighthouse keeper"), ("stormwatch", "storm watch"), ("stormlantern", ""), ("storm", "")],
)
def test_joined_and_split_words_are_suggested(fill, query, suggestion):
    folder = fill(*(page(number, "lighthouse", text(f"storm {number} watch")) for number in range(5)))
    assert found(folder, query).suggestion == suggestion


def test_words_close_together_come_before_words_far_apart(fill):
    sea = "of the sea and all that moves in it, far from any of those " * 3
    folder = fill(
        page(1, "one", text(f"tide {sea} tables")),
        page(2, "two", text("tide and other tables", f"{sea} and again")),
        *(page(number, "other", text("filler words")) for number in range(10, 40)),
    )
    assert ids(folder, "tide tables") == [2, 1]


def test_words_in_menus_do_not_count_as_matches_of_all_words(fill):
    menu = text("Download printers drivers", "Welcome to the harbour, its lights and its masters.")
    folder = fill(
        page(1, "Start", menu, language="en", parts=(Part.NAVIGATION, Part.CONTENT)),
        page(
            2,
            "Setting up",
            text("The drivers of printers come from their makers."),
            language="en",
            parts=(Part.CONTENT,),
        ),
        *(page(number, "other", text("filler words"), language="en") for number in range(10, 40)),
    )
    answer = found(folder, "download printer driver")
    assert [(match.url_id, match.missing) for match in answer.matches] == [(2, ("download",)), (1, ())]
    assert ids(folder, "download") == [1]


@pytest.mark.parametrize(
    ("query", "answers"),
    [
        ("Paketverwaltung", [1, 2]),
        ("Verwaltungspaket", [2]),
        ("Paket Verwaltung", [2, 1]),
        ("Bootsverleih", [3]),
        ("Boot Verleih", [3]),
    ],
)
def test_compounds_match_their_words_and_vice_versa(fill, query, answers):
    german = [
        page(1, "Erstes", text("Die Paketverwaltung räumt auf."), language="de"),
        page(2, "Zweites", text("Zur Verwaltung dient das Paket."), language="de"),
        page(3, "Drittes", text("Der Bootsverleih am Hafen."), language="de"),
    ]
    fillers = [page(number, "Paket", text("Verwaltung"), language="de") for number in range(10, 13)]
    others = [page(number, "Anderes", text("Worte ohne Belang"), language="de") for number in range(20, 60)]
    folder = fill(*german, *fillers, *others)
    assert [number for number in ids(folder, query) if number < 10] == answers


EAST_ASIAN = {  # question as people write it: title and text of the page that answers it
    "データのバックアップ方法": ("バックアップ", "大切なデータを保存し、バックアップを取る方法を説明します。"),
    "プリンターを設定するには": ("プリンター", "プリンターの設定は管理画面で行います。"),
    "認証とアクセス制御の違い": ("アクセスの制御", "認証は利用者を確かめ、アクセスの制御は権限を定めます。"),
    "パスワードを忘れた": ("ログイン", "パスワードをお忘れの方は、再発行の手続きをしてください。"),
    "如何备份数据": ("备份", "本章说明数据的备份与恢复。"),
    "键盘输入法设置": ("输入法", "用键盘输入汉字之前，请先设置输入法。"),
    "怎样安装打印机驱动": ("打印机", "连接打印机以后安装驱动程序。"),
    "網路連線失敗怎麼辦": ("網路", "如果網路無法連線，請檢查線路。"),
    "無法開啟檔案": ("檔案", "檔案開啟時發生錯誤的原因。"),
    "데이터백업방법": ("백업", "데이터를 안전하게 백업하는 방법입니다."),
    "비밀번호변경하기": ("비밀번호", "비밀번호를 변경하려면 설정을 여세요."),
    "프린터설치": ("프린터", "프린터를 설치한 다음 다시 시작합니다."),
    "วิธีสำรองข้อมูล": ("การสำรอง", "บทนี้อธิบายการสำรองและกู้คืนข้อมูล"),
    "เปลี่ยนรหัสผ่านอย่างไร": ("รหัสผ่าน", "ผู้ใช้เปลี่ยนหรือตั้งรหัสผ่านใหม่ได้"),
    "ติดตั้งเครื่องพิมพ์": ("เครื่องพิมพ์", "ขั้นตอนการติดตั้งและตั้งค่าเครื่องพิมพ์"),
}


def test_questions_without_blanks_are_answered_by_their_pairs_of_characters(fill):
    """As a phrase most of them are on no page."""
    folder = fill(
        *(page(number, *(title, text(words))) for number, (title, words) in enumerate(EAST_ASIAN.values(), 1))
    )
    first = {question: ids(folder, question)[:1] for question in EAST_ASIAN}
    assert [question for number, question in enumerate(EAST_ASIAN, 1) if first[question] != [number]] == []
    assert ids(folder, '"データのバックアップ方法"') == []


def test_facets_count_the_matching_pages(fill):
    facets = {
        facet.name: dict(facet.values)
        for facet in found(fill(page(1, "a b"), page(2, "a", language="en"), page(3, "c")), "a", facets=True).facets
    }
    assert facets == {
        "site": {"example.org": 2},
        "type": {"text/html": 2},
        "language": {"cs": 1, "en": 1},
        "year": {"1970": 2},
    }


def test_a_page_can_be_replaced_and_removed(fill):
    folder = fill(page(1, "old"), page(2, "other"))
    writer = IndexWriter(folder, "c")
    writer.put([page(1, "new")])
    writer.remove([2])
    writer.commit((2, 2))
    writer.close()
    assert (ids(folder, "old"), ids(folder, "new"), ids(folder, "other")) == ([], [1], [])
    assert read_state(folder).position == (2, 2)


@pytest.mark.parametrize("held_bytes", [0, 1 << 20])
def test_anchor_texts_that_arrive_later_give_the_same_document(held_bytes, tmp_path, monkeypatch):
    monkeypatch.setattr(periplus.retrieval.index, "HELD_BYTES", held_bytes)
    early = page(1, "Přístav", text("lodě a 東京", heading="Maják"), parts=(Part.CONTENT, Part.CONTENT))
    with contextlib.closing(Drafts(tmp_path)) as drafts:
        drafts.keep(draft_page(page(1, "earlier"), CUTTER))
        drafts.keep(draft_page(early, CUTTER))
        assert fields_of(document(drafts.find(1), ("starý přístav", "lodě"))) == fields_of(
            document(draft_page(early, CUTTER), ("starý přístav", "lodě"))
        )


def fields_of(made):
    """The content of a document. The order of its spellings does not matter."""
    fields = made.to_dict()
    return {**fields, FORMS: sorted(fields[FORMS][0].split())}


def test_pages_are_queued_up_to_a_limit_of_bytes(tmp_path, monkeypatch):
    monkeypatch.setattr(periplus.retrieval.index, "QUEUED_BYTES", 5_000)
    with contextlib.closing(IndexWriter(tmp_path, "c")) as writer:
        writer.put([page(1, "harbour")])
        assert Searcher(tmp_path, Searching()).pages == 0
        writer.put([page(2, "harbour", text("word " * 2_000)), page(3, "harbour")])
        assert (Searcher(tmp_path, Searching()).pages, read_state(tmp_path).position) == (2, NOTHING)
        writer.commit((1, 1))
    assert (sorted(ids(tmp_path, "harbour")), read_state(tmp_path).position) == ([1, 2, 3], (1, 1))


def test_deferred_pages_are_indexed_with_their_anchor_texts(tmp_path):
    writer = IndexWriter(tmp_path, "c")
    writer.keep([page(number, f"number{number}") for number in (1, 2, 3)])
    writer.put([page(3, "number3")])
    writer.remove([2])
    assert [writer.put_draft(number, ("harbour",)) for number in (1, 2, 3, 4)] == [True, False, False, False]
    writer.commit((1, 1))
    writer.close()
    assert (ids(tmp_path, "harbour number1"), ids(tmp_path, "harbour"), Searcher(tmp_path, Searching()).pages) == (
        [1],
        [1],
        2,
    )


@pytest.mark.parametrize("late", [1, 3, 100])
def test_the_latest_drafts_are_kept(tmp_path, monkeypatch, late):
    monkeypatch.setattr(periplus.retrieval.index, "HELD_BYTES", 0)
    monkeypatch.setattr(periplus.retrieval.index, "LATE_DRAFTS", late)
    chance, expected = random.Random(1), {}
    with contextlib.closing(Drafts(tmp_path)) as drafts:
        for turn in range(200):
            number = chance.randrange(40)
            if chance.random() < 0.3:
                drafts.forget(number)
                expected.pop(number, None)
            else:
                drafts.keep(draft_page(page(number, f"turn{turn}"), CUTTER))
                expected[number] = turn
            some = chance.randrange(40)
            assert (drafts.find(some) is None) == (some not in expected)
        for number, turn in expected.items():
            assert (TITLE, f"turn{turn} ") in map(tuple, drafts.find(number).texts)


@pytest.mark.parametrize(("age_s", "expected"), [(0, True), (FRESH_SEARCH_S + 1, False)])
def test_a_recent_search_is_recorded(tmp_path, age_s, expected):
    assert not is_asked(tmp_path, NOW)
    assert ask(tmp_path, NOW)  # without an index there is no place to record it
    IndexWriter(tmp_path, "c").close()
    assert ask(tmp_path, NOW - age_s)
    assert is_asked(tmp_path, NOW) is expected
    assert ask(tmp_path, NOW) is not expected


@pytest.mark.parametrize(("name", "room"), [("MOST_BYTES", 0), ("MOST_BYTES", 300), ("ROOM_SHARE", 1 << 62)])
def test_pages_beyond_the_limit_have_no_drafts(tmp_path, monkeypatch, name, room):
    monkeypatch.setattr(periplus.retrieval.index, name, room)
    monkeypatch.setattr(periplus.retrieval.index, "HELD_BYTES", 0)
    with contextlib.closing(IndexWriter(tmp_path, "c")) as writer:
        writer.keep([page(number, f"number{number}") for number in range(9)])
        put = [writer.put_draft(number, ()) for number in range(9)]
        assert (put[0], put[-1]) == (True, False)
        writer.commit((1, 1))
    assert Searcher(tmp_path, Searching()).pages == sum(put)


def test_a_single_process_writes_at_a_time(fill, tmp_path):
    writer = IndexWriter(fill(), "c")
    with pytest.raises(IndexBusy):
        IndexWriter(tmp_path, "c")
    writer.close()


@pytest.mark.parametrize("harm", ["state", "engine", "other", "gone"])
def test_an_unusable_index_is_replaced_by_an_empty_one(fill, harm):
    folder = fill(page(1, "old"))
    where = folder / FOLDER
    if harm == "state":
        (where / STATE).write_text('{"version": 999}')
    elif harm == "engine":
        (where / "meta.json").write_text("{")
    elif harm == "gone":
        for path in where.iterdir():
            path.unlink()
    writer = IndexWriter(folder, "another" if harm == "other" else "c")
    assert writer.position == NOTHING
    writer.put([page(2, "new")])
    writer.commit((1, 1))
    writer.close()
    assert (ids(folder, "old"), ids(folder, "new")) == ([], [2])


def test_ranks_are_read_as_they_were_written(tmp_path):
    (tmp_path / FOLDER).mkdir()
    assert Ranks(tmp_path).of([5]) == [0.0]
    write_ranks(tmp_path, np.array([-7, 0, 1 << 62]), np.array([1.0, 0.0, 0.2]))
    assert Ranks(tmp_path).of([1 << 62, -7, 3]) == pytest.approx([0.2, 1.0, 0.0])


def shown(query, *paragraphs, language="en"):
    return snippet(PageLines(text(*paragraphs), ()), Highlighter(parse(query).root, ["en", "cs"]), language)


def test_a_snippet_shows_the_matching_words():
    cut = shown("harbour cities", "nothing here", "far " * 100 + "the Harbours of a city " + "away " * 100)
    assert [cut.text[start:end] for start, end in cut.marks] == ["Harbours", "city"]
    assert len(cut.text) <= CHARS + 2
    assert cut.text.startswith("…")
    assert cut.text.endswith("…")


def test_a_snippet_without_matching_words_is_the_beginning_of_the_page():
    assert shown("zebra", "First words.", "Then others.").text == "First words."
    assert shown("zebra") is None


def test_folded_words_prefixes_and_scripts_without_spaces_are_highlighted():
    assert [
        cut.text[start:end]
        for cut in [shown("prilis har* 京都", "Příliš harbour, 東京都に")]
        for start, end in cut.marks
    ] == ["Příliš", "harbour", "京都"]


def test_hosts_types_and_titles_have_search_labels():
    assert hosts("a.docs.example.co.uk") == ["a.docs.example.co.uk", "docs.example.co.uk", "example.co.uk"]
    assert "html" in type_names("application/xhtml+xml")
    assert whole_name("Příliš — žluťoučký!") == "prilis zlutoucky"


def test_skipped_blocks_have_no_hits():
    """Blocks are skipped by substrings that all matching forms contain. Every English ending keeps them."""
    roots = "able abil hop hopp fli fly sk ski d l dy nobl noble relat rational conditional sens vi organ general"
    endings = " e s es ed ing y ies ied ying ability ational ization iveness ly ousness fulness ement ency bly ogist"
    words = [root + ending for root in roots.split() for ending in endings.split(" ")]
    for asked in words:
        highlighter = Highlighter(parse(asked).root, ["en"])
        stem = table("en")[asked]
        answers = [word for word in words if table("en")[word] == stem]
        assert all(highlighter.hits(word, "en") == [(0, len(word), 0)] for word in answers), asked


@pytest.mark.parametrize(
    ("asked", "counted"),
    [("порт", [2, 0, 1]), ("порты", [2, 0, 1]), ("пор*", [3, 0, 1]), ("башня", [0, 1, 1]), ("c++ порт", [0, 0, 1])],
)
def test_forms_of_any_language_are_counted_in_each_block(asked, counted):
    blocks = text("Порт — „Порты“ и порох", "Маяк\nБашни", "C++ в башне порта 港")
    highlighter = Highlighter(parse(asked).root, ["ru"])
    counts, unread = highlighter.candidates(PageLines(blocks, ()), ["ru"])
    assert ([counts[0][block] for block in range(3)], unread) == (counted, set())


@pytest.mark.parametrize(
    ("language", "words"),
    [
        ("de", "Müller Mueller Straße STRASSE Strassen Häuser Haus Hauses aktuelle neue Flussschiff Flußschiff größer"),
        ("fr", "œuvre oeuvres évidemment compliqué complications récent récemment verbeux verbeuse occidentaux"),
        ("cs", "větev větve služeb služba stupeň stupně příliš Praha Praze"),
        ("da", "æble æbler gård gaard læses"),
        ("es", "existencia existente canción canciones"),
    ],
)
def test_every_matching_form_is_counted(language, words):
    blocks = text(*words.split(), "zwei\n" + words)
    for asked in words.split():
        highlighter = Highlighter(parse(asked).root, [language])
        counts, _ = highlighter.candidates(PageLines(blocks, ()), [language])
        answers = [len(highlighter.hits(line, language)) for line in blocks.texts()]
        assert all(counts[0][block] >= times for block, times in enumerate(answers)), asked


def test_a_snippet_does_not_repeat_the_title():
    page = PageLines(text("Harbour lights", "They say little of the harbour.", "The harbour lights burn."), ())
    highlighter = Highlighter(parse("harbour lights").root, ["en"])
    assert snippet(page, highlighter, "en").text == "The harbour lights burn."
    assert snippet(page, highlighter, "en", "Harbour lights - e.org").text == "The harbour lights burn."
    alone = PageLines(text("Harbour", "What is meant."), ())
    assert snippet(alone, highlighter, "en", "Harbour").text == "What is meant."


def test_blocks_that_cannot_be_the_best_are_skipped():
    rng = random.Random(7)
    vocabulary = ["harbour", "harbours", "city", "cities", "c++", "of", "the", "far_away", "Příliš", "it’s", "end\nof"]
    for _ in range(300):
        texts = [" ".join(rng.choices(vocabulary, k=rng.randrange(1, 60))) for _ in range(8)]
        highlighter = Highlighter(parse(" ".join(rng.sample(vocabulary, 2))).root, ["en", "cs"])
        best = snippet(PageLines(text(*texts), ()), highlighter, "en")
        blocks = [snippet(PageLines(text(one), ()), highlighter, "en") for one in text(*texts).texts()]
        assert best in blocks
        for one in text(*texts).texts():
            for language in ("en", "cs"):
                counts, unread = highlighter.candidates(PageLines(text(one), ()), [language])
                hits = Counter(word for _, _, word in highlighter.hits(one, language))
                assert unread or all(counts[word][0] >= times for word, times in hits.items())
