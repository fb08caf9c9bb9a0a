"""How do frames tell which pages say the same, nearly the same, or share their navigation, and which site had which text when?"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator
from functools import partial
from typing import Any

from pyspark.sql import DataFrame, SparkSession, Window
from pyspark.sql.functions import coalesce, col, count, expr, lit, max_by, row_number, struct, unix_millis, when
from pyspark.sql.functions import min as least

from periplus.analyse.engines.alike import HOUR_MS, NAMES, TEXT_ROWS, sketch_rows
from periplus.analyse.engines.selection import DEPTH_MOST, FETCHED_REASONS, LEADERS_MOST, LENGTH_BITS, LENGTH_MOST, NUMBER_BITS
from periplus.analyse.engines.spark.frames import forget, frame, settled, write
from periplus.analyse.engines.stages import Task
from periplus.analyse.nearness import BINS, SHINGLES_LEAST, band_bins

WORD = 8  # bytes of a MinHash value


def _merits(session: SparkSession, task: Task) -> DataFrame:
    """(url, merit) of every URL, as selection.merits."""
    depth = f"IF(depth IS NULL OR depth < 0, {DEPTH_MOST + 1}L, least(depth, {DEPTH_MOST}L))"
    length = f"least(CAST(octet_length(text) AS bigint), {LENGTH_MOST}L)"
    merit = f"shiftleft({depth}, {LENGTH_BITS + NUMBER_BITS}) | shiftleft({length}, {NUMBER_BITS}) | url"
    return frame(session, task.dataset, "urls").selectExpr("url", f"{merit} AS merit")


def duplicates(session: SparkSession, task: Task) -> None:
    read = frame(session, task.dataset, "urls").where(col("reason").isin(FETCHED_REASONS)).select("url")
    pages = frame(session, task.dataset, "pages").select("url", "folded_digest", "text_digest", "body_digest")
    pages = pages.join(read, "url").join(_merits(session, task), "url")
    head = least(struct("merit", col("url").alias("group"), col("text_digest").alias("text"), col("body_digest").alias("body"))).alias("head")
    groups = pages.groupBy("folded_digest").agg(head, count("*").alias("size")).where("size > 1").select("folded_digest", "head.*")
    like = when(col("body_digest") == col("body"), "bytes").when(col("text_digest") == col("text"), "words").otherwise("folded")
    found = pages.drop("merit").join(groups, "folded_digest").select("url", "group", like.alias("like"))
    write(found.orderBy("url"), task, "duplicates")


def _sketched(of: str, session: SparkSession, task: Task) -> None:
    """By the same code as on one machine, which the executors' Python must have."""
    texts = frame(session, task.dataset, "texts").select("url", "text", "content")
    rows = texts.rdd.mapPartitions(partial(_sketch_rows, of))
    write(session.createDataFrame(rows, "url bigint, shingles bigint, bins binary").orderBy("url"), task, "sketches")


sketches = partial(_sketched, "sketches")
outlines = partial(_sketched, "outlines")


def _sketch_rows(of: str, rows: Iterable[Any]) -> Iterator[tuple[int, int, bytearray]]:
    from itertools import islice

    import numpy as np

    rest = iter(rows)
    while some := list(islice(rest, TEXT_ROWS)):
        urls, texts, contents = (list(values) for values in zip(*some, strict=True))
        found, counts, bins = sketch_rows(NAMES[of], np.array(urls, np.int64), texts, contents)
        yield from zip(found.tolist(), counts.tolist(), map(bytearray, bins), strict=True)


def near(session: SparkSession, task: Task) -> None:
    others = frame(session, task.folders["duplicates"], "duplicates").where("url != group").select("url")
    known = frame(session, task.folders["sketches"], "sketches").join(others, "url", "left_anti")
    _alike(_known(session, task, known), task, "near", task.order.near)


def templates(session: SparkSession, task: Task) -> None:
    known = frame(session, task.folders["outlines"], "sketches")
    _alike(_known(session, task, known), task, "templates", task.order.template)


def _known(session: SparkSession, task: Task, sketches: DataFrame) -> DataFrame:
    found = sketches.where(col("shingles") >= SHINGLES_LEAST).join(_merits(session, task), "url").select("url", "merit", "bins")
    return settled(found, task, "known")


