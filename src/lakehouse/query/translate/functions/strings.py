"""Functions of text and of bytes."""

from __future__ import annotations

import re
from collections.abc import Sequence

from lakehouse.query.sql import ast
from lakehouse.query.translate import operators
from lakehouse.query.translate.rules import Rule, coerce, rule, written
from lakehouse.query.translate.scope import ExpressionTranslator, Special
from lakehouse.query.translate.types import STRING, NotTranslatedError, Type
from lakehouse.query.translate.values import Value, literal_int, literal_text, needs_spark


def _only(condition: str, sql: str, kind: str = "VARCHAR", given: str = "{0} IS NOT NULL") -> str:
    """An expression for the values for which it holds; Spark answers for others."""
    return f"CASE WHEN {condition} THEN {sql} WHEN {given} THEN {needs_spark(kind)} END"


_IS_ASCII = "strlen({0}) = length({0})"

# ---- upper and lower case ----------------------------------------------------------------------------------------

#: Characters beyond Unicode 13, which Java 17 knows, and some old alphabets.
_NEW = "\u2c2f\u2c5f\ua7c0-\ua7d9\U00010570-\U000105bc"
#: Characters of which Java makes other ones than DuckDB: several, or such that depend on the next character (Σ).
_NO_UPPER = f"ßŉǰΐΰև\u1e96-\u1e9a\u1f50-\u1ffc\ufb00-\ufb17{_NEW}"
_NO_LOWER = f"İΣ{_NEW}"
_NO_TITLE = f"ßẞİΣǄ-ǌǱ-ǳ\u10d0-\u10ff\u1c90-\u1cbf{_NEW}\U00010000-\U0010ffff"
_TITLE = "list_transform(string_split(lower({0}), ' '), lambda x: upper(left(x, 1)) || substring(x, 2))"


def _cased(sql: str, other: str) -> str:
    return _only(f"{_IS_ASCII} OR NOT regexp_matches({{0}}, '[{other}]')", sql)


_UPPER, _LOWER = _cased("upper({0})", _NO_UPPER), _cased("lower({0})", _NO_LOWER)


# ---- parts -------------------------------------------------------------------------------------------------------

_LENGTH = {"string": "length({0})", "binary": "octet_length({0})"}


def _start(kind: Type) -> str:
    """Spark counts position 0 as 1, and from the end for a negative one; a start before the text shortens the result."""
    return f"CASE WHEN {{1}} > 0 THEN {{1}}::BIGINT WHEN {{1}} = 0 THEN 1 ELSE {_LENGTH[kind.kind]} + {{1}}::BIGINT + 1 END"


def _substring(values: Sequence[Value]) -> str:
    kind = values[0].type
    start, nothing = _start(kind), "''" if kind == STRING else "''::BLOB"
    first, end = f"greatest({start}, 1)", f"({start} + {{2}}::BIGINT)"
    if len(values) == 2:
        part = f"substring({{0}}, {first})" if kind == STRING else f"({{0}})[{first}:]"
        # Spark takes 2147483647 letters, which do not reach the end from there.
        smallest = f"{{1}} = -2147483648 THEN {needs_spark(kind.duckdb)}"
        return f"CASE WHEN {smallest} WHEN {{1}} IS NOT NULL THEN {part} END"
    count = f"greatest({end} - {first}, 0)"
    part = f"substring({{0}}, {first}, {count})" if kind == STRING else f"({{0}})[{first}:{first} + {count} - 1]"
    given = "{0} IS NOT NULL AND {1} IS NOT NULL"
    return f"CASE WHEN {{2}} > 0 AND {given} THEN {part} WHEN {{2}} IS NOT NULL AND {given} THEN {nothing} END"


def _end(function: str) -> str:
    """`left` and `right`, which DuckDB counts from the other end for a negative number."""
    return f"CASE WHEN {{1}} > 0 THEN {function}({{0}}, {{1}}) WHEN {{1}} <= 0 THEN left({{0}}, 0) END"


def _padded(function: str) -> str:
    cut = "CASE WHEN {1} > 0 THEN left({0}, {1}) WHEN {1} <= 0 THEN left({0}, 0) END"
    return f"CASE WHEN {{2}} = '' THEN {cut} ELSE {function}({{0}}, {{1}}, {{2}}) END"


