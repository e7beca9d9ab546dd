"""What `lake init` writes."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from lakehouse.config.load import all_settings


def lake_toml() -> str:
    """Every setting with its default, commented out, and what it means."""
    lines = [
        "# Settings of this lake. What stands in .env, in LAKE_* variables or in flags goes before what is here.",
        "",
    ]
    section = ""
    for name, part, kind in all_settings():
        head, _, tail = name.rpartition(".")
        if getattr(kind, "__origin__", None) is not None:
            lines += ["", f"# {part.metadata['help']}", f"# [{name}]"]
            continue
        if head != section:
            section = head
            lines += ["", f"[{section}]"]
        default = str(part.default).lower() if isinstance(part.default, bool) else part.default
        shown = default if isinstance(default, int | float) else f'"{default}"'
        lines += [f"# {part.metadata['help']}", f"# {tail} = {shown}"]
    return "\n".join(lines) + "\n"


def env_example() -> str:
    """The same settings as variables."""
    lines = ["# Copy to .env, which git should ignore, and set what you need."]
    for name, part, kind in all_settings():
        if getattr(kind, "__origin__", None) is None:
            lines.append(f"# LAKE_{name.upper().replace('.', '__')}={part.default}")
    return "\n".join(lines) + "\n"


def first_script() -> str:
    """A script that shows the Python API."""
    return '''"""A first lake in Python. Run it with: python first.py"""

from lakehouse import open_lake

with open_lake() as lake:
    lake.sql("CREATE TABLE IF NOT EXISTS shop.orders (id INT, item STRING, price DECIMAL(10, 2))")
    lake.sql("INSERT INTO shop.orders VALUES (1, 'tea', 2.50), (2, 'mate', 3.20)")
    print(lake.sql("SELECT item, sum(price) AS total FROM shop.orders GROUP BY item").to_pandas())

    first = lake.history("shop.orders")[0]
    lake.sql("UPDATE shop.orders SET price = 2.80 WHERE item = 'tea'")
    change = lake.diff("shop.orders", first.id, key=["id"])
    print(f"{change.added} added, {change.removed} removed, {change.changed} changed since {first.at:%H:%M:%S}")
'''


FILES: Mapping[str, Callable[[], str]] = {
    "lake.toml": lake_toml,
    ".env.example": env_example,
    "first.py": first_script,
}
