"""Record a session of `lake shell` in a real terminal: docs/shell.cast (asciicast v2), and the screen in docs/shell.md.

`python tools/record_shell.py` from the checkout; it uses a lake in a temporary folder and stops its Spark.
"""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).parents[1]
sys.path.insert(0, str(ROOT))

from tests.support.terminal import LAKE, Terminal  # noqa: E402 - the checkout must be on the path first

COLUMNS = 100
PAGE = ROOT / "docs" / "shell.md"
CAST = ROOT / "docs" / "shell.cast"
LINES = [
    "insert leads.csv into crm.leads key id",
    "select status, count(*) as leads\rfrom crm.leads\rgroup by status;",
    "branch create cleanup",
    "use cleanup",
    "delete from crm.leads where status = 'lost';",
    "branch diff cleanup",
    "branch merge cleanup",
    "history crm.leads",
    "log crm.leads",
    "travel crm.lead yesterday",
    "delete from crm.leads;",
]


def main() -> None:
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        (folder / "leads.csv").write_text("id,name,status\n1,Ann,new\n2,Bob,lost\n3,Cid,new\n4,Dee,won\n")
        home = folder / "shop"
        try:
            with Terminal(home, folder, COLUMNS) as terminal:
                started = terminal.recorded[0][0]
                for line in LINES:
                    asks = line == LINES[-1]
                    terminal.run(line, until="[y/N]" if asks else "", seconds=90)
                    if asks:
                        terminal.run("n")
                terminal.read(0.5)
                text = terminal.text.rstrip()
                events = [(at - started, data) for at, data in terminal.recorded]
        finally:
            subprocess.run([LAKE, "down"], env={**os.environ, "LAKE_HOME": str(home)}, capture_output=True, check=False)
    header = {"version": 2, "width": COLUMNS, "height": 30, "env": {"TERM": "xterm-256color"}}
    lines = [json.dumps(header), *(json.dumps([round(at, 3), "o", data]) for at, data in events)]
    CAST.write_text("\n".join(lines) + "\n")
    marked = re.compile(r"(<!-- recording[^\n]*-->\n```\n).*?(```\n<!-- end of recording -->)", re.DOTALL)
    shown = "\n".join(line.rstrip() for line in text.splitlines())
    PAGE.write_text(marked.sub(lambda match: match[1] + shown + "\n" + match[2], PAGE.read_text()))


if __name__ == "__main__":
    main()
