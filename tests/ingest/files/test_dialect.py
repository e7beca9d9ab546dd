"""Delimiter, quote, escape, line end, encoding and header are detected."""

from __future__ import annotations

import gzip
from collections.abc import Callable
from datetime import date
from typing import Any

import pytest

from lakehouse.core.errors import BadSettingError, EmptyFileError, LakeError, NotSupportedError, UnknownChoiceError
from lakehouse.core.requests import ReadOptions

Reader = Callable[..., Any]
TEXT = "id,name\n1,Zoë\n2,Ødegård\n"
NAMES = ["Zoë", "Ødegård"]


@pytest.mark.parametrize("delimiter", [",", ";", "\t", "|"])
def test_the_delimiter_is_found(read: Reader, delimiter: str) -> None:
    result = read("id;remark;price\n1;a, b;2.5\n2;c, d;3.5\n3;e, f;1\n".replace(";", delimiter).replace(", ", " "))
    assert result.plan.files[0].dialect.delimiter == delimiter
    assert result.types == {"id": "bigint", "remark": "string", "price": "double"}


def test_commas_in_sentences_are_no_delimiter(read: Reader) -> None:
    result = read("id;remark\n1;well, then, so\n2;yes, no, maybe\n3;ah, oh, eh\n")
    assert result.rows[0] == (1, "well, then, so")


def test_one_column_of_sentences_stays_one_column(read: Reader) -> None:
    result = read("remark\nwell, then\nyes\nno, no; no\n")
    assert result.rows == [("well, then",), ("yes",), ("no, no; no",)]


def test_another_delimiter_can_be_requested(read: Reader) -> None:
    assert read("a^b\n1^2\n", delimiter="^").rows == [(1, 2)]


def test_a_delimiter_of_two_characters_is_refused(read: Reader) -> None:
    with pytest.raises(BadSettingError, match="more than one character"):
        read("a||b\n", delimiter="||")


def test_single_quotes_are_found(read: Reader) -> None:
    assert read("a,b\n'1,5',x\n'2,5','it''s'\n").rows == [("1,5", "x"), ("2,5", "it's")]


def test_apostrophes_are_no_quotes(read: Reader) -> None:
    assert read("a,b\nO'Brien,1\nD'Arcy,2\n").rows == [("O'Brien", 1), ("D'Arcy", 2)]


def test_doubled_quotes_are_found(read: Reader) -> None:
    assert read('a,b\n"say ""hi"", ok",1\n').rows == [('say "hi", ok', 1)]


def test_a_backslash_before_a_quote_is_found(read: Reader) -> None:
    result = read('a,b\n"say \\"hi\\", ok",1\n"x",2\n"y\\\\",3\n')
    assert result.plan.files[0].dialect.escape == "\\"
    assert result.rows == [('say "hi", ok', 1), ("x", 2), ("y\\", 3)]


def test_a_file_that_quotes_nothing_can_be_read(read: Reader) -> None:
    assert read('a\tb\n"x\t1\ny"z\t2\n', quote="").rows == [('"x', 1), ('y"z', 2)]


@pytest.mark.parametrize("end", ["\n", "\r\n", "\r"], ids=["LF", "CRLF", "CR"])
def test_every_line_end_is_known(read: Reader, end: str) -> None:
    result = read(f'a,b{end}1,"x{end}y"{end}2,z{end}')
    assert result.rows == [(1, f"x{end}y"), (2, "z")]
    assert result.rejects == []


def test_mixed_line_ends_are_read(read: Reader) -> None:
    result = read('a,b\r\n1,x\n2,"y\r\nz"\r\n3,w\n')
    assert result.rows == [(1, "x"), (2, "y\r\nz"), (3, "w")]
    assert result.rejects == []


@pytest.mark.parametrize(
    ("encoding", "expected"),
    [
        ("utf-8", "utf-8"),
        ("utf-8-sig", "utf-8"),
        ("utf-16", "utf-16"),
        ("utf-16-le", "utf-16-le"),
        ("utf-16-be", "utf-16-be"),
        ("latin-1", "latin-1"),
    ],
)
def test_the_encoding_is_found(read: Reader, encoding: str, expected: str) -> None:
    result = read(TEXT.encode(encoding))
    assert list(result.types) == ["id", "name"]
    assert result.values("name") == NAMES
    assert result.plan.files[0].dialect.encoding == expected


def test_a_big_endian_file_with_its_mark_is_read(read: Reader) -> None:
    assert read(b"\xfe\xff" + TEXT.encode("utf-16-be")).values("name") == NAMES


def test_curly_quotes_and_the_euro_are_windows_latin(read: Reader) -> None:
    result = read("id,name\n1,“5 €”\n".encode("cp1252"))
    assert result.values("name") == ["“5 €”"]
    assert "cp1252" in result.plan.notes[0]


