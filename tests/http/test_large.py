"""Large uploads and results: the memory of the service stays small, whatever passes through it."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from pathlib import Path

import psutil
import pyarrow
import pytest
import requests
from tests.support.repetitions import repetitions
from tests.support.servers.service import Process, Start, wait_for

#: Bytes that are sent and received; 2 GB in `make test-faults`.
SIZE = repetitions(100 << 20, 2 << 30)
#: What the service and its query processes may take together, beyond what they take when idle.
MOST_MEMORY = 500 << 20
_BLOCK = b"".join(b"%07d,%s\n" % (number, b"x" * 90) for number in range(10_000))
ROW = len(_BLOCK) // 10_000


class Watch:
    """The most memory that a process and its children take together."""

    def __init__(self, process: Process) -> None:
        self._root, self.most, self._done = psutil.Process(process.popen.pid), 0, threading.Event()
        self._thread = threading.Thread(target=self._run)

    def _run(self) -> None:
        while not self._done.wait(0.1):
            self.most = max(self.most, self.now())

    def now(self) -> int:
        total = 0
        for process in (self._root, *self._root.children(recursive=True)):
            try:
                total += process.memory_full_info().uss
            except psutil.NoSuchProcess:
                continue
        return total

    def __enter__(self) -> Watch:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._done.set()
        self._thread.join()


def lines() -> Iterator[bytes]:
    yield b"id,text\n"
    sent = 0
    while sent < SIZE:
        yield _BLOCK
        sent += len(_BLOCK)


@pytest.mark.faults
def test_a_large_upload_and_result_need_little_memory(start: Start) -> None:
    process = start(
        LAKE_SERVE__WORKER_MEMORY="200MB",
        LAKE_SERVE__WORKERS="1",
        LAKE_SERVE__MAX_ROWS="100000000",  # 2 GB are 22 million rows, more than the default
        LAKE_QUERY__MEMORY_LIMIT="200MB",
    )
    client = process.client
    client.rows("select 1 as one")
    watch = Watch(process)
    headers = {"Authorization": f"Bearer {client.key}"}
    with watch:
        answer = requests.post(
            f"{client.url}/ingest/big.t",
            data=lines(),
            headers={**headers, "Content-Type": "text/csv"},
            timeout=3600,
        )
        assert answer.status_code == 200, answer.text
    rows = answer.json()["inserted"]
    assert rows >= SIZE // ROW
    assert watch.most < MOST_MEMORY, f"the upload took {watch.most >> 20} MB"
    with Watch(process) as reading:
        body = {"sql": "select id, text, concat(text, id) as more from big.t"}
        accept = {**headers, "Accept": "application/vnd.apache.arrow.stream"}
        with (
            requests.post(f"{client.url}/query", json=body, headers=accept, stream=True, timeout=3600) as result,
            pyarrow.ipc.open_stream(result.raw) as batches,
        ):
            received = [(batch.num_rows, batch.nbytes) for batch in batches]
    assert sum(count for count, _ in received) == rows
    assert sum(size for _, size in received) > SIZE
    assert reading.most < MOST_MEMORY, f"the result took {reading.most >> 20} MB"
    folder = Path(client.get("/tables/big.t").json()["location"].removeprefix("file://")).parents[2]
    wait_for(lambda: not list((folder / "run" / "uploads").glob("*")))