def _padded_bytes(function: str, pad: str) -> str:
    """By their digits. Spark fails for a negative length."""
    padded = f"unhex({function}(hex({{0}}), {{1}} * 2, {pad}))"
    return _only(f"{{1}} >= 0 AND {pad} <> ''", padded, "BLOB", given=f"{{0}} IS NOT NULL AND {{1}} < 0 OR {pad} = ''")


def _overlaid(values: Sequence[Value]) -> str:
    """The text before the position, the new text, and what is behind the replaced part."""
    text = values[0].type == STRING
    length = "length({1})" if text else "octet_length({1})"
    if len(values) == 4:
        length = f"CASE WHEN {{3}} >= 0 THEN {{3}} WHEN {{3}} < 0 THEN {length} END"
    whole = "length({0})" if text else "octet_length({0})"
    at = f"({{2}}::BIGINT + ({length}))"
    rest = f"CASE WHEN {at} > 0 THEN {at} WHEN {at} = 0 THEN 1 WHEN {at} < 0 THEN greatest({whole} + {at} + 1, 1) END"
    before = "greatest({2}::BIGINT - 1, 0)"
    parts = (f"left({{0}}, {before})", f"substring({{0}}, {rest})")
    head, tail = parts if text else (f"({{0}})[1:{before}]", f"({{0}})[{rest}:]")
    joined = f"{head} || {{1}} || {tail}"
    return _only(f"{{2}} IS NULL OR {at} <= 2147483647", joined, values[0].type.duckdb, given="{2} IS NOT NULL")


def _locate(place: str) -> str:
    """Hive, and so Spark, answers 0 for a start that is NULL."""
    behind = f"instr(substring({{1}}, {place}), {{0}})"
    return (
        f"CASE WHEN {place} IS NULL THEN 0 WHEN {{0}} IS NULL OR {{1}} IS NULL THEN NULL WHEN {place} < 1 THEN 0"
        f" WHEN {{0}} = '' THEN 1 WHEN {behind} = 0 THEN 0 ELSE {behind} + {place} - 1 END"
    )


def _index(values: Sequence[Value]) -> str:
    delimiter = literal_text(values[1], "substring_index with a delimiter")
    # Spark finds delimiters that overlap, as `aa` does in `aaa`.
    if any(delimiter.startswith(delimiter[at:]) for at in range(1, len(delimiter))):
        raise NotTranslatedError(f"substring_index with the delimiter {delimiter}")
    if not delimiter:
        return "CASE WHEN {2} IS NOT NULL THEN left({0}, 0) END"
    parts = "string_split({0}, {1})"
    return (
        f"CASE WHEN {{2}} > 0 THEN array_to_string({parts}[1:{{2}}], {{1}}) WHEN {{2}} = 0 THEN left({{0}}, 0)"
        f" WHEN {{2}} < 0 THEN array_to_string({parts}[{{2}}:], {{1}}) END"
    )


_SPLIT_PART = (
    f"CASE WHEN {{2}} = 0 AND {{0}} IS NOT NULL AND {{1}} IS NOT NULL THEN {needs_spark('VARCHAR')}"
    " WHEN {1} = '' AND {2} IS NOT NULL THEN CASE WHEN abs({2}::BIGINT) = 1 THEN {0} ELSE left({0}, 0) END"
    " ELSE split_part({0}, {1}, {2}) END"
)

# ---- characters --------------------------------------------------------------------------------------------------

_LETTERS = "ABCDEFGHIJKLMNOPQRSTUVWXYZ"


def _translated(values: Sequence[Value]) -> str:
    for value in values[1:]:
        if max(literal_text(value, "translate with characters"), default="") > "\uffff":
            raise NotTranslatedError("translate with characters beyond 16 bits")
    return "translate({0}, {1}, {2})"


def _masked(values: Sequence[Value]) -> str:
    """Every character of ASCII becomes the one for its class, or stays if that is NULL."""
    masks = ["X", "x", "n", None]
    for place, value in enumerate(values[1:]):
        if not value.is_literal or (value.constant is not None and len(value.constant) != 1):
            raise NotTranslatedError("mask with more than a character")
        masks[place] = value.constant
    upper, lower, digit, other = masks
    pairs = dict.fromkeys(_LETTERS, upper) | dict.fromkeys(_LETTERS.lower(), lower)
    pairs |= dict.fromkeys("0123456789", digit)
    pairs = {chr(code): other for code in range(1, 128)} | pairs
    given = {char: mask for char, mask in pairs.items() if mask is not None}
    masked = f"translate({{0}}, {written(''.join(given))}, {written(''.join(given.values()))})"
    return _only("regexp_full_match({0}, '[\\x01-\\x7f]*')", masked if given else "{0}")


