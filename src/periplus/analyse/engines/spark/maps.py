"""How do frames tell where each page stands below its site's home page?"""

from __future__ import annotations

from pyspark.sql import DataFrame, SparkSession, Window
from pyspark.sql.functions import abs as magnitude
from pyspark.sql.functions import coalesce, col, lag, lit, row_number, struct
from pyspark.sql.functions import min as least
from pyspark.sql.functions import sum as total

from periplus.analyse.engines.spark.frames import frame, settled, write
from periplus.analyse.engines.stages import Task
from periplus.analyse.hierarchy import TIE


def site_map(session: SparkSession, task: Task) -> None:
    """Layer by layer: the pages that the last layer links to and that stand nowhere yet, each below the first by precedence that links to it."""
    nodes = frame(session, task.folders["graph"], "nodes")
    turns = settled(_turns(nodes, frame(session, task.folders["ranks"], "ranks")), task, "turns")
    edges = frame(session, task.folders["graph"], "edges").where("inside").select("source", "target")
    layers = _layers(nodes.where("home").select("url"), edges, turns, task)
    placed = _placed(_with_below(layers, task), turns, task)
    write(placed.orderBy("url"), task, "map")


def _turns(nodes: DataFrame, ranks: DataFrame) -> DataFrame:
    """(url, turn): pages of a site by rank, then by URL, from 0. Ranks that steps smaller than TIE link are equal, as in analyse.hierarchy."""
    falling = Window.partitionBy("site").orderBy(col("rank").desc(), "url")
    above = lag("rank").over(falling)
    stepped = nodes.select("url", "site").join(ranks, "url").withColumn("step", (above - col("rank") > lit(TIE) * magnitude(above)).cast("int"))
    alike = stepped.withColumn("class", total(coalesce("step", lit(0))).over(falling.rowsBetween(Window.unboundedPreceding, 0)))
    return alike.select("url", (row_number().over(Window.partitionBy("site").orderBy("class", "url")) - 1).alias("turn"))


def _layers(homes: DataFrame, edges: DataFrame, turns: DataFrame, task: Task) -> list[DataFrame]:
    """(url, turn, parent) of each layer."""
    last = settled(homes.join(turns, "url").select("url", "turn", lit(-1).cast("bigint").alias("parent")), task, "layer-0")
    layers, reached = [last], last.select("url")
    while True:
        met = edges.join(last.select(col("url").alias("source"), "turn"), "source").join(reached.withColumnRenamed("url", "target"), "target", "left_anti")
        best = met.groupBy(col("target").alias("url")).agg(least(struct("turn", "source")).alias("best"))
        last = settled(best.join(turns, "url").select("url", turns["turn"], col("best.source").alias("parent")), task, f"layer-{len(layers)}")
        if last.isEmpty():
            return layers
        layers.append(last)
        reached = reached.unionByName(last.select("url"))


def _with_below(layers: list[DataFrame], task: Task) -> list[DataFrame]:
    """The layers with `below`: from the last to the first, each page's children are summed when its turn comes."""
    found: list[DataFrame] = []
    under: DataFrame | None = None
    for number in range(len(layers) - 1, -1, -1):
        layer = layers[number]
        if under is None:
            counted = layer.withColumn("below", lit(0).cast("bigint"))
        else:
            counted = layer.join(under, "url", "left").withColumn("below", coalesce("below", lit(0)).cast("bigint"))
        counted = settled(counted, task, f"below-{number}")
        under = counted.groupBy(col("parent").alias("url")).agg(total(col("below") + 1).alias("below"))
        found.append(counted)
    return found[::-1]


def _placed(layers: list[DataFrame], turns: DataFrame, task: Task) -> DataFrame:
    """All pages with `place`: behind the parent and the branches of the siblings before."""
    before = Window.partitionBy("parent").orderBy("turn").rowsBetween(Window.unboundedPreceding, -1)
    last = layers[0].select("url", lit(0).alias("layer"), "parent", "below", lit(0).cast("bigint").alias("place"))
    found = last = settled(last, task, "place-0")
    for number, layer in enumerate(layers[1:], 1):
        above = last.select(col("url").alias("parent"), col("place").alias("above"))
        ahead = coalesce(total(col("below") + 1).over(before), lit(0))
        placed = layer.withColumn("ahead", ahead).join(above, "parent").withColumn("place", col("above") + 1 + col("ahead"))
        last = settled(placed.select("url", lit(number).alias("layer"), "parent", "below", "place"), task, f"place-{number}")
        found = found.unionByName(last)
    return found
