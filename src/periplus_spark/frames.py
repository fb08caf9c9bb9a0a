"""The stages as Spark frames: redirects, links, maps, ranks and equal pages of a dataset's tables."""

from __future__ import annotations

import math
import shutil
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import partial
from typing import Any

from pyspark import StorageLevel
from pyspark.sql import DataFrame, SparkSession, Window
from pyspark.sql.functions import abs as magnitude
from pyspark.sql.functions import (
    coalesce,
    col,
    count,
    count_distinct,
    expr,
    lag,
    lit,
    max_by,
    regexp_replace,
    row_number,
    struct,
    unix_millis,
    when,
)
from pyspark.sql.functions import max as most
from pyspark.sql.functions import min as least
from pyspark.sql.functions import sum as total

from periplus.analyse.duplicates import BINS, LEADERS_MOST, SHINGLES_LEAST, band_bins
from periplus.analyse.engines.alike import (
    ASKED,
    DEPTH_MOST,
    FETCHED_REASONS,
    FOLDER,
    FOLLOWED,
    HOUR_MS,
    INVALID_REASONS,
    LENGTH_BITS,
    LENGTH_MOST,
    NAMES,
    NUMBER_BITS,
    PAGE_REASONS,
    TEXT_ROWS,
    sketch_rows,
)
from periplus.analyse.engines.dataset_files import part_paths
from periplus.analyse.engines.stages import StageTask
from periplus.analyse.linkgraph import TIE
from periplus.errors import NotConverged, StoreError
from periplus.model.tables import ColumnKind

SQL_TYPES = {
    ColumnKind.INTEGER: "bigint",
    ColumnKind.REAL: "double",
    ColumnKind.TEXT: "string",
    ColumnKind.BYTES: "binary",
    ColumnKind.BOOLEAN: "boolean",
}


@dataclass(frozen=True, slots=True)
class SparkTask:
    """A stage to be computed, and the session that computes it. Folders have the same path on every machine."""

    session: SparkSession
    task: StageTask

    def table(self, name: str, stage: str = "") -> DataFrame:
        """A table of a stage that this one needs; without one, of the dataset."""
        folder = self.task.folders[stage] if stage else self.task.dataset
        paths = [path.resolve().as_uri() for path in part_paths(folder, name)]
        if not paths:
            raise StoreError(f"{folder} has no table {name}: export it again")
        return self.session.read.parquet(*paths)

    def write(self, rows: DataFrame, table: str) -> None:
        """Writes the stage's table, in files that are named as every engine names them, in the order of the frame's
        partitions.
        """
        folder = self.task.out / table
        casts = [
            f"CAST(`{one.name}` AS {SQL_TYPES[one.kind]}) AS `{one.name}`" for one in self.task.stage.tables[table]
        ]
        rows.selectExpr(*casts).write.mode("overwrite").parquet(folder.resolve().as_uri())
        for number, path in enumerate(sorted(folder.glob("part-*.parquet"))):
            path.rename(folder / f"part-{number:05}.parquet")
        for path in folder.iterdir():
            # marks and checksums of Hadoop's, which the manifest stands for
            if not path.name.endswith(".parquet") or path.name.startswith("."):
                path.unlink()

    def settled(self, rows: DataFrame, name: str) -> DataFrame:
        """The same, computed once and for all: read from a file of the stage's scratch,
        so that neither a lost executor nor a long plan matters.
        """
        place = (self.task.scratch / name).resolve()
        rows.write.mode("overwrite").parquet(place.as_uri())
        return self.session.read.schema(rows.schema).parquet(place.as_uri())

    def forget(self, name: str) -> None:
        """Deletes what `settled` wrote."""
        shutil.rmtree(self.task.scratch / name, ignore_errors=True)


def ends(spark: SparkTask) -> None:
    """Each round follows redirects twice as far as the one before;
    what goes on after more rounds than any chain needs is a circle.
    """
    hops = spark.table("redirects").select("source", col("target").alias("end"))
    rounds = hops.count().bit_length()
    reached = spark.settled(hops, "hops-0")
    for number in range(1, rounds + 1):
        following = reached.select(col("source").alias("end"), col("end").alias("further"))
        reached = spark.settled(
            reached.join(following, "end", "left").select("source", coalesce("further", "end").alias("end")),
            f"hops-{number}",
        )
        spark.forget(f"hops-{number - 1}")
    goes_on = reached.select(col("source").alias("end"), lit(True).alias("circle"))
    ends_of = reached.join(goes_on, "end", "left").selectExpr("source", "IF(circle, -1, end) AS end")
    spark.write(ends_of.orderBy("source"), "ends")


