"""A listed domain in the engine: each item once, in the type of the table's column of items. The list is public."""

from __future__ import annotations

import contextlib
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from dpselect.errors import InvalidInput, SourceError, plain
from dpselect.items import digest_of
from dpselect.sources.domain import Domain
from dpselect.sources.duckdb import EmbeddedEngine
from dpselect.sources.engine import Engine
from dpselect.sources.files import FileTable, shown_line
from dpselect.sources.frames import arrow_table, check_columns, frame_columns, is_frame
from dpselect.sources.identity import check_not_origin
from dpselect.sources.rows import Source, is_spark
from dpselect.sources.spark import SparkEngine
from dpselect.sources.values import is_single_value, type_name, with_exact_text, without_nulls

_NAME_COLUMN = "name the column of items with --domain-column (in Python, domain_column)"


@dataclass(frozen=True)
class GroupKeys:
    """The listed groups in the type of the column `by` of the rows: a table (key, text, position).

    `table` is in the engine of the rows; `rows` is the same in Arrow.
    """

    by: str
    table: Any
    rows: Any


@dataclass(frozen=True)
class Listing:
    """The listed items: a table (key, text, position) of the engine, and `group` if each group has its own items."""

    table: Any

    @property
    def by_group(self) -> bool:
        """Whether each group has its own items."""
        return "group" in self.table.columns

    def matches(self, rows: Any) -> list[Any]:
        """Return the conditions by which rows (item[, group]) belong to listed items."""
        return [rows.item == self.table.key, *([rows.group == self.table.group] if self.by_group else [])]

    def digest(self, engine: Engine) -> str:
        """Return a hash of the items, whatever their order and wherever the list is."""
        mixed = engine.digest(self._name)
        if self.by_group:
            mixed = self.table.group.cast("string") + " " + mixed
        return digest_of(engine.columns(self.table.select(mixed=mixed)).column("mixed").to_pylist())

    @property
    def _name(self) -> Any:
        """The text of each item; one that the column cannot hold has it in `text`."""
        import ibis

        return ibis.coalesce(self.table.key.cast("string"), self.table.text)

    def unseen(self, engine: Engine, scored: Any, places: list[tuple[int, int]]) -> list[dict[str, Any]]:
        """Return (group, index, item, text, position) of the listed items at places (group, index) of those nobody has.

        `scored` is the table (group, item) of the items that somebody has. Items are ranked by a hash of their text. If
        the j-th item that somebody has (j from 0) is at rank r, then r − j items that nobody has come before it. So the
        i-th item that nobody has is at rank i + n, where n of the others have r − j <= i.
        """
        import ibis
        import pyarrow

        ranked = self._ranked(engine)
        groups, indexes = zip(*places, strict=True)
        columns = {"key": groups, "text": [""] * len(places), "position": indexes}
        with engine.uploaded(pyarrow.table(columns)) as wanted:
            wanted = wanted.select(in_group=wanted.key, index=wanted.position)
            scored = scored.filter(scored.group.isin(sorted(set(groups))))
            seen = scored.inner_join(ranked, Listing(ranked).matches(scored))
            seen = seen.select(group=scored.group, rank=seen.rank)
            window = ibis.window(group_by=seen.group, order_by=seen.rank)
            seen = seen.mutate(before=seen.rank - ibis.row_number().over(window))
            passed = wanted.left_join(seen, [wanted.in_group == seen.group, seen.before <= wanted.index])
            passed = passed.group_by("in_group", "index").aggregate(number=passed["rank"].count())
            passed = passed.mutate(at=passed["index"] + passed.number)
            same = [passed["at"] == ranked["rank"], *([passed.in_group == ranked.group] if self.by_group else [])]
            found = passed.inner_join(ranked, same)
            return engine.fetch(found.select("index", "text", "position", group=found.in_group, item=found.key))

    def _ranked(self, engine: Engine) -> Any:
        """Return the table with the rank of each item, from 0, within its group if it has one."""
        import ibis

        named = self.table.mutate(name=self._name, mixed=engine.digest(self._name))
        within = [named.group] if self.by_group else None
        window = ibis.window(group_by=within, order_by=[named.mixed, named.name, named.text])
        return named.mutate(rank=ibis.row_number().over(window).cast("int64")).drop("name", "mixed")


