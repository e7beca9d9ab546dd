"""The stack for Docker: the files that are checked in are what the descriptions say, and hold together."""

from __future__ import annotations

import json
import re
import stat
import subprocess
from pathlib import Path
from typing import Any

import pytest
import yaml
from jsonschema import Draft202012Validator
from tests.conftest import Command

from lakehouse.cli.commands import COMMANDS
from lakehouse.config.load import load_settings
from lakehouse.config.settings import Settings
from lakehouse.config.stack import StackSettings
from lakehouse.stack.compose import SECRETS, document, rendered, stale, write
from lakehouse.stack.services import services

ROOT = Path(__file__).parents[2]
DEPLOY = ROOT / "deploy"
SCHEMA = json.loads(Path(__file__).with_name("compose_schema.json").read_text())


@pytest.fixture(scope="module")
def compose() -> dict[str, Any]:
    return dict(yaml.safe_load((DEPLOY / "compose.yaml").read_text()))


def entries(compose: dict[str, Any]) -> dict[str, dict[str, Any]]:
    return dict(compose["services"])


def test_what_is_checked_in_is_what_would_be_written() -> None:
    assert stale(DEPLOY) == [], "run: lake stack render"


def test_a_stale_file_is_found(tmp_path: Path) -> None:
    list(write(tmp_path))
    assert stale(tmp_path) == []
    (tmp_path / "compose.yaml").write_text((tmp_path / "compose.yaml").read_text().replace("476", "475"))
    (tmp_path / "trino" / "jvm.config").unlink()
    assert stale(tmp_path) == ["compose.yaml", "trino/jvm.config"]


def test_the_file_is_a_compose_file(compose: dict[str, Any]) -> None:
    Draft202012Validator.check_schema(SCHEMA)
    assert [f"{list(error.path)}: {error.message}" for error in Draft202012Validator(SCHEMA).iter_errors(compose)] == []


def test_the_schema_finds_a_misspelt_key(compose: dict[str, Any]) -> None:
    wrong = json.loads(json.dumps(compose))
    wrong["services"]["trino"]["healtcheck"] = wrong["services"]["trino"].pop("healthcheck")
    assert list(Draft202012Validator(SCHEMA).iter_errors(wrong))


def test_the_yaml_reads_as_the_values_that_were_written(compose: dict[str, Any]) -> None:
    assert compose == document()


def test_every_service_that_has_a_container_is_there(compose: dict[str, Any]) -> None:
    wanted = {service.name for service in services() if service.container} | {
        name for service in services() for name in service.jobs
    }
    assert set(entries(compose)) == wanted
    assert {"storage", "postgres", "nessie", "rest", "hive", "connect", "trino", "dagster", "superset"} <= wanted


def test_images_are_pinned(compose: dict[str, Any]) -> None:
    for name, entry in entries(compose).items():
        tag = entry["image"].rpartition(":")[2]
        assert entry["image"] != tag and tag != "latest", name
        assert "build" in entry or re.search(r"\d", tag), name
    for file in (DEPLOY / "Dockerfile", DEPLOY / "superset" / "Dockerfile"):
        assert not re.search(r"^FROM \S+(:latest|/[^:\s]+)( AS \S+)?$", file.read_text(), re.MULTILINE)


def test_every_server_has_a_health_check_and_a_limit(compose: dict[str, Any]) -> None:
    for name, entry in entries(compose).items():
        assert entry["mem_limit"], name
        assert ("healthcheck" in entry) != (entry["restart"] == "no"), name


def test_every_profile_holds_all_that_its_members_need(compose: dict[str, Any]) -> None:
    for name, entry in entries(compose).items():
        for needed, how in entry.get("depends_on", {}).items():
            other = entries(compose)[needed]
            assert set(entry["profiles"]) <= set(other["profiles"]), f"{name} needs {needed}"
            wanted = "service_completed_successfully" if other["restart"] == "no" else "service_healthy"
            assert how["condition"] == wanted, f"{name} needs {needed}"
        assert "all" in entry["profiles"] or entry["profiles"] == [name]


def test_there_is_a_profile_for_every_service(compose: dict[str, Any]) -> None:
    profiles = {profile for entry in entries(compose).values() for profile in entry["profiles"]}
    on_request = {name for service in services() for name, job in service.jobs.items() if job.on_request}
    assert profiles == {"all"} | {service.name for service in services()} | on_request


def test_a_job_on_request_is_started_with_nothing_else(compose: dict[str, Any]) -> None:
    """`docker compose up --wait` takes a job that has ended, and that nothing waits for, for a failure."""
    awaited = {needed for entry in entries(compose).values() for needed in entry.get("depends_on", {})}
    for name, entry in entries(compose).items():
        ends = entry["restart"] == "no"
        assert not ends or name in awaited or entry["profiles"] == [name], name