def _urls(spark: SparkTask) -> DataFrame:
    reason = col("reason")
    return spark.table("urls").select(
        "url",
        "site",
        "is_start",
        reason.isin(PAGE_REASONS).alias("page"),
        reason.isin(FETCHED_REASONS).alias("fetched"),
        reason.isin(INVALID_REASONS).alias("invalid"),
    )


def _led(spark: SparkTask, kinds: list[str]) -> DataFrame:
    """Links of these kinds with `led`: where redirects lead from their target."""
    links = spark.table("links").where(col("kind").isin(kinds)).select("source", "target", "kind", "position")
    moved = spark.table("ends", "ends").select(col("source").alias("target"), "end")
    return (
        links.join(moved, "target", "left").withColumn("led", coalesce("end", "target")).where("led >= 0").drop("end")
    )


def _known(links: DataFrame, urls: DataFrame) -> DataFrame:
    """Links out of fetched pages, with `site` of the source and `led_site`, `led_page`, `led_invalid`."""
    sources = urls.where("fetched").select(col("url").alias("source"), "site")
    targets = urls.select(
        col("url").alias("led"),
        col("site").alias("led_site"),
        col("page").alias("led_page"),
        col("invalid").alias("led_invalid"),
    )
    return links.join(sources, "source").join(targets, "led")


def graph(spark: SparkTask) -> None:
    urls = _urls(spark)
    moved = spark.table("ends", "ends").select(col("source").alias("url"), "end")
    starts = urls.where("is_start").select("url").join(moved, "url", "left").select(coalesce("end", "url").alias("url"))
    homes = (
        starts.join(urls.where("fetched").select("url", "site"), "url").groupBy("site").agg(least("url").alias("url"))
    )
    is_home = homes.select("url", lit(True).alias("home"))
    nodes = (
        urls.where("page")
        .join(is_home, "url", "left")
        .select("url", "site", col("fetched").alias("indexed"), coalesce("home", lit(False)).alias("home"))
    )
    spark.write(nodes.orderBy("url"), "nodes")
    links = _known(_led(spark, FOLLOWED), urls).where("led_page AND source != led")
    edges = links.selectExpr("source", "led AS target", "site = led_site AS inside").distinct()
    spark.write(edges.orderBy("source", "target"), "edges")


def broken(spark: SparkTask) -> None:
    rows = _known(_led(spark, ASKED), _urls(spark)).where("led_invalid")
    spark.write(rows.withColumnRenamed("led", "end").orderBy("source", "target"), "broken")


def external(spark: SparkTask) -> None:
    rows = _known(_led(spark, FOLLOWED), _urls(spark)).where("NOT led_invalid AND site != led_site")
    tallies = [
        count("*").alias("links"),
        count_distinct("source").alias("pages"),
        count_distinct("led").alias("targets"),
    ]
    spark.write(rows.groupBy(col("led_site").alias("site")).agg(*tallies).orderBy("site"), "sites")


def interlinking(spark: SparkTask) -> None:
    folder = regexp_replace("text", FOLDER, "$1")
    texts = spark.table("urls").select("url", folder.alias("folder"))
    nodes = spark.table("nodes", "graph").select("url", "site").join(texts, "url")
    sources = nodes.selectExpr("url AS source", "site AS source_site", "folder AS source_folder")
    targets = nodes.selectExpr("url AS target", "site AS target_site", "folder AS target_folder")
    edges = spark.table("edges", "graph").select("source", "target").join(sources, "source").join(targets, "target")
    sites = [col("source_site").alias("source"), col("target_site").alias("target")]
    pages = edges.groupBy(*sites).agg(count("*").alias("count"))
    folders = (
        edges.where("source_folder != target_folder")
        .select("source_site", "target_site", "source_folder", "target_folder")
        .distinct()
    )
    of_folders = folders.groupBy(*sites).agg(count("*").alias("count"))
    rows = pages.withColumn("model", lit("page")).unionByName(of_folders.withColumn("model", lit("directory")))
    rows = rows.unionByName(pages.withColumn("count", lit(1)).withColumn("model", lit("site")))
    spark.write(rows.orderBy("model", "source", "target"), "links")


