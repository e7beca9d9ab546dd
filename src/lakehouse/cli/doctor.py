"""`lake doctor`."""

from __future__ import annotations

import click

from lakehouse.cli.app import Context, command
from lakehouse.cli.show import note, show_rows, show_status


@command("lake doctor\nlake doctor --deep")
@click.option("--deep", is_flag=True, help="Also start Spark and run a statement on it.")
def doctor(context: Context, deep: bool) -> None:
    """Check Python, Java, jars, memory, disk, the catalog and the engines, and suggest a fix for each failure."""
    from lakehouse.doctor import examine

    with show_status("Checking"):
        findings = list(examine(context.settings(), deep))
    rows = [(each.check, each.state, each.found, each.do) for each in findings]
    show_rows(["check", "state", "found", "what to do"], rows, context.output)
    failed = sum(each.state == "fail" for each in findings)
    if failed:
        note(f"{failed} of {len(findings)} checks failed.")
        raise click.exceptions.Exit(1)
