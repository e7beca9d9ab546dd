"""JSON lines: rotated, private, and whole although several processes write."""

from __future__ import annotations

import json
import os
import stat
import subprocess
import sys
from pathlib import Path

from lakehouse.events.lines import RotatingLines

WRITE = """
import sys
from pathlib import Path
from lakehouse.events.lines import RotatingLines
lines = RotatingLines(Path(sys.argv[1]), 20_000)
for number in range(400):
    lines.write({"writer": sys.argv[2], "number": number, "padding": "x" * 20})
"""


def test_a_full_file_is_rotated_and_the_oldest_goes(tmp_path: Path) -> None:
    (tmp_path / "logs").mkdir(mode=0o700)
    lines = RotatingLines(tmp_path / "logs" / "lake.jsonl", 200)
    for number in range(100):
        lines.write({"number": number})
    files = sorted(file.name for file in (tmp_path / "logs").glob("lake.jsonl*"))
    assert files == ["lake.jsonl", *(f"lake.jsonl.{number}" for number in range(1, 6))]
    assert all(file.stat().st_size <= 200 for file in (tmp_path / "logs").glob("lake.jsonl*"))
    assert json.loads((tmp_path / "logs" / "lake.jsonl").read_text().splitlines()[-1]) == {"number": 99}
    assert stat.S_IMODE((tmp_path / "logs" / "lake.jsonl").stat().st_mode) == 0o600


def test_the_group_of_a_shared_lake_writes_the_same_file(tmp_path: Path) -> None:
    tmp_path.chmod(0o770)
    before = os.umask(0o007)
    try:
        RotatingLines(tmp_path / "lake.jsonl", 200).write({"number": 1})
    finally:
        os.umask(before)
    assert stat.S_IMODE((tmp_path / "lake.jsonl").stat().st_mode) == 0o660


def test_three_processes_lose_no_line(tmp_path: Path) -> None:
    file = tmp_path / "lake.jsonl"
    writers = [subprocess.Popen([sys.executable, "-c", WRITE, str(file), name]) for name in "abc"]
    assert [writer.wait(60) for writer in writers] == [0, 0, 0]
    # 1200 lines of about 60 bytes fit into the file and its five predecessors.
    lines = [json.loads(line) for path in tmp_path.glob("lake.jsonl*") for line in path.read_text().splitlines()]
    assert sorted((line["writer"], line["number"]) for line in lines) == [(w, n) for w in "abc" for n in range(400)]
