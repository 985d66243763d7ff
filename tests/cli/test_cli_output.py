"""`--output` and its kin: nothing that is read is ever lost, and a file is written whole or not at all."""

from __future__ import annotations

import contextlib
import json
import os
import resource
import shlex
import shutil
import socket
import stat
import subprocess
import sys
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import duckdb
import pytest
from typer.testing import CliRunner

from dpselect.cli import app

ASKED = "--item film --person viewer -k 3 --epsilon 1"
TOP = f"top views.parquet {ASKED} --domain films.csv"


def run(line: str) -> Any:
    return CliRunner().invoke(app, shlex.split(line))


def program(line: str, before: str = "") -> list[str]:
    """Return a process of its own that first runs some Python and then a command."""
    start = f"{before}\nimport sys, dpselect.cli as cli\nsys.argv[0] = 'dpselect'\ncli.main()"
    return [sys.executable, "-c", start, *shlex.split(line)]


@pytest.fixture
def full(folder: Path) -> Path:
    """The folder with every kind of input, and other names of them."""
    with contextlib.closing(duckdb.connect("v.duckdb")) as connection:
        connection.execute("CREATE TABLE views AS FROM 'views.parquet'")
    (folder / "parts").mkdir()
    for part in ("one", "two"):
        shutil.copy("views.parquet", folder / "parts" / f"{part}.parquet")
    os.link("views.parquet", "hard.json")
    os.symlink("views.parquet", "soft.json")
    os.link("v.duckdb", "database.json")
    os.link("films.csv", "list.json")
    os.link("parts/two.parquet", "part.json")
    assert run("ledger create films --epsilon 9").exit_code == 0
    os.symlink("ledger.sqlite", "budget.json")
    return folder


def contents(folder: Path) -> dict[str, bytes]:
    return {str(path.relative_to(folder)): path.read_bytes() for path in folder.rglob("*") if path.is_file()}


@contextlib.contextmanager
def nothing_changes(folder: Path) -> Iterator[None]:
    before = contents(folder)
    yield
    assert contents(folder) == before


def refused(line: str) -> str:
    result = run(line)
    assert (result.exit_code, result.stdout) == (2, ""), result.stderr
    return str(result.stderr)


def test_a_database_is_not_overwritten_by_the_answer_about_it(full: Path) -> None:
    with nothing_changes(full):
        said = refused(f"top duckdb://v.duckdb --table views {ASKED} --domain films.csv --output v.duckdb")
    assert said == (
        "dpselect: --output must not be a file that is read or belongs to the ledger, got 'v.duckdb'; "
        "name another file\n"
    )
    with contextlib.closing(duckdb.connect("v.duckdb")) as connection:
        assert connection.execute("SELECT count(*) > 0 FROM views").fetchone() == (True,)


READ = {
    "the file by a longer path": f"{TOP} --output parts/../views.parquet",
    "a hard link to the file": f"{TOP} --output hard.json",
    "a symbolic link to the file": f"{TOP} --output soft.json",
    "the log of the database": f"top duckdb://v.duckdb --table views {ASKED} --domain 99 --output v.duckdb.wal",
    "a part of the folder": f"top parts {ASKED} --domain films.csv --output parts/one.parquet",
    "a part of the pattern": f"top 'parts/t*.parquet' {ASKED} --domain films.csv --output parts/two.parquet",
    "the list of items": f"{TOP} --output films.csv",
    "the ledger": f"{TOP} --ledger ledger.sqlite --dataset films --output ledger.sqlite",
    "the ledger by a URL": f"{TOP} --ledger sqlite:///ledger.sqlite --dataset films --output budget.json",
    "the log of the ledger": f"{TOP} --ledger ledger.sqlite --dataset films --output ledger.sqlite-wal",
    "files of Spark": f"top spark+local:// --table ./parts {ASKED} --domain films.csv --output part.json",
    "a list of Spark": f"top spark+local:// --table ./parts {ASKED} --domain table:./views.parquet --output hard.json",
    "comparisons": "rank views.parquet --winner film --loser viewer -k 1 --epsilon 1 --comparisons-per-pair 1 "
    "--max-degree 1 --output hard.json",
}


@pytest.mark.slow
def test_nothing_that_is_read_is_overwritten(full: Path) -> None:
    with nothing_changes(full):
        for what, line in READ.items():
            assert "must not be a file that is read or belongs to the ledger" in refused(line), what
    assert "0 of 9 spent" in run("ledger show films").stdout


UNKNOWN_FILES = {
    "a view": "top duckdb://views.duckdb --table ext",
    "a view by its longer name": "top duckdb://views.duckdb --table main.EXT",
    "a pattern with braces": "top spark+local:// --table './{views,others}.parquet'",
    "a pattern with brackets": "top spark+local:// --table './[^x]iews.parquet'",
}


