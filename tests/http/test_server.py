"""`lake serve`: where it listens, its first key, and how it ends."""

from __future__ import annotations

import os
import subprocess
from datetime import UTC, datetime, timedelta
from ipaddress import ip_address
from pathlib import Path

import pytest
import requests
from cryptography import x509
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat
from cryptography.x509.oid import NameOID
from tests.conftest import LAKE, Command, cache_only
from tests.support.servers.service import Client, Served, Start, serving

import lakehouse
from lakehouse.config.load import load_settings
from lakehouse.core.errors import AlreadyServedError, BadSettingError, ServiceUnreachableError
from lakehouse.http.server import check_exposure


def test_the_first_start_prints_an_admin_key_once(start: Start, home: Path) -> None:
    process = start()
    client = process.client
    assert client.get("/whoami").json()["scope"] == "admin"
    assert (home / "keys.json").stat().st_mode & 0o777 == 0o600
    assert (home / "service.db").stat().st_mode & 0o777 == 0o600
    assert client.get("/readyz").json()["status"] == "ok"
    page = requests.get(f"{client.url}/", timeout=30)
    assert page.url.endswith("/ui"), "the way to the console, which asks for a key"
    page = requests.get(f"{client.url}/docs", timeout=30)
    assert "/tables/{table}" in page.text
    assert "<script" not in page.text
    process.popen.terminate()
    assert process.popen.wait(20) == 0
    again = start()
    assert again.client.get("/whoami").status_code == 200, "the second start prints no key; the first one works"


def test_a_lake_has_one_service(served: Served) -> None:
    """A second one would take the jobs of the first for interrupted, and remove its results."""
    statement = served.admin.post("/statements", {"statement": "select 7 as n"}).json()["statement_id"]
    with pytest.raises(AlreadyServedError, match=f"by the process {os.getpid()}"), serving(served.service.lake.folder):
        raise AssertionError("it must not start")
    again = served.admin.get(f"/statements/{statement}/result/chunks/0")
    assert (again.status_code, again.json()["data_array"]) == (200, [[7]])


def test_the_second_service_of_a_lake_says_which_is_the_first(start: Start, home: Path) -> None:
    first = start()
    second = subprocess.run(
        [LAKE, "serve", "--port", "0"], env={**os.environ, "LAKE_HOME": str(home)}, capture_output=True, timeout=60
    )
    assert second.returncode == 2
    assert f"served already, by the process {first.popen.pid}" in second.stderr.decode()
    first.kill()
    assert start().client.get("/whoami").status_code == 200, "a service that was killed holds nothing"


def test_without_keys_on_loopback_everybody_is_the_owner(start: Start) -> None:
    process = start(LAKE_AUTH="off")
    client = Client(process.client.url)
    assert client.get("/whoami").json()["scope"] == "admin"
    for headers in ({"Host": "evil.example:8600"}, {"Origin": "https://evil.example"}, {"Origin": "null"}):
        assert client.get("/whoami", headers=headers).status_code == 403, "pages of other sites are not answered"
    assert client.get("/whoami", headers={"Origin": client.url}).status_code == 200


def exposed(tmp_path: Path, **flags: object) -> None:
    given = {name.replace("__", "."): value for name, value in flags.items()}
    check_exposure(load_settings({"home": tmp_path / "lake", **given}, folder=tmp_path, environ=cache_only()))


def test_beyond_loopback_it_needs_tls_or_a_proxy_and_keys(tmp_path: Path) -> None:
    for host in ("127.0.0.1", "::1", "localhost", "127.1.2.3"):
        exposed(tmp_path, serve__host=host)
    for host in ("0.0.0.0", "::", "192.168.1.5", "lake.example.com"):
        with pytest.raises(BadSettingError, match="clear text"):
            exposed(tmp_path, serve__host=host)
        exposed(tmp_path, serve__host=host, serve__behind_proxy=True)
        with pytest.raises(BadSettingError, match="LAKE_AUTH=off"):
            exposed(tmp_path, serve__host=host, serve__behind_proxy=True, auth=False)
    with pytest.raises(BadSettingError, match="no file"):
        exposed(tmp_path, serve__host="0.0.0.0", serve__tls_cert_file="/nowhere.pem")


def test_a_port_that_is_taken_is_said(lake_command: Command, start: Start) -> None:
    port = start().client.url.rsplit(":", 1)[-1]
    done = lake_command("serve", "--port", port)
    assert done.returncode == 2
    assert f"cannot listen on 127.0.0.1:{port}" in done.stderr


@pytest.fixture
def certificate(tmp_path: Path) -> tuple[Path, Path]:
    """A certificate for 127.0.0.1 that signs itself, and its key."""
    key = ec.generate_private_key(ec.SECP256R1())
    name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "lakehouse test")])
    now = datetime.now(UTC)
    made = (
        x509.CertificateBuilder()
        .subject_name(name)
        .issuer_name(name)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - timedelta(minutes=5))
        .not_valid_after(now + timedelta(days=1))
        .add_extension(x509.SubjectAlternativeName([x509.IPAddress(ip_address("127.0.0.1"))]), critical=False)
        .add_extension(x509.BasicConstraints(ca=True, path_length=None), critical=True)
        .sign(key, hashes.SHA256())
    )
    private = key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption())
    files = tmp_path / "cert.pem", tmp_path / "key.pem"
    for file, content in zip(files, (made.public_bytes(Encoding.PEM), private), strict=True):
        file.write_bytes(content)
    return files


def test_tls_is_verified_by_the_client(
    start: Start, certificate: tuple[Path, Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    cert, key = certificate
    monkeypatch.setenv("REQUESTS_CA_BUNDLE", str(cert))
    process = start(LAKE_SERVE__TLS_CERT_FILE=str(cert), LAKE_SERVE__TLS_KEY_FILE=str(key))
    url, secret = process.client.url, process.client.key
    assert url.startswith("https://")
    assert process.client.rows("select 1 as one") == [{"one": 1}]
    with (
        lakehouse.connect(url, key=secret) as stranger,
        pytest.raises(ServiceUnreachableError, match="certificate"),
    ):
        stranger.sql("select 1")
    monkeypatch.setenv("SSL_CERT_FILE", str(cert))
    with lakehouse.connect(url, key=secret) as lake:
        assert lake.sql("select 1 as one").rows() == [(1,)]
    with (
        lakehouse.connect(url.replace("https", "http"), key=secret) as plain,
        pytest.raises(ServiceUnreachableError),
    ):
        plain.sql("select 1")


def test_lake_ui_prints_a_link_that_signs_in_once_at_the_running_service(start: Start, home: Path) -> None:
    process = start()
    environment = {key: value for key, value in os.environ.items() if key not in ("DISPLAY", "WAYLAND_DISPLAY")}
    link = subprocess.run(
        [LAKE, "ui", "--no-browser"],
        env={**environment, "LAKE_HOME": str(home)},
        capture_output=True,
        text=True,
        timeout=60,
        check=True,
    ).stdout.strip()
    assert link.startswith(f"{process.client.url}/ui/link?token=")
    with requests.Session() as browser:
        assert browser.get(link, timeout=30).status_code == 200
        assert browser.get(f"{process.client.url}/whoami", timeout=30).json()["scope"] == "admin"
    assert requests.get(link, timeout=30).status_code == 403