#: The code of each letter; H and W do not separate equal codes, and have 7.
_CODES = "01230127022455012623017202"
_SOUNDS = f"translate(regexp_replace({{0}}, '[^A-Za-z]', 'a', 'g'), '{_LETTERS}{_LETTERS.lower()}', '{_CODES * 2}')"
_CODED = (
    f"regexp_replace(CASE WHEN starts_with({_SOUNDS}, '7') THEN '0' ELSE '' END || replace({_SOUNDS}, '7', ''),"
    " '(1)1+|(2)2+|(3)3+|(4)4+|(5)5+|(6)6+', '\\1\\2\\3\\4\\5\\6', 'g')"
)
_SOUNDEX = (
    "CASE WHEN regexp_matches({0}, '^[A-Za-z]')"
    f" THEN upper(left({{0}}, 1)) || rpad(left(replace(substring({_CODED}, 2), '0', ''), 3), 3, '0') ELSE {{0}} END"
)
#: From the right, every second digit is doubled.
_LUHN = (
    "list_sum(list_transform(string_split(reverse({0}), ''), lambda x, i:"
    " CASE WHEN i % 2 = 1 THEN x::INT WHEN x >= '5' THEN x::INT * 2 - 9 ELSE x::INT * 2 END)) % 10 = 0"
)
_BOTH_ASCII = "strlen({0}) = length({0}) AND strlen({1}) = length({1})"
_BOTH_GIVEN = "{0} IS NOT NULL AND {1} IS NOT NULL"


def _levenshtein(values: Sequence[Value]) -> str:
    distance = "levenshtein({0}, {1})"
    if len(values) == 3:
        if literal_int(values[2], "levenshtein with a threshold") < 0:
            raise NotTranslatedError("levenshtein with a negative threshold")
        distance = f"CASE WHEN {distance} <= {{2}} THEN {distance} ELSE -1 END"
    return _only(_BOTH_ASCII, distance, "BIGINT", given=_BOTH_GIVEN)


# ---- several texts -----------------------------------------------------------------------------------------------


def _joined(values: Sequence[Value]) -> str:
    """`concat_ws` of texts and arrays of texts; what is NULL is left out."""
    lists = []
    for place, value in enumerate(values[1:], 1):
        if value.type == Type("array", parts=(STRING,)):
            lists.append(f"coalesce({{{place}}}, [])")
        elif value.type.is_nested or value.type.kind == "binary":
            raise NotTranslatedError(f"concat_ws of {value.type}")
        else:
            lists.append(f"[{coerce(value, STRING).sql if value.type != STRING else f'{{{place}}}'}]")
    return f"array_to_string(list_concat({', '.join(lists)}), {{0}})"


def _element(values: Sequence[Value]) -> str:
    branches = " ".join(f"WHEN {place} THEN {{{place}}}" for place in range(1, len(values)))
    return f"CASE {{0}} {branches} END"


_CONVERSION = re.compile(r"%(?:(s)|(d)|0(\d{1,2})d|(%))|([^%]+)|(.)", re.DOTALL)


def _formatted(values: Sequence[Value]) -> str:
    """The conversions of Java that are the same for all values: `%s`, `%d`, `%05d`, `%%`."""
    pattern = literal_text(values[0], "a format")
    pieces, place = [], 0
    for text, number, width, percent, plain, other in _CONVERSION.findall(pattern):
        if plain or percent:
            pieces.append(written(plain or percent))
            continue
        place += 1
        value = values[place] if place < len(values) else None
        if other or value is None or not (value.type.is_integer or (text and value.type.kind in ("string", "boolean"))):
            raise NotTranslatedError(f"the format {pattern}")
        if number or text:
            pieces.append(f"coalesce(CAST({{{place}}} AS VARCHAR), 'null')")
        else:
            pieces.append(_only(f"{{{place}}} IS NOT NULL", f"printf('%0{width}d', {{{place}}})", given="TRUE"))
    return f"({' || '.join(pieces)})" if pieces else "''"


# ---- bytes -------------------------------------------------------------------------------------------------------


def _charset(values: Sequence[Value]) -> str:
    name = literal_text(values[1], "a character set").upper()
    if name in ("UTF-8", "UTF8"):
        return "utf-8"
    if name in ("US-ASCII", "ISO-8859-1"):
        return "ascii"
    raise NotTranslatedError(f"the character set {name}")


