"""OIDC tokens: of a real issuer's keys, for this audience, with groups that have scopes."""

from __future__ import annotations

import base64
import json
import threading
import time
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, HTTPServer
from typing import Any

import jwt
import pytest
from cryptography.hazmat.primitives.asymmetric import rsa
from tests.support.servers.ports import free_port
from tests.support.servers.service import wait_for

from lakehouse.core.errors import ServiceError, UnauthorizedError
from lakehouse.http.oidc import OidcVerifier

GROUPS = {"analysts": "reader", "engineers": "writer", "owners": "admin"}


class Issuer:
    """Signs tokens, and serves its discovery document and keys."""

    def __init__(self) -> None:
        self.keys = {"k1": rsa.generate_private_key(65537, 2048)}
        self.fetches = 0
        issuer = self

        class Handler(BaseHTTPRequestHandler):
            def do_GET(self) -> None:
                content = json.dumps(issuer.answer(self.path)).encode()
                self.send_response(200)
                self.end_headers()
                self.wfile.write(content)

            def log_message(self, *arguments: Any) -> None:
                pass

        self.server = HTTPServer(("127.0.0.1", 0), Handler)
        self.url = f"http://127.0.0.1:{self.server.server_port}"

    def answer(self, path: str) -> dict[str, Any]:
        if path == "/.well-known/openid-configuration":
            return {"jwks_uri": f"{self.url}/jwks"}
        self.fetches += 1
        listed = [
            {**json.loads(jwt.algorithms.RSAAlgorithm.to_jwk(key.public_key())), "kid": kid, "use": "sig"}
            for kid, key in self.keys.items()
        ]
        return {"keys": listed}

    def token(self, kid: str = "k1", key: Any = None, algorithm: str = "RS256", **claims: Any) -> str:
        content = {
            "iss": self.url,
            "aud": "lakehouse",
            "sub": "u1",
            "exp": time.time() + 60,
            "groups": ["analysts"],
            **claims,
        }
        present = {name: value for name, value in content.items() if value is not None}
        return jwt.encode(present, key or self.keys[kid], algorithm=algorithm, headers={"kid": kid})


@pytest.fixture(scope="module")
def issuer() -> Iterator[Issuer]:
    provider = Issuer()
    thread = threading.Thread(target=provider.server.serve_forever)
    thread.start()
    yield provider
    provider.server.shutdown()
    thread.join()
    provider.server.server_close()


@pytest.fixture
def verifier(issuer: Issuer) -> OidcVerifier:
    return OidcVerifier(issuer.url, "lakehouse", GROUPS)


def test_the_groups_give_the_highest_scope(issuer: Issuer, verifier: OidcVerifier) -> None:
    assert verifier.verify(issuer.token(email="a@b.c")).scope == "reader"
    principal = verifier.verify(issuer.token(groups=["other", "analysts", "engineers"], email="a@b.c"))
    assert (principal.id, principal.scope, principal.name) == ("u1", "writer", "a@b.c")


@pytest.mark.parametrize(
    "claims",
    [
        {"exp": time.time() - 3600},
        {"aud": "another"},
        {"iss": "https://elsewhere"},
        {"groups": ["strangers"]},
        {"groups": None},
        {"sub": None},
        {"exp": None},
    ],
)
def test_a_wrong_token_is_refused(issuer: Issuer, verifier: OidcVerifier, claims: dict[str, Any]) -> None:
    with pytest.raises(UnauthorizedError):
        verifier.verify(issuer.token(**claims))


def test_a_token_that_the_issuer_did_not_sign_is_refused(issuer: Issuer, verifier: OidcVerifier) -> None:
    forged = issuer.token(key=rsa.generate_private_key(65537, 2048))
    symmetric = issuer.token(key="x" * 64, algorithm="HS256")
    none = base64.urlsafe_b64encode(json.dumps({"alg": "none", "kid": "k1"}).encode()).decode().rstrip("=")
    unsigned = f"{none}.{issuer.token().split('.')[1]}."
    for token in (forged, symmetric, unsigned, "a.b.c", issuer.token()[:-5]):
        with pytest.raises(UnauthorizedError):
            verifier.verify(token)


def test_keys_are_fetched_once_and_again_for_a_new_one(issuer: Issuer) -> None:
    patient = OidcVerifier(issuer.url, "lakehouse", GROUPS, refetch_after_s=3600.0)
    hasty = OidcVerifier(issuer.url, "lakehouse", GROUPS, refetch_after_s=0.2)
    for verifier in (patient, hasty):
        before = issuer.fetches
        for _ in range(5):
            verifier.verify(issuer.token())
        assert issuer.fetches == before + 1
    issuer.keys["k2"] = rsa.generate_private_key(65537, 2048)
    before = issuer.fetches
    with pytest.raises(UnauthorizedError):
        patient.verify(issuer.token("k2"))
    assert issuer.fetches == before, "a token with an unknown key does not make the service ask each time"

    def is_accepted() -> bool:
        try:
            return hasty.verify(issuer.token("k2")).scope == "reader"
        except UnauthorizedError:
            return False

    wait_for(is_accepted)
    assert issuer.fetches == before + 1


def test_a_token_without_a_key_id_is_accepted_only_if_the_issuer_has_one_key(issuer: Issuer) -> None:
    issuer.keys = {"k1": issuer.keys["k1"]}
    token = issuer.token(kid="k1")
    claims = jwt.decode(token, options={"verify_signature": False})
    unnamed = jwt.encode(claims, issuer.keys["k1"], algorithm="RS256")
    assert OidcVerifier(issuer.url, "lakehouse", GROUPS).verify(unnamed).scope == "reader"
    issuer.keys["k2"] = rsa.generate_private_key(65537, 2048)
    with pytest.raises(UnauthorizedError, match="does not name"):
        OidcVerifier(issuer.url, "lakehouse", GROUPS).verify(unnamed)


@pytest.mark.parametrize("missing", ["discovery", "keys"])
def test_an_issuer_that_does_not_answer_is_no_fault_of_the_token(issuer: Issuer, missing: str) -> None:
    nowhere = f"http://127.0.0.1:{free_port()}"
    verifier = (
        OidcVerifier(nowhere, "lakehouse", GROUPS)
        if missing == "discovery"
        else OidcVerifier(issuer.url, "lakehouse", GROUPS, jwks_url=f"{nowhere}/jwks")
    )
    with pytest.raises(ServiceError, match="does not answer"):
        verifier.verify(issuer.token())
