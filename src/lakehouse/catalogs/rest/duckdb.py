"""The properties of a REST catalog as DuckDB names them."""

from __future__ import annotations

from collections.abc import Mapping


def duckdb_login(token: str, properties: Mapping[str, str]) -> str:
    """How DuckDB authenticates, by the properties that PyIceberg and Spark get."""
    if token:
        return f"TOKEN '{token}'"
    if properties.get("rest.sigv4-enabled", "").lower() == "true":
        return "AUTHORIZATION_TYPE 'sigv4'"
    if "credential" not in properties:
        return "AUTHORIZATION_TYPE 'none'"
    client, _, secret = properties["credential"].rpartition(":")
    options = {
        "CLIENT_ID": client,
        "CLIENT_SECRET": secret,
        "OAUTH2_SERVER_URI": properties.get("oauth2-server-uri", ""),
        "OAUTH2_SCOPE": properties.get("scope", ""),
    }
    return ", ".join(f"{name} '{value}'" for name, value in options.items() if value)
