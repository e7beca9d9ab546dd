"""The description of the API as one HTML page without scripts."""

from __future__ import annotations

import json
from collections.abc import Mapping
from html import escape
from typing import Any

_STYLE = """
body { font: 15px/1.5 system-ui, sans-serif; max-width: 60rem; margin: 2rem auto; padding: 0 1rem; color: #1b1f24 }
code, pre { font: 13px/1.45 ui-monospace, monospace; background: #f3f4f6; border-radius: 4px }
code { padding: .1em .3em } pre { padding: .7rem; overflow-x: auto }
summary { cursor: pointer; padding: .3rem 0 } details { border-top: 1px solid #e5e7eb }
.method { display: inline-block; width: 4.5rem; font-weight: 600 } table { border-collapse: collapse } td { padding: .1rem 1rem .1rem 0 }
"""
_INTRO = """Send a key as <code>Authorization: Bearer lake_…</code>. Every error is
<code>{"error": code, "message": …, "hint": …}</code>. A change takes an <code>Idempotency-Key</code>. The same description for
programs: <a href="/openapi.json">openapi.json</a>. The Iceberg REST catalog is at <code>/catalog</code>."""


def render(openapi: Mapping[str, Any]) -> str:
    """The page of an OpenAPI description."""
    by_tag: dict[str, list[str]] = {}
    for path, methods in openapi["paths"].items():
        for method, operation in methods.items():
            by_tag.setdefault(operation["tags"][0], []).append(_operation(method.upper(), path, operation, openapi))
    sections = "".join(f"<h2>{escape(tag)}</h2>{''.join(parts)}" for tag, parts in by_tag.items())
    title = f"{escape(openapi['info']['title'])} {escape(openapi['info']['version'])}"
    return (
        f'<!doctype html><html lang="en"><head><meta charset="utf-8"><title>{title}</title><style>{_STYLE}</style></head>'
        f"<body><h1>{title}</h1><p>{_INTRO}</p>{sections}</body></html>"
    )


def _operation(method: str, path: str, operation: Mapping[str, Any], openapi: Mapping[str, Any]) -> str:
    text = operation.get("description", "")
    rows = "".join(_parameter(parameter) for parameter in operation.get("parameters", ()))
    parameters = f"<table>{rows}</table>" if rows else ""
    examples = "".join(f"<pre>{escape(json.dumps(example))}</pre>" for example in _examples(operation, openapi))
    first = escape(text.split("\n")[0])
    return (
        f'<details><summary><span class="method">{method}</span><code>{escape(path)}</code> {first}</summary>'
        f"<p>{escape(text)}</p>{parameters}{examples}</details>"
    )


def _parameter(parameter: Mapping[str, Any]) -> str:
    about = parameter.get("description", "")
    return (
        f"<tr><td><code>{escape(parameter['name'])}</code></td><td>{parameter['in']}</td><td>{escape(about)}</td></tr>"
    )


def _examples(operation: Mapping[str, Any], openapi: Mapping[str, Any]) -> list[Any]:
    content = operation.get("requestBody", {}).get("content", {}).get("application/json", {})
    if "example" in content:
        return [content["example"]]
    schema: Mapping[str, Any] = content.get("schema", {})
    name = str(schema.get("$ref", "")).rpartition("/")[2]
    schema = openapi.get("components", {}).get("schemas", {}).get(name, schema)
    return list(schema.get("examples", [schema["example"]] if "example" in schema else []))
