"""How do frames tell how much each page counts?"""

from __future__ import annotations

from pyspark import StorageLevel
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.functions import abs as magnitude
from pyspark.sql.functions import coalesce, col, count, lit
from pyspark.sql.functions import max as most
from pyspark.sql.functions import sum as total

from periplus.analyse.engines.spark.frames import forget, frame, settled, write
from periplus.analyse.engines.stages import Task
from periplus.errors import NotConverged


def ranks(session: SparkSession, task: Task) -> None:
    _ranks(session, task, by_site=True)


def web_ranks(session: SparkSession, task: Task) -> None:
    _ranks(session, task, by_site=False)


def _ranks(session: SparkSession, task: Task, *, by_site: bool) -> None:
    """As analyse.pagerank. A round costs one exchange: of what flows along the links, summed on each side first."""
    edges = frame(session, task.folders["graph"], "edges")
    edges = edges.where("inside") if by_site else edges
    nodes = frame(session, task.folders["graph"], "nodes").select("url", (col("site") if by_site else lit(0)).alias("grp"))
    out = edges.groupBy(col("source").alias("url")).agg(count("*").alias("out"))
    state = nodes.join(out, "url", "left").select("url", "grp", coalesce("out", lit(0)).alias("out"), lit(1.0).alias("x"), lit(1.0).alias("before"))
    sizes = nodes.groupBy("grp").agg(count("*").alias("size")).persist(StorageLevel.MEMORY_AND_DISK)
    edges = edges.select("source", "target").repartition("source").persist(StorageLevel.MEMORY_AND_DISK)
    state = _iterated(state, edges, sizes, task)
    sums = state.groupBy("grp").agg(total("x").alias("sum"))
    write(state.join(sums, "grp").select("url", (col("x") / col("sum")).alias("rank")).orderBy("url"), task, "ranks")
    session.catalog.clearCache()


def _iterated(state: DataFrame, edges: DataFrame, sizes: DataFrame, task: Task) -> DataFrame:
    """Each round is written down: a lost executor costs one round, and the plan of the next one is short. Nested cached frames instead, ten rounds
    long, filled a heap of 2 GB with the text of their plans."""
    order = task.order
    state = settled(state, task, "round-0")
    residual = 0.0
    for done in range(1, order.max_rounds + 1):
        state = settled(_round(state, edges, sizes, order.damping), task, f"round-{done}")
        forget(task, f"round-{done - 1}")
        residual = _residual(state, sizes)
        if residual <= order.tolerance:
            return state
    raise NotConverged("PageRank", order.max_rounds, residual)


def _round(state: DataFrame, edges: DataFrame, sizes: DataFrame, damping: float) -> DataFrame:
    flow = state.where("out > 0").select(col("url").alias("source"), (col("x") * damping / col("out")).alias("flow"))
    into = edges.join(flow, "source").groupBy(col("target").alias("url")).agg(total("flow").alias("into"))
    lost = state.where("out = 0").groupBy("grp").agg(total("x").alias("lost"))
    base = sizes.join(lost, "grp", "left").select("grp", (lit(1 - damping) + coalesce("lost", lit(0.0)) * damping / col("size")).alias("base"))
    x = (coalesce("into", lit(0.0)) + col("base")).alias("x")
    return state.join(into, "url", "left").join(base, "grp").select("url", "grp", "out", x, col("x").alias("before"))


def _residual(state: DataFrame, sizes: DataFrame) -> float:
    """The greatest of all groups' changes, each as a share of its pages."""
    change = state.groupBy("grp").agg(total(magnitude(col("x") - col("before"))).alias("change")).join(sizes, "grp")
    found = change.agg(most(col("change") / col("size"))).first()[0]
    return float(found or 0.0)
