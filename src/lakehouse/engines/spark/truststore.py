"""Java trusts whom Python trusts.

The Java in a wheel knows only its own list of certificate authorities, so behind a company's proxy it refuses what
pip has just fetched. This writes the machine's list in Java's own (JKS) form; it holds no secret.
"""

from __future__ import annotations

import hashlib
import ssl
import struct
from pathlib import Path

_MAGIC, _VERSION, _TRUSTED_CERTIFICATE = 0xFEEDFEED, 2, 2
_PASSWORD = "changeit"  # Java's own default; a list of public certificates needs none, but the format asks for one
_SALT = b"Mighty Aphrodite"


def java_trust_options(folder: Path) -> list[str]:
    """The options that make a JVM trust the machine's authorities; none if Python knows none."""
    certificates = ssl.create_default_context().get_ca_certs(binary_form=True)
    if not certificates:
        return []
    file = folder / "trust.jks"
    file.write_bytes(java_keystore(certificates))
    return [f"-Djavax.net.ssl.trustStore={file}", f"-Djavax.net.ssl.trustStorePassword={_PASSWORD}"]


def java_keystore(certificates: list[bytes]) -> bytes:
    """Certificates (DER) as a JKS key store."""
    body = struct.pack(">III", _MAGIC, _VERSION, len(certificates))
    for number, certificate in enumerate(certificates):
        body += struct.pack(">I", _TRUSTED_CERTIFICATE) + _text(f"ca{number}") + struct.pack(">Q", 0)
        body += _text("X.509") + struct.pack(">I", len(certificate)) + certificate
    return body + hashlib.sha1(_PASSWORD.encode("utf-16-be") + _SALT + body, usedforsecurity=False).digest()


def _text(text: str) -> bytes:
    return struct.pack(">H", len(text)) + text.encode()
