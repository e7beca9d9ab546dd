"""Limits of a key at /catalog: what a key for one namespace or branch names in a request is its own."""

from __future__ import annotations

import json
import uuid
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pyarrow
import pytest
import requests
from pyiceberg.catalog.rest import RestCatalog
from pyiceberg.table import Table
from tests.support.servers.service import Client, Served, serving

SALARIES = [{"id": 1, "secret": "canary-417"}]
SCHEMA = {
    "type": "struct",
    "schema-id": 0,
    "fields": [
        {"id": 1, "name": "id", "type": "long", "required": False},
        {"id": 2, "name": "secret", "type": "string", "required": False},
    ],
}
ROWS = pyarrow.table({"id": pyarrow.array([2], pyarrow.int64()), "secret": ["own"]})


@dataclass(frozen=True)
class Lake:
    """A service with `hr.salaries`, which the key `crm` may not read, and the branch `exp`, the only one of the key `exp`."""

    served: Served
    crm: Client
    exp: Client

    def load(self, table: str, branch: str = "main") -> dict[str, Any]:
        namespace, _, name = table.rpartition(".")
        answer = self.served.admin.get(f"/catalog/v1/{branch}/namespaces/{namespace}/tables/{name}")
        assert answer.status_code == 200, answer.text
        loaded: dict[str, Any] = answer.json()
        return loaded

    def own_table(self, client: Client, branch: str = "main") -> Table:
        """A new table of a key's own, with a row."""
        catalog = RestCatalog("lake", uri=f"{client.url}/catalog", token=client.key, prefix=branch)
        table = catalog.create_table(f"crm.t{uuid.uuid4().hex[:8]}", ROWS.schema)
        table.append(ROWS)
        return catalog.load_table(table.name())


@pytest.fixture(scope="module")
def lake(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Lake]:
    with serving(tmp_path_factory.mktemp("limits") / "lake", concurrency=0) as served:
        served.admin.insert("hr.salaries", SALARIES)
        served.admin.insert("crm.leads", [{"id": 1}])
        served.admin.post("/branches", {"name": "exp"})
        served.admin.insert("crm.leads", [{"id": 99}])  # on main, after exp was created
        exp = served.client("writer", branches=["exp"])
        yield Lake(served, served.client("writer", namespaces=["crm"]), exp)


def refuses(answer: requests.Response) -> None:
    """Refused, in the shape of Iceberg's errors."""
    assert answer.status_code == 403, answer.text
    assert (answer.json()["error"]["type"], answer.json()["error"]["code"]) == ("ForbiddenException", 403)


def commit(client: Client, table: Table, snapshot: dict[str, Any], branch: str = "main") -> requests.Response:
    """Commit a snapshot to a table of the key."""
    name = table.name()[-1]
    metadata = table.metadata
    added = {
        "snapshot-id": 77,
        "parent-snapshot-id": metadata.current_snapshot_id,
        "sequence-number": metadata.last_sequence_number + 1,
        "timestamp-ms": metadata.last_updated_ms + 1,
        "summary": {"operation": "append"},
        "schema-id": 0,
        **snapshot,
    }
    ref = {"ref-name": "main", "type": "branch", "snapshot-id": 77}
    updates = [{"action": "add-snapshot", "snapshot": added}, {"action": "set-snapshot-ref", **ref}]
    return client.post(f"/catalog/v1/{branch}/namespaces/crm/tables/{name}", {"requirements": [], "updates": updates})


def files_of(lake: Lake, table: str, branch: str = "main") -> tuple[str, str, str, str]:
    """Metadata, manifest list, manifest and data file of a table."""
    loaded = lake.load(table, branch)
    listing = loaded["metadata"]["snapshots"][-1]["manifest-list"]
    owner = RestCatalog("lake", uri=f"{lake.served.url}/catalog", token=lake.served.admin.key, prefix=branch)
    opened = owner.load_table(table)
    snapshot = opened.current_snapshot()
    assert snapshot is not None
    manifest = snapshot.manifests(opened.io)[0]
    entry = manifest.fetch_manifest_entry(opened.io)[0]
    return loaded["metadata-location"], listing, manifest.manifest_path, entry.data_file.file_path


