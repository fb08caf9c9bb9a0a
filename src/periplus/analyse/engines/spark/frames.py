"""How do a dataset's tables become Spark's frames, and frames a result's tables?"""

from __future__ import annotations

import shutil
from pathlib import Path

from pyspark.sql import DataFrame, SparkSession

from periplus.analyse.engines.stages import Task
from periplus.analyse.engines.tables import part_paths
from periplus.errors import StoreError

SQL_TYPES = {"int64": "bigint", "double": "double", "string": "string", "binary": "binary", "bool": "boolean"}


def session_of(frame: DataFrame) -> SparkSession:
    return frame.sparkSession


def frame(session: SparkSession, folder: Path, table: str) -> DataFrame:
    """A table of a dataset or of a stage. The folder must have the same path on every machine."""
    paths = [path.resolve().as_uri() for path in part_paths(folder, table)]
    if not paths:
        raise StoreError(f"{folder} has no table {table}: export it again")
    return session.read.parquet(*paths)


def write(found: DataFrame, task: Task, table: str) -> None:
    """A stage's table, in files that are named as every engine names them, in the order of the frame's partitions."""
    fields = task.stage.tables[table]
    folder = task.out / table
    columns = [f"CAST(`{field.name}` AS {SQL_TYPES[field.type]}) AS `{field.name}`" for field in fields]
    found.selectExpr(*columns).write.mode("overwrite").parquet(folder.resolve().as_uri())
    for number, path in enumerate(sorted(folder.glob("part-*.parquet"))):
        path.rename(folder / f"part-{number:05}.parquet")
    for path in folder.iterdir():
        if not path.name.endswith(".parquet") or path.name.startswith("."):  # marks and checksums of Hadoop's, which the manifest stands for
            path.unlink()


def settled(found: DataFrame, task: Task, name: str) -> DataFrame:
    """The same, computed once and for all: read from a file of the stage's scratch, so that neither a lost executor nor a long plan matters."""
    place = (task.scratch / name).resolve()
    found.write.mode("overwrite").parquet(place.as_uri())
    return session_of(found).read.schema(found.schema).parquet(place.as_uri())


def forget(task: Task, name: str) -> None:
    """Deletes what `settled` wrote."""
    shutil.rmtree(task.scratch / name, ignore_errors=True)