def _encoded(values: Sequence[Value]) -> str:
    return "encode({0})" if _charset(values) == "utf-8" else _only(_IS_ASCII, "encode({0})", "BLOB")


def _decoded(values: Sequence[Value]) -> str:
    is_ascii = "NOT regexp_matches(hex({0}), '^(..)*[89A-F]')"
    return "decode({0})" if _charset(values) == "utf-8" else _only(is_ascii, "decode({0})")


def _to_binary(values: Sequence[Value]) -> str:
    if literal_text(values[1], "to_binary with a format").lower() not in ("utf-8", "utf8"):
        raise NotTranslatedError(f"to_binary with the format {values[1].constant}")
    return "encode({0})"


def _sha2(values: Sequence[Value]) -> str:
    if literal_int(values[1], "sha2 with a number of bits") not in (0, 256):
        raise NotTranslatedError(f"sha2 with {values[1].constant} bits")
    return "sha256({0})"


#: Java breaks the lines of base 64 behind 76 characters.
_BASE64 = "rtrim(regexp_replace(to_base64({0}), '(.{76,76})', '\\1' || chr(13) || chr(10), 'g'), chr(13) || chr(10))"
_IS_BASE64 = "regexp_full_match({0}, '([0-9A-Za-z+/]{4,4})*([0-9A-Za-z+/]{2,2}==|[0-9A-Za-z+/]{3,3}=)?')"
_UNHEX = "CASE WHEN regexp_full_match({0}, '[0-9A-Fa-f]*') THEN unhex(repeat('0', strlen({0}) % 2) || {0}) END"
_URL_ENCODED = "replace(replace(replace(url_encode({0}), '%20', '+'), '%2A', '*'), '~', '%7E')"
_IS_URL_ENCODED = "regexp_full_match({0}, '([^%]|%[0-9A-Fa-f][0-9A-Fa-f])*')"
#: Two digits and a comma for each byte: what is found begins with a byte.
_DIGITS = "regexp_replace(hex({%d}), '(..)', '\\1,', 'g')"


def _of_text_or_bytes(function: str, result: str, sql: str) -> list[Rule]:
    """A function of bytes, which takes the bytes of text."""
    of_text = sql.replace("{0}", "encode({0})")
    rules = [rule(function, "string! int" if "{1}" in sql else "string!", result, of_text)]
    return [*rules, rule(function, "binary! int" if "{1}" in sql else "binary!", result, sql)]


def _lengths(function: str, text: str, binary: str) -> list[Rule]:
    return [rule(function, "string", "int", text, stored=True), rule(function, "binary!", "int", binary, stored=True)]


def _trims(name: str, function: str, side: str) -> list[Rule]:
    """`trim(characters, text)`, and `trim(LEADING characters FROM text)`, which the parser gives a name of its own."""
    plain = [] if name == "btrim" else [
        rule(name, "string", "string", f"{function}({{0}}, ' ')"),
        rule(name, "string string", "string", f"{function}({{1}}, {{0}})", shown=f"TRIM({side} {{0}} FROM {{1}})"),
    ]  # fmt: skip
    return [
        *plain,
        rule(f"{name} from", "string", "string", f"{function}({{0}}, ' ')", shown=function),
        rule(f"{name} from", "string string", "string", f"{function}({{0}}, {{1}})", shown=f"TRIM({side} {{1}} FROM {{0}})"),
    ]  # fmt: skip


