"""A run in a process of its own, which the test kills: starts Spark, says `ready`, and mines when a line comes in."""

from __future__ import annotations

import sys

from jobs.mine import mine
from jobs.runs import Request
from jobs.session import spark_session
from jobs.settings import load_settings

if __name__ == "__main__":
    folder, start, end = sys.argv[1], int(sys.argv[2]), int(sys.argv[3])
    settings = load_settings(project=folder, environment={})
    spark = spark_session(settings, java_options="-XX:TieredStopAtLevel=1 -XX:+UseSerialGC")
    print("ready", flush=True)
    sys.stdin.readline()
    mine(spark, settings, Request(start, end), say=lambda line: print(line, flush=True))
    print("finished", flush=True)