def test_no_file_is_overwritten_where_those_that_are_read_are_not_known(folder: Path) -> None:
    with contextlib.closing(duckdb.connect("views.duckdb")) as connection:
        connection.execute("CREATE VIEW ext AS FROM 'views.parquet'; CREATE TABLE films AS FROM 'films.csv'")
    shutil.copy("views.parquet", "others.parquet")
    os.link("views.parquet", "views.json")
    with nothing_changes(folder):
        for what, line in UNKNOWN_FILES.items():
            said = refused(f"{line} {ASKED} --domain films.csv --output views.json")
            assert "--output" in said, what
            assert "name a new file" in said, what


@pytest.mark.slow
def test_of_a_view_a_new_file_is_written_and_of_a_table_an_old_one_too(full: Path) -> None:
    with contextlib.closing(duckdb.connect("v.duckdb")) as connection:
        connection.execute("CREATE VIEW ext AS FROM 'views.parquet'")
    assert run(f"top duckdb://v.duckdb --table ext {ASKED} --domain films.csv --output out.json").exit_code == 0
    assert run(f"top duckdb://v.duckdb --table views {ASKED} --domain films.csv --output out.json").exit_code == 0
    line = f"top duckdb://v.duckdb --table views {ASKED} --output out.json"
    assert "name a new file" in refused(f"{line} --domain table:ext")


def test_a_picture_does_not_take_the_place_of_what_it_shows(folder: Path) -> None:
    Path("counts.csv").write_text("count\n9\n5\n1\n")
    os.link("counts.csv", "counts.svg")
    os.symlink("views.parquet", "views.svg")
    os.symlink("films.csv", "films.svg")
    rows = "forecast views.parquet --item film --person viewer --domain films.csv -k 1 --epsilon 1"
    with nothing_changes(folder):
        for line in ("forecast counts.csv -k 1", "plan -k 1 --like counts.csv"):
            assert "--plot must not be a file that is read" in refused(f"{line} --plot counts.svg")
        for plot in ("views.svg", "films.svg"):
            assert "must not be a file that is read" in refused(f"{rows} --plot {plot}")


def test_figures_do_not_take_the_place_of_the_data(folder: Path) -> None:
    Path("reproduced/canonical").mkdir(parents=True)
    Path("netflix.csv.gz").write_bytes(b"data")
    os.symlink("../../netflix.csv.gz", "reproduced/canonical/figure-1.csv")
    with nothing_changes(folder):
        said = refused("reproduce canonical --figure 1 --quick --data .")
    assert "--out must not be a file of a data set" in said


@pytest.mark.slow
def test_an_output_beside_what_is_read_is_fine(full: Path) -> None:
    for name in ("parts/answer.json", "parts/answer.json", "answer.parquet.txt"):
        assert run(f"top parts {ASKED} --domain films.csv --output {name}").exit_code == 0
    assert len(json.loads(Path("parts/answer.json").read_text())["items"]) == 3


@pytest.mark.slow
@pytest.mark.parametrize("trouble", ["no room", "an interrupt"])
def test_a_file_that_cannot_be_written_to_the_end_stays_as_it_was(trouble: str, folder: Path) -> None:
    Path("out.json").write_text("last week")
    before = "import os, signal\nos.fsync = lambda _: signal.raise_signal(signal.SIGINT)" * (trouble == "an interrupt")
    limit = (lambda: resource.setrlimit(resource.RLIMIT_FSIZE, (100, 100))) if trouble == "no room" else None
    with nothing_changes(folder):
        finished = subprocess.run(
            program(f"{TOP} --output out.json", before), capture_output=True, text=True, check=False, preexec_fn=limit
        )
    assert finished.returncode == (2 if trouble == "no room" else 130), finished.stderr
    if trouble == "no room":
        assert len(json.loads(finished.stdout)["items"]) == 3
        assert "--output must be a file that can be written, got 'out.json'; the answer is on" in finished.stderr


def test_a_file_that_is_replaced_keeps_its_permissions_and_a_link_still_leads_to_it(folder: Path) -> None:
    Path("kept").mkdir()
    Path("kept/out.json").write_text("last week")
    Path("kept/out.json").chmod(0o640)
    os.symlink("kept/out.json", "link.json")
    Path("fresh.json").touch()
    for name in ("link.json", "new.json"):
        assert run(f"{TOP} --output {name}").exit_code == 0
        assert len(json.loads(Path(name).read_text())["items"]) == 3
    assert Path("link.json").is_symlink()
    assert stat.S_IMODE(os.stat("kept/out.json").st_mode) == 0o640
    assert os.stat("new.json").st_mode == os.stat("fresh.json").st_mode
    assert sorted(os.listdir("kept")) == ["out.json"]