def test_latin_letters_that_come_late_are_still_latin(read: Reader) -> None:
    rows = b"".join(b"%d,plain name\n" % number for number in range(100_000))
    result = read(b"id,name\n" + rows + "100000,Zoë\n".encode("latin-1"))
    assert result.rows[-1] == (100_000, "Zoë")
    assert "latin-1" in result.plan.notes[0]


def test_one_bad_byte_in_a_utf8_file_rejects_its_row_only(read: Reader) -> None:
    result = read("id,name\n1,Zoë\n2,".encode() + b"\xff\xfe" + b",x\n3,b\xe9\n4,ok\n")
    assert result.values("name") == ["Zoë", "ok"]
    assert [reject.line for reject in result.rejects] == [3, 4]
    assert "not valid" in result.rejects[1].reason
    assert result.rejects[1].raw == "3,b\\xe9"


def test_an_encoding_can_be_requested(read: Reader) -> None:
    assert read("id,name\n1,Привет\n".encode("koi8-r"), encoding="koi8-r").values("name") == ["Привет"]


def test_an_unknown_encoding_is_named(read: Reader) -> None:
    with pytest.raises(UnknownChoiceError, match="klingon"):
        read(TEXT, encoding="klingon")


@pytest.mark.parametrize(
    ("text", "header"),
    [
        ("id,name\n1,ann\n", True),
        ("1,ann\n2,bob\n", False),
        ("ann,bob\ncid,dan\n", True),
        ("country,2019,2020\nfr,1,2\nde,3,4\n", True),
        ("2024-01-01,5\n2024-01-02,6\n", False),
        ("id,name\n", True),
        ("1,2,3\n", False),
        (",a\n1,2\n", True),
    ],
    ids=["names", "values", "all text", "years", "dates", "only names", "only values", "a nameless column"],
)
def test_a_header_is_distinguished_from_values(read: Reader, text: str, header: bool) -> None:
    result = read(text)
    assert result.plan.files[0].dialect.header is header
    assert len(result.rows) == text.count("\n") - header


def test_without_a_header_columns_are_numbered(read: Reader) -> None:
    assert read("1,ann\n2,bob\n").types == {"column_1": "bigint", "column_2": "string"}


def test_the_header_can_be_switched_off(read: Reader) -> None:
    assert read("id,name\n1,ann\n", header=False).rows == [("id", "name"), ("1", "ann")]


def test_a_header_alone_makes_no_rows_of_text_columns(read: Reader) -> None:
    result = read("Id,Full Name\n")
    assert result.rows == []
    assert result.types == {"id": "string", "full_name": "string"}


def test_rows_that_are_all_longer_than_the_header_get_more_columns(read: Reader) -> None:
    assert read("a,b\n1,2,3\n4,5,6\n").types == {"a": "bigint", "b": "bigint", "column_3": "bigint"}


def test_blank_lines_are_no_rows(read: Reader) -> None:
    assert read("a\n1\n\n2\n\n").rows == [(1,), (2,)]
    assert read("a,b\n1,2\n\n3,4\n\n").rows == [(1, 2), (3, 4)]


def test_the_words_for_null_are_a_setting(read: Reader) -> None:
    text = "a,b\nNA,1\n,2\n-,3\nx,4\n"
    assert read(text).values("a") == [None, None, "-", "x"]
    assert read(text, null_words=("-",)).values("a") == ["NA", "", None, "x"]
    assert read(text, null_words=()).values("a") == ["NA", "", "-", "x"]


TITLE = 'Umsätze; "2026\r\n\r\n'
TABLE = "id;name\r\n1;Zoë\r\n2;Bo\r\n"


@pytest.mark.parametrize(
    ("content", "name"),
    [
        ((TITLE + TABLE).encode(), "a.csv"),
        (("\ufeff" + TITLE + TABLE).encode(), "a.csv"),
        ((TITLE + TABLE).encode("cp1252"), "a.csv"),
        ((TITLE + TABLE).encode("utf-16"), "a.csv"),
        ((TITLE + TABLE).replace("\r\n", "\n").encode(), "a.csv"),
        ((TITLE + TABLE).replace("\r\n", "\r").encode(), "a.csv"),
        (gzip.compress((TITLE + TABLE).encode()), "a.csv.gz"),
        (('{"made": "2026"}\n\n' + TABLE.replace("\r\n", "\n")).encode(), "a.csv"),
    ],
    ids=["utf-8", "byte order mark", "cp1252", "utf-16", "LF", "CR", "gzip", "a title of JSON"],
)
def test_lines_above_the_header_are_skipped(read: Reader, content: bytes, name: str) -> None:
    result = read(content, name, skip_rows=2)
    assert result.types == {"id": "bigint", "name": "string"}
    assert result.rows == [(1, "Zoë"), (2, "Bo")]
    assert result.rejects == []