def listed_items(
    stack: contextlib.ExitStack,
    embedded: Callable[[], EmbeddedEngine],
    source: Source,
    domain: Domain,
    item: str,
    kind: Any,
    groups: GroupKeys | None = None,
) -> tuple[Any, int]:
    """Return the table (key, text, position) of the distinct items that are not null, and their number.

    `key` is the item in the type of the column. An item that the column cannot hold, if that is allowed, has a null key
    and its `text`. `position` is its place in the caller's list, if there is one. A table in the engine of the rows
    stays there if its type fits; any other list is converted by the embedded engine and then uploaded.

    A file or table that has the column of the groups, too, lists items for each group: the result then has one more
    column `group`, the position of the group. Groups that are not listed are left out.
    """
    engine = source.engine
    there = in_engine_of_rows(stack, source, domain)
    check_not_origin(source, domain, there)
    if there is not None:
        by = groups.by if groups is not None and groups.by in there.columns else None
        keys = keys_in_engine(engine, there, domain, item, by)
        if _comparable(keys.key.type(), kind) and (groups is None or _fits(keys, groups)):
            unique = _distinct(keys, groups)
            return unique, _size(engine, unique, domain, item)
        domain = Domain(table=_fetched(engine, keys, item, by), column=item)
    converting = embedded()
    unique = converted(stack, converting, domain, item, kind, groups)
    size = _size(converting, unique, domain, item)
    if engine is not converting:
        unique = uploaded_list(stack, engine, converting.columns(unique), kind)
    return unique, size


def uploaded_list(stack: contextlib.ExitStack, engine: Engine, rows: Any, kind: Any) -> Any:
    """Return a list of Arrow rows (key, text, position[, group]) as a table of another engine."""
    listed = stack.enter_context(engine.uploaded(rows))
    # DuckDB turns Arrow's times into times in nanoseconds.
    return listed if listed.key.type() == kind else listed.mutate(key=listed.key.cast(kind))


def _size(engine: Engine, unique: Any, domain: Domain, item: str) -> int:
    """Return the number of items; refuse an empty list."""
    size = engine.scalar(unique.count())
    if not size and domain.path is not None and _file(domain).is_json:
        field = domain.column or item
        raise InvalidInput("domain", domain.path.name, f"no record has a field {field!r}; {_NAME_COLUMN}")
    if not size and "group" not in unique.columns:
        raise InvalidInput("domain", plain("an empty list"), "must have at least one item")
    return size


def _file(domain: Domain) -> FileTable:
    assert domain.path is not None
    return FileTable.at("domain", domain.path, public=True, advice=_NAME_COLUMN)


def converted(
    stack: contextlib.ExitStack,
    embedded: EmbeddedEngine,
    domain: Domain,
    item: str,
    kind: Any,
    groups: GroupKeys | None = None,
) -> Any:
    """Return a list as a table (key, text, position[, group]) of the embedded engine, in the type of the column."""
    try:
        return stack.enter_context(embedded.materialised(_unique(embedded, domain, item, kind, groups)))
    except SourceError:
        pass
    if domain.path is not None:
        raise _file(domain).unreadable()
    raise InvalidInput(
        domain.argument,
        plain("a list" if domain.labels is not None else "a table"),
        f"must have {domain.noun}s that can be compared with those of the table; check their types",
    )


def in_engine_of_rows(stack: contextlib.ExitStack, source: Source, domain: Domain) -> Any:
    """Return the table of the list if it is in the engine of the rows, and otherwise None."""
    import ibis
    import ibis.expr.operations as operations

    engine, table, name = source.engine, domain.table, domain.table_name
    if name is not None:
        if source.named is None:
            raise InvalidInput(
                domain.argument, f"table:{name}", f"the rows are not in a database; name a file of {domain.noun}s"
            )
        try:
            return source.named(name)
        except InvalidInput as error:
            problem = error.accepted
        raise InvalidInput(domain.argument, f"table:{name}", problem)
    if isinstance(engine, SparkEngine) and is_spark(table) and table.sparkSession is engine.session:
        return engine.named(table, stack)
    is_stored = isinstance(table, ibis.Table) and any(True for _ in table.op().find(operations.DatabaseTable))
    return table if is_stored and table.get_backend() is engine.backend else None