def site_map(spark: SparkTask) -> None:
    """Depth by depth: the pages that the last depth links to and that stand nowhere yet,
    each below the first by precedence that links to it.
    """
    nodes = spark.table("nodes", "graph")
    turns = spark.settled(_turns(nodes, spark.table("ranks", "ranks")), "turns")
    edges = spark.table("edges", "graph").where("inside").select("source", "target")
    depths = _depths(nodes.where("home").select("url"), edges, turns, spark)
    placed = _placed(_with_below(depths, spark), spark)
    spark.write(placed.orderBy("url"), "map")


def _turns(nodes: DataFrame, ranks: DataFrame) -> DataFrame:
    """(url, turn): pages of a site by rank, then by URL, from 0.

    Ranks that steps smaller than TIE link are equal, as in analyse.linkgraph.
    """
    falling = Window.partitionBy("site").orderBy(col("rank").desc(), "url")
    above = lag("rank").over(falling)
    stepped = (
        nodes.select("url", "site")
        .join(ranks, "url")
        .withColumn("step", (above - col("rank") > lit(TIE) * magnitude(above)).cast("int"))
    )
    alike = stepped.withColumn(
        "class", total(coalesce("step", lit(0))).over(falling.rowsBetween(Window.unboundedPreceding, 0))
    )
    return alike.select(
        "url", (row_number().over(Window.partitionBy("site").orderBy("class", "url")) - 1).alias("turn")
    )


def _depths(homes: DataFrame, edges: DataFrame, turns: DataFrame, spark: SparkTask) -> list[DataFrame]:
    """(url, turn, parent) of each depth."""
    last = spark.settled(
        homes.join(turns, "url").select("url", "turn", lit(-1).cast("bigint").alias("parent")), "depth-0"
    )
    depths, reached = [last], last.select("url")
    while True:
        met = edges.join(last.select(col("url").alias("source"), "turn"), "source").join(
            reached.withColumnRenamed("url", "target"), "target", "left_anti"
        )
        best = met.groupBy(col("target").alias("url")).agg(least(struct("turn", "source")).alias("best"))
        last = spark.settled(
            best.join(turns, "url").select("url", turns["turn"], col("best.source").alias("parent")),
            f"depth-{len(depths)}",
        )
        if last.isEmpty():
            return depths
        depths.append(last)
        reached = reached.unionByName(last.select("url"))


def _with_below(depths: list[DataFrame], spark: SparkTask) -> list[DataFrame]:
    """The depths with `below`: from the last to the first, each page's children are summed when its turn comes."""
    done: list[DataFrame] = []
    under: DataFrame | None = None
    for number in range(len(depths) - 1, -1, -1):
        depth = depths[number]
        if under is None:
            counted = depth.withColumn("below", lit(0).cast("bigint"))
        else:
            counted = depth.join(under, "url", "left").withColumn("below", coalesce("below", lit(0)).cast("bigint"))
        counted = spark.settled(counted, f"below-{number}")
        under = counted.groupBy(col("parent").alias("url")).agg(total(col("below") + 1).alias("below"))
        done.append(counted)
    return done[::-1]


def _placed(depths: list[DataFrame], spark: SparkTask) -> DataFrame:
    """All pages with `place`: behind the parent and the branches of the siblings before."""
    before = Window.partitionBy("parent").orderBy("turn").rowsBetween(Window.unboundedPreceding, -1)
    last = depths[0].select("url", lit(0).alias("depth"), "parent", "below", lit(0).cast("bigint").alias("place"))
    placed_pages = last = spark.settled(last, "place-0")
    for number, depth in enumerate(depths[1:], 1):
        above = last.select(col("url").alias("parent"), col("place").alias("above"))
        ahead = coalesce(total(col("below") + 1).over(before), lit(0))
        placed = (
            depth.withColumn("ahead", ahead).join(above, "parent").withColumn("place", col("above") + 1 + col("ahead"))
        )
        last = spark.settled(
            placed.select("url", lit(number).alias("depth"), "parent", "below", "place"), f"place-{number}"
        )
        placed_pages = placed_pages.unionByName(last)
    return placed_pages


