"""Keys: scopes, namespaces, branches, expiry, revocation; shown once and stored as hashes."""

from __future__ import annotations

import json
import re
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from tests.conftest import Command
from tests.support.servers.service import Client, Served

from lakehouse.core.errors import BadRequestError, UnauthorizedError
from lakehouse.http.keys import FILE, KeyRequest, KeyStore


@pytest.fixture
def keys(tmp_path: Path) -> KeyStore:
    (tmp_path / "run").mkdir()
    return KeyStore(tmp_path)


def test_a_key_is_stored_as_a_hash_that_only_the_owner_reads(keys: KeyStore, tmp_path: Path) -> None:
    key, text = keys.create(KeyRequest("writer", "loader", ["crm"], ["exp"]))
    file = tmp_path / FILE
    assert file.stat().st_mode & 0o777 == 0o600
    assert text not in file.read_text()
    _, _, secret = text.split("_", 2)  # the secret may have underscores of its own
    assert secret not in file.read_text()
    assert "argon2" in json.loads(file.read_text())[0]["hash"]
    assert keys.verify(text) == key.principal
    assert "hash" not in key.shown()


@pytest.mark.parametrize("wrong", ["", "lake_", "lake_abc_def", "Bearer x", "lake_{id}_wrong", "other_{id}_x", "é"])
def test_a_wrong_key_is_refused(keys: KeyStore, wrong: str) -> None:
    key, _ = keys.create(KeyRequest())
    with pytest.raises(UnauthorizedError):
        keys.verify(wrong.format(id=key.id))


def test_a_key_ends_at_once_when_another_process_revokes_it(keys: KeyStore, tmp_path: Path) -> None:
    key, text = keys.create(KeyRequest())
    assert keys.verify(text).id == key.id
    KeyStore(tmp_path).revoke(key.id)
    with pytest.raises(UnauthorizedError, match="revoked"):
        keys.verify(text)


def test_an_expired_key_is_refused(keys: KeyStore) -> None:
    _, text = keys.create(KeyRequest(expires_at=datetime.now(UTC) - timedelta(seconds=1)))
    with pytest.raises(UnauthorizedError, match="expired"):
        keys.verify(text)


def test_a_rotated_key_has_the_same_rights(keys: KeyStore) -> None:
    old, text = keys.create(KeyRequest("agent", "a", ["crm"], ["exp"], datetime.now(UTC) + timedelta(days=1)))
    new, new_text = keys.rotate(old.id)
    assert keys.verify(new_text).scope == "agent"
    assert (new.namespaces, new.branches, new.expires_at) == (old.namespaces, old.branches, old.expires_at)
    with pytest.raises(UnauthorizedError):
        keys.verify(text)


@pytest.mark.parametrize("state", ["revoked", "expired"])
def test_a_key_without_rights_is_not_rotated(keys: KeyStore, state: str) -> None:
    expires = datetime.now(UTC) - timedelta(seconds=1) if state == "expired" else None
    key, _ = keys.create(KeyRequest("admin", expires_at=expires))
    if state == "revoked":
        keys.revoke(key.id)
    with pytest.raises(BadRequestError, match=state):
        keys.rotate(key.id)
    assert [known.state for known in keys.all()] == [state]


def test_a_key_is_rotated_once(keys: KeyStore) -> None:
    key, _ = keys.create(KeyRequest())

    def rotate(_: int) -> bool:
        with suppress(BadRequestError):
            keys.rotate(key.id)
            return True
        return False

    with ThreadPoolExecutor(4) as threads:
        assert sum(threads.map(rotate, range(4))) == 1
    assert sorted(known.state for known in keys.all()) == ["active", "revoked"]


