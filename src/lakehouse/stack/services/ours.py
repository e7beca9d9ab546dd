"""The settings of our own image in every container that runs it."""

from __future__ import annotations

#: The settings of a lake on the stack's servers, which have their names in the containers' network.
ENVIRONMENT = {
    "LAKE_HOME": "/lake",
    "LAKE_PROFILE": "sql",
    "LAKE_STACK__HOST": "0.0.0.0",
    "LAKE_STACK__STORAGE_HOST": "storage",
    "LAKE_STACK__STORAGE_PORT": "9000",
    "LAKE_STACK__POSTGRES_HOST": "postgres",
    "LAKE_STACK__POSTGRES_PORT": "5432",
    "LAKE_STACK__BUCKET": "${BUCKET}",
    "LAKE_STACK__REGION": "${S3_REGION}",
    "LAKE_STACK__ACCESS_KEY": "${S3_ACCESS_KEY}",
    "LAKE_STACK__SECRET_KEY": "${S3_SECRET_KEY}",
    "LAKE_STACK__LAKE_PASSWORD": "${LAKE_PASSWORD}",
}


def listening(port: int) -> tuple[str, ...]:
    """A health check for our image: whether a port accepts connections."""
    return ("CMD", "python", "-c", f"import socket; socket.create_connection(('127.0.0.1', {port}), 3)")
