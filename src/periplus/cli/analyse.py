"""`periplus analyse`: a dataset's analyses by the engine that it fits."""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path
from typing import Any

import click

from periplus.cli.options import opened, output_option

_NAMES = ("ranks", "web-ranks", "map", "links", "duplicates", "near", "templates", "interlinking", "cascades")
_ENGINES = ("auto", "numpy", "stream", "spark")


@click.command()
@click.argument("dataset", type=click.Path(path_type=Path, file_okay=False))
@click.argument("analyses", nargs=-1, metavar="[ANALYSIS]...")
@click.option("-r", "--results", type=click.Path(path_type=Path, file_okay=False), default=None, help="Folder for results; by default DATASET.results.")
@click.option("--engine", type=click.Choice(_ENGINES), default="auto", show_default=True, help="auto: the first of these that the dataset fits.")
@click.option("--on", default="", metavar="MASTER", help="Spark's master: spark://host:7077, yarn, local[*]. Without it auto never chooses spark.")
@click.option("--memory", type=click.FloatRange(0), default=0.0, metavar="GB", help="Memory that may be used; 0: half of what is free.")
@click.option("--damping", type=click.FloatRange(0, 1, min_open=True, max_open=True), default=0.85, show_default=True)
@click.option("--tolerance", type=click.FloatRange(0, min_open=True), default=1e-10, show_default=True, help="Ranks: change of the last round.")
@click.option("--near", type=click.FloatRange(0.3, 1), default=0.8, show_default=True, help="Share of MinHash values of pages that say nearly the same.")
@click.option("--template", type=click.FloatRange(0.3, 1), default=0.8, show_default=True, help="The same of what pages of one template share.")
@click.option("--json", "as_json", is_flag=True, help="What was computed, and where it is, as JSON.")
@output_option
def analyse(dataset: Path, analyses: tuple[str, ...], results: Path | None, as_json: bool, output: Path | None, **wishes: Any) -> None:
    """Compute analyses of a dataset, which `periplus export parquet` makes: in memory, from disk, or on a cluster.

    ANALYSIS: ranks, web-ranks, map, links, duplicates, near, templates, interlinking, cascades; by default all for which there are tables. Results
    are Parquet tables, each in a folder of its own with a manifest, which is written last. What is finished is not computed again,
    whatever engine computed it: after a crash the same command goes on with the stage that it was in.

    \b
    periplus analyse site.dataset                      everything, by the engine that fits
    periplus analyse site.dataset ranks map --json     two analyses, and where their tables are
    periplus analyse web.dataset --on spark://host:7077 --engine spark
    """
    from periplus.api.engines import EngineWish, Order, analysed
    from periplus.cli.watching import Watch
    from periplus.present.engine_text import computed_json, computed_lines

    wish = EngineWish(wishes["engine"], wishes["on"], int(wishes["memory"] * 1e9))
    order = Order(wishes["damping"], wishes["tolerance"], near=wishes["near"], template=wishes["template"])
    found = analysed(dataset, analyses, results, order=order, wish=wish, watch=Watch())
    rows = [asdict(stage) | {"folder": str(stage.folder)} for stage in found.stages]
    with opened(output, exact=as_json) as out:
        if as_json:
            out.write(computed_json(found.choice.engine, found.choice.why, rows))
        else:
            out.writelines(line + "\n" for line in computed_lines(found.choice.engine, found.choice.why, rows))
