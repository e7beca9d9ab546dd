"""The suite keeps to its budget: what shares a server runs together, Sparks are few, and Java starts only where it may."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from pathlib import Path

import pytest
from tools.suite.lanes import MOST_SPARKS, SPARKS, UNSHARED, Batch, Queue, batches, chosen, divided
from tools.suite.timings import FAMILIES, Timing, read, write
from tools.suite.usage import VARIABLE, Sampler

from lakehouse.engines.spark.java import find_java

TESTS = Path(__file__).parent
DETACHED = "import subprocess, sys; subprocess.Popen(['sleep', '60'], start_new_session=True); print('started')"


def test_every_test_file_is_in_one_batch() -> None:
    files = [file.path for batch in batches(chosen([])) for file in batch.files]
    assert sorted(files) == sorted(str(path.relative_to(TESTS.parent)) for path in TESTS.rglob("test_*.py"))


def test_files_that_share_a_server_are_in_one_batch_and_the_others_fill_the_lanes() -> None:
    files = [Timing(f"{family}{number}", family, 60.0) for family in FAMILIES for number in range(4)]
    files.append(Timing("warm4", "warm", 10.0))
    made = batches(files)
    for family, count in (("stack", 4), ("session", 4), ("warm", 5), ("servers", 4)):
        assert [len(batch.files) for batch in made if batch.family == family] == [count]
    assert [len(batch.files) for batch in made if batch.family == "plain"] == [2, 1, 1]
    assert made[0].family == "warm", "the longest starts first"


def test_divided_files_make_batches_of_about_the_same_length_and_neighbours_stay_together() -> None:
    seconds = {"http/c": 20, "http/a": 50, "runs/a": 40, "http/b": 10, "query/a": 30}
    files = [Timing(path, "plain", float(length)) for path, length in seconds.items()]
    made = divided("plain", files, 2)
    assert [[file.path for file in batch.files] for batch in made] == [
        ["http/a", "http/b", "http/c"],
        ["query/a", "runs/a"],
    ]
    assert [batch.seconds for batch in made] == [80.0, 70.0]
    assert sum(len(batch.files) for batch in divided("plain", files, 9)) == len(files), "more batches than files"


def test_a_batch_waits_while_it_would_start_too_many_sparks() -> None:
    fitting = [Batch("stack", (Timing("x", "stack"),)) for _ in range(MOST_SPARKS // SPARKS["stack"])]
    further, plain = (Batch(family, (Timing("x", family),)) for family in ("stack", "plain"))
    queue = Queue([*fitting, further, plain])
    assert [queue.take() for _ in fitting] == fitting
    assert queue.take() is plain
    queue.done(fitting[0])
    assert queue.take() is further
    assert queue.take() is None


def test_a_lane_may_take_some_families_only() -> None:
    stack, plain = (Batch(family, (Timing("x", family),)) for family in ("stack", "plain"))
    queue = Queue([stack, plain])
    assert queue.take(UNSHARED) is plain
    assert queue.take(UNSHARED) is None
    assert queue.take() is stack


def test_timings_are_read_as_they_were_written(tmp_path: Path) -> None:
    timings = {"tests/a.py": Timing("tests/a.py", "warm", 1.5), "tests/b.py": Timing("tests/b.py", "plain", 0.1)}
    write(tmp_path / "timings.json", timings)
    assert read(tmp_path / "timings.json") == timings
    assert read(tmp_path / "none.json") == {}


def test_the_sampler_sees_processes_that_detached(tmp_path: Path) -> None:
    sampler = Sampler()
    environment = {**os.environ, VARIABLE: sampler.run}
    with subprocess.Popen([sys.executable, "-c", DETACHED], env=environment, stdout=subprocess.PIPE, text=True) as done:
        assert done.stdout and done.stdout.readline() == "started\n"
    sampler.start()
    deadline = time.monotonic() + 30
    while not sampler.peak.memory and time.monotonic() < deadline:
        time.sleep(0.1)
    sampler.stop()
    (process,) = [usage.process for usage in sampler._seen.values() if usage]
    assert process.name() == "sleep"
    process.kill()
    assert sampler.peak.memory > 0 and sampler.peak.java == 0


def test_the_use_of_the_cores_is_told_by_parts_of_the_time() -> None:
    assert Sampler(busy=[100.0, 90.0, 50.0, 0.0]).busy_by_parts(2) == [95, 25]
    assert Sampler(busy=[80.0]).busy_by_parts(2) == [0, 80], "a run of a second has no more"


def test_java_does_not_start_in_a_test_that_is_not_marked_for_it() -> None:
    java = find_java("").program
    refused = subprocess.run([java, "-version"], capture_output=True, text=True)
    assert refused.returncode != 0 and "ThisTestIsNotMarkedSparkServersOrSlow" in refused.stderr


@pytest.mark.slow
def test_java_starts_in_a_test_that_is_marked_for_it() -> None:
    subprocess.run([find_java("").program, "-version"], check=True, capture_output=True)


def test_a_file_that_repeats_has_its_tests_marked() -> None:
    using = [path for path in TESTS.rglob("test_*.py") if "import repetitions\n" in path.read_text()]
    assert using
    assert [path.name for path in using if "mark.faults" not in path.read_text()] == []
