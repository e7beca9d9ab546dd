"""The arguments of a nested column type, such as `struct<a:int,b:array<string>>`."""

from __future__ import annotations


def split_arguments(text: str) -> list[str]:
    """Split at the commas that are outside of brackets."""
    found, depth, start = [], 0, 0
    for position, letter in enumerate(text + ","):
        depth += (letter in "<(") - (letter in ">)")
        if letter == "," and depth == 0:
            found.append(text[start:position].strip())
            start = position + 1
    return [each for each in found if each]
