"""The parts that all commands share: groups, common options, opening the lake, printing errors."""

from __future__ import annotations

import errno
import os
import sys
from collections.abc import Callable
from functools import update_wrapper
from importlib import import_module
from typing import Any

import click

from lakehouse.cli.commands import COMMANDS, help_text
from lakehouse.cli.context import Context as Context
from lakehouse.cli.context import complete_branch, read_key
from lakehouse.core.cancel import is_interrupt
from lakehouse.core.errors import LakeError, QueryRejectedError

OUTPUTS = ("table", "json", "csv")
_HELP = ("-h", "--help")
_CONTEXT_SETTINGS = {"help_option_names": list(_HELP), "max_content_width": 100}


class _CommonOption(click.Option):
    """An option of every command."""


class _Command(click.Command):
    """A command whose help lists its own options before those of every command."""

    def format_options(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        own: list[tuple[str, str]] = []
        common: list[tuple[str, str]] = []
        for option in self.get_params(ctx):
            if isinstance(option, click.Option) and (record := option.get_help_record(ctx)):
                is_common = isinstance(option, _CommonOption) or "--help" in option.opts
                (common if is_common else own).append(record)
        for title, records in (("Options", own), ("Common options", common)):
            if records:
                with formatter.section(title):
                    formatter.write_dl(records)


class _Group(_Command, click.Group):
    """A group that lists its commands in the order of their definition and suggests a name for an unknown one."""

    def format_options(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        self.format_commands(ctx, formatter)
        super().format_options(ctx, formatter)

    def list_commands(self, ctx: click.Context) -> list[str]:
        return list(self.commands)

    def resolve_command(self, ctx: click.Context, args: list[str]) -> Any:
        from lakehouse.core.names import nearest

        if self.get_command(ctx, args[0]) is None and not args[0].startswith("-"):
            near = nearest(args[0], self.list_commands(ctx))
            hint = f" Did you mean {' or '.join(near)}?" if near else f" See: {ctx.command_path} --help"
            raise click.UsageError(f"There is no command {args[0]!r}.{hint}", ctx)
        return super().resolve_command(ctx, args)


class _ListingGroup(_Group):
    """A group whose `list` command may be left out: `lake runs --limit 5` is `lake runs list --limit 5`."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        # A shell asks for completions with what comes before the word, and would get those of `list`.
        only_options = not ctx.resilient_parsing and (not args or args[0].startswith("-"))
        if only_options and not any(arg in self.commands or arg in _HELP for arg in args):
            args = ["list", *args]
        return super().parse_args(ctx, args)


class _LazyCommands(_Group):
    """The group `lake`: it imports a command's module when the command is used."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        return [name for commands in COMMANDS.values() for name in commands]

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        for commands in COMMANDS.values():
            if cmd_name in commands:
                module = import_module(f"lakehouse.cli.{commands[cmd_name][0]}")
                return getattr(module, cmd_name.replace("-", "_"))  # type: ignore[no-any-return]
        return None

    def format_help(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        formatter.write(help_text())


def _store(ctx: click.Context, parameter: click.Parameter, value: Any) -> Any:
    """Keep the value of a common option in the Context, wherever on the command line the option is."""
    if value is not None:
        context = ctx.ensure_object(Context)
        if parameter.name == "output":
            context.output = value
        elif parameter.name == "branch":
            context.branch = value.lower()
        elif parameter.name == "key_file":
            context.flags["key"] = read_key(value)
        else:
            context.flags[str(parameter.name)] = value
    return value


def _common_option(*names: str, **settings: Any) -> Callable[[Any], Any]:
    return click.option(*names, cls=_CommonOption, expose_value=False, callback=_store, **settings)


def _with_common_options(function: Callable[..., Any]) -> Callable[..., Any]:
    """Add the options that may come before or after the command."""
    options = [
        _common_option("--home", metavar="DIR", help="Folder of the lake (default: $LAKE_HOME, else .lake)."),
        _common_option(
            "--profile", metavar="NAME", help="Storage, catalog and engines (default: $LAKE_PROFILE, else embedded)."
        ),
        _common_option(
            "--url", metavar="URL", help="Use the lake behind this service (default: $LAKE_URL, else none)."
        ),
        _common_option("--key-file", metavar="FILE", help="File with the service's API key (default: $LAKE_KEY)."),
        _common_option(
            "--branch",
            metavar="NAME",
            shell_complete=complete_branch,
            help="Branch to read and write (default: main).",
        ),
        _common_option("-o", "--output", type=click.Choice(OUTPUTS), help="Output format (default: table)."),
    ]
    for option in reversed(options):
        function = option(function)
    return function


@click.group(cls=_LazyCommands, context_settings=_CONTEXT_SETTINGS)
@_with_common_options
@click.pass_context
def lake(ctx: click.Context) -> None:
    """A data lakehouse in one command."""
    ctx.ensure_object(Context)


def group(example: str, *, bare_lists: bool = False) -> Callable[[Callable[[], None]], click.Group]:
    """Turn a function into a group of commands. Without a command it runs its `list` if `bare_lists`, else it prints help."""
    kind = _ListingGroup if bare_lists else _Group

    def decorate(function: Callable[[], None]) -> click.Group:
        decorator = click.group(cls=kind, epilog=_epilog(example), context_settings=_CONTEXT_SETTINGS)
        return decorator(_with_common_options(function))

    return decorate


def command(example: str, group: click.Group | None = None) -> Callable[[Callable[..., Any]], click.Command]:
    """Turn a function into a command, of a group or of `lake`: it has the common options, and an example in its help."""

    def decorate(function: Callable[..., Any]) -> click.Command:
        def with_context(*args: Any, **kwargs: Any) -> Any:
            return function(click.get_current_context().find_object(Context), *args, **kwargs)

        update_wrapper(with_context, function)
        name = function.__name__.rstrip("_").replace("_", "-")
        decorator = click.command(name=name, cls=_Command, epilog=_epilog(example), context_settings=_CONTEXT_SETTINGS)
        created = decorator(_with_common_options(with_context))
        if group is not None:
            group.add_command(created)
        return created

    return decorate


def _epilog(example: str) -> str:
    return "\b\nExample:\n" + "\n".join(f"  {line}" for line in example.strip().splitlines())


def run(arguments: list[str], may_hand_over: bool = False) -> int:
    """Run one command and return its exit code: 0 done, 1 failed, 2 usage error. Ctrl-C is a KeyboardInterrupt.

    Args:
        may_hand_over: the command is all that this process does, so that another process may do it.
    """
    context = Context(may_hand_over=may_hand_over)
    if _wants_json(arguments):
        context.output = "json"  # so that an error in an argument before `-o json` is printed as JSON, too
    try:
        if "_LAKE_COMPLETE" in os.environ:
            lake.main(prog_name="lake")
        # Not lake.main(): click handles broken pipes and Ctrl-C with other exit codes.
        with lake.make_context("lake", list(arguments), obj=context) as ctx:
            lake.invoke(ctx)
        sys.stdout.flush()
    except click.exceptions.Exit as exc:
        return exc.exit_code
    except click.Abort as exc:  # Ctrl-C at a question
        raise KeyboardInterrupt from exc
    except click.ClickException as exc:
        return _report_usage_error(exc, context)
    except LakeError as exc:
        return _report_error(exc, context)
    except OSError as exc:
        return report_broken_output(exc, context)
    return 0


def _wants_json(arguments: list[str]) -> bool:
    pairs = zip(arguments, arguments[1:], strict=False)
    return any(option in {"-o", "--output"} and value == "json" for option, value in pairs)


def report_broken_output(exc: OSError, context: Context) -> int:
    """Report that the output cannot be written; return the exit code."""
    # Python would report the buffered rest of the output at exit, so it goes to /dev/null.
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
    if isinstance(exc, BrokenPipeError):
        return 0  # `lake sql … | head` has read all it needs
    if exc.errno == errno.EBADF:
        error = LakeError("The output cannot be written: standard output is closed.", "To discard it: > /dev/null")
    else:
        error = LakeError(f"The output cannot be written: {exc.strerror or exc}.", "Is the disk full?")
    return _report_error(error, context)


def _report_usage_error(exc: click.ClickException, context: Context) -> int:
    if isinstance(exc, click.exceptions.NoArgsIsHelpError):
        sys.stdout.write(exc.format_message() + "\n")
        return 2
    error = LakeError(exc.format_message(), "lake --help")
    error.code = "bad_usage"
    if isinstance(exc, click.UsageError) and exc.ctx is not None:
        error.hint = f"{exc.ctx.command_path} --help"
    write_error(error, context.output)
    return 2


def _report_error(exc: LakeError, context: Context) -> int:
    if is_interrupt(exc):
        raise exc
    report_error(exc, context.output, exc)
    return 2 if exc.is_user_error else 1


def report_error(error: LakeError, output: str, cause: BaseException) -> None:
    """Print an error to stderr, with LAKE_DEBUG=1 after the trace of its cause."""
    if os.environ.get("LAKE_DEBUG", "0").lower() not in {"", "0", "false", "no", "off"}:
        import traceback

        from lakehouse.core.masking import mask

        sys.stderr.write(mask("".join(traceback.format_exception(cause))))
    write_error(error, output)


def write_error(exc: LakeError, output: str) -> None:
    """Print an error to stderr: what failed, where, and what to do next; as JSON with `-o json`."""
    if output == "json":
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