def local(location: str) -> Path:
    return Path(location.removeprefix("file://"))


# ---- registering ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("route", ["register", "register-view"])
@pytest.mark.parametrize("overwrite", [False, True])
def test_a_key_of_a_namespace_registers_no_metadata_of_another(lake: Lake, route: str, overwrite: bool) -> None:
    stolen = lake.load("hr.salaries")["metadata-location"]
    body = {"name": "s", "metadata-location": stolen, "overwrite": overwrite}
    refuses(lake.crm.post(f"/catalog/v1/namespaces/crm/{route}", body))
    missing = lake.crm.post(f"/catalog/v1/namespaces/crm/{route}", {**body, "metadata-location": stolen + "x"})
    refuses(missing)  # the same, whether the file exists or not
    assert lake.crm.get("/catalog/v1/namespaces/crm/tables/s").status_code == 404


def test_a_key_of_a_namespace_registers_no_file_that_it_has_written(lake: Lake) -> None:
    """Readers differ on a file with a key twice, or in what they do with fields that others do not know."""
    own = lake.own_table(lake.crm)
    stolen = lake.load("hr.salaries")
    forged = local(own.location()) / "metadata" / "00009-forged.metadata.json"
    text = json.dumps(stolen["metadata"])
    forged.write_text(text[:-1] + f', "location": {json.dumps(own.location())}}}')
    body = {"name": "forged", "metadata-location": f"file://{forged}"}
    refuses(lake.crm.post("/catalog/v1/namespaces/crm/register", body))


def test_a_key_of_a_branch_registers_no_metadata_of_another(lake: Lake) -> None:
    newer = lake.load("crm.leads")["metadata-location"]
    body = {"name": "leads", "metadata-location": newer, "overwrite": True}
    refuses(lake.exp.post("/catalog/v1/exp/namespaces/crm/register", body))
    assert lake.exp.rows("select id from crm.leads", branch="exp") == [{"id": 1}]


def test_a_key_registers_metadata_that_its_table_had(lake: Lake) -> None:
    own = lake.own_table(lake.crm)
    earlier = own.metadata.metadata_log[-1].metadata_file
    body = {"name": own.name()[-1], "metadata-location": earlier, "overwrite": True}
    assert lake.crm.post("/catalog/v1/namespaces/crm/register", body).status_code == 200


# ---- locations --------------------------------------------------------------------------------------------------


def elsewhere(lake: Lake) -> Iterator[str]:
    """Locations that are not for tables of `crm`."""
    salaries = lake.load("hr.salaries")["metadata"]["location"]
    warehouse = salaries.removesuffix("/hr/salaries")
    plain = warehouse.removeprefix("file://")
    yield from (salaries, salaries + "/", salaries + "/inside", f"{warehouse}/hr", f"{warehouse}/new", warehouse)
    yield from (f"{warehouse}/crm", f"{warehouse}/crm/", f"{warehouse}/crmx/t", f"{warehouse}/CRM/t")
    yield from (f"{warehouse}/crm/../hr/salaries", f"{warehouse}/crm/%2e%2e/hr", f"{warehouse}/crm//t")
    yield from (f"{plain}/hr/salaries", f"file:{plain}/hr/salaries", f"FILE://{plain}/crm/t")
    yield from (lake.load("crm.leads")["metadata"]["location"], f"{warehouse}/crm/leads/inside")
    yield from ("s3://bucket/crm/t", "s3a://bucket/crm/t", "", f"{warehouse}/crm/sub", f"{warehouse}/crm/sub/t")


