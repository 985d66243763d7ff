"""The list of possible items must be public: the rows themselves are refused, and every answer says what was stated."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import duckdb
import ibis
import numpy as np
import pandas
import polars
import pyarrow
import pyarrow.parquet
import pytest

import dpselect as dps
from dpselect.release import StatedDomain

FILMS = ["Heat", "Up", "rare-disease"]
VIEWERS = ["ann", "bob", "cat"]
ASKED: dict[str, Any] = {"item": "film", "person": "viewer", "k": 1, "epsilon": 1e6, "seed": 1}
REFUSED = "domain.* the table of private rows or a part of it, .* only one person has; .*UNKNOWN"


def rows(**columns: Any) -> pyarrow.Table:
    return pyarrow.table({"film": FILMS, "viewer": VIEWERS, **columns})


def frame(kind: Any = None) -> pandas.DataFrame:
    return pandas.DataFrame({"film": pandas.Series(FILMS, dtype=kind), "viewer": VIEWERS})


NULLABLE = pandas.DataFrame({"film": pandas.array([1, 2, None], dtype="Int64"), "viewer": VIEWERS})
DAYS = pandas.DataFrame({"film": pandas.date_range("2020-01-01", periods=3, tz="UTC"), "viewer": VIEWERS})
NUMBERS = pandas.DataFrame({"film": [1, 2, 3], "viewer": VIEWERS})
PLAIN, ARROW, POLARS = frame(), rows(), polars.DataFrame({"film": FILMS, "viewer": VIEWERS})
LAZY, KEPT = POLARS.lazy(), ibis.memtable(ARROW)
OBJECTS, CATEGORIES, TEXTS = frame(object), frame("category"), frame(pandas.StringDtype("python"))

PRIVATE: dict[str, tuple[Any, Any]] = {
    "a DataFrame": (PLAIN, PLAIN),
    "its column": (PLAIN, PLAIN["film"]),
    "a part of its column": (PLAIN, PLAIN["film"].iloc[1:]),
    "another of its columns": (PLAIN, PLAIN["viewer"]),
    "a frame of its column": (PLAIN, PLAIN[["film"]]),
    "an index of its column": (PLAIN, pandas.Index(PLAIN["film"])),
    "its column of objects": (OBJECTS, OBJECTS["film"]),
    "the array of its objects": (OBJECTS, OBJECTS["film"].to_numpy()),
    "a slice of that array": (OBJECTS, OBJECTS["film"].to_numpy()[1:]),
    "its column of texts": (TEXTS, TEXTS["film"]),
    "its column of categories": (CATEGORIES, CATEGORIES["film"]),
    "its column of nullable numbers": (NULLABLE, NULLABLE["film"]),
    "its column of numbers": (NUMBERS, NUMBERS["film"].to_numpy()),
    "its column of numbers in Arrow": (NUMBERS, pyarrow.array(NUMBERS["film"])),
    "its column of days": (DAYS, DAYS["film"]),
    "a polars frame": (POLARS, POLARS),
    "a polars column": (POLARS, POLARS["film"]),
    "a polars frame of its column": (POLARS, POLARS.select("film")),
    "a lazy polars frame": (LAZY, LAZY),
    "an Arrow table": (ARROW, ARROW),
    "an Arrow column": (ARROW, ARROW["film"]),
    "an Arrow slice": (ARROW, ARROW["film"].chunk(0)[1:]),
    "an Arrow table of its column": (ARROW, ARROW.select(["film"])),
    "pandas from Arrow": (ARROW.to_pandas(), ARROW["film"]),
    "an Ibis table in memory": (KEPT, KEPT),
    "its column in Ibis": (KEPT, KEPT.film),
    "what it was made from": (KEPT, ARROW),
}  # fmt: skip


def test_rows_in_memory_are_no_public_list() -> None:
    for table, domain in PRIVATE.values():
        with pytest.raises(dps.InvalidInput, match=REFUSED):
            dps.top(table, domain=domain, **ASKED)


PUBLIC: dict[str, tuple[Any, Any]] = {
    "a list": (PLAIN, list(FILMS)),
    "an equal frame": (PLAIN, frame()),
    "an equal Series": (OBJECTS, pandas.Series(FILMS, dtype=object)),
    "an equal array": (NUMBERS, np.array([1, 2, 3])),
    "the categories": (CATEGORIES, pandas.Index(FILMS)),
    "an equal polars frame": (POLARS, polars.DataFrame({"film": FILMS})),
    "an equal Arrow column": (ARROW, pyarrow.array(FILMS)),
    "an equal Ibis table": (KEPT, ibis.memtable(rows())),
}  # fmt: skip


@pytest.mark.slow
def test_a_list_of_equal_contents_elsewhere_is_taken_at_its_word() -> None:
    for what, (table, domain) in PUBLIC.items():
        assert dps.top(table, domain=domain, **ASKED).domain == StatedDomain(3, "public"), what


def test_a_public_table_that_was_joined_to_the_rows_is_a_list() -> None:
    films = ["Alpha", "Beta", "Gamma", "Delta", "A rare disease with a long name"]
    public = polars.DataFrame({"id": range(5), "film": films})
    views = polars.DataFrame({"viewer": range(200), "id": [0, 1, 2, 4] * 50})
    joined = views.join(public, on="id").select("viewer", "film")
    assert dps.top(joined, domain=public["film"], **ASKED).domain == StatedDomain(5, "public")
    for domain in (joined["film"], joined["film"][3:], joined.select("film")):
        with pytest.raises(dps.InvalidInput, match=REFUSED):
            dps.top(joined, domain=domain, **ASKED)


def test_a_table_of_duckdb_is_no_public_list_of_its_own() -> None:
    with duckdb.connect() as connection:
        connection.register("given", ARROW)
        connection.execute("CREATE TABLE views AS FROM given")
        connection.execute("CREATE TABLE films AS SELECT film FROM given")
        relation = connection.table("views")
        for domain in (relation, connection.table("views")):
            with pytest.raises(dps.InvalidInput, match=REFUSED):
                dps.top(relation, domain=domain, **ASKED)
        assert dps.top(relation, domain=connection.table("films"), **ASKED).k == 1


@pytest.mark.slow
def test_a_query_beside_rows_of_its_library_is_no_public_list() -> None:
    lazy: list[tuple[Any, Any]] = [(POLARS, LAZY), (POLARS, LAZY.select("film")), (LAZY, LAZY.select("film"))]
    with duckdb.connect() as connection:
        connection.register("given", ARROW)
        connection.execute("CREATE TABLE views AS FROM given")
        table, query = connection.table("views"), connection.sql("SELECT * FROM views")
        lazy += [
            (table, table.select("film")),
            (table, query),
            (query, table),
            (query, query.select("film").distinct()),
        ]
        for rows_given, domain in lazy:
            with pytest.raises(dps.InvalidInput, match="may be made from them"):
                dps.top(rows_given, domain=domain, **ASKED)
        public = polars.DataFrame({"film": FILMS})
        for rows_given, domain in ((ARROW, public.lazy()), (LAZY, public), (PLAIN, table.select("film"))):
            assert dps.top(rows_given, domain=domain, **ASKED).domain == StatedDomain(3, "public")


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore:fetch_arrow_table:DeprecationWarning")  # the test's own call of Ibis
def test_a_table_of_ibis_is_no_public_list_of_its_own() -> None:
    backend = ibis.duckdb.connect()
    views = backend.create_table("views", ARROW)
    films = backend.create_table("films", ARROW.select(["film"]))
    table = backend.table("views")
    lists = (
        *(views, backend.table("views", database="main"), backend.table("VIEWS"), views.select("film").distinct()),
        *(
            views.film,
            views.filter(views.viewer != "ann"),
            "table:views",
            "table:main.VIEWS",
            "table:memory.main.views",
        ),
    )
    for domain in lists:
        with pytest.raises(dps.InvalidInput, match=REFUSED):
            dps.top(table.filter(table.film.notnull()), domain=domain, where="film <> 'x'", **ASKED)
    for domain in (films, films.film, "table:films"):
        assert dps.top(table, domain=domain, **ASKED).domain == StatedDomain(3, "public")
    joined = table.join(films, "film")
    assert dps.top(joined, domain=films, **ASKED).domain == StatedDomain(3, "public")
    with pytest.raises(dps.InvalidInput, match=REFUSED):
        dps.top(joined, domain=joined, **ASKED)


@pytest.mark.slow
def test_a_table_in_a_duckdb_file_is_no_public_list_of_its_own(tmp_path: Path) -> None:
    with duckdb.connect(str(tmp_path / "v.duckdb")) as connection:
        connection.register("given", ARROW)
        connection.execute("CREATE TABLE views AS FROM given; CREATE SCHEMA other")
        connection.execute("CREATE TABLE other.views AS SELECT film FROM given")
    url = f"duckdb://{tmp_path / 'v.duckdb'}"
    for name in ("views", "main.views"):
        for domain in ("views", "VIEWS", "main.views", '"main"."Views"'):
            with pytest.raises(dps.InvalidInput, match=REFUSED):
                dps.top(url, table_name=name, domain=f"table:{domain}", **ASKED)
        assert dps.top(url, table_name=name, domain="table:other.views", **ASKED).k == 1


def linked(make: Callable[[str, str], None]) -> Callable[[Path], str]:
    def path(folder: Path) -> str:
        make(str(folder / "one.parquet"), str(folder / "list.parquet"))
        return str(folder / "list.parquet")

    return path


SAME_FILE: dict[str, Callable[[Path], str]] = {
    "the path": lambda folder: str(folder / "one.parquet"),
    "a longer path": lambda folder: str(folder / ".." / folder.name / "one.parquet"),
    "a hard link": linked(os.link),
    "a symbolic link": linked(os.symlink),
    "the folder": str,
    "a pattern": lambda folder: str(folder / "o*.parquet"),
}


@pytest.mark.slow
@pytest.mark.parametrize("what", SAME_FILE)
def test_a_file_of_the_rows_is_no_public_list(what: str, tmp_path: Path) -> None:
    for name in ("one", "two"):
        pyarrow.parquet.write_table(ARROW, tmp_path / f"{name}.parquet")
    domain = SAME_FILE[what](tmp_path)
    (tmp_path / "elsewhere").mkdir()
    pyarrow.parquet.write_table(ARROW, tmp_path / "elsewhere" / "list.parquet")
    for table in ("one.parquet", "", "*.parquet"):
        with pytest.raises(dps.InvalidInput, match=REFUSED):
            dps.top(tmp_path / table, domain=domain, **ASKED)
        assert dps.top(tmp_path / table, domain=tmp_path / "elsewhere" / "list.parquet", **ASKED).k == 1


def test_nothing_is_charged_for_a_list_that_is_refused(tmp_path: Path) -> None:
    with dps.privacy.Ledger(tmp_path / "ledger.sqlite") as ledger:
        ledger.create("films", epsilon=1e7)
        with pytest.raises(dps.InvalidInput, match=REFUSED):
            dps.top(PLAIN, domain=PLAIN["film"], **{**ASKED, "seed": None}, ledger=ledger, dataset="films")
        assert ledger.entries("films") == []


GAMES = np.array([["ann", "bob"], ["ann", "cem"], ["bob", "cem"]])
CAPS: dict[str, Any] = {"k": 1, "epsilon": 1.0, "comparisons_per_pair": 1, "max_degree": 2, "seed": 1}


def test_comparisons_are_no_public_list(tmp_path: Path) -> None:
    table = pandas.DataFrame(GAMES, columns=["winner", "loser"])
    table.to_csv(tmp_path / "games.csv", index=False)
    given = [(GAMES, GAMES[:, 0]), (table, table), (table, table["loser"])]
    given.append((tmp_path / "games.csv", str(tmp_path / "games.csv")))
    for comparisons, domain in given:
        with pytest.raises(dps.InvalidInput, match=REFUSED + ".*in a ranking, leave the domain out"):
            dps.rank(comparisons, domain=domain, **CAPS)
    listed = dps.rank(table, domain=["ann", "bob", "cem", "dia"], **CAPS)
    assert listed.domain == StatedDomain(4, "public")


def test_the_number_of_compared_items_stays_private_where_the_rows_name_them() -> None:
    release = dps.rank(GAMES, **CAPS)
    assert release.to_dict()["domain"] == {"items": None, "stated": "rows"}
    assert str(release.domain) == "named by the rows"


def lists(folder: Path, text: bytes, name: str = "list.csv") -> Path:
    (folder / name).write_bytes(text)
    return folder / name


def heat(domain: Any, **more: Any) -> dps.Release:
    table = pandas.DataFrame({"film": ["Heat"] * 5 + ["Up"], "viewer": range(6)})
    return dps.top(table, domain=domain, **{**ASKED, **more})


@pytest.mark.slow
@pytest.mark.parametrize("name", ["list.csv", "list.txt"])
def test_a_list_whose_first_line_may_be_an_item_is_refused_with_what_to_write(name: str, tmp_path: Path) -> None:
    path = lists(tmp_path, b"Heat\nUp\nHer\n", name)
    with pytest.raises(dps.InvalidInput) as caught:
        heat(path)
    assert caught.value.given == name
    assert caught.value.accepted == (
        "its first line is 'Heat' instead of 'film', the column of the rows; write 'film' as its first line; "
        "or else, if 'Heat' is the header, --domain-column 'Heat' (in Python, domain_column), and if it is an "
        "item, --domain-no-header (domain_header=False)"
    )
    assert heat(path, domain_header=False).items == ["Heat"]
    assert heat(path, domain_header=False).domain == StatedDomain(3, "public")
    assert heat(path, domain_column="Heat", k=2).domain == StatedDomain(2, "public")
    path.write_bytes(b"x" * 1000 + b"\nUp\n")
    with pytest.raises(dps.InvalidInput, match=f"its first line is '{'x' * 60}…' instead of"):
        heat(path)


@pytest.mark.parametrize(
    "text",
    [
        b"Heat\r\nUp\r\n\"Good, bad and ugly\"\r\n",
        b"\xef\xbb\xbfHeat\nUp\n\"Good, bad and ugly\"",
        b"\"Heat\"\n\nUp\n\n\"Good, bad and ugly\"\nHeat\n",
    ],
)  # fmt: skip
def test_every_line_of_a_list_without_a_header_is_an_item(text: bytes, tmp_path: Path) -> None:
    release = heat(lists(tmp_path, text), domain_header=False, k=3)
    assert set(release.items) == {"Heat", "Up", "Good, bad and ugly"}


def test_a_line_of_several_fields_is_no_item(tmp_path: Path) -> None:
    with pytest.raises(
        dps.InvalidInput, match="it cannot be read; check that a CSV is in UTF-8 and has as many fields"
    ):
        heat(lists(tmp_path, b"Heat\nGood, bad and ugly\n"), domain_header=False)


@pytest.mark.slow
def test_the_column_of_a_list_can_be_named(tmp_path: Path) -> None:
    table = pyarrow.table({"id": [1, 2], "title": ["Heat", "Up"], "film": ["x", "y"]})
    pyarrow.parquet.write_table(table, tmp_path / "list.parquet")
    lists(tmp_path, b"id,title,film\n1,Heat,x\n2,Up,y\n")
    lists(tmp_path, b'{"id": 1, "title": "Heat"}\n{"id": 2, "title": "Up"}\n', "list.jsonl")
    given = [tmp_path / name for name in ("list.parquet", "list.csv", "list.jsonl")]
    given += [table, table.to_pandas(), polars.from_arrow(table), ibis.memtable(table)]
    for domain in given:
        assert set(heat(domain, domain_column="title", k=2).items) == {"Heat", "Up"}
    with pytest.raises(dps.InvalidInput, match=r"domain_column.*column 'name'.*the columns are 'id', 'title'"):
        heat(table, domain_column="name")
    with pytest.raises(dps.InvalidInput, match=r"domain 'list\.csv': .*'name'"):
        heat(tmp_path / "list.csv", domain_column="name")
    first = "its first line, 'id,title', has several columns and none is called 'film'"
    with pytest.raises(dps.InvalidInput, match=first):
        heat(lists(tmp_path, b"id,title\n1,Heat\n"))


def test_a_json_list_needs_records_with_the_field(tmp_path: Path) -> None:
    for text in (b'["Heat", "Up"]', b'"Heat"\n"Up"\n', b'[{"title": "Heat"}]'):
        with pytest.raises(dps.InvalidInput, match=r"'list\.json'.*no record has a field 'film'"):
            heat(lists(tmp_path, text, "list.json"))


WRONG_COLUMNS: list[tuple[Any, dict[str, Any], str]] = [
    (["Heat"], {"domain_column": "film"}, "domain_column must be left out unless .*, got 'film'"),
    (9, {"domain_column": "film"}, "domain_column must be left out unless the domain is a file or table"),
    (dps.UNKNOWN, {"domain_column": "film"}, "domain_column must be left out unless the domain is a file or table"),
    ("list.csv", {"domain_column": ""}, "domain_column must be the name of a column, got ''"),
    ("list.csv", {"domain_column": 3}, "domain_column must be the name of a column, got 3"),
    ("list.csv", {"domain_header": "no"}, "domain_header must be True or False, got 'no'"),
    (["Heat"], {"domain_header": False}, "domain_header must be left out unless the domain is a file"),
    ("list.csv", {"domain_header": False, "domain_column": "film"}, "left out if the column 'film' is named"),
    ("list.parquet", {"domain_header": False}, "'list.parquet'.*only CSV and text files have a header"),
]


def test_what_is_said_about_a_column_that_is_not_there_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    lists(tmp_path, b"film\nHeat\n")
    pyarrow.parquet.write_table(pyarrow.table({"film": ["Heat"]}), "list.parquet")
    for domain, more, complaint in WRONG_COLUMNS:
        with pytest.raises(dps.InvalidInput, match=complaint):
            heat(domain, **more)


def test_a_ranking_without_a_domain_has_no_column_of_it() -> None:
    with pytest.raises(dps.InvalidInput, match="domain must be given with domain_column"):
        dps.rank(GAMES, domain_column="player", **CAPS)


ONLY_NUMBER, HIDDEN = "only their number stated as public", "unknown; which items exist is private"
SCORES = {"a": 1, "b": 2}
STATED: dict[str, tuple[Callable[[], dps.Release], tuple[int | None, str], str]] = {
    "a list": (lambda: heat(["Heat", "Up", "Her", "Her"]), (3, "public"), "3 items, stated as public"),
    "a list of one": (lambda: heat(["Heat"]), (1, "public"), "1 item, stated as public"),
    "a number": (lambda: heat(15000), (15000, "number"), f"15,000 items, {ONLY_NUMBER}"),
    "a huge number": (lambda: heat(10**30), (10**30, "number"), f"1e+30 items, {ONLY_NUMBER}"),
    "an unknown domain": (lambda: heat(dps.UNKNOWN, delta=0.1), (None, "unknown"), HIDDEN),
    "scores": (lambda: dps.select(SCORES, 1, epsilon=1.0), (2, "public"), "2 items, stated as public"),
    "positions": (lambda: dps.select([1, 2, 3, 4], 1, epsilon=1.0), (4, "public"), "4 items, stated as public"),
    "scores of an unknown domain": (
        lambda: dps.select(SCORES, 1, epsilon=1.0, delta=0.1, mechanism="restricted"), (None, "unknown"), HIDDEN
    ),
}  # fmt: skip


@pytest.mark.slow
def test_every_answer_says_what_was_stated_about_the_domain() -> None:
    for what, (ask, (items, stated), words) in STATED.items():
        release = ask()
        assert release.to_dict()["domain"] == {"items": items, "stated": stated}, what
        assert str(release.domain) == words
