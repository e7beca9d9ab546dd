"""`lake up`, `down`, `status`: the background Spark of this lake."""

from __future__ import annotations

from pathlib import Path

from lakehouse.cli.app import Context, command
from lakehouse.cli.show import note, show_rows, waiting


@command("lake up")
def up(context: Context) -> None:
    """Start the lake's background Spark now, so that the first statement need not wait for it."""
    context.lake.sql("select 1", engine="spark")
    status.callback()  # type: ignore[misc]


@command("lake down")
def down(context: Context) -> None:
    """Stop the lake's background Spark. The next statement that needs one starts it again."""
    from lakehouse.assemble import warm_spark

    spark = warm_spark(context.settings())
    with waiting("Stopping Spark"):
        stopped = spark.shut_down()
    note("Stopped." if stopped else "Nothing was running.")


@command("lake status\nlake status -o json")
def status(context: Context) -> None:
    """Show what runs for this lake: state, address, process and memory."""
    from lakehouse.assemble import warm_spark
    from lakehouse.storage.local import LocalHome

    settings = context.settings()
    health = warm_spark(settings).health()
    url = f"unix:{LocalHome(settings.home).run / 'spark.sock'}"
    row = ("spark", "stopped", None, None, None)
    if health is not None:
        row = ("spark", "running", url, health["pid"], _memory_mb(health["pid"]))  # type: ignore[assignment]
    show_rows(["service", "state", "url", "pid", "memory_mb"], [row], context.output)


def _memory_mb(pid: int) -> int | None:
    """The resident memory of a process and all below it, as Linux tells; None elsewhere."""
    try:
        pages = int(Path(f"/proc/{pid}/statm").read_text().split()[1])
        children = Path(f"/proc/{pid}/task/{pid}/children").read_text().split()
        for task in Path(f"/proc/{pid}/task").iterdir():
            children += (task / "children").read_text().split()
    except OSError:
        return None
    return pages * 4096 // 1024 // 1024 + sum(_memory_mb(int(child)) or 0 for child in set(children))