def test_lines_are_skipped_above_a_file_with_one_column_or_without_header(read: Reader) -> None:
    assert read("A title, in 2 parts\nid\n1\n2\n", skip_rows=1).rows == [(1,), (2,)]
    assert read("A title, in 2 parts\n1,a\n2,b\n", skip_rows=1, header=False).rows == [(1, "a"), (2, "b")]


def test_blank_lines_above_the_header_are_no_header(read: Reader) -> None:
    assert read("\n\nid,name\n1,a\n").rows == [(1, "a")]
    assert read("title\n\nid,name\n1,a\n", skip_rows=1).rows == [(1, "a")]


def test_a_rejected_row_below_skipped_lines_keeps_the_number_of_its_line(read: Reader) -> None:
    result = read('A "title\n\nid,name\n1,a\n2,b,c\n3,"d"\n4,e\nx\n', skip_rows=2)
    assert result.rows == [(1, "a"), (3, "d"), (4, "e")]
    assert [(reject.line, reject.raw) for reject in result.rejects] == [(5, "2,b,c"), (8, "x")]


def test_a_line_end_between_two_chunks_is_one(read: Reader, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("lakehouse.ingest.files.encoding._CHUNK", len(b"title\r"))
    assert read("title\r\nid,name\r\n1,a\r\n", skip_rows=1).rows == [(1, "a")]


@pytest.mark.parametrize(("text", "skipped"), [(TABLE, 3), (TABLE, 9), (TABLE + "\n\n", 4)])
def test_a_file_without_a_line_below_the_skipped_ones_says_so(read: Reader, text: str, skipped: int) -> None:
    with pytest.raises(EmptyFileError, match=f"nothing below its first {skipped} lines"):
        read(text, skip_rows=skipped)


def test_a_negative_number_of_lines_is_refused() -> None:
    with pytest.raises(BadSettingError, match="skip_rows=-1 is less than 0"):
        ReadOptions(skip_rows=-1)


def test_json_has_no_lines_above_a_header(read: Reader) -> None:
    with pytest.raises(NotSupportedError, match="is JSON: only a CSV"):
        read('{"a": 1}\n{"a": 2}\n', "a.jsonl", skip_rows=1)


def test_a_null_word_may_hold_the_delimiter(read: Reader) -> None:
    assert read('a/b\n"N/A"/1\nx/2\n', delimiter="/").rows == [(None, 1), ("x", 2)]


@pytest.mark.parametrize(
    ("decimal", "thousands", "texts", "kind", "values"),
    [
        (",", ".", ["1.234,50", "-0,5", "12.345.678", "7"], "double", [1234.5, -0.5, 12345678.0, 7.0]),
        (",", "", ["1,5", "2"], "double", [1.5, 2.0]),
        (",", "", ["1,5", "2.5"], "string", ["1,5", "2.5"]),
        (".", ",", ["1,234", "56"], "bigint", [1234, 56]),
        (".", " ", ["1 234.5", "1 000 000.25"], "double", [1234.5, 1000000.25]),
        (".", ",", ["12,34", "5"], "string", ["12,34", "5"]),
        (
            ",",
            ".",
            ["1.5.2024", "2.5.2024", "13.6.2024"],
            "date",
            [date(2024, 5, 1), date(2024, 5, 2), date(2024, 6, 13)],
        ),
        (",", ".", ["true", "false"], "boolean", [True, False]),
    ],
)
def test_numbers_may_have_a_decimal_comma_and_thousands(
    read: Reader, decimal: str, thousands: str, texts: list[str], kind: str, values: list[Any]
) -> None:
    result = read(
        "v;w\n" + "".join(f"{text};x\n" for text in texts), delimiter=";", decimal=decimal, thousands=thousands
    )
    assert (result.types["v"], result.values("v")) == (kind, values)
    assert result.rejects == []


def test_numbers_with_a_comma_after_empty_rows_are_found(read: Reader, tiny_sample: None) -> None:
    result = read("v;w\n" + ";x\n" * 30 + "1.000,5;x\n", delimiter=";", decimal=",", thousands=".")
    assert (result.types["v"], result.values("v")[-1]) == ("double", 1000.5)


@pytest.mark.parametrize(("decimal", "thousands"), [(";", ""), (",", ","), (".", "ab"), (".", "5")])
def test_separators_that_make_no_sense_are_refused(decimal: str, thousands: str) -> None:
    with pytest.raises(LakeError):
        ReadOptions(decimal=decimal, thousands=thousands)
