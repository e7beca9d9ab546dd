"""`lake config show`: every value, its source, and no secret."""

from __future__ import annotations

from pathlib import Path

import pytest

from lakehouse.config.load import all_settings, load_settings
from lakehouse.config.settings import Settings
from lakehouse.config.show import show_settings
from lakehouse.core.masking import HIDDEN, mask

SECRET = "hunter2"


def with_conf(folder: Path, key: str, value: str) -> Settings:
    (folder / "lake.toml").write_text(f'[spark.conf]\n"{key}" = "{value}"\n')
    return load_settings({}, folder, {})


def shown(settings: Settings) -> str:
    return "\n".join(f"{line.setting} {line.value} {line.source} {line.help}" for line in show_settings(settings))


def test_every_setting_is_shown_with_its_source(tmp_path: Path) -> None:
    lines = {line.setting: line for line in show_settings(load_settings({"query.engine": "duckdb"}, tmp_path, {}))}
    assert list(lines) == [name for name, _, _ in all_settings()]
    assert (lines["query.engine"].value, lines["query.engine"].source) == ("duckdb", "flag")
    assert (lines["profile"].value, lines["profile"].source) == ("embedded", "default")
    assert all(line.help for line in lines.values())


@pytest.mark.parametrize(
    "key",
    [
        pytest.param("spark.ssl.keyPassword", id="password"),
        pytest.param("spark.authenticate.secret", id="secret"),
        pytest.param("spark.hadoop.fs.s3a.secret.key", id="secret-key"),
        pytest.param("spark.hadoop.fs.s3a.access.key", id="access-key"),
        pytest.param("spark.hadoop.fs.s3a.session.token", id="token"),
        pytest.param("spark.sql.catalog.x.credential", id="credential"),
        pytest.param("spark.x.api_key", id="api-key"),
        pytest.param("spark.x.TOKEN", id="upper-case"),
    ],
)
def test_a_property_that_is_named_like_a_secret_is_hidden(tmp_path: Path, key: str) -> None:
    text = shown(with_conf(tmp_path, key, SECRET))
    assert SECRET not in text
    assert f"{key}={HIDDEN}" in text


@pytest.mark.parametrize(
    "key",
    [
        pytest.param("spark.hadoop.fs.azure.account.key.me.dfs.core.windows.net", id="azure-account-key"),
        pytest.param("spark.x.passwd", id="passwd"),
        pytest.param("spark.x.pwd", id="pwd"),
        pytest.param("spark.x.private_key", id="private-key"),
        pytest.param("spark.hadoop.fs.s3a.server-side-encryption.key", id="encryption-key"),
    ],
)
def test_other_names_of_secrets_are_hidden_too(tmp_path: Path, key: str) -> None:
    assert SECRET not in shown(with_conf(tmp_path, key, SECRET))


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        pytest.param("https://me:hunter2@host/a", f"https://me:{HIDDEN}@host/a", id="password"),
        pytest.param("https://:hunter2@host", f"https://:{HIDDEN}@host", id="no-user"),
        pytest.param("a https://b:c@d and https://e:f@g", f"a https://b:{HIDDEN}@d and https://e:{HIDDEN}@g", id="two"),
        pytest.param("https://host:8080/a@b", "https://host:8080/a@b", id="a-port-is-no-password"),
        pytest.param("https://host/", "https://host/", id="nothing-to-hide"),
    ],
)
def test_a_password_in_an_address_is_hidden(text: str, expected: str) -> None:
    assert mask(text) == expected


@pytest.mark.parametrize(
    "text",
    [
        pytest.param("https://me:p@hunter2@host", id="an-at-in-the-password"),
        pytest.param("https://me:p/hunter2@host", id="a-slash-in-the-password"),
        pytest.param("https://hunter2@host/maven", id="a-token-as-the-user"),
        pytest.param("jdbc:postgresql://host/db?user=me&password=hunter2", id="a-password-parameter"),
        pytest.param("-Djavax.net.ssl.trustStorePassword=hunter2 -Xmx1g", id="a-java-option"),
    ],
)
def test_other_secrets_in_a_value_are_hidden_too(text: str) -> None:
    assert SECRET not in mask(text)


def test_a_mirror_with_a_password_is_shown_without_it(tmp_path: Path) -> None:
    text = shown(load_settings({}, tmp_path, {"LAKE_MAVEN_REPO": f"https://me:{SECRET}@mirror/maven2"}))
    assert SECRET not in text
    assert "https://me:" in text


def test_the_keys_of_s3_are_shown_as_set_and_no_more(tmp_path: Path) -> None:
    given = {"LAKE_S3__ACCESS_KEY": f"id-{SECRET}", "LAKE_S3__SECRET_KEY": SECRET}
    settings = load_settings({}, tmp_path, given)
    lines = {line.setting: line.value for line in show_settings(settings)}
    assert (lines["s3.access_key"], lines["s3.secret_key"]) == (HIDDEN, HIDDEN)
    assert SECRET not in shown(settings) + repr(settings)
    unset = {line.setting: line.value for line in show_settings(load_settings({}, tmp_path, {}))}
    assert unset["s3.secret_key"] == ""


def test_every_setting_that_is_named_like_a_secret_is_one_and_stays_out_of_texts() -> None:
    for name, part, _ in all_settings():
        if name.endswith(("_key", "password", "secret", "token")):
            assert part.metadata.get("secret"), name
        if part.metadata.get("secret"):
            assert not part.repr, name