@pytest.mark.parametrize("output", ["table", "csv", "json"])
def test_a_key_that_was_saved_is_a_key_file(served: Served, lake_command: Command, tmp_path: Path, output: str) -> None:
    """`lake keys create > FILE`, whatever the output format, is what --key-file and LAKE_KEY_FILE read."""
    printed = lake_command("keys", "create", "--scope", "reader", "-o", output).stdout
    _, text = served.service.keys.create(KeyRequest())
    own = re.search(r"lake_\w{10}_[\w-]{43}", printed)
    assert own is not None
    if output == "table":
        assert printed == f"{own[0]}\n", "the bare key"
    file = tmp_path / "key"
    file.write_text(printed.replace(own[0], text))
    assert lake_command("--url", served.url, "--key-file", str(file), "tables").returncode == 0
    assert lake_command("--url", served.url, "tables", env={"LAKE_KEY_FILE": str(file)}).returncode == 0


def test_a_table_with_a_key_is_a_key_file(served: Served, lake_command: Command, tmp_path: Path) -> None:
    _, text = served.service.keys.create(KeyRequest())
    file = tmp_path / "key"
    file.write_text(f"id          scope   key\n----------  ------  ---\n{text[5:15]}  reader  {text}\n")
    assert lake_command("--url", served.url, "--key-file", str(file), "tables").returncode == 0


@pytest.mark.parametrize("content", ["", "  \n", "two words-of-a-secret", "not\nthe-secret\n", "ä-secret"])
def test_what_is_no_key_is_refused_and_not_repeated(
    served: Served, lake_command: Command, tmp_path: Path, content: str
) -> None:
    file = tmp_path / "key"
    file.write_text(content)
    for answer in (
        lake_command("--url", served.url, "--key-file", str(file), "tables"),
        lake_command("--url", served.url, "tables", env={"LAKE_KEY_FILE": str(file)}),
        *([lake_command("--url", served.url, "tables", env={"LAKE_KEY": content})] if content.strip() else []),
    ):
        assert answer.returncode == 2, answer.stderr
        assert "secret" not in answer.stderr
        assert "Traceback" not in answer.stderr


def test_what_needs_admin_suggests_admin(served: Served) -> None:
    assert "--scope admin" in served.client("writer").get("/keys").json()["hint"]
    assert "--scope writer" in served.client("reader").ask("DELETE", "/tables/a.b").json()["hint"]


def test_the_first_key_is_created_once(keys: KeyStore) -> None:
    first = keys.create_first()
    assert keys.verify(first).scope == "admin"
    assert keys.create_first() == ""


def test_the_command_creates_lists_revokes_and_rotates(lake_command: Command) -> None:
    made = json.loads(lake_command("keys", "create", "--scope", "writer", "--namespace", "crm", "-o", "json").stdout)[0]
    assert made["key"].startswith(f"lake_{made['id']}_")
    listed = json.loads(lake_command("keys", "-o", "json").stdout)
    assert [(key["id"], key["namespaces"], key["state"]) for key in listed] == [(made["id"], ["crm"], "active")]
    assert lake_command("keys", "rotate", made["id"]).returncode == 0
    states = [key["state"] for key in json.loads(lake_command("keys", "-o", "json").stdout)]
    assert sorted(states) == ["active", "revoked"]
    unknown = lake_command("keys", "revoke", "nothing")
    assert unknown.returncode == 2
    assert "There is no key" in unknown.stderr


@pytest.fixture(scope="module")
def two_namespaces(served: Served) -> Served:
    served.admin.insert("mine.t", [{"id": 1}])
    served.admin.insert("theirs.t", [{"id": 2}])
    return served


@pytest.fixture(scope="module")
def limited(two_namespaces: Served) -> Client:
    return two_namespaces.client("writer", namespaces=["mine"])


def test_a_key_of_a_namespace_sees_its_tables_only(limited: Client) -> None:
    assert limited.rows("select id from mine.t") == [{"id": 1}]
    names = [table["name"] for table in limited.get("/tables").json()["tables"]]
    assert set(names) == {"mine.t"}
    assert all("theirs.t" not in line["tables"] for line in limited.get("/log").json()["commits"])


