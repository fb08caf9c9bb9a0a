"""Properties of the parts of any blocks."""

from hypothesis import given, settings
from hypothesis import strategies as st

from periplus.analyse.content.evidence import SiteEvidence
from periplus.analyse.content.marking import parts_of, scores_of
from periplus.model.page import Block, BlockKind, Blocks, Part, Position

letters = st.characters(exclude_characters="")
blocks = st.builds(
    Block,
    kind=st.sampled_from(BlockKind),
    text=st.text(letters, min_size=1, max_size=30),
    path=st.one_of(st.sampled_from(["", "div/p", "ul.menu/li", "div#content.main/p"]), st.text(letters, max_size=20)),
    level=st.integers(0, 6),
    position=st.sampled_from(Position),
    link_chars=st.integers(0, 40),
)
pages = st.lists(blocks, max_size=12).map(Blocks.of)


def learnt(some):
    evidence = SiteEvidence()
    for page in some:
        evidence.learn(page)
    return evidence


@settings(max_examples=40)
@given(pages, st.lists(pages, max_size=3))
def test_any_blocks_have_one_part_each(page, others):
    for evidence in (None, learnt(others), learnt([*others, page])):
        parts = parts_of(page, evidence)
        assert len(parts) == len(page)
        assert set(parts) <= set(Part)


@settings(max_examples=30)
@given(st.lists(pages, min_size=1, max_size=4), st.randoms(use_true_random=False))
def test_the_order_of_learning_hardly_matters(some, rng):
    other = rng.sample(some, len(some))
    for page in some:
        if page:
            assert (
                learnt(some).evidence_of(page, counted=True).text_pages.tolist()
                == learnt(other).evidence_of(page, counted=True).text_pages.tolist()
            )
            assert (
                learnt(some).evidence_of(page, counted=True).path_pages.tolist()
                == learnt(other).evidence_of(page, counted=True).path_pages.tolist()
            )


@settings(max_examples=30)
@given(st.lists(pages, max_size=4))
def test_evidence_survives_as_bytes(some):
    evidence = learnt(some)
    again = SiteEvidence.from_bytes(evidence.to_bytes())
    assert again.to_bytes() == evidence.to_bytes()
    for page in some:
        assert scores_of(page, again).tolist() == scores_of(page, evidence).tolist()
