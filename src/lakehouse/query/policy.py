"""The allow-lists of the guard: kinds of statements, procedures, settings and functions."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from sqlglot import exp

SEE = "docs/security.md lists the statements that are allowed."
#: Procedures that change metadata only, or write new files and keep the old ones.
PROCEDURES = {
    "rollback_to_snapshot", "rollback_to_timestamp", "set_current_snapshot", "cherrypick_snapshot", "publish_changes",
    "fast_forward", "ancestors_of", "create_changelog_view", "compute_table_stats", "compute_partition_stats",
    "rewrite_data_files", "rewrite_manifests", "rewrite_position_delete_files",
    "show_commits", "show_commits_metadata", "show_timeline", "show_table_properties", "show_archived_commits",
}  # fmt: skip
READING_PROCEDURES = {"ancestors_of"} | {name for name in PROCEDURES if name.startswith("show_")}
#: Procedures that delete files: maintenance checks first which files no branch, tag, kept run or dropped table reaches.
MAINTENANCE = {
    "expire_snapshots", "remove_orphan_files", "run_clean", "run_rollback", "run_clustering", "run_compaction",
    "run_ttl", "archive_commits", "drop_extended_stats",
}  # fmt: skip
TRINO_ACTIONS = {"optimize", "optimize_manifests", "rollback_to_snapshot"}
#: What may follow `ALTER TABLE name`. Where a list of properties follows, its names are checked as well.
ALTER_TABLE = re.compile(
    r"add (partition field|columns?)\b|drop (partition field|columns?|tag|branch|identifier fields)\b|rename (to|column)\b"
    r"|replace (partition field|tag|branch)\b|(alter|change) column\b|write (ordered|locally|distributed|unordered)\b"
    r"|create (or replace )?(tag|branch)\b|set (identifier fields|tblproperties|properties|not null)\b|unset tblproperties\b"
)
ALTER_VIEW = re.compile(r"rename to\b|(un)?set tblproperties\b")
SHOW = {
    "tables", "table", "schemas", "databases", "namespaces", "columns", "create", "partitions", "views", "tblproperties",
    "functions", "catalogs", "stats", "current", "user", "system", "all",
}  # fmt: skip
#: Spark settings that change how a statement is planned, and nothing else.
SETTINGS = re.compile(
    r"spark\.sql\.(adaptive\.[\w.]+|shuffle\.partitions|autobroadcastjointhreshold|session\.timezone|ansi\.enabled"
    r"|files\.maxpartitionbytes|iceberg\.[\w.-]+|cbo\.[\w.]+|optimizer\.[\w.]+|join\.[\w.]+|broadcasttimeout"
    r"|casesensitive|decimaloperations\.[\w.]+|inmemorycolumnarstorage\.[\w.]+|datetime\.java8api\.enabled"
    r"|legacy\.[\w.]+|storeassignmentpolicy|sources\.partitionoverwritemode|parquet\.filterpushdown"
    r"|execution\.arrow\.[\w.]+|codegen\.[\w.]+)"
)
TABLE_FUNCTIONS = {
    "range", "explode", "explode_outer", "posexplode", "posexplode_outer", "inline", "inline_outer", "stack", "json_tuple",
    "sequence", "generate_series", "unnest", "table_changes", "exclude_columns", "flatten", "variant_explode",
    "variant_explode_outer", "sql_keywords", "collations",
}  # fmt: skip
#: Functions that read files, run code or other statements, or show settings, in any of the engines.
REFUSED_FUNCTIONS = re.compile(
    r"(read|parquet|iceberg|duckdb|pragma|postgres|sqlite|mysql|delta|sniff|hudi|load|copy|write|lance|http|s3|st_read)_\w+"
    r"|scan_\w+|\w+_scan|reflect|try_reflect|java_method|query|query_table|glob|getenv|secret|which_secret|current_setting"
    r"|set_config|from_protobuf|to_protobuf|from_substrait\w*|get_substrait\w*|nextval|getvariable|execute|raw_query|kill_query"
    r"|enable_logging|disable_logging|checkpoint|force_checkpoint|summary|repeat_row|arrow_scan\w*|test_all_types"
)
QUERY_STARTS = ("select", "with", "values", "(", "from", "table")
#: Clauses that sqlglot reads behind a comma too, where Spark reads a name.
CLAUSES = ("fetch", "group", "having", "join", "qualify", "tablesample", "where")
#: What an expression starts with, before another word.
PREFIXES = ("case", "interval", "not")
EXPLAIN_OPTIONS = ("extended", "codegen", "cost", "formatted", "analyze", "verbose")
TRINO_PROPERTIES = {
    "format", "format_version", "partitioning", "sorted_by", "compression_codec", "orc_bloom_filter_columns",
    "orc_bloom_filter_fpp", "parquet_bloom_filter_columns", "max_commit_retry",
}  # fmt: skip
CREATABLE = {"TABLE", "VIEW", "SCHEMA", "DATABASE", "NAMESPACE"}


def kinds(dialect: str) -> dict[str, tuple[type[exp.Expr], ...]]:
    """The classes of allowed statements, by kind."""
    from sqlglot import exp

    kinds: dict[str, tuple[type[exp.Expr], ...]] = {
        "read": (exp.Query, exp.Values),
        "write": (exp.Insert, exp.Update, exp.Delete, exp.Merge, exp.TruncateTable, exp.Comment, exp.Analyze),
        "other": (exp.Describe,),
    }
    if dialect == "spark":
        kinds["session"] = (exp.Use, exp.Cache, exp.Uncache, exp.Declare)
    return kinds


def inner_statements() -> tuple[type[exp.Expr], ...]:
    """What is never a part of another statement, except in WHEN of MERGE."""
    from sqlglot import exp

    return (exp.DML, exp.Create, exp.Drop, exp.Alter, exp.Command, exp.Copy, exp.Into, exp.QueryTransform, exp.Directory,
            exp.UserDefinedFunction, exp.LoadData, exp.Attach, exp.Pragma, exp.Describe)  # fmt: skip
