"""Where an error of a user's function is said to be."""

from __future__ import annotations

import runpy
from pathlib import Path
from typing import Any

import pytest

from lakehouse.runs.failure import located


@pytest.mark.parametrize("packages", ["site-packages", "dist-packages"])
def test_the_place_is_in_the_users_code_wherever_libraries_are_installed(tmp_path: Path, packages: str) -> None:
    library = tmp_path / "lib" / packages / "library.py"
    library.parent.mkdir(parents=True)
    library.write_text("def resolve(name):\n    raise KeyError(name)\n")
    resolve = runpy.run_path(str(library))["resolve"]

    def by_day(rows: Any) -> Any:
        return resolve("amout")

    with pytest.raises(KeyError) as failed, located("shop.by_day", by_day):
        by_day(None)
    (note,) = failed.value.__notes__
    assert note.startswith(f"shop.by_day: by_day in {__file__}, line ")
    assert any(line.startswith(">") and 'resolve("amout")' in line for line in note.splitlines())