def test_ports_are_open_on_loopback_unless_the_user_says_otherwise(compose: dict[str, Any]) -> None:
    taken = []
    for entry in entries(compose).values():
        for port in entry.get("ports", []):
            match = re.fullmatch(r"\$\{BIND:-127\.0\.0\.1\}:\$\{(\w+_PORT):-(\d+)\}:\d+", port)
            assert match, port
            expected = Settings().serve.port if match[1] == "SERVE_PORT" else getattr(StackSettings(), match[1].lower())
            assert int(match[2]) == expected
            taken.append(match[2])
    assert len(taken) == len(set(taken))


def test_there_is_no_password_and_none_may_be_left_out(compose: dict[str, Any]) -> None:
    text = (DEPLOY / "compose.yaml").read_text()
    named = set(re.findall(r"\$\{(\w+):\?", text))
    assert named == set(SECRETS)
    for name, entry in entries(compose).items():
        for key, value in entry.get("environment", {}).items():
            secret = re.search(r"password|secret_key|access_key|token", key, re.IGNORECASE)
            assert not secret or re.fullmatch(r"\$\{\w+:\?[^}]*\}", str(value)), f"{name}: {key}"
    assert all(re.search(rf"^{name}=$", (DEPLOY / ".env.example").read_text(), re.MULTILINE) for name in SECRETS)


def test_nobody_is_root_who_need_not_be(compose: dict[str, Any]) -> None:
    for name, entry in entries(compose).items():
        assert entry["security_opt"] == ["no-new-privileges:true"]
        assert ("cap_drop" in entry) == (name != "storage"), name
    for file in (DEPLOY / "Dockerfile", DEPLOY / "superset" / "Dockerfile"):
        last_stage = file.read_text().rpartition("\nFROM ")[2]
        assert re.search(r"^USER (?!root)\w+$", last_stage, re.MULTILINE), file


def test_what_is_mounted_or_built_is_there(compose: dict[str, Any]) -> None:
    volumes = set(compose["volumes"])
    for entry in entries(compose).values():
        for volume in entry.get("volumes", []):
            source = volume.split(":")[0]
            assert (DEPLOY / source).exists() if source.startswith(".") else source in volumes, volume
        if "build" in entry:
            context = DEPLOY / entry["build"]["context"]
            assert (context / entry["build"].get("dockerfile", "Dockerfile")).is_file()


def test_our_own_containers_use_settings_and_commands_that_exist(compose: dict[str, Any], tmp_path: Path) -> None:
    commands = {name for theme in COMMANDS.values() for name in theme}
    ours = {name: entry for name, entry in entries(compose).items() if entry["image"].startswith("lakehouse:")}
    assert {"bucket", "rest", "hive", "connect", "dagster"} <= set(ours)
    for name, entry in ours.items():
        filled = {key: re.sub(r"\$\{\w+:[-?]([^}]*)\}", r"x\1", value) for key, value in entry["environment"].items()}
        settings = load_settings({}, tmp_path, filled)  # an unknown one is an error
        assert settings.stack.external_services() == {"storage", "postgres"}
        assert entry.get("command", ["stack"])[0] in commands, name


def test_trino_finds_every_secret_of_its_catalogs_in_its_environment(compose: dict[str, Any]) -> None:
    variables = set(entries(compose)["trino"]["environment"])
    texts = [text for name, text in rendered().items() if name.startswith("trino/catalog/")]
    assert {name for text in texts for name in re.findall(r"\$\{ENV:(\w+)\}", text)} <= variables
    servers = {host for text in texts for host in re.findall(r"//([a-z]+):\d+", text)}
    assert servers <= set(entries(compose))


def test_the_script_that_makes_the_databases_is_a_shell_script() -> None:
    checked = subprocess.run(["sh", "-n", DEPLOY / "postgres" / "databases.sh"], capture_output=True, text=True)
    assert (checked.returncode, checked.stderr) == (0, "")


def test_rendering_makes_passwords_once_for_the_owner_alone(lake_command: Command, tmp_path: Path) -> None:
    folder = tmp_path / "srv"
    first = lake_command("stack", "render", "--into", str(folder))
    assert first.returncode == 0, first.stderr
    env = folder / ".env"
    assert stat.S_IMODE(env.stat().st_mode) == 0o600
    made = dict(line.split("=", 1) for line in env.read_text().splitlines() if re.match(r"\w+=", line))
    assert set(made) == set(SECRETS) and len(set(made.values())) == len(SECRETS)
    assert all(len(value) >= 20 for value in made.values())
    assert not any(value in first.stdout + first.stderr for value in made.values())
    before = env.read_text()
    again = lake_command("stack", "render", "--into", str(folder))
    assert f"kept     {env}" in again.stderr and env.read_text() == before
    assert lake_command("stack", "render", "--check", "--into", str(folder)).returncode == 0
    (folder / "compose.yaml").write_text("")
    stale_one = lake_command("stack", "render", "--check", "--into", str(folder))
    assert (stale_one.returncode, "compose.yaml" in stale_one.stderr) == (1, True)