def creations(location: str) -> Iterator[tuple[str, dict[str, Any]]]:
    table = {"name": "placed", "schema": SCHEMA}
    version = {"version-id": 1, "timestamp-ms": 1, "schema-id": 0, "summary": {}, "default-namespace": ["crm"]}
    sql = {"type": "sql", "sql": "select 1", "dialect": "spark"}
    view = {"name": "placed", "schema": SCHEMA, "view-version": {**version, "representations": [sql]}}
    yield "tables", {**table, "location": location}
    yield "tables", {**table, "location": location, "stage-create": True}
    yield "views", {**view, "location": location, "properties": {}}
    for kind in ("data", "metadata", "object-storage", "folder-storage"):
        path = {f"write.{kind}.path": location}
        yield "tables", {**table, "properties": path}
        yield "tables", {**table, "properties": path, "stage-create": True}
    yield "views", {**view, "properties": {"write.metadata.path": location}}


def test_a_key_of_a_namespace_puts_no_table_on_the_folder_of_another(lake: Lake) -> None:
    lake.served.admin.post("/catalog/v1/namespaces", {"namespace": ["crm", "sub"]})
    before = sorted(local(lake.load("hr.salaries")["metadata"]["location"]).rglob("*"))
    for location in elsewhere(lake):
        for route, body in creations(location):
            if location or "location" not in body:  # an empty one is none at all
                answer = lake.crm.post(f"/catalog/v1/namespaces/crm/{route}", body)
                assert answer.status_code in (400, 403), f"{location} {body}: {answer.text}"
        for path, change in (
            ("namespaces/crm/properties", {"updates": {"location": location}}),
            ("namespaces", {"namespace": ["crm"], "properties": {"location": location}}),
        ):
            answer = lake.crm.post(f"/catalog/v1/{path}", change)
            own = location.rstrip("/").endswith(("/warehouse/crm", "crm/sub", "/sub/t", "/crm/leads", "/leads/inside"))
            assert own or answer.status_code in (400, 403), f"{path} {location}: {answer.text}"
            lake.served.admin.post("/catalog/v1/namespaces/crm/properties", {"removals": ["location"]})
    assert sorted(local(lake.load("hr.salaries")["metadata"]["location"]).rglob("*")) == before


def test_a_key_of_a_namespace_moves_no_table_to_the_folder_of_another(lake: Lake) -> None:
    own = lake.own_table(lake.crm)
    name = own.name()[-1]
    for location in elsewhere(lake):
        for update in (
            {"action": "set-location", "location": location},
            {"action": "set-properties", "updates": {"write.data.path": location}},
            {"action": "set-properties", "updates": {"write.metadata.path": location}},
            {"action": "set-properties", "updates": {"WRITE.Object-Storage.path": location}},
        ):
            change = {"requirements": [], "updates": [update]}
            identifier = {"namespace": ["crm"], "name": name}
            for path, body in (
                (f"namespaces/crm/tables/{name}", change),
                ("transactions/commit", {"table-changes": [{"identifier": identifier, **change}]}),
            ):
                answer = lake.crm.post(f"/catalog/v1/{path}", body)
                assert answer.status_code in (400, 403), f"{location} {update}: {answer.text}"
    assert own.refresh().location() == own.location()


def test_a_staged_table_is_created_in_a_folder_of_its_own_or_not_at_all(lake: Lake) -> None:
    staged = lake.crm.post("/catalog/v1/namespaces/crm/tables", {"name": "st", "schema": SCHEMA, "stage-create": True})
    metadata = staged.json()["metadata"]
    updates = [
        {"action": "assign-uuid", "uuid": lake.load("hr.salaries")["metadata"]["table-uuid"]},
        {"action": "upgrade-format-version", "format-version": 2},
        {"action": "add-schema", "schema": SCHEMA, "last-column-id": 2},
        {"action": "set-current-schema", "schema-id": -1},
        {"action": "add-spec", "spec": {"spec-id": 0, "fields": []}},
        {"action": "set-default-spec", "spec-id": -1},
        {"action": "add-sort-order", "sort-order": {"order-id": 0, "fields": []}},
        {"action": "set-default-sort-order", "sort-order-id": -1},
    ]
    path, create = "/catalog/v1/namespaces/crm/tables/st", [{"type": "assert-create"}]
    salaries = lake.load("hr.salaries")["metadata"]["location"]
    stolen = [*updates, {"action": "set-location", "location": salaries}]
    refuses(lake.crm.post(path, {"requirements": create, "updates": stolen}))
    own = [*updates, {"action": "set-location", "location": metadata["location"]}]
    assert lake.crm.post(path, {"requirements": create, "updates": own}).status_code == 200


