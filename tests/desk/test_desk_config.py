"""The configuration is checked as a whole at the start; errors name the line, and never show a password."""

from __future__ import annotations

import os
from pathlib import Path

import duckdb
import pytest
from desks import VIEWERS, write_config
from typer.testing import CliRunner

import dpselect as dps
from dpselect.cli import app
from dpselect.desk import DeskConfig, SharedDesk, read_config
from dpselect.desk.config import write_config as write_back


def refused(text: str, folder: Path) -> str:
    """Return the error for this configuration."""
    place = folder / "desk.toml"
    place.write_text(text)
    with pytest.raises(dps.InvalidInput) as caught:
        read_config(place)
    return str(caught.value)


def changed(folder: Path, old: str, new: str) -> str:
    """Return the error for the usual configuration with one text replaced."""
    text = write_config(folder).read_text()
    assert old in text
    return refused(text.replace(old, new), folder)


VIEWS = '[datasets.views]\nsource = "views.csv"\nperson = "viewer"\nitems = { film = "films.csv" }\nepsilon = 2.0\n'


def test_paths_are_relative_to_the_file(tmp_path: Path) -> None:
    config = read_config(write_config(tmp_path))
    views = config.datasets["views"]
    assert (views.source, views.items["film"]) == (str(tmp_path / "views.csv"), str(tmp_path / "films.csv"))
    assert (config.ledger, views.people) == (str(tmp_path / "ledger.sqlite"), VIEWERS)
    place = tmp_path / "other.toml"
    place.write_text('ledger = "sqlite.db"\n' + VIEWS.replace('"views.csv"', '"duckdb://rows.duckdb"\ntable = "t"'))
    with duckdb.connect(tmp_path / "rows.duckdb") as connection:
        connection.execute("CREATE TABLE t (film TEXT, viewer TEXT)")
    assert read_config(place).datasets["views"].source == f"duckdb://{tmp_path}/rows.duckdb"


MISTAKES = {
    "unknown key": ("epsilon = 2.0", "epsilom = 2.0", "line 8: datasets.views.epsilom is not a key"),
    "unknown key at the top": ("requests_per_minute", "requests", "line 2: requests is not a key"),
    "missing key": ('person = "viewer"\n', "", "line 4: datasets.views.person is missing"),
    "missing file": ("views.csv", "gone.csv", "line 5: source: there is no such file: gone.csv"),
    "missing list": ("films.csv", "gone.csv", "line 7: items.film: there is no such file: gone.csv"),
    "wrong type": ("epsilon = 2.0", 'epsilon = "2"', "line 8: datasets.views.epsilon: input should be a valid number"),
    "epsilon 0": ("epsilon = 2.0", "epsilon = 0", "line 8: datasets.views.epsilon: input should be greater than 0"),
    "NaN": ("epsilon = 2.0", "epsilon = nan", "line 8: datasets.views.epsilon: input should be a finite number"),
    "private list": ("films.csv", "views.csv", "line 7: items.film must be a public file, not the private rows"),
    "table without engine": ('"films.csv"', '"table:films"', "line 7: items.film must be a file"),
    "unknown groups": ('"countries.csv"', '"unknown"', "line 11: groups.country must be a public list, not unknown"),
    "unknown items without delta": ('"films.csv"', '"unknown"', "line 7: items.film is unknown, which needs a delta"),
    "time without every": ("people", 'time = "day"\npeople', "must be stated together"),
    "name": ("[datasets.views]", '[datasets."a/b"]', "line 4: datasets.a/b must be a name of letters, digits, - and _"),
    "analyst": ("people", 'analysts = { "a:b" = 1 }\npeople', "must be a name of letters, digits, - and _"),
    "not TOML": ("epsilon = 2.0", "epsilon = ", "it is not valid TOML: Invalid value (at line 8"),
    "host with a port": (
        "requests",
        'hosts = ["desk.example:443"]\nrequests',
        "line 2: hosts.0: must be",
    ),
    "host as a URL": ("requests", 'hosts = ["https://desk.example"]\nrequests', "line 2: hosts.0: must be"),
    "kind of ledger": (
        '"ledger.sqlite"',
        '"mysql://localhost/x"',
        "line 1: ledger must be the path of a file",
    ),
    "no table": ('"views.csv"', '"postgresql://localhost/shop"', "table must name the table of the database"),
}


