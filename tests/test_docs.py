"""What is written is true: every setting is in the docs, and every link leads somewhere."""

from __future__ import annotations

import re
from pathlib import Path

import lakehouse
from lakehouse.config.load import all_settings
from lakehouse.core.registry import BUILT_IN

ROOT = Path(__file__).parents[1]


def test_every_setting_is_documented_with_its_default() -> None:
    documented = (ROOT / "docs" / "configuration.md").read_text()
    for setting in all_settings():
        name, part = setting.name, setting.field
        row = re.search(rf"^\| `{re.escape(name)}` \|.*$", documented, re.MULTILINE)
        assert row, f"{name} is not in docs/configuration.md"
        assert row[0].endswith(f"| {part.metadata['help']} |"), (
            f"{name}: docs/configuration.md describes it differently"
        )
        if getattr(setting.type, "__origin__", None) is None:
            assert f"`LAKE_{name.upper().replace('.', '__')}`" in row[0]
            default = f"{part.default:g}" if isinstance(part.default, float) else str(part.default)
            default = default.lower() if isinstance(part.default, bool) else default
            assert not default or f"`{default}`" in row[0], f"{name}: its default is {default}"


def test_every_relative_link_leads_somewhere() -> None:
    for page in [*ROOT.glob("*.md"), *(ROOT / "docs").rglob("*.md")]:
        for target in re.findall(r"\]\((?!http|#)([^)#]+)", page.read_text()):
            assert (page.parent / target).exists(), f"{page.name} links to {target}"


def test_code_that_a_page_takes_from_a_file_is_in_that_file() -> None:
    pages = [ROOT / "README.md", *(ROOT / "docs").rglob("*.md")]
    taken = re.compile(r"(?:From|in)\s+`([\w./]+)`:\n\n```\w+\n(.*?)```", re.DOTALL)
    blocks = [(page.name, file, code) for page in pages for file, code in taken.findall(page.read_text())]
    assert len(blocks) >= 5
    for page, file, code in blocks:
        assert code in (ROOT / file).read_text(), f"{page} shows code that {file} does not have"


#: Where a path in a page or a comment may begin: in the checkout, in the package, or in the tests.
BEGINNINGS = (ROOT, ROOT / "src" / "lakehouse", ROOT / "src", ROOT / "tests")
PATHS = re.compile(
    r"(?<![\w/.{}*$-])(?:"
    r"(?P<path>(?:src|tests|docs|bench|tools|examples|deploy)/[\w./*-]*[\w*/]|[a-z_]\w*(?:/\w+)+\.py)"
    r"|(?P<module>lakehouse(?:\.\w+)+))"
)
#: Entry point groups are written as modules are.
GROUPS = set(BUILT_IN)

#: Names that the package exports.
PUBLIC = {f"lakehouse.{name}" for name in lakehouse.__all__}


def missing_paths(text: str) -> list[str]:
    """The paths and modules in a text that are not there; the last part of a module's name may be one of its names."""
    missing = []
    for match in PATHS.finditer(text):
        if path := match["path"]:
            there = any((start / path).exists() or next(start.glob(path), None) for start in BEGINNINGS)
        else:
            parts = match["module"].split(".")
            names = [ROOT / "src" / "/".join(parts[:count]) for count in (len(parts), len(parts) - 1) if count > 1]
            there = match["module"] in {*GROUPS, *PUBLIC} or any(
                name.is_dir() or name.with_suffix(".py").exists() for name in names
            )
        if not there:
            missing.append(match[0])
    return missing


def test_every_path_in_the_docs_exists() -> None:
    pages = [ROOT / name for name in ("README.md", "ARCHITECTURE.md", "CONTRIBUTING.md", "CHANGELOG.md")]
    pages += (ROOT / "docs").rglob("*.md")
    # Decisions describe the past: what they name as the earlier tree is not there any more.
    past = {"docs/decisions/0017-one-tree-registries-and-typed-requests.md": {"lake/requests.py"}}
    for page in pages:
        name = str(page.relative_to(ROOT))
        missing = set(missing_paths(page.read_text())) - past.get(name, set())
        assert not missing, f"{name} names {', '.join(sorted(missing))}"


def test_every_path_in_a_comment_of_the_code_exists() -> None:
    for file in (ROOT / "src").rglob("*.py"):
        comments = re.findall(r"#[^\n]*|\"\"\".*?\"\"\"", file.read_text(), re.DOTALL)
        missing = missing_paths("\n".join(comments))
        assert not missing, f"{file.relative_to(ROOT)} names {', '.join(missing)}"


def test_a_path_that_is_gone_is_found() -> None:
    text = "See `src/lakehouse/core/ports.py`, `serve/query.py`, lakehouse.api.daemon and `tests/serve`."
    assert missing_paths(text) == [
        "src/lakehouse/core/ports.py",
        "serve/query.py",
        "lakehouse.api.daemon",
        "tests/serve",
    ]
    assert not missing_paths(
        "`core/names.py`, lakehouse.core.names.TableName, `bench/results/*.json`, lakehouse.sources"
    )


def test_the_list_of_what_duckdb_answers_is_current() -> None:
    from tools.sql_rules import PAGE, refreshed

    text = PAGE.read_text()
    assert refreshed(text) == text, "docs/sql.md is stale. Refresh it: python tools/sql_rules.py"