def test_a_default_location_that_is_taken_is_not_used(lake: Lake) -> None:
    """A table that an owner has renamed into another namespace keeps its folder."""
    own = lake.own_table(lake.crm)
    name = own.name()[-1]
    rename = {"source": {"namespace": ["crm"], "name": name}, "destination": {"namespace": ["hr"], "name": name}}
    assert lake.served.admin.post("/catalog/v1/tables/rename", rename).status_code == 204
    again = lake.crm.post("/catalog/v1/namespaces/crm/tables", {"name": name, "schema": SCHEMA})
    assert again.status_code == 200, again.text
    assert again.json()["metadata"]["location"].startswith(own.location() + "-")
    placed = {"name": "placed", "schema": SCHEMA, "location": own.location()}
    refuses(lake.crm.post("/catalog/v1/namespaces/crm/tables", placed))


def test_a_folder_behind_a_link_is_not_the_table_s_own(lake: Lake) -> None:
    salaries = local(lake.load("hr.salaries")["metadata"]["location"])
    link = salaries.parent.parent / "crm" / "link"
    link.symlink_to(salaries)
    try:
        body = {"name": "linked", "schema": SCHEMA, "location": f"file://{link}"}
        refuses(lake.crm.post("/catalog/v1/namespaces/crm/tables", body))
        own = lake.own_table(lake.crm)
        inside = local(own.location()) / "metadata" / "link.avro"
        inside.symlink_to(local(files_of(lake, "hr.salaries")[1]))
        refuses(commit(lake.crm, own, {"manifest-list": f"file://{inside}"}))
    finally:
        link.unlink()


def test_no_table_says_where_its_storage_is(lake: Lake) -> None:
    """PyIceberg prefers such properties to the catalog's, so the lake would send its keys there."""
    own = lake.own_table(lake.served.admin)
    path = f"/catalog/v1/namespaces/crm/tables/{own.name()[-1]}"
    for name in ("s3.endpoint", "py-io-impl", "s3.proxy-uri", "client.region", "write.py-location-provider.impl"):
        update = {"action": "set-properties", "updates": {name: "http://evil"}}
        answer = lake.served.admin.post(path, {"requirements": [], "updates": [update]})
        assert (answer.status_code, name in answer.text) == (400, True)
        created = {"name": "evil", "schema": SCHEMA, "properties": {name: "http://evil"}}
        assert lake.served.admin.post("/catalog/v1/namespaces/crm/tables", created).status_code == 400


# ---- snapshots --------------------------------------------------------------------------------------------------


def avro_like(file: str, replacements: dict[str, str], target: Path) -> str:
    """Write an Avro file like another, with other locations of the same length, and return its location."""
    content = local(file).read_bytes()
    for old, new in replacements.items():
        assert len(old) == len(new)
        content = content.replace(old.encode(), new.encode())
    target.write_bytes(content)
    return f"file://{target}"


def manifest_list_naming(table: Table, manifest: str, target: Path) -> str:
    """Write a manifest list with one manifest, and return its location."""
    from pyiceberg.manifest import write_manifest_list

    snapshot = table.current_snapshot()
    assert snapshot is not None
    listed = snapshot.manifests(table.io)[0]
    listed._data[0] = manifest
    with write_manifest_list(2, table.io.new_output(f"file://{target}"), 77, None, 2, "null") as writer:
        writer.add_manifests([listed])
    return f"file://{target}"


def manifest_naming(table: Table, data_file: str, target: Path) -> str:
    """Write a manifest with one data file, and return its location."""
    from pyiceberg.manifest import ManifestEntry, ManifestEntryStatus, write_manifest

    snapshot = table.current_snapshot()
    assert snapshot is not None
    entry = snapshot.manifests(table.io)[0].fetch_manifest_entry(table.io)[0]
    entry.data_file._data[1] = data_file
    new = ManifestEntry.from_args(status=ManifestEntryStatus.ADDED, snapshot_id=77, data_file=entry.data_file)
    output = table.io.new_output(f"file://{target}")
    with write_manifest(2, table.spec(), table.schema(), output, 77, "null") as writer:
        writer.add_entry(new)
    return f"file://{target}"


