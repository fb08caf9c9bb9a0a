"""How does the network of a survey's sites reach Gephi, Pajek, UCINET or a spreadsheet?"""

from __future__ import annotations

import csv
from collections.abc import Iterator
from itertools import pairwise
from typing import TextIO

import numpy as np

from periplus.model.webometrics import SurveyResults
from periplus.present.graphs import GEXF
from periplus.present.lines import visible
from periplus.present.network import TARGET, Network, shown
from periplus.present.tables import harmless
from periplus.present.wording import iso
from periplus.present.xml_text import attributes, characters, escaped
from periplus.settings import PRODUCT_TOKEN, VERSION

_COLUMNS = {"name": "string", "set": "string", "fetched": "boolean", "pages": "long", "cited_by": "integer", "prefix": "string", "tld": "string"}
_COLOURS = {TARGET: (47, 127, 134), "communicator": (180, 81, 63), "strong": (208, 168, 83), "global": (91, 127, 174)}
_OTHER = (141, 147, 143)


def write_network_gexf(found: SurveyResults, network: Network, out: TextIO) -> None:
    """GEXF 1.3 of the network: nodes are sites with their set, size by pages, colour by set; edges weigh their links. out: UTF-8."""
    method = found.method
    out.write(f'<?xml version="1.0" encoding="UTF-8"?>\n<gexf xmlns="{GEXF}" xmlns:viz="{GEXF}/viz" version="1.3">\n')
    out.write(f'<meta lastmodifieddate="{iso(method.created)[:10]}"><creator>{PRODUCT_TOKEN} {VERSION}</creator>')
    out.write(f"<description>{escaped(said_of(found))}</description></meta>\n")
    out.write('<graph mode="static" defaultedgetype="directed">\n<attributes class="node" mode="static">\n')
    for place, (name, kind) in enumerate(_COLUMNS.items()):
        out.write(f'<attribute id="{place}" title="{name}" type="{kind}"/>\n')
    out.write(f'</attributes>\n<nodes count="{len(network.sites)}">\n')
    most = max((site.pages for site in network.sites), default=1) or 1
    for node, site in enumerate(network.sites):
        prefix = found.units[site.unit].prefixes[0]
        host = prefix.partition("/")[0].partition(":")[0]
        written: tuple[str | int, ...] = (
            site.name,
            site.part,
            str(site.fetched).lower(),
            site.pages,
            site.cited_by,
            prefix,
            host.rpartition(".")[2] if "." in host else "",
        )
        values = "".join(f"<attvalue{attributes((('for', place), ('value', value)))}/>" for place, value in enumerate(written))
        red, green, blue = _COLOURS.get(site.part, _OTHER)
        look = f'<viz:color r="{red}" g="{green}" b="{blue}"/><viz:size value="{4 + 36 * (site.pages / most) ** 0.5:.2f}"/>'
        out.write(f"<node{attributes([('id', node), ('label', visible(site.short))])}><attvalues>{values}</attvalues>{look}</node>\n")
    out.write(f'</nodes>\n<edges count="{len(network.arrows)}">\n')
    for source, end, links in network.arrows:
        out.write(f'<edge source="{source}" target="{end}" weight="{links}"/>\n')
    out.write("</edges>\n</graph>\n</gexf>\n")


def said_of(found: SurveyResults) -> str:
    """What every figure needs beside it: run, unit, model, how much was read."""
    fetched = sum(figures.fetched for figures in found.figures)
    known = fetched + sum(figures.waiting for figures in found.figures)
    share = f"{100 * fetched / known:.0f} % of {known:,} known pages fetched" if known else "no page known"
    return f"{found.method.run}, {iso(found.method.created)[:10]}; links between sites by {found.method.model.value}; {share}"


def matrix_of(found: SurveyResults) -> list[list[int]]:
    """The interlinking matrix of the target set: row = source, self-links on the diagonal."""
    return list(matrix_rows(found))


def matrix_rows(found: SurveyResults) -> Iterator[list[int]]:
    """The same row by row: of 10,000 sites it would be a hundred million numbers at once."""
    links = found.matrix
    bounds = np.searchsorted(links.sources, np.arange(found.chosen + 1))
    for first, past in pairwise(bounds.tolist()):
        row = [0] * found.chosen
        for end, count in zip(links.ends[first:past].tolist(), links.counts[first:past].tolist(), strict=True):
            if end < found.chosen:
                row[end] = count
        yield row


def matrix_part(found: SurveyResults, most: int) -> tuple[list[str], list[list[int]]]:
    """(short names, matrix) of the `most` sites of most links in and out, in the order of the target set."""
    kept = [row.unit for row in shown(found, most)]
    place = np.full(len(found.units), -1, np.int64)
    place[kept] = np.arange(len(kept))
    part = np.zeros((len(kept), len(kept)), np.int64)
    links = found.matrix
    inside = (place[links.sources] >= 0) & (place[links.ends] >= 0)
    part[place[links.sources[inside]], place[links.ends[inside]]] = links.counts[inside]
    return [found.units[unit].short for unit in kept], [list(map(int, row)) for row in part]


def write_matrix_csv(found: SurveyResults, out: TextIO) -> None:
    """The interlinking matrix, sites by name in the first row and column; row = source. out: UTF-8, newline=""."""
    names = [harmless(visible(unit.name)) for unit in found.units[: found.chosen]]
    writer = csv.writer(out, lineterminator="\r\n")
    writer.writerow([f"{found.method.model.value} links from / to", *names])
    writer.writerows([name, *row] for name, row in zip(names, matrix_rows(found), strict=True))


def write_matrix_pajek(found: SurveyResults, out: TextIO) -> None:
    """The same as Pajek's .net: vertices by name, arcs with links for weights, loops are self-links."""
    out.write(f"*Vertices {found.chosen}\n")
    for place, unit in enumerate(found.units[: found.chosen], 1):
        name = characters(visible(unit.name)).replace('"', "'").replace("\\", "/")
        out.write(f'{place} "{name}"\n')
    out.write("*Arcs\n")
    links = found.matrix
    for source, end, count in zip(links.sources.tolist(), links.ends.tolist(), links.counts.tolist(), strict=True):
        if source < found.chosen and end < found.chosen:
            out.write(f"{source + 1} {end + 1} {count}\n")