def ranks(spark: SparkTask) -> None:
    _ranks(spark, by_site=True)


def web_ranks(spark: SparkTask) -> None:
    _ranks(spark, by_site=False)


def _ranks(spark: SparkTask, *, by_site: bool) -> None:
    """As analyse.pagerank. A round costs one exchange: of what flows along the links, summed on each side first."""
    edges = spark.table("edges", "graph")
    edges = edges.where("inside") if by_site else edges
    nodes = spark.table("nodes", "graph").select("url", (col("site") if by_site else lit(0)).alias("grp"))
    out = edges.groupBy(col("source").alias("url")).agg(count("*").alias("out"))
    state = nodes.join(out, "url", "left").select(
        "url", "grp", coalesce("out", lit(0)).alias("out"), lit(1.0).alias("x"), lit(1.0).alias("before")
    )
    sizes = nodes.groupBy("grp").agg(count("*").alias("size")).persist(StorageLevel.MEMORY_AND_DISK)
    edges = edges.select("source", "target").repartition("source").persist(StorageLevel.MEMORY_AND_DISK)
    state = _iterated(state, edges, sizes, spark)
    sums = state.groupBy("grp").agg(total("x").alias("sum"))
    spark.write(state.join(sums, "grp").select("url", (col("x") / col("sum")).alias("rank")).orderBy("url"), "ranks")
    spark.session.catalog.clearCache()


def _iterated(state: DataFrame, edges: DataFrame, sizes: DataFrame, spark: SparkTask) -> DataFrame:
    """Each round is written down: a lost executor costs one round, and the plan of the next one is short.

    Nested cached frames instead, ten rounds long, filled a heap of 2 GB with the text of their plans.
    """
    order = spark.task.order
    state = spark.settled(state, "round-0")
    residual = 0.0
    for done in range(1, order.max_rounds + 1):
        state = spark.settled(_round(state, edges, sizes, order.damping), f"round-{done}")
        spark.forget(f"round-{done - 1}")
        residual = _residual(state, sizes)
        if residual <= order.tolerance:
            return state
    raise NotConverged("PageRank", order.max_rounds, residual)


def _round(state: DataFrame, edges: DataFrame, sizes: DataFrame, damping: float) -> DataFrame:
    flow = state.where("out > 0").select(col("url").alias("source"), (col("x") * damping / col("out")).alias("flow"))
    into = edges.join(flow, "source").groupBy(col("target").alias("url")).agg(total("flow").alias("into"))
    lost = state.where("out = 0").groupBy("grp").agg(total("x").alias("lost"))
    base = sizes.join(lost, "grp", "left").select(
        "grp", (lit(1 - damping) + coalesce("lost", lit(0.0)) * damping / col("size")).alias("base")
    )
    x = (coalesce("into", lit(0.0)) + col("base")).alias("x")
    return state.join(into, "url", "left").join(base, "grp").select("url", "grp", "out", x, col("x").alias("before"))


def _residual(state: DataFrame, sizes: DataFrame) -> float:
    """The greatest of all groups' changes, each as a share of its pages."""
    change = state.groupBy("grp").agg(total(magnitude(col("x") - col("before"))).alias("change")).join(sizes, "grp")
    greatest = change.agg(most(col("change") / col("size"))).first()[0]
    return float(greatest or 0.0)


WORD = 8  # bytes of a MinHash value


def _merits(spark: SparkTask) -> DataFrame:
    """(url, merit) of every URL, as selection.merits."""
    depth = f"IF(depth IS NULL OR depth < 0, {DEPTH_MOST + 1}L, least(depth, {DEPTH_MOST}L))"
    length = f"least(CAST(octet_length(text) AS bigint), {LENGTH_MOST}L)"
    merit = f"shiftleft({depth}, {LENGTH_BITS + NUMBER_BITS}) | shiftleft({length}, {NUMBER_BITS}) | url"
    return spark.table("urls").selectExpr("url", f"{merit} AS merit")