RULES = [
    rule("upper", "string", "string", _UPPER),
    rule("ucase", "string", "string", _UPPER),
    rule("lower", "string", "string", _LOWER),
    rule("lcase", "string", "string", _LOWER),
    rule("initcap", "string", "string", _cased(f"array_to_string({_TITLE}, ' ')", _NO_TITLE)),
    *_lengths("length", "length({0})", "octet_length({0})"),
    *_lengths("len", "length({0})", "octet_length({0})"),
    *_lengths("char_length", "length({0})", "octet_length({0})"),
    *_lengths("character_length", "length({0})", "octet_length({0})"),
    *_lengths("octet_length", "strlen({0})", "octet_length({0})"),
    *_lengths("bit_length", "strlen({0}) * 8", "octet_length({0}) * 8"),
    *_trims("trim", "trim", "BOTH"),
    *_trims("ltrim", "ltrim", "LEADING"),
    *_trims("rtrim", "rtrim", "TRAILING"),
    *_trims("btrim", "trim", "BOTH"),
    rule("btrim", "string", "string", "trim({0}, ' ')"),
    rule("btrim", "string string", "string", "trim({0}, {1})"),
    rule("btrim", "binary!", "string", "trim(decode({0}), ' ')"),
    rule("btrim", "binary! binary!", "string", "trim(decode({0}), decode({1}))"),
    rule("substring", "string int", "string", _substring, shown="substring({0}, {1}, 2147483647)"),
    rule("substring", "string int int", "string", _substring),
    rule("substring", "binary! int", "binary", _substring, shown="substring({0}, {1}, 2147483647)"),
    rule("substring", "binary! int int", "binary", _substring),
    rule("substr", "string int", "string", _substring, shown="substr({0}, {1}, 2147483647)"),
    rule("substr", "string int int", "string", _substring),
    rule("substr", "binary! int", "binary", _substring, shown="substr({0}, {1}, 2147483647)"),
    rule("substr", "binary! int int", "binary", _substring),
    rule("left", "string int", "string", _end("left")),
    rule("left", "binary! int", "binary", "CASE WHEN {1} IS NOT NULL THEN ({0})[1:greatest({1}, 0)] END"),
    rule("right", "string int", "string", _end("right")),
    rule("lpad", "string int string", "string", _padded("lpad")),
    rule("rpad", "string int string", "string", _padded("rpad")),
    rule("lpad", "string int", "string", "lpad({0}, {1}, ' ')", shown="lpad({0}, {1},  )"),
    rule("rpad", "string int", "string", "rpad({0}, {1}, ' ')", shown="rpad({0}, {1},  )"),
    rule("lpad", "binary! int", "binary", _padded_bytes("lpad", "'00'"), shown="lpad({0}, {1}, X'00')"),
    rule("rpad", "binary! int", "binary", _padded_bytes("rpad", "'00'"), shown="rpad({0}, {1}, X'00')"),
    rule("lpad", "binary! int binary!", "binary", _padded_bytes("lpad", "hex({2})")),
    rule("rpad", "binary! int binary!", "binary", _padded_bytes("rpad", "hex({2})")),
    rule("repeat", "string int", "string", "repeat({0}, {1})"),
    rule("space", "int", "string", "repeat(' ', {0})"),
    rule("overlay", "string string int", "string", _overlaid, shown="overlay({0}, {1}, {2}, -1)"),
    rule("overlay", "string string int int", "string", _overlaid),
    rule("overlay", "binary! binary! int", "binary", _overlaid, shown="overlay({0}, {1}, {2}, -1)"),
    rule("overlay", "binary! binary! int int", "binary", _overlaid),
    rule("replace", "string string string", "string", "CASE WHEN {1} = '' AND {2} IS NOT NULL THEN {0} ELSE replace({0}, {1}, {2}) END"),
    rule("replace", "string string", "string", "CASE WHEN {1} = '' THEN {0} ELSE replace({0}, {1}, '') END", shown="replace({0}, {1}, )"),
    rule("translate", "string string string", "string", _translated),
    rule("reverse", "array", "0", "list_reverse({0})"),
    rule("reverse", "string!", "string", "array_to_string(list_reverse(string_split({0}, '')), '')"),
    rule("instr", "string string", "int", "instr({0}, {1})", stored=True),
    rule("locate", "string string", "int", _locate("1"), stored=True, shown="locate({0}, {1}, 1)"),
    rule("locate", "string string int", "int", _locate("{2}"), stored=True),
    rule("position", "string string", "int", _locate("1"), stored=True, shown="position({0}, {1}, 1)"),
    rule("position", "string string int", "int", _locate("{2}"), stored=True),
    rule("substring_index", "string string int", "string", _index),
    rule("split_part", "string string int", "string", _SPLIT_PART),
    rule("find_in_set", "string string", "int", f"CASE WHEN {_BOTH_GIVEN} THEN CASE WHEN contains({{0}}, ',') THEN 0 ELSE coalesce(list_position(string_split({{1}}, ','), {{0}}), 0) END END", stored=True),
    rule("elt", "int string string...", "string", _element),
    rule("concat_ws", "string", "string", "left({0}, 0)"),
    rule("concat_ws", "string string...", "string", lambda values: f"concat_ws({', '.join(f'{{{place}}}' for place in range(len(values)))})"),
    rule("concat_ws", "string any...", "string", _joined),
    rule("format_string", "string", "string", _formatted),
    rule("format_string", "string any...", "string", _formatted),
    rule("printf", "string", "string", _formatted),
    rule("printf", "string any...", "string", _formatted),
    rule("contains", "string string", "boolean", "contains({0}, {1})"),
    rule("contains", "binary! binary!", "boolean", f"contains({_DIGITS % 0}, {_DIGITS % 1})"),
    rule("startswith", "string string", "boolean", "starts_with({0}, {1})"),
    rule("startswith", "binary! binary!", "boolean", "starts_with(hex({0}), hex({1}))"),
    rule("endswith", "string string", "boolean", "ends_with({0}, {1})"),
    rule("endswith", "binary! binary!", "boolean", "ends_with(hex({0}), hex({1}))"),
    rule("ascii", "string", "int", "ascii({0})"),
    rule("char", "bigint", "string", "CASE WHEN {0} < 0 THEN '' ELSE chr(({0} & 255)::INTEGER) END"),
    rule("chr", "bigint", "string", "CASE WHEN {0} < 0 THEN '' ELSE chr(({0} & 255)::INTEGER) END"),
    rule("soundex", "string", "string", _SOUNDEX),
    rule("levenshtein", "string string", "int", _levenshtein, stored=True),
    rule("levenshtein", "string string int", "int", _levenshtein, stored=True),
    rule("luhn_check", "string", "boolean", f"CASE WHEN regexp_full_match({{0}}, '[0-9]+') THEN {_LUHN} WHEN {{0}} IS NOT NULL THEN FALSE END"),
    rule("mask", "string!", "string", _masked, shown="mask({0}, X, x, n, NULL)"),
    rule("mask", "string! string", "string", _masked, shown="mask({0}, {1}, x, n, NULL)"),
    rule("mask", "string! string string", "string", _masked, shown="mask({0}, {1}, {2}, n, NULL)"),
    rule("mask", "string! string string string", "string", _masked, shown="mask({0}, {1}, {2}, {3}, NULL)"),
    rule("mask", "string! string string string string", "string", _masked),
    rule("hex", "string!", "string", "hex({0})"),
    rule("hex", "binary!", "string", "hex({0})"),
    rule("hex", "bigint", "string", "hex({0})"),
    rule("unhex", "string", "binary", _UNHEX),
    *_of_text_or_bytes("base64", "string", _BASE64),
    rule("unbase64", "string", "binary", _only(_IS_BASE64, "from_base64({0})", "BLOB")),
    *_of_text_or_bytes("md5", "string", "md5({0})"),
    *_of_text_or_bytes("sha", "string", "sha1({0})"),
    *_of_text_or_bytes("sha1", "string", "sha1({0})"),
    rule("sha2", "string! int", "string", lambda values: _sha2(values).replace("{0}", "encode({0})")),
    rule("sha2", "binary! int", "string", _sha2),
    rule("encode", "string string", "binary", _encoded),
    rule("decode", "binary! string", "string", _decoded),
    rule("to_binary", "string string", "binary", _to_binary),
    rule("try_to_binary", "string string", "binary", _to_binary),
    rule("url_encode", "string", "string", _URL_ENCODED),
    rule("url_decode", "string", "string", _only(_IS_URL_ENCODED, "url_decode(replace({0}, '+', ' '))")),
]  # fmt: skip


def _like(operator: str) -> Special:
    """`like(text, pattern)` is the operator."""

    def translate(expressions: ExpressionTranslator, node: ast.Call) -> Value:
        if len(node.arguments) != 2:
            raise NotTranslatedError(f"{operator} with an escape character")
        return expressions.translate(ast.Like(operator, *node.arguments, "\\", False))

    return translate


def _decode(expressions: ExpressionTranslator, node: ast.Call) -> Value:
    """Of two arguments it decodes bytes; of more it compares the first with every second, and NULL equals NULL."""
    values = [expressions.translate(argument) for argument in node.arguments]
    if len(values) <= 2:
        return expressions.call_rules("decode", values)
    name = operators.shown(f"decode({', '.join(['{}'] * len(values))})", *values)
    operand, pairs = values[0], values[1:]
    conditions = [operators.comparison("<=>", operand, value) for value in pairs[: len(pairs) // 2 * 2 : 2]]
    results = [*pairs[1::2], *(pairs[-1:] if len(pairs) % 2 else [])]
    return operators.case(conditions, results).named(name)


SPECIAL: dict[str, Special] = {"like": _like("like"), "ilike": _like("ilike"), "decode": _decode}