@pytest.mark.parametrize("who", ["crm", "exp"])
def test_no_file_of_a_table_that_a_key_may_not_read_is_committed(lake: Lake, who: str) -> None:
    client, branch, victim = (lake.crm, "main", "hr.salaries") if who == "crm" else (lake.exp, "exp", "crm.leads")
    own = lake.own_table(client, branch)
    metadata, listing, manifest, data_file = files_of(lake, victim)
    folder = local(own.location()) / "metadata"
    through_manifest = manifest_list_naming(own, manifest, folder / "a.avro")
    through_data = manifest_list_naming(own, manifest_naming(own, data_file, folder / "m.avro"), folder / "b.avro")
    through_metadata = manifest_list_naming(own, manifest_naming(own, metadata, folder / "n.avro"), folder / "c.avro")
    for manifest_list in (listing, through_manifest, through_data, through_metadata):
        refuses(commit(client, own, {"manifest-list": manifest_list}, branch))
    inline = {"manifest-list": own.current_snapshot().manifest_list, "manifests": [manifest]}  # type: ignore[union-attr]
    refuses(commit(client, own, inline, branch))
    for path in (data_file, f"{own.location()}/../../hr/salaries/x", f"{own.location()}/metadata/../../../hr/x"):
        statistics = {"snapshot-id": own.metadata.current_snapshot_id, "statistics-path": path}
        rest = {"file-size-in-bytes": 1, "file-footer-size-in-bytes": 1, "blob-metadata": []}
        update = {"action": "set-statistics", "statistics": {**statistics, **rest}}
        url = f"/catalog/v1/{branch}/namespaces/crm/tables/{own.name()[-1]}"
        refuses(client.post(url, {"requirements": [], "updates": [update]}))
    assert own.refresh().current_snapshot().snapshot_id != 77  # type: ignore[union-attr]


def test_a_key_of_a_branch_commits_no_file_of_its_table_on_another(lake: Lake) -> None:
    catalog = RestCatalog("lake", uri=f"{lake.exp.url}/catalog", token=lake.exp.key, prefix="exp")
    table = catalog.load_table("crm.leads")
    refuses(commit(lake.exp, table, {"manifest-list": files_of(lake, "crm.leads")[1]}, "exp"))
    rows = pyarrow.table({"id": pyarrow.array([3], pyarrow.int64())})
    table.append(rows)  # which names the files of both branches again
    table.overwrite(rows)
    assert lake.exp.rows("select id from crm.leads", branch="exp") == [{"id": 3}]


