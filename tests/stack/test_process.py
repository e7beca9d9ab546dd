"""The processes of services: what they inherit."""

from __future__ import annotations

import pytest

from lakehouse.stack.process import environment


def test_a_server_inherits_the_options_of_every_java_and_no_setting_of_the_lake(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("JDK_JAVA_OPTIONS", "-Xss2m")
    monkeypatch.setenv("LAKE_STORAGE__SECRET_KEY", "secret")
    inherited = environment({"S3_REGION": "eu-west-3"})
    assert (inherited["JDK_JAVA_OPTIONS"], inherited["S3_REGION"], inherited["TZ"]) == ("-Xss2m", "eu-west-3", "UTC")
    assert not any(name.startswith("LAKE_") for name in inherited)
