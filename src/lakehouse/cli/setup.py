"""`lake init`, `setup`, `doctor`, `config` and `completion`."""

from __future__ import annotations

import sys
from pathlib import Path

import click

from lakehouse.cli.app import Context, command, group
from lakehouse.cli.show import note, show_download, show_download_lines, show_rows, show_status, show_step
from lakehouse.core.errors import HomeError

_SHELLS = ("bash", "zsh", "fish")


@command("lake init\nlake init ~/my-lake && cd ~/my-lake && lake sql 'select 1'")
@click.argument("folder", required=False, default=".", metavar="[DIR]", type=click.Path(path_type=Path))
def init(context: Context, folder: Path) -> None:
    """Write a lake.toml with every setting, a .env.example, a script and a sample pipeline to DIR.

    DIR is the working folder by default. Existing files are kept.
    """
    from lakehouse.cli.templates import FILES

    try:
        folder.mkdir(parents=True, exist_ok=True)
        for name, content in FILES.items():
            file = folder / name
            if file.exists():
                note(f"kept     {file}")
                continue
            file.write_text(content())
            note(f"written  {file}")
    except OSError as exc:
        raise HomeError(f"{folder} cannot be written: {exc.strerror}.", "Choose another folder: lake init DIR") from exc
    note(
        f"Next: {'cd ' + str(folder) + ' && ' if str(folder) != '.' else ''}lake demo, python first.py, or lake run shop (see shop.py)"
    )


@command("lake setup")
def setup(context: Context) -> None:
    """Download the jars that Spark needs and archive its classes, so that it starts faster.

    This is needed once per machine; a second run has nothing to do.
    """
    from lakehouse.lake.setup import prepare

    archive = prepare(context.settings(), show_step, show_download if sys.stderr.isatty() else show_download_lines)
    note("Spark is ready." if archive else "Spark is ready (this Java cannot archive classes, so it starts slower).")


@group("lake config show")
def config() -> None:
    """Show the settings."""


@command("lake config show\nLAKE_SPARK__MASTER='local[2]' lake config show", config)
def show(context: Context) -> None:
    """Show every setting, its value and its origin. Secrets are hidden."""
    from lakehouse.config.show import show_settings

    lines = [(line.setting, line.value, line.source, line.help) for line in show_settings(context.all_settings())]
    show_rows(["setting", "value", "from", "meaning"], lines, context.output)


@command('eval "$(lake completion bash)"\nlake completion zsh > ~/.zfunc/_lake')
@click.argument("shell", metavar="SHELL", type=click.Choice(_SHELLS))
def completion(context: Context, shell: str) -> None:
    """Print the completion script of SHELL: bash, zsh or fish. It completes commands,
    options, and the names of tables, branches, tags, pipelines and runs."""
    from click.shell_completion import get_completion_class

    from lakehouse.cli.app import lake

    kind = get_completion_class(shell)
    assert kind is not None
    sys.stdout.write(kind(lake, {}, "lake", "_LAKE_COMPLETE").source() + "\n")


@command("lake doctor\nlake doctor --deep")
@click.option("--deep", is_flag=True, help="Also start Spark and run a statement on it.")
def doctor(context: Context, deep: bool) -> None:
    """Check Python, Java, jars, memory, disk, the catalog and the engines, and suggest a fix for each failure."""
    from lakehouse.doctor import examine

    with show_status("Checking"):
        findings = list(examine(context.settings(), deep))
    rows = [(finding.check, finding.state, finding.found, finding.do) for finding in findings]
    show_rows(["check", "state", "found", "what to do"], rows, context.output)
    failed = sum(finding.state == "fail" for finding in findings)
    if failed:
        note(f"{failed} of {len(findings)} checks failed.")
        raise click.exceptions.Exit(1)
