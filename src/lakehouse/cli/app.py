"""How every command is parsed, opened a lake for, and has its errors shown."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import update_wrapper
from importlib import import_module
from typing import TYPE_CHECKING, Any

import click

from lakehouse.cli import COMMANDS, help_text
from lakehouse.core.errors import LakeError, QueryRejectedError

if TYPE_CHECKING:
    from lakehouse.config.settings import Settings
    from lakehouse.lake import Lake

OUTPUTS = ("table", "json", "csv")


@dataclass
class Context:
    """What the options before the command said; the lake is opened when a command first needs it."""

    flags: dict[str, Any] = field(default_factory=dict)
    output: str = "table"
    branch: str = ""
    _lake: Lake | None = None

    def settings(self) -> Settings:
        from lakehouse.config.load import load_settings

        return load_settings(self.flags)

    @property
    def lake(self) -> Lake:
        if self._lake is None:
            from lakehouse.cli.show import byte_progress, waiting
            from lakehouse.lake.assemble import assemble

            self._lake = assemble(self.settings(), arrow=False, waiting=waiting, fetching=byte_progress)
            if self.branch:
                self._lake.use_branch(self.branch)
        return self._lake


class _Commands(click.Group):
    """Loads a command's module when the command is used, and prints the same help as the quick way does."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        return [name for commands in COMMANDS.values() for name in commands]

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        for commands in COMMANDS.values():
            if cmd_name in commands:
                module = import_module(f"lakehouse.cli.{commands[cmd_name][0]}")
                return getattr(module, cmd_name)  # type: ignore[no-any-return]
        return None

    def format_help(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        formatter.write(help_text())

    def resolve_command(self, ctx: click.Context, args: list[str]) -> Any:
        from lakehouse.core.names import nearest

        if self.get_command(ctx, args[0]) is None and not args[0].startswith("-"):
            near = nearest(args[0], self.list_commands(ctx))
            hint = f" Did you mean {' or '.join(near)}?" if near else " See: lake --help"
            raise click.UsageError(f"There is no command {args[0]!r}.{hint}", ctx)
        return super().resolve_command(ctx, args)


def _remember(name: str) -> Callable[[click.Context, click.Parameter, Any], Any]:
    def remember(ctx: click.Context, parameter: click.Parameter, value: Any) -> Any:
        if value is not None:
            found = ctx.ensure_object(Context)
            if name == "output":
                found.output = value
            elif name == "branch":
                found.branch = value.lower()
            else:
                found.flags[name] = value
        return value

    return remember


def _common(function: Callable[..., Any]) -> Callable[..., Any]:
    """Options that may stand before the command as well as after it."""
    options = [
        click.option(
            "--home", metavar="DIR", expose_value=False, callback=_remember("home"), help="The lake's folder."
        ),
        click.option(
            "--profile", metavar="NAME", expose_value=False, callback=_remember("profile"), help="The set of parts."
        ),
        click.option(
            "--branch",
            metavar="NAME",
            expose_value=False,
            callback=_remember("branch"),
            help="Use this branch's tables.",
        ),
        click.option(
            "-o",
            "--output",
            type=click.Choice(OUTPUTS),
            expose_value=False,
            callback=_remember("output"),
            help="How to print: a table for people, or json or csv.",
        ),
    ]
    for option in reversed(options):
        function = option(function)
    return function


@click.group(cls=_Commands, context_settings={"help_option_names": ["-h", "--help"]})
@_common
@click.pass_context
def lake(ctx: click.Context) -> None:
    """A data lakehouse in one command."""
    ctx.ensure_object(Context)


def command(example: str) -> Callable[[Callable[..., Any]], click.Command]:
    """Make a function a command: the common options, and help that ends with an example."""

    def wrap(function: Callable[..., Any]) -> click.Command:
        def with_context(*args: Any, **kwargs: Any) -> Any:
            return function(click.get_current_context().find_object(Context), *args, **kwargs)

        update_wrapper(with_context, function)
        epilog = "\b\nExample:\n" + "\n".join(f"  {line}" for line in example.strip().splitlines())
        made = click.command(
            epilog=epilog, name=function.__name__.rstrip("_"), context_settings={"help_option_names": ["-h", "--help"]}
        )
        return made(_common(with_context))

    return wrap


def complete_table(ctx: click.Context, parameter: click.Parameter, incomplete: str) -> list[str]:
    """Names of tables, for the shell's completion."""
    found = ctx.find_object(Context) or Context()
    try:
        names = [str(info.name) for info in found.lake.tables()]
    except LakeError:
        return []
    return [name for name in names if name.startswith(incomplete)]


table_argument = click.argument("table", shell_complete=complete_table)


def run(arguments: list[str]) -> int:
    """Run one command and give its exit code: 0 done, 1 failed, 2 asked wrongly, 130 stopped."""
    context = Context()
    if _wants_json(arguments):
        context.output = "json"  # also for mistakes that stand before `-o json`
    try:
        if "_LAKE_COMPLETE" in os.environ:
            lake.main(prog_name="lake")
        # Not lake.main(): it has ideas of its own about broken pipes and Ctrl-C.
        with lake.make_context("lake", list(arguments), obj=context) as ctx:
            lake.invoke(ctx)
        sys.stdout.flush()
    except click.exceptions.Exit as exc:
        return exc.exit_code
    except (click.Abort, KeyboardInterrupt):
        return _stopped()
    except click.ClickException as exc:
        return _usage(exc, context)
    except LakeError as exc:
        return _explain(exc, context)
    except OSError as exc:
        return _cannot_print(exc, context)
    return 0


def _wants_json(arguments: list[str]) -> bool:
    pairs = zip(arguments, arguments[1:], strict=False)
    return any(option in {"-o", "--output"} and value == "json" for option, value in pairs)


def _cannot_print(exc: OSError, context: Context) -> int:
    # Whatever is still buffered goes nowhere, or Python would complain about it at exit.
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
    if isinstance(exc, BrokenPipeError):
        return 0  # `lake sql … | head` has heard enough
    return _explain(LakeError(f"The output cannot be written: {exc.strerror or exc}.", "Is the disk full?"), context)


def _stopped() -> int:
    sys.stderr.write("\nStopped.\n")
    return 130


def _usage(exc: click.ClickException, context: Context) -> int:
    if isinstance(exc, click.exceptions.NoArgsIsHelpError):
        sys.stdout.write(exc.format_message() + "\n")
        return 2
    told = LakeError(exc.format_message(), "lake --help")
    told.code = "bad_usage"
    if isinstance(exc, click.UsageError) and exc.ctx is not None:
        told.hint = f"{exc.ctx.command_path} --help"
    _write_error(told, context)
    return 2


def _explain(exc: LakeError, context: Context) -> int:
    if os.environ.get("LAKE_DEBUG", "0").lower() not in {"", "0", "false", "no", "off"}:
        import traceback

        traceback.print_exception(exc)
    _write_error(exc, context)
    return 2 if exc.is_user_error else 1


def _write_error(exc: LakeError, context: Context) -> None:
    if context.output == "json":
        import json

        sys.stderr.write(json.dumps(exc.as_dict()) + "\n")
        return
    red, dim, end = ("\x1b[31m", "\x1b[2m", "\x1b[0m") if sys.stderr.isatty() else ("", "", "")
    lines = [f"{red}Error:{end} {exc.message}"]
    if isinstance(exc, QueryRejectedError) and exc.pointer():
        lines += ["  " + line for line in exc.pointer().splitlines()]
    if exc.hint:
        lines.append(f"{dim}{exc.hint}{end}")
    sys.stderr.write("\n".join(lines) + "\n")
