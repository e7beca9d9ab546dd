"""`lake new pipeline` writes files beside lake.toml and names the pipeline there."""

from __future__ import annotations

import tomllib
from pathlib import Path

import pytest
from tests.cli.conftest import Call

from lakehouse.cli.new import with_pipeline
from lakehouse.config.load import load_settings


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    return tmp_path


def test_a_new_pipeline_has_source_rules_checks_and_a_test(call: Call, folder: Path) -> None:
    done = call("new", "pipeline", "orders")
    assert (done.code, done.out) == (0, "")
    files = {str(path.relative_to(folder)) for path in folder.rglob("*") if path.is_file()}
    assert files == {"lake.toml", "orders.py", "test_orders.py", "data/orders/2026-01-14.csv"}
    settings = load_settings({}, folder, {})
    assert settings.pipelines == ("orders",)
    assert settings.sources == {"orders": {"path": str(folder / "data" / "orders")}}
    # A literal date is part of the code that Spark generates, so every day would be compiled anew (docs/pipelines).
    assert "F.lit(" not in (folder / "orders.py").read_text()


def test_a_second_pipeline_is_added_to_the_settings_of_lake_init(call: Call, folder: Path) -> None:
    assert call("init").code == call("new", "pipeline", "orders").code == 0
    settings = load_settings({}, folder, {})
    assert settings.pipelines == ("shop", "orders")
    assert set(settings.sources) == {"shop", "orders"}


@pytest.mark.parametrize(
    ("name", "said"),
    [
        pytest.param("Orders-2", "is not a name for a pipeline", id="letters"),
        pytest.param("json", "is the name of an installed module or pipeline", id="module"),
        pytest.param("market", "is the name of an installed module or pipeline", id="pipeline"),
        pytest.param("orders", "orders.py exists", id="file"),
    ],
)
def test_a_name_that_cannot_be_used_is_refused_and_nothing_is_written(
    call: Call, folder: Path, name: str, said: str
) -> None:
    (folder / "orders.py").write_text("mine = 1\n")
    done = call("new", "pipeline", name)
    assert done.code == 2
    assert said in done.err
    assert [(path.name, path.read_text()) for path in folder.iterdir()] == [("orders.py", "mine = 1\n")]


@pytest.mark.parametrize(
    "text",
    [
        pytest.param("", id="empty"),
        pytest.param('pipelines = ["shop"]\n[spark]\nmaster = "warm"\n', id="listed"),
        pytest.param('home = "x"\n[sources.shop]\npath = "sales"\n', id="not-listed"),
        pytest.param('pipelines = [\n  "shop",  # first\n  "more",\n]\n', id="several-lines"),
    ],
)
def test_the_settings_keep_what_they_had(text: str) -> None:
    before, after = tomllib.loads(text), tomllib.loads(with_pipeline(text, "orders"))
    assert after.pop("pipelines") == [*before.pop("pipelines", []), "orders"]
    assert after.pop("sources") == {**before.pop("sources", {}), "orders": {"path": "data/orders"}}
    assert after == before


def test_settings_of_another_form_are_left_alone() -> None:
    assert with_pipeline('sources = {shop = {path = "sales"}}\n', "orders") == ""
