"""Difficult cells of CSV files, and the dialects in which they are written."""

from __future__ import annotations

import csv

from hypothesis import strategies as st

#: Difficult cells: delimiters, quotes, line ends, blanks, null words, non-ASCII letters.
CELLS = st.text(
    st.sampled_from(list(",;\t|\"'\n\\ax 1é🙂")) | st.characters(codec="utf-8", exclude_characters="\x00\r"), max_size=8
) | st.sampled_from(["", "NA", "null", '"', '""', "\n", "a\nb", " ", "\\N", '"x"', "\\"])
DIALECTS = [
    {"delimiter": ",", "quotechar": '"', "lineterminator": "\n"},
    {"delimiter": ";", "quotechar": '"', "lineterminator": "\r\n"},
    {"delimiter": "\t", "quotechar": "'", "lineterminator": "\n"},
    {"delimiter": "|", "quotechar": '"', "lineterminator": "\n", "quoting": csv.QUOTE_ALL},
    {
        "delimiter": ",",
        "quotechar": '"',
        "lineterminator": "\n",
        "doublequote": False,
        "escapechar": "\\",
        "quoting": 1,
    },
]