@pytest.mark.parametrize("mistake", MISTAKES)
def test_a_mistake_is_shown_with_its_line(tmp_path: Path, mistake: str) -> None:
    old, new, told = MISTAKES[mistake]
    assert told in changed(tmp_path, old, new)


def test_all_mistakes_are_shown_at_once(tmp_path: Path) -> None:
    text = write_config(tmp_path).read_text().replace("films.csv", "a.csv").replace("countries.csv", "b.csv")
    told = refused(text, tmp_path)
    assert "line 7: items.film" in told
    assert "line 11: groups.country" in told


def test_a_file_that_is_no_text_is_refused(tmp_path: Path) -> None:
    place = tmp_path / "desk.toml"
    with pytest.raises(dps.InvalidInput, match="there is no such file"):
        read_config(place)
    place.write_bytes(b"\xff\xfe")
    with pytest.raises(dps.InvalidInput, match="must be a TOML file in UTF-8 that can be read"):
        read_config(place)


def two(folder: Path, second: str, *, keys: str = "", table: str = "") -> str:
    """Return the error for a second data set with this source."""
    write_config(folder)
    one = VIEWS.replace('person = "', f'{table}person = "')
    other = VIEWS.replace("datasets.views", "datasets.again").replace("views.csv", second)
    return refused(f'ledger = "x"\n{one}{other}{table}{keys}', folder)


def test_two_data_sets_on_one_file_must_share_a_budget(tmp_path: Path) -> None:
    told = "line 7: again reads the rows of views (line 2) under another budget"
    assert told in two(tmp_path, "views.csv")
    assert told in two(tmp_path, "./../" + tmp_path.name + "/views.csv")
    (tmp_path / "link.csv").symlink_to("views.csv")
    assert told in two(tmp_path, "link.csv")
    os.link(tmp_path / "views.csv", tmp_path / "hard.csv")
    assert told in two(tmp_path, "hard.csv")
    assert told in two(tmp_path, "v*.csv")
    shared = VIEWS.replace("datasets.views", "datasets.again") + 'budget = "views"\n'
    place = tmp_path / "desk.toml"
    place.write_text(f'ledger = "x"\n{VIEWS}{shared}')
    assert set(read_config(place).datasets) == {"views", "again"}


def test_data_sets_that_share_a_budget_must_agree_on_it(tmp_path: Path) -> None:
    told = two(tmp_path, "views.csv", keys='budget = "views"\ndelta = 0.1\n')
    assert "line 7: again shares the budget of views (line 2), so delta must agree" in told


def test_data_sets_on_the_same_rows_must_agree_on_the_column_of_times(tmp_path: Path) -> None:
    """A row would else be in two periods, and each period has a budget of its own."""
    write_config(tmp_path)
    one = f'ledger = "x"\n{VIEWS}every = "week"\ntime = "ordered"\n'
    other = VIEWS.replace("datasets.views", "datasets.again") + 'budget = "views"\nevery = "week"\n'
    assert "so time must agree" in refused(f'{one}{other}time = "shipped"\n', tmp_path)
    (tmp_path / "desk.toml").write_text(f'{one}{other}time = "ordered"\n')
    assert set(read_config(tmp_path / "desk.toml").datasets) == {"views", "again"}


def test_data_sets_on_the_same_rows_must_agree_on_the_column_of_people(tmp_path: Path) -> None:
    """A budget is per person: what protects each viewer says nothing about each buyer of the same rows."""
    write_config(tmp_path)
    other = VIEWS.replace("datasets.views", "datasets.again").replace('"viewer"', '"buyer"') + 'budget = "views"\n'
    told = refused(f'ledger = "x"\n{VIEWS}{other}', tmp_path)
    assert "line 7: again shares the budget of views (line 2), so person must agree" in told


def test_a_key_cannot_mean_two_files_of_one_name(tmp_path: Path) -> None:
    write_config(tmp_path)
    (tmp_path / "other").mkdir()
    (tmp_path / "other" / "views.csv").write_text("film,viewer\nFilm A,1\n")
    assert "must not have the same name" in two(tmp_path, "other/views.csv", keys='budget = "views"\n')


