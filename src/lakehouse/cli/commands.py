"""The list of commands and the text of `lake --help`, which import nothing else."""

from __future__ import annotations

#: Commands by topic: name -> (module of this package, one line of help). `lake --help` prints it and imports no more.
COMMANDS: dict[str, dict[str, tuple[str, str]]] = {
    "Start here": {
        "demo": ("demo", "run a guided tour on sample data: tables, time travel, files, pipelines"),
        "init": ("setup", "write a commented lake.toml, .env.example, a script and a sample pipeline"),
        "setup": ("setup", "download what Spark needs, once per machine"),
        "doctor": ("setup", "check this machine and this lake, and suggest fixes"),
    },
    "Query": {
        "sql": ("sql", "run one SQL statement"),
        "ask": ("ask", "answer a question in plain words, with its SQL; or say why not"),
        "semantics": ("ask", "draft and check the meaning of words in questions"),
        "shell": ("shell", "open LakeShell: SQL and short commands with completion and history; run scripts"),
        "tables": ("tables", "list the tables"),
        "describe": ("tables", "show the columns, layout and current snapshot of a table"),
    },
    "Files": {
        "ingest": ("files", "load files into a table: one atomic commit, each file once"),
        "export": ("files", "write a table to a file"),
    },
    "Pipelines": {
        "run": ("run", "run a pipeline: check its tables on a branch, publish all of them or none"),
        "plan": ("run", "show what a run would rebuild, and why"),
        "runs": ("runs", "list the runs, or show one in full"),
        "new": ("new", "write a new pipeline with rules, checks, sample data and a unit test"),
        "pipelines": ("pipelines", "list the pipelines and their tables"),
        "report": ("pipelines", "show how a table grew, in the terminal or as a page with charts"),
        "dbt": ("dagster", "run dbt as one transaction: published if all of its tests pass"),
        "dagster": ("dagster", "open the pipelines in Dagster: lineage, partitions, schedules"),
    },
    "History": {
        "inspect": (
            "metadata",
            "show what a table consists of: snapshots, manifests, files",
        ),
        "history": ("time", "list the snapshots of a table"),
        "travel": ("time", "show a table as it was"),
        "diff": ("time", "show what changed in a table between two moments"),
        "rollback": ("time", "set a table back to an earlier snapshot"),
        "drop": ("tables", "drop a table (undrop restores it)"),
        "undrop": ("tables", "restore a dropped table"),
    },
    "Branches": {
        "branch": ("branch", "list, create, compare, merge and drop branches of all tables"),
        "tag": ("tag", "list, create and drop tags: names for a state of all tables"),
        "log": ("time", "list the commits of all tables or of one: who changed what, and when"),
        "cherry-pick": ("time", "publish one commit of a branch, or a reverted one, to main"),
        "revert": ("time", "undo a commit in all of its tables at once"),
    },
    "Maintenance": {
        "health": ("maintain", "score the tables: small files, deletes, old snapshots, and what would help"),
        "maintain": ("maintain", "compact tables, expire old snapshots, remove files that nothing needs"),
        "cache": ("maintain", "remove jars and class archives that nothing uses any more"),
        "verify": ("backup", "check every file, branch, tag and run; exit with 1 if something is damaged"),
        "backup": ("backup", "back the lake up to a folder or S3, while writers work; only what is new is copied"),
        "restore": ("backup", "restore a backup into another folder, bucket or kind of catalog"),
        "clone": ("backup", "create a lake that shares the data files of this one, for experiments"),
        "migrate": ("backup", "copy an embedded lake to the servers of another profile"),
    },
    "Services and settings": {
        "up": ("process", "start the background Spark, or servers of the stack: lake up all"),
        "down": ("process", "stop them; their data stays unless --wipe is given"),
        "status": ("process", "show which services are running"),
        "logs": ("process", "show the logs of the services"),
        "stack": ("stack", "list and download the servers, render them for Docker, run one in the foreground"),
        "serve": ("serve", "serve the lake over HTTP: SQL, tables, branches, pipelines, Iceberg REST catalog"),
        "ui": ("serve", "open the web console of this lake in the browser, signed in"),
        "mcp": ("mcp", "serve the lake to AI agents over standard input and output, by the Model Context Protocol"),
        "keys": ("serve", "list, create, revoke and rotate the API keys of the service"),
        "connect": ("serve", "print the configuration with which another engine uses this lake"),
        "config": ("setup", "show every setting, its value and its origin"),
        "completion": ("setup", "print the shell completion for bash, zsh or fish"),
    },
}

_OPTIONS_AND_EXAMPLES = """\
Options, before or after the command:
  --home DIR           folder of the lake (default: $LAKE_HOME, else .lake)
  --profile NAME       storage, catalog and engines: embedded, sql, rest, stack or hive
                       (default: $LAKE_PROFILE, else embedded)
  --url URL            use the lake behind this service (default: $LAKE_URL, else a lake of this machine)
  --key-file FILE      file with the API key of the service (default: $LAKE_KEY)
  --branch NAME        branch to read and write (default: main)
  -o, --output FORMAT  output format: table, json or csv (default: table)
  --version            print the version
  -h, --help           print this page; `lake COMMAND --help` has all options and an example

First steps:
  lake demo
  lake sql "create table shop.orders (id int, item string)"
  lake sql "insert into shop.orders values (1, 'tea')"
  lake sql "select * from shop.orders"
"""


def help_text() -> str:
    """Return the text that `lake --help` prints."""
    width = max(len(name) for commands in COMMANDS.values() for name in commands) + 2
    lines = [
        "Usage: lake [OPTIONS] COMMAND ...",
        "",
        "A data lakehouse in one command: Iceberg and Hudi tables, SQL, pipelines, branches, time travel.",
        "",
    ]
    for topic, commands in COMMANDS.items():
        lines += [f"{topic}:", *(f"  {name:<{width}}{text}" for name, (_, text) in commands.items()), ""]
    return "\n".join(lines) + "\n" + _OPTIONS_AND_EXAMPLES
