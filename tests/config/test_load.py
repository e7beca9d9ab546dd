"""Settings from four places: who wins, where each came from, and what is refused."""

from __future__ import annotations

import os
from dataclasses import FrozenInstanceError
from pathlib import Path
from typing import Any

import pytest

from lakehouse.config.load import all_settings, load_settings
from lakehouse.config.profiles import resolve_profile
from lakehouse.config.settings import Settings
from lakehouse.core.errors import BadSettingError, ConfigError, UnknownChoiceError
from lakehouse.core.registry import BUILT_IN


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    place = tmp_path / "project"
    place.mkdir()
    return place


def load(folder: Path, environ: dict[str, str] | None = None, **flags: Any) -> Settings:
    dotted = {name.replace("__", "."): value for name, value in flags.items()}
    return load_settings(dotted, folder, environ or {})


def test_without_anything_the_defaults_hold(folder: Path) -> None:
    settings = load(folder)
    assert settings.profile == "embedded"
    assert settings.home == folder / ".lake"
    assert settings.cache == Path.home() / ".cache" / "lakehouse"
    assert settings.spark.master == "warm"
    assert settings.spark.conf == {}
    assert settings.origins == {}


def test_each_place_wins_over_the_one_before_it(folder: Path) -> None:
    (folder / "lake.toml").write_text(
        '[spark]\nmaster = "toml"\ndriver_memory = "toml"\nidle_minutes = 1\njava_home = "toml"\n'
    )
    (folder / ".env").write_text(
        "LAKE_SPARK__MASTER=file\nLAKE_SPARK__DRIVER_MEMORY=file\nLAKE_SPARK__IDLE_MINUTES=2\n"
    )
    settings = load(
        folder,
        {"LAKE_SPARK__MASTER": "variable", "LAKE_SPARK__DRIVER_MEMORY": "variable", "OTHER_LAKE_HOME": "no"},
        spark__master="flag",
        home=None,
    )
    spark = settings.spark
    assert (spark.master, spark.driver_memory, spark.idle_minutes, spark.java_home) == ("flag", "variable", 2.0, "toml")
    assert settings.origins == {
        "spark.master": "flag",
        "spark.driver_memory": "environment: LAKE_SPARK__DRIVER_MEMORY",
        "spark.idle_minutes": str(folder / ".env"),
        "spark.java_home": str(folder / "lake.toml"),
    }


