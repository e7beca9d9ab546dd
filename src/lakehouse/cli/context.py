"""What a command works on: the values of the common options, and the lake that they name, here or behind a service."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable
from dataclasses import field
from typing import TYPE_CHECKING, Any

import click

from lakehouse.core.dataclass import dataclass
from lakehouse.core.errors import LakeError, NotSupportedError

if TYPE_CHECKING:
    from contextlib import AbstractContextManager

    from lakehouse.client import RemoteLake
    from lakehouse.config.settings import Settings
    from lakehouse.lake import Lake


@dataclass
class Context:
    """The values of the common options. The lake is opened when a command first uses it."""

    flags: dict[str, Any] = field(default_factory=dict)
    output: str = "table"
    branch: str = ""
    status: Callable[[str], AbstractContextManager[Any]] | None = None
    """Shows what a lake of this machine is busy with (default: a spinner)."""
    may_hand_over: bool = False
    """Whether another process may run the command with the arguments of this one."""
    _lake: Lake | RemoteLake | None = None

    def all_settings(self) -> Settings:
        """The settings, whether they name a service or not."""
        from lakehouse.config.load import load_settings

        return load_settings(self.flags)

    def settings(self) -> Settings:
        """The settings of a lake of this machine; NotSupportedError if they name a service."""
        settings = self.all_settings()
        if settings.url:
            raise _not_remote(settings)
        return settings

    @property
    def lake(self) -> Lake | RemoteLake:
        """The lake of this machine, or the one behind the service that --url or LAKE_URL names."""
        if self._lake is None:
            settings = self.all_settings()
            lake = _connect(settings) if settings.url else _open(settings, self.output, self.status)
            self._lake = lake.branch(self.branch) if self.branch else lake
        return self._lake

    @property
    def remote_lake(self) -> RemoteLake:
        """The lake behind the service that the settings name."""
        return _connect(self.all_settings())

    @property
    def local_lake(self) -> Lake:
        """The lake of this machine, for commands that a service cannot run; NotSupportedError if there is a service."""
        from lakehouse.lake import Lake

        self.settings()
        lake = self.lake
        assert isinstance(lake, Lake)
        return lake


def _open(settings: Settings, output: str, status: Callable[[str], AbstractContextManager[Any]] | None) -> Lake:
    from lakehouse.cli.show import show_download, show_status
    from lakehouse.lake.assemble import assemble

    return assemble(settings, arrow=output != "table", status=status or show_status, download=show_download)


def _connect(settings: Settings) -> RemoteLake:
    from lakehouse.client import connect

    return connect(settings.url, settings.key, timeout_s=settings.timeout_s, allow_http=settings.allow_http)


def _not_remote(settings: Settings) -> NotSupportedError:
    command = click.get_current_context().command_path
    origin = settings.origins.get("url", "flag")
    where = "--url" if origin == "flag" else origin.removeprefix("environment: ")
    where = where if "LAKE_URL" in where or where == "--url" else f"`url` in {where}"
    return NotSupportedError(
        f"`{command}` works on a lake of this machine, not on the service {settings.url}.",
        f"Run it where the lake is, without {where}.",
    )


def read_key(file: str) -> str:
    """The key in a file that the user names: alone, or in what `lake keys create` printed."""
    from lakehouse.core.setting import key_in

    try:
        with open(os.path.expanduser(file)) as stream:
            return key_in(stream.read(), f"--key-file: {file}")
    except (OSError, UnicodeDecodeError) as exc:
        reason = exc.strerror if isinstance(exc, OSError) else "it is not text"
        raise click.UsageError(f"--key-file: {file} cannot be read: {reason}.") from exc


Completion = Callable[[click.Context, click.Parameter, str], list[str]]


def completion(names_of: Callable[[Lake | RemoteLake], Iterable[str]]) -> Completion:
    """Complete an argument by names that the lake knows; without a lake to open, by none."""

    def complete(ctx: click.Context, parameter: click.Parameter, incomplete: str) -> list[str]:
        context = ctx.find_object(Context) or Context()
        try:
            return [name for name in names_of(context.lake) if name.startswith(incomplete)]
        except LakeError:
            return []

    return complete


complete_branch = completion(lambda lake: lake.branches())
