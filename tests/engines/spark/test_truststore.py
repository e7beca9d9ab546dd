"""The machine's certificate authorities in Java's form, read back as Java reads them."""

from __future__ import annotations

import hashlib
import ssl
import struct
import subprocess
from pathlib import Path

import pytest

from lakehouse.engines.spark.java import find_java
from lakehouse.engines.spark.truststore import java_keystore, java_trust_options

PASSWORD = "changeit"


def read_back(store: bytes) -> dict[str, bytes]:
    """A JKS key store as its specification has it: certificates by alias."""
    body, digest = store[:-20], store[-20:]
    assert hashlib.sha1(PASSWORD.encode("utf-16-be") + b"Mighty Aphrodite" + body).digest() == digest
    assert struct.unpack_from(">II", body) == (0xFEEDFEED, 2)
    (count,) = struct.unpack_from(">I", body, 8)
    place, found = 12, {}

    def take(size: int) -> bytes:
        nonlocal place
        place += size
        assert place <= len(body)
        return body[place - size : place]

    for _ in range(count):
        assert struct.unpack(">I", take(4)) == (2,)
        alias = take(*struct.unpack(">H", take(2))).decode()
        take(8)
        assert take(*struct.unpack(">H", take(2))) == b"X.509"
        found[alias] = take(*struct.unpack(">I", take(4)))
    assert place == len(body)
    assert len(found) == count
    return found


def test_every_certificate_is_there_under_a_name_of_its_own() -> None:
    certificates = [b"\x30\x03one", b"\x30\x03two", b""]
    assert list(read_back(java_keystore(certificates)).values()) == certificates


def test_no_certificates_make_an_empty_store() -> None:
    assert read_back(java_keystore([])) == {}


def test_another_byte_anywhere_is_noticed() -> None:
    store = bytearray(java_keystore([b"\x30\x03one"]))
    store[20] ^= 1
    with pytest.raises(AssertionError):
        read_back(bytes(store))


def test_java_is_told_of_all_that_python_trusts(tmp_path: Path) -> None:
    trusted = ssl.create_default_context().get_ca_certs(binary_form=True)
    if not trusted:
        assert java_trust_options(tmp_path) == []
        return
    option, password = java_trust_options(tmp_path)
    file = Path(option.removeprefix("-Djavax.net.ssl.trustStore="))
    assert password == f"-Djavax.net.ssl.trustStorePassword={PASSWORD}"
    assert sorted(read_back(file.read_bytes()).values()) == sorted(trusted)


def test_java_itself_reads_every_certificate(tmp_path: Path) -> None:
    trusted = ssl.create_default_context().get_ca_certs(binary_form=True)
    file = tmp_path / "trust.jks"
    file.write_bytes(java_keystore(trusted))
    keytool = find_java().home / "bin" / "keytool"
    command = [keytool, "-J-Duser.language=en", "-list", "-keystore", file, "-storepass", PASSWORD]
    listed = subprocess.run(command, capture_output=True, text=True)
    assert listed.stdout.count("trustedCertEntry") == len(trusted), listed.stdout