def _alike(known: DataFrame, task: Task, table: str, threshold: float) -> None:
    """Rounds of `alike.leaders`: a page that comes first, among those not decided, in each of its buckets stands for a group; what is near to one
    that stands for a group does not. The order of decisions does not matter, since nothing that comes later could change them.
    """
    buckets = settled(_buckets(known, band_bins(threshold)), task, "buckets")
    needed = math.ceil(threshold * BINS - 1e-9)
    open_pages = settled(buckets.select("url", "merit").distinct(), task, "open-0")
    held: DataFrame | None = None
    matches: DataFrame | None = None
    number = 0
    while not open_pages.isEmpty():
        number += 1
        room = buckets if held is None else buckets.join(_full(held), "bucket", "left_anti")
        chosen = settled(_chosen(open_pages, room), task, f"chosen-{number}")
        new_held = settled(room.join(chosen, "url").select("bucket", col("url").alias("leader"), col("merit").alias("leader_merit")), task, f"held-{number}")
        held = new_held if held is None else held.unionByName(new_held)
        near_pages = settled(_matches(new_held, buckets, known, needed), task, f"near-{number}")
        matches = near_pages if matches is None else matches.unionByName(near_pages)
        left = open_pages.join(chosen, "url", "left_anti").join(near_pages.select("url"), "url", "left_anti")
        open_pages = settled(left, task, f"open-{number}")
        forget(task, f"open-{number - 1}")
    write(_groups(matches, open_pages.sparkSession), task, table)


def _buckets(known: DataFrame, width: int) -> DataFrame:
    """(url, merit, bucket) where a bucket has two pages at least: equal values in one band."""
    bands = [f"xxhash64({band}, substring(bins, {band * width * WORD + 1}, {width * WORD}))" for band in range(BINS // width)]
    rows = known.selectExpr("url", "merit", f"explode(array({', '.join(bands)})) AS bucket")
    shared = rows.groupBy("bucket").agg(count("*").alias("size")).where("size > 1").select("bucket")
    return rows.join(shared, "bucket").select("url", "merit", "bucket")


def _full(held: DataFrame) -> DataFrame:
    return held.groupBy("bucket").agg(count("*").alias("size")).where(col("size") >= LEADERS_MOST).select("bucket")


def _chosen(open_pages: DataFrame, room: DataFrame) -> DataFrame:
    """(url) of those that no open page comes before, in any bucket that has room; so is one whose buckets are all full."""
    rows = room.join(open_pages.select("url"), "url")
    first = rows.groupBy("bucket").agg(least("merit").alias("first"))
    waits = rows.join(first, "bucket").where("merit > first").select("url")
    return open_pages.select("url").join(waits, "url", "left_anti")


def _matches(held: DataFrame, buckets: DataFrame, known: DataFrame, needed: int) -> DataFrame:
    """(url, leader, leader_merit, equal): pages near to these leaders, that come after them and share a bucket with them."""
    pairs = buckets.join(held, "bucket").where("merit > leader_merit").select("url", "leader", "leader_merit").distinct()
    one = known.select("url", "bins")
    other = known.select(col("url").alias("leader"), col("bins").alias("leader_bins"))
    piece = f"substring({{}}, i * {WORD} + 1, {WORD})"
    same = f"IF({piece.format('bins')} = {piece.format('leader_bins')}, 1, 0)"
    equal = expr(f"aggregate(sequence(0, {BINS - 1}), 0, (n, i) -> n + {same})")
    return pairs.join(one, "url").join(other, "leader").select("url", "leader", "leader_merit", equal.alias("equal")).where(col("equal") >= needed)


def _groups(matches: DataFrame | None, session: SparkSession) -> DataFrame:
    """Each page with the leader that is most like it, of equal ones the first by merit; and each such leader with itself."""
    if matches is None:
        return session.createDataFrame([], "url bigint, group bigint, similarity double")
    best = matches.groupBy("url").agg(max_by("leader", struct("equal", -col("leader_merit"))).alias("group"), max_by("equal", "equal").alias("equal"))
    members = best.select("url", "group", (col("equal") / BINS).alias("similarity"))
    leaders = best.select(col("group").alias("url"), "group", lit(1.0).alias("similarity")).distinct()
    return members.unionByName(leaders).orderBy("url")


def cascades(session: SparkSession, task: Task) -> None:
    same = frame(session, task.folders["duplicates"], "duplicates").select("url", col("group").alias("head"))
    alike = frame(session, task.folders["near"], "near").select(col("url").alias("head"), col("group").alias("story"))
    urls = frame(session, task.dataset, "urls").select("url", "site", "first_seen")
    pages = frame(session, task.dataset, "pages").select("url", "last_modified").join(urls, "url").join(same, "url", "left")
    told = pages.withColumn("is_twin", col("head").isNotNull()).withColumn("head", coalesce("head", "url")).join(alike, "head", "left")
    told = told.where("story IS NOT NULL OR is_twin").withColumn("story", coalesce("story", "head"))
    dated = told.select("story", "site", unix_millis(coalesce("last_modified", "first_seen")).alias("when"))
    firsts = dated.groupBy("story", "site").agg(least("when").alias("when"))
    several = firsts.groupBy("story").agg(count("*").alias("sites"), least("when").alias("begun")).where("sites > 1")
    place = row_number().over(Window.partitionBy("story").orderBy("when", "site")) - 1
    delay = (col("when") - col("begun")) / HOUR_MS
    found = firsts.join(several, "story").select("story", "site", place.alias("place"), "when", delay.alias("delay_h"))
    write(found.orderBy("story", "place"), task, "cascades")
