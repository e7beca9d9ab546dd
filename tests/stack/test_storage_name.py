"""Which object store the stack uses, and why."""

from __future__ import annotations

from pathlib import Path

import pytest

from lakehouse.config.load import load_settings
from lakehouse.stack.context import stack_context
from lakehouse.stack.services.storage import description


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