def keys_in_engine(engine: Engine, table: Any, domain: Domain, item: str, by: str | None = None) -> Any:
    """Return a list in the engine of the rows as a table (key[, group])."""
    column = _column(list(table.columns), domain, item)
    columns = {"key": table[column], **({} if by is None else {"group": table[by]})}
    for listed in columns.values():
        check_single(domain, listed.type())
    keys = table.select(**columns)
    for name in columns:
        keys = with_exact_text(engine, keys, name)
    return keys


def _fits(keys: Any, groups: GroupKeys) -> bool:
    """Whether an engine compares the groups of a list with the listed ones by value; True if there are none."""
    return "group" not in keys.columns or _comparable(keys.group.type(), groups.table.key.type())


def _comparable(source: Any, kind: Any) -> bool:
    """Whether an engine compares two types by value without a conversion."""
    return bool(
        (source.is_string() and kind.is_string())
        or (source.is_integer() and kind.is_integer())
        or source.copy(nullable=True) == kind.copy(nullable=True)
    )


def _distinct(keys: Any, groups: GroupKeys | None) -> Any:
    import ibis

    keys = without_nulls(keys, "key")
    if groups is not None and "group" in keys.columns:
        keys = keys.inner_join(groups.table, keys.group == groups.table.key)
        keys = keys.select("key", group=keys.position)
    return keys.distinct().mutate(text=ibis.literal(""), position=ibis.literal(0, "int64"))


def _fetched(engine: Engine, keys: Any, item: str, by: str | None) -> Any:
    """Return a public list in the engine as an Arrow table, for types that need converting."""
    import pyarrow
    from ibis.formats.pyarrow import PyArrowType

    rows = engine.fetch(keys.distinct())
    names = {"key": item} | ({} if by is None else {"group": by})
    kinds = {name: PyArrowType.from_ibis(keys[name].type()) for name in names}
    return pyarrow.table(
        {column: pyarrow.array([row[name] for row in rows], kinds[name]) for name, column in names.items()}
    )


def _unique(embedded: EmbeddedEngine, domain: Domain, item: str, kind: Any, groups: GroupKeys | None) -> Any:
    """Return the expression of the distinct items in the type of the item column; refuse items that do not fit."""
    given = without_nulls(_given(embedded, domain, item, kind, groups), "key")
    source = given.key.type()
    typed = given.mutate(typed=given.key if source == kind else given.key.try_cast(kind))
    # pandas gives the type float64 to a column without any value, so text is accepted there: nobody has such an item.
    if source != kind and not (kind.is_floating() and source.is_string()):
        does_not_fit = typed.typed.isnull() | _is_rounded(typed.key, typed.typed)
        count = embedded.scalar(typed.filter(does_not_fit).count())
        if count:
            raise InvalidInput(
                domain.argument,
                plain("a list" if domain.labels is not None else f"a list of type {source}"),
                f"must have {domain.noun}s of type {kind}, as the table's column {item!r} has; {count} of them do not "
                "fit",
            )
    text = typed.typed.isnull().ifelse(typed.key.cast("string"), "")
    columns = ["group"] if "group" in typed.columns else []
    typed = typed.select(*columns, key=typed.typed, text=text, position=typed.position)
    return typed.group_by("key", "text", *columns).aggregate(position=typed.position.min())


def _is_rounded(key: Any, typed: Any) -> Any:
    """Whether a conversion to a number rounded: 3.7 cannot be an item of a column of integers."""
    import ibis

    if not typed.type().is_numeric() or typed.type().is_floating() or key.type().is_boolean():
        return ibis.literal(False)
    return key.try_cast("float64") != typed.try_cast("float64")


def _given(embedded: EmbeddedEngine, domain: Domain, item: str, kind: Any, groups: GroupKeys | None) -> Any:
    """Return the list as it was given, as a table (key, position[, group])."""
    import ibis

    if domain.labels is not None:
        return ibis.memtable(_label_table(domain, as_text=kind.is_string()))
    table = public_columns(embedded, domain, item, None if groups is None else groups.by)
    for column in table.columns:
        check_single(domain, table[column].type())
    key, *other = table.columns
    given = table.select(*other, key=table[key], position=ibis.literal(0, "int64"))
    if groups is None or not other:
        return given
    listed = ibis.memtable(groups.rows.select(["key", "position"]).rename_columns(["group_key", "group"]))
    typed = given[other[0]].try_cast(listed.group_key.type())
    given = given.inner_join(listed, typed == listed.group_key)
    return given.select("key", "position", "group")


