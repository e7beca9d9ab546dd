"""Draw a flame graph of the warm Spark's JVM while a command runs: `python tools/flame.py HOME OUT.svg lake run market …`.

The JVM prints its stacks into its log on SIGQUIT, so no profiler is needed. Only threads that run are counted: waiting for a
task, a socket or a lock is left out. The width of a box is its share of the samples.
"""

from __future__ import annotations

import html
import os
import re
import signal
import subprocess
import sys
import time
from dataclasses import dataclass, field
from pathlib import Path

import psutil

from lakehouse.config.load import load_settings
from lakehouse.lake.spark import spark_daemon

_INTERVAL_S = 0.04
_WIDTH, _ROW, _MIN_PIXELS, _CHARACTER = 1200, 17, 3.0, 6.6
#: Methods that wait although Java calls the thread runnable.
_WAITING = (
    "waitForReference",
    "epollWait",
    "EPoll.wait",
    "socketRead0",
    "read0",
    "accept",
    "Net.poll",
    "readBytes",
    "Unsafe.park",
)
#: Frames that are the same in every stack and say nothing.
_NOISE = re.compile(
    r"reflect|py4j|java\.lang\.Thread|\$anonfun|ThreadPoolExecutor|0x0|scala\.|withActive|transformDown|withOrigin|withTracker|measurePhase|withScope|executeQuery|\$lzycompute"
)


@dataclass
class Frame:
    """A method and what it called, with the number of samples in which it was seen."""

    samples: int = 0
    calls: dict[str, Frame] = field(default_factory=dict)

    def add(self, stack: list[str]) -> None:
        self.samples += 1
        frame = self
        for method in stack:
            frame = frame.calls.setdefault(method, Frame())
            frame.samples += 1

    @property
    def depth(self) -> int:
        return 1 + max((call.depth for call in self.calls.values()), default=0)


def main(home: str, out: str, *command: str) -> None:
    java = _java_of(Path(home))
    log = Path(home) / "logs" / "spark.log"
    start = log.stat().st_size
    process = subprocess.Popen(command, env={**os.environ, "LAKE_HOME": home})
    while process.poll() is None:
        java.send_signal(signal.SIGQUIT)
        time.sleep(_INTERVAL_S)
    time.sleep(0.5)
    root = Frame()
    for dump in log.read_bytes()[start:].decode(errors="replace").split("Full thread dump")[1:]:
        for block in dump.split("\n\n"):
            if stack := _stack(block):
                root.add(stack)
    Path(out).write_text(_svg(root))
    sys.stdout.write(f"{root.samples} samples -> {out}\n")


def _java_of(home: Path) -> psutil.Process:
    health = spark_daemon(load_settings({"home": home})).health()
    if health is None:
        raise SystemExit(f"No warm Spark runs in {home}: lake sql --engine spark 'select 1'")
    return next(child for child in psutil.Process(health["pid"]).children(recursive=True) if child.name() == "java")


def _stack(block: str) -> list[str]:
    """The frames of a running thread from the outermost in; empty if it waits."""
    frames = re.findall(r"at ([\w.$<>/]+)\(", block)
    if "Thread.State: RUNNABLE" not in block or not frames or any(word in frames[0] for word in _WAITING):
        return []
    kind = "task" if '"Executor task' in block else "driver"
    shown = [_short(frame) for frame in reversed(frames) if not _NOISE.search(frame)]
    return [kind, *(frame for frame, before in zip(shown, ["", *shown], strict=False) if frame != before)]


def _short(frame: str) -> str:
    parts = frame.rpartition("/")[2].split(".")
    return ".".join(parts[-2:])


def _svg(root: Frame) -> str:
    height = (root.depth + 1) * _ROW
    boxes: list[str] = []
    _draw(root, "all", 0.0, 0, _WIDTH / max(root.samples, 1), boxes)
    style = "text{font:11px monospace;fill:#222}rect{stroke:#fff;stroke-width:.5}"
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {_WIDTH} {height}" width="{_WIDTH}" height="{height}">'
        f"<style>{style}</style>{''.join(boxes)}</svg>\n"
    )


def _draw(frame: Frame, name: str, left: float, row: int, scale: float, boxes: list[str]) -> None:
    width = frame.samples * scale
    if width < _MIN_PIXELS:
        return
    hue = 20 + sum(map(ord, name)) % 35
    label = html.escape(name[: max(int(width / _CHARACTER) - 1, 0)])
    title = html.escape(f"{name}: {frame.samples} samples")
    boxes.append(
        f'<g><title>{title}</title><rect x="{left:.1f}" y="{row * _ROW}" width="{width:.1f}" height="{_ROW}"'
        f' fill="hsl({hue},85%,70%)"/><text x="{left + 3:.1f}" y="{row * _ROW + 12}">{label}</text></g>'
    )
    for called, call in sorted(frame.calls.items(), key=lambda entry: -entry[1].samples):
        _draw(call, called, left, row + 1, scale, boxes)
        left += call.samples * scale


if __name__ == "__main__":
    main(*sys.argv[1:])
