"""Messages recommend only settings that exist."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path

import lakehouse
from lakehouse.config.load import all_settings

SETTINGS = {name for name, _, _ in all_settings()}
SECTIONS = {name.partition(".")[0] for name in SETTINGS if "." in name}
VARIABLES = {f"LAKE_{name.upper().replace('.', '__')}" for name in SETTINGS} | {"LAKE_DEBUG"}
SETTING = re.compile(rf"(?<![\w./-])(?:{'|'.join(sorted(SECTIONS))})\.[a-z][a-z0-9_]*(?![\w.(/:*-])")
VARIABLE = re.compile(r"(?<!\w)LAKE_[A-Z0-9_]*[A-Z0-9](?![\w{…*])")
#: Spark's own settings, and files that are named like a section.
OTHERS = re.compile(r"spark\.(?:sql|ui|table|local|log)|stack\.json|catalog\.db")


def messages() -> Iterator[tuple[str, str]]:
    """Every string in the arguments of an error that is raised, with its file and line."""
    for file in Path(lakehouse.__file__).parent.rglob("*.py"):
        for node in ast.walk(ast.parse(file.read_text())):
            if isinstance(node, ast.Call) and re.search(r"(Error|Finding)$", ast.unparse(node.func)):
                for part in ast.walk(node):
                    if isinstance(part, ast.Constant) and isinstance(part.value, str):
                        yield f"{file.name}:{part.lineno}", part.value


def test_every_setting_and_variable_in_a_message_exists() -> None:
    settings = [(where, name) for where, text in messages() for name in SETTING.findall(text) if not OTHERS.match(name)]
    assert len({name for _, name in settings}) > 10
    assert [setting for setting in settings if setting[1] not in SETTINGS] == []
    variables = [(where, name) for where, text in messages() for name in VARIABLE.findall(text)]
    assert len({name for _, name in variables}) > 5
    assert [variable for variable in variables if variable[1] not in VARIABLES] == []
