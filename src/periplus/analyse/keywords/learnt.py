"""How likely is each candidate to be a keyword, by what was learnt from texts with authors' and editors' keywords?

Two forests of the same kind as those that tell content from navigation: one for passages (an abstract, one paragraph), whose keywords are the long
phrases of a field, one for pages, whose keywords are rare in the collection. Learnt by quality/keywords/train.py, shipped as `forests.json`.
"""

from __future__ import annotations

import json
from functools import cache
from importlib.resources import files

import numpy as np
import numpy.typing as npt

from periplus.analyse.content.learnt import Forest
from periplus.analyse.keywords.candidates import Candidates
from periplus.analyse.keywords.counts import Counts
from periplus.analyse.keywords.measures import measures
from periplus.analyse.keywords.reading import Reading
from periplus.analyse.keywords.tags import tag_measures, tagged

PASSAGE_WORDS, PASSAGE_PARAGRAPHS = 320, 6  # at most: 97 of 100 abstracts of the sets are within, 10 of 100 help pages, 15 of 100 long news
PARAGRAPH_WORDS = 14  # of a passage at least on average; three in four help pages have 13 and fewer, nineteen in twenty abstracts 22 and more
SCALE = 1000  # leaves and borders of the table are whole numbers: thousandths


def is_passage(text: Reading) -> bool:
    """Whether it is read as an abstract."""
    words = len(text.words)
    return PARAGRAPH_WORDS * text.paragraphs <= words <= PASSAGE_WORDS and text.paragraphs <= PASSAGE_PARAGRAPHS


def likelihoods(text: Reading, found: Candidates, counts: Counts) -> npt.NDArray[np.float64]:
    """float64[n], 0 to 1; alike for candidates of one text only."""
    if not len(found.keys):
        return np.zeros(0)
    matrix = measures(text, found, counts)
    if not is_passage(text):
        return forest("page").scores(matrix).astype(np.float64)
    tags = tag_measures(tagged(text), found)
    return forest("passage").scores(np.concatenate((matrix, tags))).astype(np.float64)


@cache
def forest(name: str) -> Forest:
    """One of the two that are shipped."""
    table = json.loads((files("periplus.analyse.keywords") / "forests.json").read_text(encoding="utf-8"))[name]
    shape = np.array(table["measures"], np.intp).T.copy()
    borders = np.array(table["borders"], np.float32).T.copy()[:, :, None]
    return Forest(shape, borders, np.array(table["leaves"], np.float32).ravel() / np.float32(SCALE), table["bias"])
