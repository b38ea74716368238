"""The subcommands, one module each; the command line finds them by itself.

A module here has a function `register(commands)` that calls `jobs.command.add_command`, and nothing at its top that is
slow to import: what a command needs (Spark, the engine) is imported when it runs. `ORDER` is its place in --help.
"""