@pytest.mark.slow
def test_standard_output_and_pipes_are_written_to(folder: Path) -> None:
    with Path("log").open("w") as log:
        log.write("so far\n")
        log.flush()
        subprocess.run(program(f"{TOP} --format csv --output /dev/stdout"), stdout=log, check=True)
    assert Path("log").read_text().splitlines()[:2] == ["so far", "item"]
    here, there = socket.socketpair()
    with here, there:
        subprocess.run(program(f"{TOP} --format csv --output /dev/fd/1"), stdout=there, check=True)
        assert here.recv(1 << 16).decode().splitlines()[0] == "item"
    with Path("films.csv").open() as only_read:
        assert subprocess.run(program(f"{TOP} --output /dev/fd/0"), stdin=only_read, check=False).returncode == 2
    os.mkfifo("pipe.csv")
    received: list[str] = []
    reader = threading.Thread(target=lambda: received.append(Path("pipe.csv").read_text()), daemon=True)
    reader.start()
    assert run(f"{TOP} --output pipe.csv").exit_code == 0
    reader.join(60)
    assert received[0].splitlines()[0] == "item"
    assert stat.S_ISFIFO(os.stat("pipe.csv").st_mode)


@pytest.mark.slow
def test_nothing_is_charged_for_an_answer_that_cannot_take_the_place_of_a_mounted_file(full: Path) -> None:
    apart = ["unshare", "--user", "--map-root-user", "--mount"]
    if sys.platform != "linux" or subprocess.run([*apart, "true"], check=False, capture_output=True).returncode:
        pytest.skip("mounting is not allowed here")
    Path("out 1.json").write_text("last week")
    command = program(f"{TOP} --ledger ledger.sqlite --dataset films --output 'out 1.json'")
    with nothing_changes(full):
        finished = subprocess.run(
            [*apart, "sh", "-c", 'mount --bind list.json "out 1.json" && exec "$@"', "sh", *command],
            capture_output=True,
            text=True,
            check=False,
        )
    assert (finished.returncode, finished.stdout) == (2, "")
    assert "and not a mount point" in finished.stderr
    assert "0 of 9 spent" in run("ledger show films").stdout


def test_an_ending_of_a_format_that_is_not_written_is_refused(folder: Path) -> None:
    with nothing_changes(folder):
        for name in ("out.parquet", "out.csv.gz", "out.JSONL", ".xlsx"):
            assert "--output must end in .json, .csv or .txt" in refused(f"{TOP} --output {name}")


@pytest.mark.slow
def test_an_ending_and_a_format_may_not_contradict_each_other(folder: Path) -> None:
    for form, name in (("csv", "out.json"), ("table", "out.json"), ("json", "out.CSV"), ("table", "out.csv")):
        with nothing_changes(folder):
            assert f"--output must have the ending of --format {form}" in refused(
                f"{TOP} --format {form} --output {name}"
            )
    starts = {"json": "{", "csv": "item\n", "table": "Private top 3"}
    for form, name in (
        ("json", "out.json"),
        ("csv", "out.txt"),
        ("json", "out.data"),
        ("table", "out"),
        ("csv", "out.18"),
    ):
        assert run(f"{TOP} --format {form} --output {name}").exit_code == 0
        assert Path(name).read_text().startswith(starts[form])


def test_a_name_that_is_all_ending_says_the_format_too(folder: Path) -> None:
    assert run(f"{TOP} --output .json").exit_code == 0
    assert len(json.loads(Path(".json").read_text())["items"]) == 3


def test_an_output_that_names_a_folder_is_refused(folder: Path) -> None:
    with nothing_changes(folder):
        assert "must be a file, not a folder; remove the / at the end" in refused(f"{TOP} --output out.json/")


@pytest.mark.parametrize(
    ("line", "said"),
    [
        (f"top views.parquet {ASKED} --output out.parquet --format csv", "--output must end in .json, .csv or .txt"),
        (f"top parts {ASKED} --output parts/out.parquet --format csv", "it would be read with the rows the next time"),
        (f"top 'f*.csv' {ASKED} --output found.csv", "it would be read with the rows the next time"),
        (
            f"top spark+local:// --table ./parts {ASKED} --output parts/out.json",
            "Spark",
        ),
    ],
    ids=["Parquet", "folder", "pattern", "Spark"],
)
def test_an_answer_is_not_put_where_it_would_be_read_as_rows(line: str, said: str, full: Path) -> None:
    with nothing_changes(full):
        assert said in refused(f"{line} --domain films.csv")