@pytest.mark.parametrize(
    "sql",
    [
        "select * from theirs.t",
        "select * from mine.t where id in (select id from theirs.t)",
        "with x as (select * from theirs.t) select * from x",
        "insert into mine.t select * from theirs.t",
        "show tables",
        "show tables in theirs",
        "describe table theirs.t",
        "explain select * from theirs.t",
        "call system.ancestors_of('theirs.t')",
    ],
)
def test_a_key_of_a_namespace_reads_no_other_by_sql(limited: Client, sql: str) -> None:
    answer = limited.post("/query", {"sql": sql})
    assert (answer.status_code, answer.json()["error"]) == (403, "forbidden")


@pytest.mark.parametrize(
    ("method", "path"),
    [
        ("GET", "/tables/theirs.t"),
        ("GET", "/tables/theirs.t/history"),
        ("GET", "/tables/theirs.t/schema"),
        ("GET", "/tables/theirs.t/report"),
        ("GET", "/tables/theirs.t/travel?when=now"),
        ("GET", "/tables/theirs.t/diff?start=now"),
        ("GET", "/log?table=theirs.t"),
        ("DELETE", "/tables/theirs.t"),
        ("POST", "/tables/theirs.t/undrop"),
        ("POST", "/ingest/theirs.t"),
        ("GET", "/catalog/v1/namespaces/theirs/tables/t"),
    ],
)
def test_a_key_of_a_namespace_uses_no_other_by_any_route(limited: Client, method: str, path: str) -> None:
    body = {"json": [{"id": 3}] if path.startswith("/ingest") else {}} if method == "POST" else {}
    assert limited.ask(method, path, **body).status_code == 403


def test_a_key_of_a_branch_uses_that_branch_only(two_namespaces: Served, admin: Client) -> None:
    assert admin.post("/branches", {"name": "theirs"}).status_code == 201
    assert admin.post("/branches", {"name": "ours"}).status_code == 201
    client = two_namespaces.client("writer", branches=["ours"])
    assert client.rows("select id from mine.t", branch="ours") == [{"id": 1}]
    for branch in ("", "main", "theirs"):
        assert client.post("/query", {"sql": "select 1", "branch": branch}).status_code == 403
        assert client.get("/tables", params={"branch": branch}).status_code == 403
    assert client.post("/branches/ours/merge", {}).status_code == 403
    assert client.ask("DELETE", "/branches/theirs").status_code == 403
    assert client.get("/catalog/v1/theirs/namespaces/mine/tables/t").status_code == 403
    assert client.get("/catalog/v1/ours/namespaces/mine/tables/t").status_code == 200


def test_an_agent_writes_to_branches_and_never_to_main(two_namespaces: Served) -> None:
    agent = two_namespaces.client("agent")
    assert agent.post("/ingest/mine.t", [{"id": 5}]).status_code == 403
    assert agent.post("/query", {"sql": "insert into mine.t values (5)"}).status_code == 403
    assert agent.post("/branches", {"name": "of_agent"}).status_code == 201
    agent.insert("mine.t?branch=of_agent", [{"id": 5}])
    assert {"id": 5} in agent.rows("select id from mine.t", branch="of_agent")
    assert agent.post("/branches/of_agent/merge", {}).status_code == 403
    assert two_namespaces.admin.post("/branches", {"name": "of_person"}).status_code == 201
    assert agent.ask("DELETE", "/branches/of_person").status_code == 403
    assert {"id": 5} not in agent.rows("select id from mine.t")


def test_a_reader_changes_nothing(two_namespaces: Served) -> None:
    reader = two_namespaces.client("reader")
    for sql in ("insert into mine.t values (9)", "drop table mine.t", "create table mine.u (id int)"):
        assert reader.post("/query", {"sql": sql}).status_code == 403
        assert reader.post("/statements", {"statement": sql}).json()["status"]["error"]["error"] == "forbidden"


def test_keys_over_http(served: Served, admin: Client) -> None:
    made = admin.post("/keys", {"scope": "reader", "name": "board", "days": 1}).json()
    client = Client(served.url, made["key"])
    assert client.get("/whoami").json()["scope"] == "reader"
    assert made["key"] not in admin.get("/keys").text
    assert admin.ask("DELETE", f"/keys/{made['id']}").json()["state"] == "revoked"
    assert client.get("/whoami").status_code == 401