def test_the_processes_own_environment_is_read_by_default(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("LAKE_QUERY__ENGINE", "spark")
    assert load_settings(folder=folder).query.engine == "spark"
    assert load_settings(folder=folder, environ={}).query.engine == "auto"


def test_a_lake_toml_is_found_in_a_parent_and_gives_relative_folders_their_place(folder: Path) -> None:
    (folder / "lake.toml").write_text('home = "data/lake"\ncache = "jars"\n')
    (folder / ".env").write_text("LAKE_QUERY__ENGINE=duckdb\n")
    below = folder / "a" / "b"
    below.mkdir(parents=True)
    settings = load(below)
    assert settings.home == folder / "data" / "lake"
    assert settings.cache == folder / "jars"
    assert settings.query.engine == "duckdb"


def test_the_nearest_lake_toml_wins(folder: Path) -> None:
    (folder / "lake.toml").write_text('[query]\nengine = "spark"\n')
    below = folder / "below"
    below.mkdir()
    (below / "lake.toml").write_text('[query]\nengine = "duckdb"\n')
    assert load(below).query.engine == "duckdb"


def test_without_a_lake_toml_a_relative_home_is_below_the_working_folder(folder: Path) -> None:
    assert load(folder, {"LAKE_HOME": "x/y"}).home == folder / "x" / "y"


@pytest.mark.parametrize("by", ["flag", "variable"])
def test_a_relative_home_typed_in_a_shell_is_taken_from_the_shells_folder(folder: Path, by: str) -> None:
    (folder / "lake.toml").write_text("")
    below = folder / "below"
    below.mkdir()
    settings = load(below, home="mine") if by == "flag" else load(below, {"LAKE_HOME": "mine"})
    assert settings.home == below / "mine"


def test_a_tilde_is_the_users_folder(folder: Path) -> None:
    assert load(folder, home="~/lake").home == Path.home() / "lake"


def test_the_cache_is_in_xdg_cache_home_unless_set(folder: Path) -> None:
    settings = load(folder, {"XDG_CACHE_HOME": "/caches"})
    assert settings.cache == Path("/caches/lakehouse")
    assert settings.origins["cache"] == "environment: XDG_CACHE_HOME"
    assert load(folder, {"XDG_CACHE_HOME": "/caches", "LAKE_CACHE": "/mine"}).cache == Path("/mine")


def test_an_env_file_may_have_comments_exports_and_quotes(folder: Path) -> None:
    (folder / ".env").write_text(
        "# a comment = not a setting\n\n  # LAKE_PROFILE=nope\nexport LAKE_SPARK__MASTER='local[2]'\n"
        'LAKE_MAVEN_REPO="https://mirror/?a=b"\nSOMETHING_ELSE=1\nnot a pair\n'
    )
    settings = load(folder)
    assert settings.spark.master == "local[2]"
    assert settings.maven_repo == "https://mirror/?a=b"


def test_a_debug_variable_is_not_a_setting(folder: Path) -> None:
    assert load(folder, {"LAKE_DEBUG": "1"}).origins == {}


def test_spark_properties_come_as_a_table_of_texts(folder: Path) -> None:
    (folder / "lake.toml").write_text(
        '[spark.conf]\n"spark.sql.ansi.enabled" = true\n"spark.task.cpus" = 2\n"spark.x" = "y"\n'
    )
    assert load(folder).spark.conf == {"spark.sql.ansi.enabled": "true", "spark.task.cpus": "2", "spark.x": "y"}


@pytest.mark.parametrize(
    ("content", "message", "hint"),
    [
        pytest.param("profile = ", "is not TOML", "lake init", id="broken-toml"),
        pytest.param("\xff\xfe", "is not TOML", "lake init", id="not-utf-8"),
        pytest.param('profil = "embedded"', "profil (", "Did you mean profile?", id="unknown-setting"),
        pytest.param("[spark]\nmastr = 1", "spark.mastr (", "Did you mean spark.master?", id="unknown-nested"),
        pytest.param('spark = "local"', "spark (", "lake config show", id="a-value-where-a-table-belongs"),
        pytest.param("[profile]\nname = 1", "profile.name (", "Did you mean profile?", id="a-table-for-a-value"),
        pytest.param('[spark]\nidle_minutes = "soon"', "is not a number", "lake config show", id="text-for-a-number"),
        pytest.param("[spark]\nidle_minutes = [1]", "is not a number", "lake config show", id="list-for-a-number"),
        pytest.param("[spark]\nmaster = 3", "is not a string", "lake config show", id="number-for-a-string"),
        pytest.param('[spark]\nconf = "a=b"', "is not a table", "lake config show", id="text-for-a-table"),
        pytest.param("[[spark]]\nmaster = 'x'", "spark (", "lake config show", id="list-of-tables"),
    ],
)
def test_a_wrong_lake_toml_says_what_is_wrong_with_it(folder: Path, content: str, message: str, hint: str) -> None:
    file = folder / "lake.toml"
    file.write_bytes(content.encode("latin-1"))
    with pytest.raises(BadSettingError) as refused:
        load(folder)
    assert message in refused.value.message
    assert str(file) in refused.value.message
    assert hint in refused.value.hint


def test_a_number_for_a_folder_says_that_a_folder_is_wanted(folder: Path) -> None:
    (folder / "lake.toml").write_text("home = 5")
    with pytest.raises(BadSettingError, match="is not a (path|folder)"):
        load(folder)


@pytest.mark.parametrize("value", ["true", "nan", "-1"])
def test_a_number_of_minutes_is_a_number_that_makes_sense(folder: Path, value: str) -> None:
    (folder / "lake.toml").write_text(f"[spark]\nidle_minutes = {value}")
    with pytest.raises(BadSettingError):
        load(folder)


def test_a_secret_of_the_wrong_kind_is_not_repeated(folder: Path) -> None:
    (folder / "lake.toml").write_text("[s3]\nsecret_key = 8675309\n")
    with pytest.raises(BadSettingError, match=r"s3\.secret_key .* is not a string") as refused:
        load(folder)
    assert "8675309" not in str(refused.value.as_dict())


def test_an_unknown_variable_names_itself_and_the_nearest(folder: Path) -> None:
    with pytest.raises(BadSettingError) as refused:
        load(folder, {"LAKE_SPARK_MASTER": "x"})
    assert "environment: LAKE_SPARK_MASTER" in refused.value.message
    assert "Did you mean spark.master?" in refused.value.hint


@pytest.mark.parametrize(
    ("environ", "known"),
    [
        pytest.param({"LAKE_PROFILE": "stak"}, BUILT_IN["lakehouse.profiles"], id="profile"),
        pytest.param({"LAKE_QUERY__ENGINE": "trono"}, ("auto", "duckdb", "spark", "trino"), id="engine"),
    ],
)
def test_an_unknown_choice_lists_the_valid_ones(folder: Path, environ: dict[str, str], known: tuple[str, ...]) -> None:
    with pytest.raises(UnknownChoiceError) as refused:
        load(folder, environ)
    assert refused.value.known == sorted(known)
    for choice in known:
        assert choice in refused.value.hint


def test_an_env_file_that_is_not_text_is_refused_with_its_name(folder: Path) -> None:
    (folder / ".env").write_bytes(b"LAKE_PROFILE=\xff\xfe\n")
    with pytest.raises(ConfigError, match=r"\.env"):
        load(folder)


def test_settings_do_not_change(folder: Path) -> None:
    settings = load(folder)
    with pytest.raises(FrozenInstanceError):
        settings.profile = "other"  # type: ignore[misc]
    with pytest.raises(FrozenInstanceError):
        settings.spark.master = "other"  # type: ignore[misc]


def test_a_mapping_among_the_settings_does_not_change_either(folder: Path) -> None:
    (folder / "lake.toml").write_text('[spark.conf]\n"a" = "b"\n')
    settings = load(folder)
    with pytest.raises(TypeError):
        settings.spark.conf["a"] = "c"  # type: ignore[index]


def test_every_setting_states_its_effect_and_what_an_empty_default_means() -> None:
    for name, part, _ in all_settings():
        effect = part.metadata["help"]
        assert effect[0].isupper() and effect[-1] in ".…", name
        assert part.default not in ("", ()) or "(default: " in effect, name


def test_every_setting_can_be_set_by_a_variable_except_tables(folder: Path) -> None:
    for setting in all_settings():
        name, part = setting.name, setting.field
        if getattr(setting.type, "__origin__", None) is not None:
            continue
        variable = "LAKE_" + name.upper().replace(".", "__")
        settings = load(folder, {variable: str(part.default)})
        assert settings.origins == {name: f"environment: {variable}"}, name


def test_reading_settings_leaves_the_environment_alone(folder: Path) -> None:
    before = dict(os.environ)
    (folder / ".env").write_text("LAKE_SPARK__MASTER=local[1]\n")
    load(folder)
    assert dict(os.environ) == before


@pytest.mark.parametrize(
    "value", ["main,audit", " main , audit,", '["main", "audit"]', "['main', 'audit']", '["MAIN","audit",]']
)
def test_a_list_in_a_variable_has_commas_or_the_form_of_toml(folder: Path, value: str) -> None:
    assert load(folder, {"LAKE_BRANCHES__PROTECTED": value}).branches.protected == ("main", "audit")
    (folder / "lake.toml").write_text('[branches]\nprotected = ["main", "audit"]\n')
    assert load(folder).branches.protected == ("main", "audit")


@pytest.mark.parametrize("value", ['["main"', "[main]", "main;audit", '"main"', "[1]", "ma in", "1st"])
@pytest.mark.parametrize("variable", ["LAKE_BRANCHES__PROTECTED", "LAKE_TRINO__BRANCHES"])
def test_what_cannot_be_a_branch_protects_nothing_and_is_an_error(folder: Path, variable: str, value: str) -> None:
    with pytest.raises(BadSettingError):
        load(folder, {variable: value})


def test_a_secret_is_read_from_a_file(folder: Path) -> None:
    (folder / "key").write_text("s3cret\n")
    settings = load(folder, {"LAKE_S3__SECRET_KEY_FILE": str(folder / "key")})
    assert settings.s3.secret_key == "s3cret"
    assert settings.origins["s3.secret_key"] == "environment: LAKE_S3__SECRET_KEY_FILE"
    (folder / "uri").write_text("postgresql://lake:s3cret@db/lake")
    (folder / ".env").write_text(f"LAKE_CATALOG__URI_FILE={folder / 'uri'}\n")
    assert load(folder).catalog.uri == "postgresql://lake:s3cret@db/lake"


def test_a_secret_file_that_is_missing_and_a_secret_set_twice_are_errors(folder: Path) -> None:
    with pytest.raises(BadSettingError, match="LAKE_S3__SECRET_KEY_FILE: .*nowhere cannot be read"):
        load(folder, {"LAKE_S3__SECRET_KEY_FILE": str(folder / "nowhere")})
    (folder / "key").write_text("s3cret")
    with pytest.raises(BadSettingError, match="both set") as refused:
        load(folder, {"LAKE_S3__SECRET_KEY_FILE": str(folder / "key"), "LAKE_S3__SECRET_KEY": "other"})
    assert "other" not in str(refused.value)


def test_only_secrets_are_read_from_files(folder: Path) -> None:
    with pytest.raises(BadSettingError, match="home_file"):
        load(folder, {"LAKE_HOME_FILE": str(folder)})


# ---- plugins ----------------------------------------------------------------------------------------------------


@pytest.fixture
def plugin(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """An installed distribution with a catalog, an engine, a format and a profile."""
    metadata = tmp_path / "site" / "memory_plugin-1.0.dist-info"
    metadata.mkdir(parents=True)
    (metadata / "METADATA").write_text("Metadata-Version: 2.1\nName: memory-plugin\nVersion: 1.0\n")
    groups = {"catalogs": "memory", "engines": "abacus", "formats": "stone", "profiles": "team"}
    lines = [f"[lakehouse.{group}]\n{name} = memory_plugin:{name}\n" for group, name in groups.items()]
    (metadata / "entry_points.txt").write_text("\n".join(lines))
    (tmp_path / "site" / "memory_plugin.py").write_text(
        "from lakehouse.config.profiles import Profile\nteam = Profile('memory')\n"
    )
    monkeypatch.syspath_prepend(str(tmp_path / "site"))


@pytest.mark.usefixtures("plugin")
def test_names_that_installed_packages_register_are_accepted(folder: Path) -> None:
    (folder / "lake.toml").write_text("""formats = ["iceberg", "stone"]
[catalog]
kind = "memory"
[catalog.properties]
wait_s = 3
[query]
engine = "abacus"
[engines.abacus]
beads = 10
""")
    settings = load(folder, {"LAKE_CATALOG__PROPERTIES__TOKEN": "t", "LAKE_ENGINES__ABACUS__RODS": "7"})
    assert settings.catalog.properties == {"wait_s": "3", "token": "t"}
    assert settings.engines == {"abacus": {"beads": "10", "rods": "7"}}
    assert (settings.catalog.kind, settings.query.engine, settings.formats) == (
        "memory",
        "abacus",
        ("iceberg", "stone"),
    )
    assert settings.origins["catalog.properties.token"] == "environment: LAKE_CATALOG__PROPERTIES__TOKEN"


@pytest.mark.usefixtures("plugin")
def test_a_registered_profile_gives_the_kind_of_the_catalog(folder: Path) -> None:
    assert resolve_profile(load(folder, {"LAKE_PROFILE": "team"})).catalog.kind == "memory"
    given = load(folder, {"LAKE_PROFILE": "team", "LAKE_CATALOG__KIND": "sql"})
    assert resolve_profile(given).catalog.kind == "sql"


@pytest.mark.usefixtures("plugin")
@pytest.mark.parametrize(
    ("variable", "wrong", "right"),
    [
        ("LAKE_CATALOG__KIND", "memry", {"memory", "sql", "rest", "nessie", "hive"}),
        ("LAKE_QUERY__ENGINE", "abcus", {"abacus", "auto", "duckdb", "spark", "trino"}),
        ("LAKE_FORMATS", "iceberg,ston", {"stone", "iceberg", "hudi"}),
        ("LAKE_PROFILE", "tem", {"team", *BUILT_IN["lakehouse.profiles"]}),
    ],
)
def test_an_unknown_name_lists_those_of_installed_packages_too(
    folder: Path, variable: str, wrong: str, right: set[str]
) -> None:
    with pytest.raises(UnknownChoiceError) as refused:
        load(folder, {variable: wrong})
    assert set(refused.value.known) == right


@pytest.mark.parametrize("place", ["lake/lake.toml", "lake.toml"])
def test_the_lake_toml_of_a_lake_is_read_wherever_the_process_was_started(tmp_path: Path, place: str) -> None:
    elsewhere, home = tmp_path / "elsewhere", tmp_path / "project" / "lake"
    for folder in (elsewhere, home):
        folder.mkdir(parents=True)
    (tmp_path / "project" / place).write_text('home = "lake"\n[branches]\nprotected = ["main"]\n[serve]\nport = 9000\n')
    for given in ({"flags": {"home": home}}, {"environ": {"LAKE_HOME": str(home)}}):
        settings = load_settings(given.get("flags"), folder=elsewhere, environ=given.get("environ", {}))
        assert (settings.home, settings.serve.port, settings.branches.protected) == (home, 9000, ("main",))
    (elsewhere / "lake.toml").write_text('[branches]\nprotected = ["audit"]\n[serve]\nport = 9001\n')
    settings = load_settings({"home": home}, folder=elsewhere, environ={})
    assert settings.serve.port == 9001, "that of the working folder wins"
    assert settings.branches.protected == ("audit", "main"), "and unprotects nothing"


def test_a_lake_toml_beside_another_lake_is_not_read(tmp_path: Path) -> None:
    (tmp_path / "lake.toml").write_text("[serve]\nport = 9000\n")  # of tmp_path/.lake
    settings = load_settings({"home": tmp_path / "other"}, folder=Path("/"), environ={})
    assert settings.serve.port != 9000