def public_columns(embedded: EmbeddedEngine, domain: Domain, item: str, by: str | None = None) -> Any:
    """Return the column of a file or table that lists the items, and its column `by` if there is one, in that order."""
    import ibis

    given = domain.table
    if domain.path is not None:
        return _in_file(embedded, _file(domain), domain, item, by)
    if isinstance(given, ibis.Table) or is_spark(given):
        columns = _columns(list(given.columns), domain, item, by)
        rows = given.select(*columns)
        return ibis.memtable(embedded.run(rows.to_pyarrow if isinstance(given, ibis.Table) else rows.toArrow))
    if is_frame(given):
        return ibis.memtable(arrow_table(domain.argument, given, _columns(frame_columns(given), domain, item, by)))
    raise InvalidInput(
        domain.argument, plain(f"an object of type {type(given).__name__}"), f"must be a list of {domain.noun}s"
    )


def _label_table(domain: Domain, *, as_text: bool) -> Any:
    import pyarrow

    labels = domain.labels or []
    positions = pyarrow.array(range(len(labels)), type=pyarrow.int64())
    try:
        keys = pyarrow.array(labels, from_pandas=True)
    except (pyarrow.ArrowException, TypeError, ValueError, OverflowError):
        keys = None
    if keys is None or (as_text and not pyarrow.types.is_string(keys.type)):
        try:
            keys = pyarrow.array([str(label) for label in labels], type=pyarrow.string())
        except (pyarrow.ArrowException, ValueError):
            raise InvalidInput(
                domain.argument, plain("a list"), f"must have {domain.noun}s that are valid text"
            ) from None
    return pyarrow.table({"key": keys, "position": positions})


def _in_file(embedded: EmbeddedEngine, file: FileTable, domain: Domain, item: str, by: str | None) -> Any:
    """Return the columns of a file that lists the items; refuse a text file whose first line may be an item."""
    if not domain.header:
        if not file.is_text:
            raise InvalidInput(
                "domain_header",
                file.path.name,
                "only CSV and text files have a header; leave --domain-no-header (domain_header=False) out",
            )
        return file.bind_lines(embedded)
    column = domain.column or file.only_column(item)
    if file.is_text and column != (domain.column or item):
        shown = shown_line(column)
        raise InvalidInput(
            "domain",
            file.path.name,
            f"its first line is {shown} instead of {item!r}, the column of the rows; write {item!r} as its first line; "
            f"or else, if {shown} is the header, --domain-column {shown} (in Python, domain_column), and if it is an "
            "item, --domain-no-header (domain_header=False)",
        )
    columns = [column] if by is None or by == column or not file.may_have(by) else [column, by]
    bound = file.bind(embedded, columns)
    bound.load()
    if file.is_json and len(columns) > 1 and not embedded.scalar(bound.table[bound.table.columns[1]].count()):
        return bound.table.select(bound.table.columns[0])  # JSON has no header; no record has the field
    return bound.table


def _columns(columns: list[Any], domain: Domain, item: str, by: str | None) -> list[str]:
    column = _column(columns, domain, item)
    return [column, by] if by is not None and by in columns and by != column else [column]


def _column(columns: list[Any], domain: Domain, item: str) -> str:
    """Return the column of items: the named one, the one called like the item column, or the only one."""
    if domain.column is not None:
        check_columns("domain_column", [domain.column], columns)
        return domain.column
    if item in columns:
        return item
    if len(columns) == 1:
        return str(columns[0])
    advice = _NAME_COLUMN if domain.argument == "domain" else "name the column of groups so"
    raise InvalidInput(
        domain.argument,
        plain("a table"),
        f"it has several columns and none is called {item!r} as in the table of rows; {advice}",
    )


def check_single(domain: Domain, kind: Any) -> None:
    """Refuse a list of a type that has no single values."""
    if not is_single_value(kind):
        raise InvalidInput(
            domain.argument,
            plain(f"a list of type {type_name(kind)}"),
            "must hold text, numbers, dates, times or booleans",
        )