def both(folder: Path, first: tuple[str, str], second: tuple[str, str], *, keys: tuple[str, str] = ("", "")) -> Path:
    """Write a configuration of data sets a and b with these sources and tables."""
    write_config(folder)
    parts = [
        VIEWS.replace("datasets.views", f"datasets.{name}").replace('"views.csv"', f"'{source}'\ntable = '{table}'")
        + key
        for name, (source, table), key in zip("ab", (first, second), keys, strict=True)
    ]
    place = folder / "desk.toml"
    place.write_text('ledger = "x"\n' + "".join(parts))
    return place


SHOP = "postgresql://h/shop"

SAME = [
    (
        ("postgresql://ann:secret@localhost/shop", "v"),
        ("postgres://bob:other@127.0.0.1:5432/shop?sslmode=disable", "v"),
    ),
    (("postgresql://db.example/shop", "v"), ("postgresql://DB.example:5432/shop", "public.v")),
    ((SHOP, "v"), (SHOP, "shop.public.v")),
    ((SHOP, "v"), ("postgresql://ann@h/shop", '"public"."v"')),
    ((SHOP, "v"), ("postgresql:///shop?host=h", "v")),
    ((SHOP, "v"), ("postgresql://h/s%68op", "v")),
    ((SHOP, "v"), ("postgresql://shop@h", "v")),
    (("postgresql://localhost/shop", "v"), ("postgresql:///shop", "v")),
    (("postgresql://localhost/shop", "v"), ("postgresql://[::1]/shop", "v")),
    (("duckdb://rows.duckdb", "views"), ("duckdb://./link.duckdb", "main.views")),
    (("spark+local://2", "people_views"), ("spark+local://4", '"people_views"')),
    (("spark+local://", "views"), ("spark+local://", "spark_catalog.default.views")),
]

UNSURE = [
    ((SHOP, "v"), ("postgresql://10.0.0.7/shop", "v")),
    ((SHOP, "v"), ("postgresql://h:6432/shop", "v")),
    ((SHOP, "v"), (SHOP, "sales.v")),
    ((SHOP, "v"), (f"{SHOP}?options=-csearch_path%3Dsales", "v")),
    ((SHOP, "v"), ("postgresql://h/?service=shop", "v")),
    (("postgresql://localhost/shop", "v"), ("postgresql:///shop?host=/run/postgresql", "v")),
    (("spark://one:7077", "v"), ("spark://two:7077", "v")),
]

OTHER = [
    ((SHOP, "v"), (SHOP, "w")),
    ((SHOP, "v"), ("postgresql://h/office", "v")),
    ((SHOP, "public.v"), (SHOP, "sales.v")),
    ((SHOP, "v"), ("spark://h:7077", "v")),
    (("duckdb://rows.duckdb", "views"), ("duckdb://rows.duckdb", "other")),
]


@pytest.fixture
def database(tmp_path: Path) -> Path:
    """Return the folder with a DuckDB file of two tables, and a link to it."""
    with duckdb.connect(tmp_path / "rows.duckdb") as connection:
        for table in ("views", "other"):
            connection.execute(f"CREATE TABLE {table} (film TEXT, viewer TEXT)")
    (tmp_path / "link.duckdb").symlink_to("rows.duckdb")
    return tmp_path


@pytest.mark.parametrize(("first", "second"), SAME)
def test_two_data_sets_on_one_table_must_share_a_budget(
    database: Path, first: tuple[str, str], second: tuple[str, str]
) -> None:
    for keys in (("", ""), ('budget = "one"\n', 'budget = "two"\n')):
        place = both(database, first, second, keys=keys)
        with pytest.raises(dps.InvalidInput, match=r"b reads the rows of a \(line 2\) under another budget") as caught:
            read_config(place)
        assert "secret" not in str(caught.value)
    read_config(both(database, first, second, keys=("", 'budget = "a"\n')))


