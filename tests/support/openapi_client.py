"""A client generated from an OpenAPI description: a TypedDict for each schema, a method for each operation."""

from __future__ import annotations

import keyword
import re
from collections.abc import Iterator, Mapping
from typing import Any

_HEAD = '''"""Generated."""

from __future__ import annotations

from typing import Any, Literal, NotRequired, TypedDict, cast
from urllib.parse import quote

import requests


class Client:
    def __init__(self, url: str, key: str) -> None:
        self._url, self._session = url, requests.Session()
        self._session.headers["Authorization"] = "Bearer " + key

    def _send(self, method: str, path: str, query: dict[str, Any], key: str | None, body: Any) -> Any:
        headers = {"Idempotency-Key": key} if key is not None else {}
        answer = self._session.request(method, self._url + path, params=query, headers=headers, json=body, timeout=60)
        answer.raise_for_status()
        is_json = answer.headers.get("content-type", "").startswith("application/json")
        return answer.json() if is_json else answer.text
'''
_SIMPLE = {"string": "str", "integer": "int", "number": "float", "boolean": "bool", "null": "None"}


def generate(openapi: Mapping[str, Any]) -> str:
    """The source of the client."""
    methods = "".join(
        line
        for path, operations in openapi["paths"].items()
        for method, operation in operations.items()
        for line in _method(method, path, operation)
    )
    operations = [operation for path in openapi["paths"].values() for operation in path.values()]
    answers = {_answer_name(operation): _answer_schema(operation) for operation in operations}
    unnamed = {name: schema for name, schema in answers.items() if schema.get("properties")}
    schemas = "".join(_typed(name, schema) for name, schema in {**openapi["components"]["schemas"], **unnamed}.items())
    return f"{_HEAD}{methods}{schemas}"


def _method(method: str, path: str, operation: Mapping[str, Any]) -> Iterator[str]:
    given = operation.get("parameters", ())
    in_path = [entry for entry in given if entry["in"] == "path"]
    in_query = [entry for entry in given if entry["in"] == "query"]
    arguments = [f"{_word(entry['name'])}: {_type(entry['schema'])}" for entry in in_path]
    body = operation.get("requestBody", {}).get("content", {}).get("application/json", {}).get("schema")
    if body is not None:
        is_needed = operation["requestBody"].get("required")
        arguments.append(f"body: {_type(body)}" if is_needed else f"body: {_type(body)} | None = None")
    arguments.append("*")
    for entry in in_query:
        kind = _type(entry["schema"])
        arguments.append(f"{_word(entry['name'])}: {kind}" + ("" if entry.get("required") else " | None = None"))
    is_keyed = any(entry["in"] == "header" for entry in given)
    arguments += ["idempotency_key: str | None = None"] if is_keyed else []
    arguments = arguments[:-1] if arguments[-1] == "*" else arguments
    filled = re.sub(r"{(\w+)(:path)?}", lambda match: f"{{quote(str({_word(match[1])}), safe='')}}", path)
    query = ", ".join(f'"{entry["name"]}": {_word(entry["name"])}' for entry in in_query)
    key = "idempotency_key" if is_keyed else "None"
    returned = _answer(operation)
    yield f"\n    def {_snake(operation['operationId'])}({', '.join(['self', *arguments])}) -> {returned}:\n"
    sent = f'self._send("{method.upper()}", f"{filled}", {{{query}}}, {key}, {"body" if body is not None else "None"})'
    yield f'        return cast("{returned}", {sent})\n'


def _answer(operation: Mapping[str, Any]) -> str:
    schema = _answer_schema(operation)
    if schema.get("properties"):
        return _answer_name(operation)
    return _type(schema) if schema else "str"


def _answer_name(operation: Mapping[str, Any]) -> str:
    name = str(operation["operationId"])
    return f"{name[0].upper()}{name[1:]}Answer"


def _answer_schema(operation: Mapping[str, Any]) -> Mapping[str, Any]:
    """The schema of the answer; empty for one that is text."""
    content = next(answer for status, answer in operation["responses"].items() if status.startswith("2"))
    schema: Mapping[str, Any] = content.get("content", {}).get("application/json", {}).get("schema", {})
    return schema


def _typed(name: str, schema: Mapping[str, Any]) -> str:
    if schema.get("type") != "object" or "properties" not in schema:
        return f"\n\n{name} = {_type(schema)!r}\n" if "enum" not in schema else f"\n\n{name} = {_type(schema)}\n"
    required = set(schema.get("required", ()))
    fields = (
        f'"{field}": {kind if field in required else f"NotRequired[{kind}]"}'
        for field, kind in ((field, repr(_type(kind))) for field, kind in schema["properties"].items())
    )
    return f'\n\n{name} = TypedDict("{name}", {{{", ".join(fields)}}})\n'


def _type(schema: Mapping[str, Any]) -> str:
    """The Python type of a JSON schema; objects without a name are dicts."""
    if "$ref" in schema:
        return str(schema["$ref"]).rpartition("/")[2]
    if "enum" in schema:
        return f"Literal[{', '.join(map(repr, schema['enum']))}]"
    if parts := schema.get("anyOf") or schema.get("oneOf"):
        return " | ".join(dict.fromkeys(map(_type, parts)))
    kind = schema.get("type")
    if isinstance(kind, list):
        return " | ".join(_SIMPLE.get(part, "Any") for part in kind)
    if kind == "array":
        return f"list[{_type(schema.get('items', {}))}]"
    if kind == "object":
        values = schema.get("additionalProperties")
        return f"dict[str, {_type(values) if isinstance(values, dict) else 'Any'}]"
    return _SIMPLE.get(str(kind), "Any")


def _word(name: str) -> str:
    word = name.replace("-", "_")
    return word + "_" if keyword.iskeyword(word) or word == "body" else word


def _snake(name: str) -> str:
    return re.sub(r"(?<!^)([A-Z])", r"_\1", name).lower()
