"""Text files as records, one line each, so that no line can change how another one is read.

The engine's reader knows neither quotes nor fields here: it only cuts the file into lines, and each line is then taken
apart by itself. Union law: the records of a file are those of its lines, each read as a file of its own.
"""

from __future__ import annotations

import json
import re

LONGEST_LINE = 2_000_000
"""Lines of more bytes are dropped."""

_BLANKS = " \t\r\n"
_BLANK = re.compile(f"[{_BLANKS}]*")
_UNREADABLE = "error('a line cannot be read')"


def lines_query(file: str, compression: str, *, skip: int, public: bool) -> str:
    """Return the SQL of the table (line) of a file, whose path is an SQL literal; blank lines may be missing.

    A line ends at a line feed, a carriage return or both. One that is too long, is not UTF-8 or holds the control
    character 1 cannot be read: it is dropped, or an error where the lines are public.
    """
    # Not parallel: DuckDB 2.0 then loses short lines at the borders of its buffers. What becomes of a line above its
    # own limit depends on where in a buffer the line begins, so ours is drawn below that; and whatever such a line
    # leaves behind has something in the second column, which is null for every line that was read whole.
    source = (
        f"read_csv({file}, auto_detect = false, header = false, skip = {skip}, delim = '\x01', quote = '', "
        f"escape = '', nullstr = '\x02', columns = {{'line': 'VARCHAR', 'rest': 'VARCHAR'}}, null_padding = true, "
        f"strict_mode = false, ignore_errors = {str(not public).lower()}, parallel = false, new_line = '\\n', "
        f"max_line_size = {LONGEST_LINE + 100_000}, hive_partitioning = false, compression = '{compression}')"
    )
    whole = f"rest IS NULL AND strlen(line) <= {LONGEST_LINE}"
    if public:
        return f"SELECT CASE WHEN {whole} THEN line ELSE {_UNREADABLE} END AS line FROM {source}"
    return f"SELECT line FROM {source} WHERE {whole}"


def fields_query(lines: str, delimiter: str, width: int, *, public: bool) -> str:
    """Return the SQL of the table (fields) of CSV lines: for each line the list of its fields, quotes included.

    A line is F (d F)*, d the delimiter, where a field F is nothing, or begins with no quote and ends at the next d, or
    is "T" with every quote in T doubled. Another line, or one of more than `width` fields, is dropped; where the lines
    are public, that is an error, and so are fewer fields.
    """
    unquoted = f'[^"{delimiter}][^{delimiter}]*|'
    plain = f'(?:"(?:[^"{delimiter}]|"")*"|{unquoted})'
    field = f'(?:"(?:[^"]|"")*"|{unquoted})'
    # Splitting is much faster than matching, and the same where no delimiter stands between quotes.
    split = (
        f"SELECT CASE WHEN NOT contains(line, '\"') OR {_follows(plain, delimiter)} "
        f"THEN string_split(line, '{delimiter}') WHEN {_follows(field, delimiter)} "
        f"THEN regexp_extract_all(line || '{delimiter}', '({field})[{delimiter}]', 1) END AS fields FROM ({lines})"
    )
    if public:
        return f"SELECT CASE WHEN len(fields) = {width} THEN fields ELSE {_UNREADABLE} END AS fields FROM ({split})"
    return f"SELECT fields FROM ({split}) WHERE len(fields) <= {width}"


def _follows(field: str, delimiter: str) -> str:
    return f"regexp_full_match(line, '{field}(?:[{delimiter}]{field})*')"


def field_value(place: int) -> str:
    """Return the SQL of the text of a field, counted from 0: nothing at all is a null, and "" is the empty text."""
    field = f"fields[{place + 1}]"
    return (
        f"CASE WHEN starts_with({field}, '\"') THEN replace(left(substr({field}, 2), -1), '\"\"', '\"') "
        f"ELSE nullif({field}, '') END"
    )


def records_query(lines: str, *, public: bool) -> str:
    """Return the SQL of the table (record) of JSON lines; a line that is not a JSON object is dropped.

    Where the lines are public, one that is not JSON is an error.
    """
    cast = "CAST" if public else "TRY_CAST"
    return (
        f"SELECT record FROM (SELECT {cast}(line AS JSON) AS record FROM ({lines})) WHERE json_type(record) = 'OBJECT'"
    )


def array_elements(text: str) -> list[str] | None:
    """Return the text of every element of a JSON array that is an object, or None if the text is no such array.

    Only the borders are found here, so that a record means the same in an array as on a line. Numbers stay text,
    since Python refuses very long ones; bytes that were not UTF-8 stand as surrogates, and drop their element alone.
    """
    decoder = json.JSONDecoder(strict=False, parse_int=str, parse_float=str, parse_constant=str)
    elements: list[str] = []
    position = _after_blanks(text, 0)
    if text[position : position + 1] != "[":
        return None
    position = _after_blanks(text, position + 1)
    if text[position : position + 1] == "]":
        return None if text[position + 1 :].strip(_BLANKS) else elements
    while True:
        try:
            value, end = decoder.raw_decode(text, position)
        except (ValueError, RecursionError):
            return None
        if isinstance(value, dict) and _is_unicode(text[position:end]):
            elements.append(text[position:end])
        position = _after_blanks(text, end)
        mark = text[position : position + 1]
        if mark == "]":
            return None if text[position + 1 :].strip(_BLANKS) else elements
        if mark != ",":
            return None
        position = _after_blanks(text, position + 1)


def _after_blanks(text: str, position: int) -> int:
    found = _BLANK.match(text, position)
    return position if found is None else found.end()


def _is_unicode(text: str) -> bool:
    try:
        text.encode()
    except UnicodeEncodeError:
        return False
    return True
