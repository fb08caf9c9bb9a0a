"""How do frames tell where redirects end, which pages link to which, what is broken, and how sites link to one another?"""

from __future__ import annotations

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.functions import coalesce, col, count, count_distinct, lit, regexp_replace
from pyspark.sql.functions import min as least

from periplus.analyse.engines.selection import ASKED, FETCHED_REASONS, FOLDER, FOLLOWED, INVALID_REASONS, PAGE_REASONS
from periplus.analyse.engines.spark.frames import forget, frame, settled, write
from periplus.analyse.engines.stages import Task


def ends(session: SparkSession, task: Task) -> None:
    """Each round follows redirects twice as far as the one before; what goes on after more rounds than any chain needs is a circle."""
    hops = frame(session, task.dataset, "redirects").select("source", col("target").alias("end"))
    rounds = hops.count().bit_length()
    known = settled(hops, task, "hops-0")
    for number in range(1, rounds + 1):
        following = known.select(col("source").alias("end"), col("end").alias("further"))
        known = settled(
            known.join(following, "end", "left").select("source", coalesce("further", "end").alias("end")),
            task,
            f"hops-{number}",
        )
        forget(task, f"hops-{number - 1}")
    goes_on = known.select(col("source").alias("end"), lit(True).alias("circle"))
    found = known.join(goes_on, "end", "left").selectExpr("source", "IF(circle, -1, end) AS end")
    write(found.orderBy("source"), task, "ends")


def _urls(session: SparkSession, task: Task) -> DataFrame:
    reason = col("reason")
    return frame(session, task.dataset, "urls").select(
        "url",
        "site",
        "is_start",
        reason.isin(PAGE_REASONS).alias("page"),
        reason.isin(FETCHED_REASONS).alias("fetched"),
        reason.isin(INVALID_REASONS).alias("invalid"),
    )


def _led(session: SparkSession, task: Task, kinds: list[str]) -> DataFrame:
    """Links of these kinds with `led`: where redirects lead from their target."""
    links = frame(session, task.dataset, "links").where(col("kind").isin(kinds)).select("source", "target", "kind", "position")
    moved = frame(session, task.folders["ends"], "ends").select(col("source").alias("target"), "end")
    return links.join(moved, "target", "left").withColumn("led", coalesce("end", "target")).where("led >= 0").drop("end")


def _known(links: DataFrame, urls: DataFrame) -> DataFrame:
    """Links out of fetched pages, with `site` of the source and `led_site`, `led_page`, `led_invalid`."""
    sources = urls.where("fetched").select(col("url").alias("source"), "site")
    targets = urls.select(col("url").alias("led"), col("site").alias("led_site"), col("page").alias("led_page"), col("invalid").alias("led_invalid"))
    return links.join(sources, "source").join(targets, "led")


def graph(session: SparkSession, task: Task) -> None:
    urls = _urls(session, task)
    moved = frame(session, task.folders["ends"], "ends").select(col("source").alias("url"), "end")
    starts = urls.where("is_start").select("url").join(moved, "url", "left").select(coalesce("end", "url").alias("url"))
    homes = starts.join(urls.where("fetched").select("url", "site"), "url").groupBy("site").agg(least("url").alias("url"))
    is_home = homes.select("url", lit(True).alias("home"))
    nodes = urls.where("page").join(is_home, "url", "left").select("url", "site", col("fetched").alias("indexed"), coalesce("home", lit(False)).alias("home"))
    write(nodes.orderBy("url"), task, "nodes")
    links = _known(_led(session, task, FOLLOWED), urls).where("led_page AND source != led")
    edges = links.selectExpr("source", "led AS target", "site = led_site AS inside").distinct()
    write(edges.orderBy("source", "target"), task, "edges")


def broken(session: SparkSession, task: Task) -> None:
    found = _known(_led(session, task, ASKED), _urls(session, task)).where("led_invalid")
    write(found.withColumnRenamed("led", "end").orderBy("source", "target"), task, "broken")


def external(session: SparkSession, task: Task) -> None:
    found = _known(_led(session, task, FOLLOWED), _urls(session, task)).where("NOT led_invalid AND site != led_site")
    tallies = [count("*").alias("links"), count_distinct("source").alias("pages"), count_distinct("led").alias("targets")]
    write(found.groupBy(col("led_site").alias("site")).agg(*tallies).orderBy("site"), task, "sites")


def interlinking(session: SparkSession, task: Task) -> None:
    folder = regexp_replace("text", FOLDER, "$1")
    texts = frame(session, task.dataset, "urls").select("url", folder.alias("folder"))
    nodes = frame(session, task.folders["graph"], "nodes").select("url", "site").join(texts, "url")
    sources = nodes.selectExpr("url AS source", "site AS source_site", "folder AS source_folder")
    targets = nodes.selectExpr("url AS target", "site AS target_site", "folder AS target_folder")
    edges = frame(session, task.folders["graph"], "edges").select("source", "target").join(sources, "source").join(targets, "target")
    sites = [col("source_site").alias("source"), col("target_site").alias("target")]
    pages = edges.groupBy(*sites).agg(count("*").alias("count"))
    folders = edges.where("source_folder != target_folder").select("source_site", "target_site", "source_folder", "target_folder").distinct()
    of_folders = folders.groupBy(*sites).agg(count("*").alias("count"))
    found = pages.withColumn("model", lit("page")).unionByName(of_folders.withColumn("model", lit("directory")))
    found = found.unionByName(pages.withColumn("count", lit(1)).withColumn("model", lit("site")))
    write(found.orderBy("model", "source", "target"), task, "links")