def test_a_file_on_which_readers_disagree_is_refused(lake: Lake) -> None:
    own = lake.own_table(lake.crm)
    snapshot = own.current_snapshot()
    assert snapshot is not None
    listing, folder = local(snapshot.manifest_list), local(own.location()) / "metadata"
    content = listing.read_bytes()
    sync = content[-16:]
    hidden = content[content.index(sync) + 16 :]
    forged = {
        "continued": content + b"\x00\x00" + sync + hidden,  # PyIceberg ends at the empty block
        "renamed": content.replace(b'"field-id": 500', b'"field-id": 900').replace(
            b'"manifest_path"', b'"manifest_pat2"'
        ),
        "cut": content[: len(content) // 2],
        "text": b"hello",
    }
    for name, written in forged.items():
        (folder / f"{name}.avro").write_bytes(written)
        answer = commit(lake.crm, own, {"manifest-list": f"file://{folder}/{name}.avro"})
        assert answer.status_code == 400, f"{name}: {answer.text}"


def test_a_key_with_limits_writes_and_maintains_its_own_tables(lake: Lake) -> None:
    for client, branch in ((lake.crm, "main"), (lake.exp, "exp")):
        own = lake.own_table(client, branch)
        own.append(ROWS)
        own.delete("id = 2")
        own.append(ROWS)
        own.overwrite(ROWS)
        with own.update_schema() as change:
            change.add_column("more", own.schema().find_type("id"))
        assert own.scan().to_arrow().num_rows == 1
        assert client.rows(f"select id from crm.{own.name()[-1]}", branch=branch) == [{"id": 2}]


# ---- names ------------------------------------------------------------------------------------------------------


def test_lists_hold_what_a_key_may_see(lake: Lake) -> None:
    lake.served.admin.post("/catalog/v1/namespaces", {"namespace": ["crm", "sub"]})
    assert lake.crm.get("/catalog/v1/namespaces").json()["namespaces"] == [["crm"]]
    for parent in ("hr", "nowhere"):
        assert lake.crm.get("/catalog/v1/namespaces", params={"parent": parent}).status_code == 404
    assert lake.crm.get("/catalog/v1/namespaces", params={"parent": "crm"}).json()["namespaces"] == []
    page = lake.crm.get("/catalog/v1/namespaces", params={"pageSize": 1}).json()
    assert (page["namespaces"], page["next-page-token"]) == ([["crm"]], None)


def test_names_in_a_body_have_the_limits_of_those_in_the_address(lake: Lake) -> None:
    hr, crm = ({"namespace": [space], "name": name} for space, name in (("hr", "salaries"), ("crm", "leads")))
    for route in ("tables/rename", "views/rename"):
        for source, destination in ((hr, {**crm, "name": "taken"}), (crm, {**hr, "name": "given"}), (hr, hr)):
            body = {"source": source, "destination": destination}
            refuses(lake.crm.post(f"/catalog/v1/{route}", body))
    change = {"requirements": [], "updates": [{"action": "set-properties", "updates": {"a": "1"}}]}
    both = [{"identifier": crm, **change}, {"identifier": hr, **change}]
    refuses(lake.crm.post("/catalog/v1/transactions/commit", {"table-changes": both}))
    assert "a" not in lake.load("crm.leads")["metadata"]["properties"]
    assert lake.crm.post("/catalog/v1/transactions/commit", {"table-changes": both[:1]}).status_code == 204


def test_a_branch_whose_name_is_part_of_an_address_has_its_limits(lake: Lake) -> None:
    for name in ("namespaces", "tables"):
        lake.served.admin.post("/branches", {"name": name})
        for client in (lake.crm, lake.exp):
            refuses(client.get(f"/catalog/v1/{name}/namespaces/hr/tables/salaries"))


def test_a_branch_of_others_is_refused_whether_it_exists_or_not(lake: Lake) -> None:
    for branch in ("main", "lake", "secret_branch", "nothing"):
        answer = lake.exp.get(f"/catalog/v1/{branch}/namespaces")
        refuses(answer)
        assert answer.text.replace(branch, "") == lake.exp.get("/catalog/v1/xyz/namespaces").text.replace(
            "xyz", ""
        ) or (branch == "lake")
    refuses(lake.exp.get("/catalog/v1/config", params={"warehouse": "lake@main"}))
    refuses(lake.exp.get("/catalog/v1/config", params={"warehouse": "lake@nothing"}))


def test_a_reader_reports_metrics_and_changes_nothing(lake: Lake) -> None:
    reader = lake.served.client("reader", namespaces=["crm"])
    report = {"report-type": "scan-report"}
    assert reader.post("/catalog/v1/namespaces/crm/tables/leads/metrics", report).status_code == 204
    refuses(reader.post("/catalog/v1/namespaces/hr/tables/salaries/metrics", report))
    refuses(reader.ask("DELETE", "/catalog/v1/namespaces/crm/tables/leads"))


def test_an_idempotency_key_of_another_caller_is_no_answer(lake: Lake) -> None:
    key = {"Idempotency-Key": uuid.uuid4().hex}
    body = {"updates": {"owner": "a"}}
    path = "/catalog/v1/namespaces/crm/properties"
    assert lake.served.admin.post(path, body, headers=key).status_code == 200
    assert lake.crm.post(path, {"updates": {"owner": "b"}}, headers=key).status_code == 200
