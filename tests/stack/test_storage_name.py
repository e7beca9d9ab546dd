"""Which object store the stack uses, and why."""

from __future__ import annotations

from pathlib import Path

import pytest

from lakehouse.config.load import load_settings
from lakehouse.core.errors import ServiceFailedError
from lakehouse.stack.model import stack_context
from lakehouse.stack.services.storage import SERVICE, description, kind


@pytest.mark.parametrize(
    ("storage", "program", "data", "expected"),
    [
        pytest.param("auto", "", "", "s3proxy: no Go toolchain to build MinIO", id="nothing to build with"),
        pytest.param("auto", "go", "", "MinIO", id="Go"),
        pytest.param("auto", "minio", "", "MinIO", id="installed"),
        pytest.param("auto", "go", "s3proxy", "s3proxy: it holds data already, which MinIO cannot read", id="data"),
        pytest.param("s3proxy", "go", "", "s3proxy: stack.storage", id="chosen"),
    ],
)
def test_the_object_store_is_named_with_its_reason(  # noqa: PLR0913 - the cases of a table
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, storage: str, program: str, data: str, expected: str
) -> None:
    tools = tmp_path / "bin"
    tools.mkdir()
    if program:
        (tools / program).write_text("#!/bin/sh\n")
        (tools / program).chmod(0o755)
    monkeypatch.setenv("PATH", str(tools))
    flags = {"home": tmp_path / "lake", "cache": tmp_path / "cache", "stack.storage": storage}
    context = stack_context(load_settings(flags, tmp_path, {}))
    if data:
        (context.folder("storage") / data).mkdir(parents=True)
    assert description(context) == expected


def failing_go(folder: Path) -> None:
    go = folder / "go"
    go.write_text("#!/bin/sh\necho 'go: cannot reach the module' >&2\nexit 1\n")
    go.chmod(0o755)


def test_a_failed_build_of_minio_leaves_s3proxy_and_says_so(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    failing_go(tmp_path)
    monkeypatch.setenv("PATH", f"{tmp_path}:/usr/bin:/bin")
    context = stack_context(load_settings({"home": tmp_path / "lake", "cache": tmp_path / "cache"}, tmp_path, {}))
    said: list[str] = []
    SERVICE.build(context, said.append)
    assert "cannot reach the module" in said[-1] and "s3proxy instead" in said[-1]
    assert kind(context) == "s3proxy"
    assert "cannot reach the module" in description(context)
    assert [artifact.name for artifact in SERVICE.artifacts(context)] == ["s3proxy"]


def test_a_failed_build_of_the_chosen_minio_is_an_error(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    failing_go(tmp_path)
    monkeypatch.setenv("PATH", f"{tmp_path}:/usr/bin:/bin")
    flags = {"home": tmp_path / "lake", "cache": tmp_path / "cache", "stack.storage": "minio"}
    with pytest.raises(ServiceFailedError, match="cannot reach the module") as caught:
        SERVICE.build(stack_context(load_settings(flags, tmp_path, {})), lambda text: None)
    assert "s3proxy" in caught.value.hint