def duplicates(spark: SparkTask) -> None:
    read = spark.table("urls").where(col("reason").isin(FETCHED_REASONS)).select("url")
    pages = spark.table("pages").select("url", "folded_digest", "text_digest", "body_digest")
    pages = pages.join(read, "url").join(_merits(spark), "url")
    head = least(
        struct("merit", col("url").alias("group"), col("text_digest").alias("text"), col("body_digest").alias("body"))
    ).alias("head")
    groups = (
        pages.groupBy("folded_digest")
        .agg(head, count("*").alias("size"))
        .where("size > 1")
        .select("folded_digest", "head.*")
    )
    like = (
        when(col("body_digest") == col("body"), "bytes")
        .when(col("text_digest") == col("text"), "words")
        .otherwise("folded")
    )
    rows = pages.drop("merit").join(groups, "folded_digest").select("url", "group", like.alias("like"))
    spark.write(rows.orderBy("url"), "duplicates")


def _sketched(of: str, spark: SparkTask) -> None:
    """By the same code as on one machine, which the executors' Python must have."""
    texts = spark.table("texts").select("url", "text", "content")
    rows = texts.rdd.mapPartitions(partial(_sketch_rows, of))
    spark.write(
        spark.session.createDataFrame(rows, "url bigint, shingles bigint, bins binary").orderBy("url"), "sketches"
    )


sketches = partial(_sketched, "sketches")
outlines = partial(_sketched, "outlines")


def _sketch_rows(of: str, rows: Iterable[Any]) -> Iterator[tuple[int, int, bytearray]]:
    from itertools import islice

    import numpy as np

    rest = iter(rows)
    while some := list(islice(rest, TEXT_ROWS)):
        urls, texts, contents = (list(values) for values in zip(*some, strict=True))
        pages, counts, bins = sketch_rows(NAMES[of], np.array(urls, np.int64), texts, contents)
        yield from zip(pages.tolist(), counts.tolist(), map(bytearray, bins), strict=True)


def near(spark: SparkTask) -> None:
    others = spark.table("duplicates", "duplicates").where("url != group").select("url")
    _alike(spark.table("sketches", "sketches").join(others, "url", "left_anti"), spark, "near", spark.task.order.near)


def templates(spark: SparkTask) -> None:
    _alike(spark.table("sketches", "outlines"), spark, "templates", spark.task.order.template)


def _alike(sketches: DataFrame, spark: SparkTask, table: str, threshold: float) -> None:
    """Rounds of `alike.leaders`: a page that comes first, among those not decided,
    in each of its buckets stands for a group; what is near to one that stands for a group does not.

    The order of decisions does not matter, since nothing that comes later could change them.
    """
    enough = sketches.where(col("shingles") >= SHINGLES_LEAST)
    pages = spark.settled(enough.join(_merits(spark), "url").select("url", "merit", "bins"), "pages")
    buckets = spark.settled(_buckets(pages, band_bins(threshold)), "buckets")
    needed = math.ceil(threshold * BINS - 1e-9)
    open_pages = spark.settled(buckets.select("url", "merit").distinct(), "open-0")
    held: DataFrame | None = None
    matches: DataFrame | None = None
    number = 0
    while not open_pages.isEmpty():
        number += 1
        room = buckets if held is None else buckets.join(_full(held), "bucket", "left_anti")
        chosen = spark.settled(_chosen(open_pages, room), f"chosen-{number}")
        new_held = spark.settled(
            room.join(chosen, "url").select("bucket", col("url").alias("leader"), col("merit").alias("leader_merit")),
            f"held-{number}",
        )
        held = new_held if held is None else held.unionByName(new_held)
        near_pages = spark.settled(_matches(new_held, buckets, pages, needed), f"near-{number}")
        matches = near_pages if matches is None else matches.unionByName(near_pages)
        left = open_pages.join(chosen, "url", "left_anti").join(near_pages.select("url"), "url", "left_anti")
        open_pages = spark.settled(left, f"open-{number}")
        spark.forget(f"open-{number - 1}")
    spark.write(_groups(matches, spark), table)


