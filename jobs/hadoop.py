"""Small files and folders through Hadoop's file systems: wherever the lake is.

Enters: a location as Spark takes it. Leaves: its text, or nothing where there is none.
Always holds: a text is there whole or not at all, whoever dies while it is written. No Spark job is started: for a page
of text one would take longer than all the rest.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from py4j.protocol import Py4JJavaError

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


def at(spark: SparkSession, location: str) -> tuple[Any, Any]:
    """The location as Hadoop's Path, and the file system that it is on."""
    jvm: Any = spark.sparkContext._jvm
    path = jvm.org.apache.hadoop.fs.Path(location)
    return path, path.getFileSystem(spark.sparkContext._jsc.hadoopConfiguration())


def write_text(spark: SparkSession, location: str, text: str) -> None:
    path, system = at(spark, location)
    part, _ = at(spark, f"{location}.part")
    stream = system.create(part, True)
    try:
        stream.write(bytearray(text, "utf-8"))
    finally:
        stream.close()
    system.delete(path, True)
    if not system.rename(part, path):
        raise OSError(f"cannot rename {location}.part to {location}")


def read_text(spark: SparkSession, location: str) -> str | None:
    path, system = at(spark, location)
    try:
        stream = system.open(path)
    except Py4JJavaError as error:
        if "FileNotFoundException" in str(error.java_exception):
            return None
        raise
    try:
        return bytes(stream.readAllBytes()).decode("utf-8")
    finally:
        stream.close()


def remove(spark: SparkSession, location: str) -> None:
    """A file, or a folder with all that is in it, gone."""
    path, system = at(spark, location)
    system.delete(path, True)
