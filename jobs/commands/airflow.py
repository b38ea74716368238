"""`hindsight airflow`: a local Airflow with our DAGs and example tables, to look at in the browser."""

from __future__ import annotations

import argparse
from pathlib import Path

from jobs.command import Commands, add_command, running_spark
from jobs.settings import PREFIX, Settings

ORDER = 80


def register(commands: Commands) -> None:
    parser = add_command(
        commands, "airflow", run,
        "start a local Airflow with our DAGs, to look at in the browser",
        "Makes an Airflow home with its database and the connection spark_default, writes the demo's raw tables,\n"
        "starts Airflow for this machine alone (no login), and a first run of hindsight_mine over the demo's days. It\n"
        "stays until Ctrl-C. Run it again to go on where it was. docs/airflow.md has more.",
        "  hindsight airflow\n  hindsight airflow --port 8090 --home /tmp/airflow\n"
        "  hindsight airflow --no-demo          # your own tables: nothing is written, no run is started",
    )  # fmt: skip
    parser.add_argument("--port", type=int, default=8080, metavar="N", help="of the web pages (default: 8080)")
    parser.add_argument("--home", metavar="FOLDER", help="Airflow's home (default: .hindsight/airflow)")
    parser.add_argument("--events", type=int, default=60_000, metavar="N", help="rows of the demo (default: 60000)")
    parser.add_argument("--queries", metavar="IDS", help="of the first run, with commas between (default: all enabled)")
    parser.add_argument("--no-demo", action="store_true", help="only Airflow, over the project's own tables")


def run(arguments: argparse.Namespace, settings: Settings) -> int:
    import signal
    from contextlib import ExitStack

    from jobs.console import log, progress
    from jobs.local_airflow import LocalAirflow
    from jobs.runtime import ensure_runtime

    # A scheduler or a shell that ends us by SIGTERM must not leave Airflow behind.
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    ensure_runtime(settings.ivy_settings_path, log.info)
    home = Path(arguments.home or settings.path(".hindsight/airflow")).resolve()
    flags = {PREFIX + key.upper(): str(getattr(settings, key)) for key, origin in settings.origins if origin == "flag"}
    airflow = LocalAirflow(home, arguments.port, settings.project, settings.master, flags)
    span = None if arguments.no_demo else _demo_tables(settings, arguments.events)
    with ExitStack() as stack:
        with progress("making Airflow's database", after_s=settings.progress_after_s):
            fresh = airflow.prepare()
        with progress("starting Airflow", after_s=settings.progress_after_s) as say:
            services = stack.enter_context(airflow.running())
            if span and fresh:
                say("and a first run")
                chosen = [name.strip() for name in arguments.queries.split(",")] if arguments.queries else []
                airflow.start_run("hindsight_mine", "demo", {**span, "queries": chosen})
        print(f"Airflow is at {airflow.address}/dags/hindsight_mine (home {home}); Ctrl-C ends it", flush=True)
        try:
            airflow.watch(services)
        except KeyboardInterrupt:
            log.info("ending Airflow")
    return 0


def _demo_tables(settings: Settings, events: int) -> dict[str, str]:
    """The demo's raw tables in the lake; the range that holds its matches."""
    from jobs.console import progress
    from jobs.demo.generator import DEFAULT_DAYS, generate, mined_range_us, write_tables
    from jobs.runs import moment

    with running_spark(settings, "demo tables", short=True) as spark, progress(
        "writing the demo's tables", after_s=settings.progress_after_s, spark=spark
    ):
        write_tables(spark, settings, generate(events))
        gateway = spark.sparkContext._gateway
    if gateway is not None:  # its Java would stay as long as this command does
        gateway.shutdown()
        gateway.proc.stdin.close()
    start, end = mined_range_us(DEFAULT_DAYS)
    return {"from": moment(start), "to": moment(end)}