def _buckets(pages: DataFrame, width: int) -> DataFrame:
    """(url, merit, bucket) where a bucket has two pages at least: equal values in one band."""
    bands = [
        f"xxhash64({band}, substring(bins, {band * width * WORD + 1}, {width * WORD}))" for band in range(BINS // width)
    ]
    rows = pages.selectExpr("url", "merit", f"explode(array({', '.join(bands)})) AS bucket")
    shared = rows.groupBy("bucket").agg(count("*").alias("size")).where("size > 1").select("bucket")
    return rows.join(shared, "bucket").select("url", "merit", "bucket")


def _full(held: DataFrame) -> DataFrame:
    return held.groupBy("bucket").agg(count("*").alias("size")).where(col("size") >= LEADERS_MOST).select("bucket")


def _chosen(open_pages: DataFrame, room: DataFrame) -> DataFrame:
    """(url) of those that no open page comes before, in any bucket that has room;
    so is one whose buckets are all full.
    """
    rows = room.join(open_pages.select("url"), "url")
    first = rows.groupBy("bucket").agg(least("merit").alias("first"))
    waits = rows.join(first, "bucket").where("merit > first").select("url")
    return open_pages.select("url").join(waits, "url", "left_anti")


def _matches(held: DataFrame, buckets: DataFrame, pages: DataFrame, needed: int) -> DataFrame:
    """(url, leader, leader_merit, equal): pages near to these leaders,
    that come after them and share a bucket with them.
    """
    pairs = (
        buckets.join(held, "bucket").where("merit > leader_merit").select("url", "leader", "leader_merit").distinct()
    )
    one = pages.select("url", "bins")
    other = pages.select(col("url").alias("leader"), col("bins").alias("leader_bins"))
    piece = f"substring({{}}, i * {WORD} + 1, {WORD})"
    same = f"IF({piece.format('bins')} = {piece.format('leader_bins')}, 1, 0)"
    equal = expr(f"aggregate(sequence(0, {BINS - 1}), 0, (n, i) -> n + {same})")
    return (
        pairs.join(one, "url")
        .join(other, "leader")
        .select("url", "leader", "leader_merit", equal.alias("equal"))
        .where(col("equal") >= needed)
    )


def _groups(matches: DataFrame | None, spark: SparkTask) -> DataFrame:
    """Each page with the leader that is most like it, of equal ones the first by merit;
    and each such leader with itself.
    """
    if matches is None:
        return spark.session.createDataFrame([], "url bigint, group bigint, similarity double")
    best = matches.groupBy("url").agg(
        max_by("leader", struct("equal", -col("leader_merit"))).alias("group"), max_by("equal", "equal").alias("equal")
    )
    members = best.select("url", "group", (col("equal") / BINS).alias("similarity"))
    leaders = best.select(col("group").alias("url"), "group", lit(1.0).alias("similarity")).distinct()
    return members.unionByName(leaders).orderBy("url")


def cascades(spark: SparkTask) -> None:
    same = spark.table("duplicates", "duplicates").select("url", col("group").alias("head"))
    alike = spark.table("near", "near").select(col("url").alias("head"), col("group").alias("story"))
    urls = spark.table("urls").select("url", "site", "first_seen")
    pages = spark.table("pages").select("url", "last_modified").join(urls, "url").join(same, "url", "left")
    in_story = (
        pages.withColumn("is_twin", col("head").isNotNull())
        .withColumn("head", coalesce("head", "url"))
        .join(alike, "head", "left")
    )
    in_story = in_story.where("story IS NOT NULL OR is_twin").withColumn("story", coalesce("story", "head"))
    dated = in_story.select("story", "site", unix_millis(coalesce("last_modified", "first_seen")).alias("when"))
    firsts = dated.groupBy("story", "site").agg(least("when").alias("when"))
    several = firsts.groupBy("story").agg(count("*").alias("sites"), least("when").alias("begun")).where("sites > 1")
    place = row_number().over(Window.partitionBy("story").orderBy("when", "site")) - 1
    delay = (col("when") - col("begun")) / HOUR_MS
    rows = firsts.join(several, "story").select("story", "site", place.alias("place"), "when", delay.alias("delay_h"))
    spark.write(rows.orderBy("story", "place"), "cascades")
