"""Settings handed to another process are the same settings there."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

from lakehouse.config.load import dump_settings, load_settings, parse_settings


def test_settings_come_back_as_they_were(tmp_path: Path) -> None:
    (tmp_path / "lake.toml").write_text(
        'home = "here"\nmaven_repo = "https://me:secret@mirror"\n[spark]\nidle_minutes = 0.5\njava_home = "/j"\n'
        '[spark.conf]\n"a.b" = "c"\n[query]\nengine = "duckdb"\nlargest_scan = "1GB"\n'
        '[s3]\nendpoint = "http://127.0.0.1:9000"\naccess_key = "me"\nsecret_key = "hunter2"\npath_style = false\n'
    )
    settings = load_settings({"spark.master": "local[1]"}, tmp_path, {"LAKE_CACHE": "/some/cache"})
    back = parse_settings(dump_settings(settings))
    assert replace(back, origins={}) == replace(settings, origins={})
    assert back.home == tmp_path / "here"
    assert back.maven_repo == "https://me:secret@mirror"
    assert (back.s3.secret_key, back.s3.path_style) == ("hunter2", False)
    assert set(back.origins.values()) == {"parent process"}


def test_the_same_settings_are_the_same_text(tmp_path: Path) -> None:
    first = load_settings({"home": tmp_path, "query.engine": "spark"}, tmp_path, {})
    again = load_settings({"query.engine": "spark", "home": str(tmp_path)}, tmp_path, {})
    assert dump_settings(first) == dump_settings(again)
    assert dump_settings(first) != dump_settings(replace(first, profile="other"))
    assert json.loads(dump_settings(first))["home"] == str(tmp_path)


def test_sources_are_handed_over_only_if_they_are_wanted(tmp_path: Path) -> None:
    settings = load_settings({"home": tmp_path}, tmp_path, {"LAKE_SOURCES__MARKET__PATH": "s3://bars/flat"})
    assert parse_settings(dump_settings(settings)).sources == {}
    assert parse_settings(dump_settings(settings, sources=True)).sources == {"market": {"path": "s3://bars/flat"}}