@pytest.mark.parametrize(("first", "second"), UNSURE)
def test_addresses_that_may_be_one_table_need_stated_budgets(
    tmp_path: Path, first: tuple[str, str], second: tuple[str, str]
) -> None:
    place = both(tmp_path, first, second, keys=("", 'budget = "two"\n'))
    with pytest.raises(dps.InvalidInput, match=r"b may read the rows of a \(line 2\).*state budget in both"):
        read_config(place)
    read_config(both(tmp_path, first, second, keys=('budget = "one"\n', 'budget = "two"\n')))


@pytest.mark.parametrize(("first", "second"), OTHER)
def test_another_table_may_have_a_budget_of_its_own(
    database: Path, first: tuple[str, str], second: tuple[str, str]
) -> None:
    assert len(read_config(both(database, first, second)).datasets) == 2


def test_the_settings_of_libpq_count(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PGHOST", "h")
    with pytest.raises(dps.InvalidInput, match="reads the rows of a"):
        read_config(both(tmp_path, (SHOP, "v"), ("postgresql:///shop", "v")))


def test_a_database_or_table_that_cannot_be_one_is_shown_with_its_line(tmp_path: Path) -> None:
    for source, table, told in (
        ("postgresql://ann:hunter2@h/shop?tabel=x", "v", "source must be postgresql://user@host"),
        (SHOP, "a..b", "must be the name of a table"),
    ):
        with pytest.raises(dps.InvalidInput) as caught:
            read_config(both(tmp_path, (SHOP, "w"), (source, table)))
        assert "line 8: datasets.b: " in str(caught.value)
        assert told in str(caught.value)
        assert "hunter2" not in str(caught.value)


def test_files_of_an_object_store_are_the_same_wherever_spark_runs(tmp_path: Path) -> None:
    write_config(tmp_path)
    parts = [
        VIEWS.replace("datasets.views", f"datasets.{name}").replace(
            '"views.csv"', f'"{source}"\ntable = "s3a://shop/v"'
        )
        for name, source in {"a": "spark+local://", "b": "spark://one:7077", "c": "spark://two:7077"}.items()
    ]
    told = refused('ledger = "x"\n' + "".join(parts), tmp_path)
    assert told.count("under another budget") == 3


def opened(place: Path) -> str:
    """Return why this configuration is not served."""
    with pytest.raises(dps.DpSelectError) as caught:
        SharedDesk(read_config(place), path=place).check(place)
    return str(caught.value)


def test_the_command_checks_before_it_serves(tmp_path: Path) -> None:
    result = CliRunner().invoke(app, ["desk", "--config", str(write_config(tmp_path, person="viewr")), "--port", "0"])
    assert result.exit_code == 2
    assert "no column 'viewr'" in " ".join(result.output.split())


@pytest.mark.parametrize(
    ("change", "told"),
    [
        ({"person": "viewr"}, "line 6: datasets.views.person: table 'views.csv': the header has no column 'viewr'"),
        ({"items": {"film": "films.csv", "movie": "films.csv"}}, "line 7: datasets.views.items.movie: "),
        ({"filters": {"adults": "agee >= 18"}}, "line 10: datasets.views.filters: where"),
        ({"filters": {"adults": "true; DROP TABLE x"}}, "line 10: datasets.views.filters: where"),
        ({"groups": {"nation": "countries.csv"}}, "line 11: datasets.views.groups.nation: "),
        (
            {"time": "days", "every": "week"},
            "line 13: datasets.views.time: table 'views.csv': the header has no column",
        ),
        ({"like": {"last": "films.csv"}}, "line 13: datasets.views.like: like 'last': its file must have a column"),
    ],
)
def test_the_start_is_refused_if_a_question_could_not_be_answered(
    tmp_path: Path, change: dict[str, object], told: str
) -> None:
    assert told in opened(write_config(tmp_path, **change))


def test_a_column_that_a_table_lacks_is_shown_with_the_line_that_names_it(tmp_path: Path) -> None:
    place = write_config(tmp_path, source="duckdb://rows.duckdb", table="views", person="viewr", filters=None)
    with duckdb.connect(tmp_path / "rows.duckdb") as connection:
        connection.execute("CREATE TABLE views (film TEXT, viewer TEXT, country TEXT)")
    assert "line 6: datasets.views.person: table column 'viewr': there is no such column" in opened(place)


def test_a_wrong_address_is_refused_at_the_start_without_its_password(tmp_path: Path) -> None:
    address = "postgresql://ann:hunter2@127.0.0.1:9/shop"
    told = opened(write_config(tmp_path, source=address, table="views"))
    assert "line 5: datasets.views.source:" in told
    assert "hunter2" not in told
    for ledger in (address, "postgresql://ann:hunter2@[oops/shop", "no-such-folder/ledger.sqlite"):
        told = opened(write_config(tmp_path, ledger=ledger))
        assert "line 1: ledger" in told
        assert "hunter2" not in told


def test_a_table_of_items_that_is_the_table_of_rows_is_refused(tmp_path: Path) -> None:
    place = write_config(
        tmp_path, source="duckdb://rows.duckdb", table="views", items={"film": "table:views"}, filters=None, groups=None
    )
    with duckdb.connect(tmp_path / "rows.duckdb") as connection:
        connection.execute("CREATE TABLE views (film TEXT, viewer TEXT)")
    assert "it is the table of private rows" in opened(place)


@pytest.mark.parametrize(
    ("change", "told"),
    [
        ({"epsilon": 3.0}, "line 8: datasets.views.epsilon: epsilon 3.0: the ledger has a budget 'views' of epsilon 2"),
        (
            {"delta": 0.1},
            "datasets.views.delta: delta 0.1: the ledger has a budget 'views' of epsilon 2, delta 0, which",
        ),
        ({"protects": "one household"}, "datasets.views.protects: protects 'one household': the ledger's budget"),
        ({"protects": "one"}, "protects one person, which never changes"),
        (
            {"time": "day", "every": "week"},
            "datasets.views.every: every 'week': the ledger has a budget 'views' of epsilon",
        ),
        ({"analysts": {"ann": 0.7}}, "line 13: datasets.views.analysts.ann: epsilon 0.7: the ledger has a budget"),
    ],
)
def test_a_total_that_the_ledger_knows_otherwise_is_refused_with_its_line(
    tmp_path: Path, change: dict[str, object], told: str
) -> None:
    SharedDesk(read_config(write_config(tmp_path, analysts={"ann": 0.5})))
    place = write_config(tmp_path, **change)
    assert told in opened(place)
    with pytest.raises(dps.InvalidInput, match="never changes"):
        SharedDesk(read_config(place))


def test_the_total_of_all_periods_never_changes_either(tmp_path: Path) -> None:
    weekly = {"time": "day", "every": "week"}
    SharedDesk(read_config(write_config(tmp_path, **weekly, lifetime=9.0)))
    for lifetime in (10.0, None):
        with pytest.raises(dps.InvalidInput, match="9 over all of them, which never changes"):
            SharedDesk(read_config(write_config(tmp_path, **weekly, lifetime=lifetime)))


def test_a_total_of_all_periods_below_that_of_one_is_shown_with_its_line(tmp_path: Path) -> None:
    told = opened(write_config(tmp_path, time="day", every="week", lifetime=0.5))
    assert "line 15: datasets.views.lifetime: lifetime must be at least 2.0" in told


def test_a_configuration_that_is_written_is_read_back(tmp_path: Path) -> None:
    facts = {"filters": {'a "b"': "film <> 'x\\y'"}, "analysts": {"ann": 0.5}, "time": "day", "every": "week"}
    config = read_config(write_config(tmp_path, **facts, extra='hosts = ["desk.example"]\n'))
    write_back(config, tmp_path / "copy.toml")
    assert read_config(tmp_path / "copy.toml") == config
    empty = DeskConfig(ledger=str(tmp_path / "x"), datasets={})
    write_back(empty, tmp_path / "copy.toml")
    assert read_config(tmp_path / "copy.toml") == empty


def test_every_character_is_written_so_that_it_is_read_back(tmp_path: Path) -> None:
    stated = read_config(write_config(tmp_path)).model_dump()
    stated["datasets"]["views"]["filters"] = {
        "\U0001f600": "film <> '\u00e9\U0001f3ac'",
        "control": "film <> '\t\x7f\n'",
    }
    config = DeskConfig.model_validate(stated)
    write_back(config, tmp_path / "copy.toml")
    assert read_config(tmp_path / "copy.toml") == config
