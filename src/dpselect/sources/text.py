"""Text files as records, one line each, so that no line can change how another one is read.

DuckDB's CSV reader only splits the file into lines; it knows neither quotes nor fields. Each line is then parsed by
itself. Union law: the records of a file are those of its lines, each read as a file of its own.
"""

from __future__ import annotations

import re

LONGEST_LINE = 2_000_000
"""Longer lines, in bytes, are dropped."""

_STRING = r'"(?:[^"\\]++|\\.)*+"'
_TOKEN = re.compile(rf"{_STRING}|[\[\]{{}}]", re.DOTALL)
_FLAT_OBJECT = re.compile(rf"\{{(?:[^{{}}\[\]\"]++|{_STRING})*+\}}", re.DOTALL)
"""An object without objects or arrays in it, as most records are."""

_STRING_OR_NUMBER = r'(?s)("(?:[^"\\]|\\.)*")|(-?[0-9][0-9.eE+-]*)'
_MAY_CHANGE = "[0-9][.eE]|-0|[0-9]{16}"
"""Matches every line with a number that DuckDB may write in another form."""

_UNREADABLE = "error('a line cannot be read')"


def lines_query(files: str, compression: str, *, skip: int, public: bool) -> str:
    """Return the SQL of the table (line) of files, given as an SQL literal; blank lines may be missing.

    `skip` lines at the beginning of each file are left out. A line ends at a line feed, a carriage return or both. A
    line that is too long, is not UTF-8 or holds the control character 1 cannot be read: it is dropped, or an error if
    the lines are public.
    """
    # Not parallel: DuckDB 2.0 then loses short lines at the borders of its buffers. What happens to a line above
    # DuckDB's limit depends on where in a buffer the line begins, so our limit is lower. Whatever such a line leaves
    # behind has a value in the second column, which is null for every line that was read whole.
    source = (
        f"read_csv({files}, auto_detect = false, header = false, skip = {skip}, delim = '\x01', quote = '', "
        f"escape = '', nullstr = '\x02', columns = {{'line': 'VARCHAR', 'rest': 'VARCHAR'}}, null_padding = true, "
        f"strict_mode = false, ignore_errors = {str(not public).lower()}, parallel = false, new_line = '\\n', "
        f"max_line_size = {LONGEST_LINE + 100_000}, hive_partitioning = false, compression = '{compression}')"
    )
    whole = f"rest IS NULL AND strlen(line) <= {LONGEST_LINE}"
    if public:
        return f"SELECT CASE WHEN {whole} THEN line ELSE {_UNREADABLE} END AS line FROM {source}"
    return f"SELECT line FROM {source} WHERE {whole}"


def fields_query(lines: str, delimiter: str, width: int, *, public: bool) -> str:
    """Return the SQL of the table (fields) of CSV lines: for each line the list of its fields, with their quotes.

    A line is F (d F)*, where d is the delimiter and a field F is empty, or does not begin with a quote and ends before
    the next d, or is "T" with every quote in T doubled. Any other line, or one with more than `width` fields, is
    dropped. If the lines are public, that is an error, and so are fewer fields.
    """
    unquoted = f'[^"{delimiter}][^{delimiter}]*|'
    plain = f'(?:"(?:[^"{delimiter}]|"")*"|{unquoted})'
    field = f'(?:"(?:[^"]|"")*"|{unquoted})'
    # Splitting is much faster than matching, and equivalent if no delimiter stands between quotes.
    split = (
        f"SELECT CASE WHEN NOT contains(line, '\"') OR {_is_line_of(plain, delimiter)} "
        f"THEN string_split(line, '{delimiter}') WHEN {_is_line_of(field, delimiter)} "
        f"THEN regexp_extract_all(line || '{delimiter}', '({field})[{delimiter}]', 1) END AS fields FROM ({lines})"
    )
    if public:
        return f"SELECT CASE WHEN len(fields) = {width} THEN fields ELSE {_UNREADABLE} END AS fields FROM ({split})"
    return f"SELECT fields FROM ({split}) WHERE len(fields) <= {width}"


def _is_line_of(field: str, delimiter: str) -> str:
    return f"regexp_full_match(line, '{field}(?:[{delimiter}]{field})*')"


def field_value(place: int) -> str:
    """Return the SQL of the text of a field, counted from 0: an empty field is a null, and "" is the empty text."""
    field = f"fields[{place + 1}]"
    return (
        f"CASE WHEN starts_with({field}, '\"') THEN replace(left(substr({field}, 2), -1), '\"\"', '\"') "
        f"ELSE nullif({field}, '') END"
    )


def records_query(lines: str, *, public: bool) -> str:
    """Return the SQL of the table (record, exact) of JSON lines; a line that is not a JSON object is dropped.

    `exact` is the record with its numbers in quotes, because DuckDB would write 1.10 as 1.1. If the lines are public, a
    line that is not JSON is an error.
    """
    cast = "CAST" if public else "TRY_CAST"
    # Put two marks after every string, and one on either side of every number. No line that can be read holds a mark.
    marked = f"regexp_replace(line, '{_STRING_OR_NUMBER}', '\\1\x01\\2\x01', 'g')"
    quoted = f"replace(replace({marked}, '\x01\x01', ''), '\x01', '\"')"
    exact = f"CASE WHEN regexp_matches(line, '{_MAY_CHANGE}') THEN {quoted} ELSE line END"
    return (
        f"SELECT record, exact FROM (SELECT {cast}(line AS JSON) AS record, {exact} AS exact FROM ({lines})) "
        "WHERE json_type(record) = 'OBJECT'"
    )


def record_value(pointer: str) -> str:
    """Return the SQL of the text of a JSON field, whose pointer is an SQL literal; a bare NaN is a null."""
    number = f"json_extract_string(TRY_CAST(exact AS JSON), {pointer})"
    return (
        f"CASE WHEN json_type(record, {pointer}) IN ('DOUBLE', 'BIGINT', 'UBIGINT', 'HUGEINT', 'UHUGEINT') "
        f"THEN CASE WHEN ltrim(lower({number}), '+-') <> 'nan' THEN {number} END "
        f"ELSE json_extract_string(record, {pointer}) END"
    )


def array_elements(text: str) -> list[str]:
    """Return the text of every record of a JSON array: each object that is in no other object and in one array.

    Only the borders of objects are found, without recursion, so that no record affects another one however deeply it is
    nested. Bytes that are not UTF-8 are surrogates here, and drop their record alone.
    """
    elements: list[str] = []
    position = arrays = 0
    while token := _TOKEN.search(text, position):
        position = token.end()
        if token[0] == "{":
            position = _object_end(text, token.start())
            if arrays <= 1 and _is_unicode(text[token.start() : position]):
                elements.append(text[token.start() : position])
        elif token[0] == "[":
            arrays += 1
        elif token[0] == "]":
            arrays = max(arrays - 1, 0)
    return elements


def _object_end(text: str, start: int) -> int:
    """Return the end of the object that begins at `start`, or the end of the text if it is not closed."""
    flat = _FLAT_OBJECT.match(text, start)
    if flat is not None:
        return flat.end()
    depth = 0
    for token in _TOKEN.finditer(text, start):
        if token[0] in "{[":
            depth += 1
        elif token[0] in "}]":
            depth -= 1
            if depth == 0:
                return token.end()
    return len(text)


def _is_unicode(text: str) -> bool:
    try:
        text.encode()
    except UnicodeEncodeError:
        return False
    return True
