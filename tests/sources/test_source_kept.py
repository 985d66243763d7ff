"""Counts that are kept in memory between questions: the same answers, and never those of other rows."""

from __future__ import annotations

import contextlib
import gc
import logging
import os
import tracemalloc
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pyarrow
import pyarrow.parquet
import pytest

from dpselect._top import TopQuestion, TopRows, release_top
from dpselect.charging import ChargeTarget
from dpselect.errors import InvalidInput, SourceError
from dpselect.sampling import bit_source
from dpselect.sources import UNKNOWN, Contribution, Counts, Domain, Groups, HeldCounts, KeptCounts, kept, open_counts

pytestmark = pytest.mark.slow

PRIVATE = "qprivateq"
ROWS = [
    f"{film},{PRIVATE}{number},{'DE' if number % 3 else 'FR'}"
    for number in range(12)
    for film in "ABCDEFG"[number % 5 :]
]


@pytest.fixture(autouse=True)
def files_count_as_settled(monkeypatch: pytest.MonkeyPatch, request: pytest.FixtureRequest) -> None:
    """Keep the counts of files that were just written, except where a test is about these."""
    if "fresh" not in request.node.name:
        monkeypatch.setattr(kept, "SETTLED_SECONDS", 0)


@pytest.fixture
def rows(tmp_path: Path) -> Path:
    (tmp_path / "rows.csv").write_text("\n".join(["film,viewer,country", *ROWS, f"{PRIVATE},{PRIVATE}0,DE"]) + "\n")
    (tmp_path / "films.csv").write_text("film\n" + "".join(f"{film}\n" for film in "ABCDEFGHIJKL"))
    (tmp_path / "in-countries.csv").write_text("film,country\nA,DE\nH,DE\nB,DE\nC,FR\nA,FR\n")
    (tmp_path / "countries.csv").write_text("country\nDE\nPL\nFR\n")
    return tmp_path / "rows.csv"


@pytest.fixture
def opened(monkeypatch: pytest.MonkeyPatch) -> list[Any]:
    """Record the tables that are opened."""
    found: list[Any] = []

    @contextlib.contextmanager
    def recorded(table: Any, **asked: Any) -> Iterator[Counts]:
        found.append(table)
        with open_counts(table, **asked) as counts:
            yield counts

    monkeypatch.setattr(kept, "open_counts", recorded)
    return found


def asked_of(rows: Path, *, films: str = "films.csv", grouped: bool = False, most: int | None = None) -> dict[str, Any]:
    """Return the arguments of `open_counts`."""
    return {
        "item": "film",
        "person": "viewer",
        "domain": Domain.of(str(rows.with_name(films))),
        "k": 2,
        "contribution": Contribution.of(None, None, None, most),
        "groups": Groups.of("country", str(rows.with_name("countries.csv")), 1) if grouped else None,
        "key": "0" * 32,
    }


def read(cache: KeptCounts, rows: Path, **asked: Any) -> Any:
    """Read the histograms through a cache."""
    with cache.open_counts(str(rows), **{**asked_of(rows), **asked}) as counts:
        return counts.histograms()


def everything(counts: Counts | HeldCounts) -> Any:
    """Return all that a release can learn: the histograms, and the item at each place."""
    histograms = counts.histograms()
    places = []
    for scores, numbers in histograms:
        pairs = [(score, index) for score, number in zip(scores, numbers, strict=True) for index in range(number)]
        places.append(([score for score, _ in pairs], [index for _, index in pairs]))
    return (
        histograms,
        counts.chosen(places),
        counts.sizes,
        counts.groups,
        counts.domain_digest(),
        counts.groups_digest(),
    )


@pytest.mark.parametrize(
    "asked",
    [{}, {"grouped": True}, {"grouped": True, "films": "in-countries.csv"}, {"most": 2}],
    ids=["films", "groups", "films of each group", "bounded"],
)
def test_memory_answers_what_the_engine_answers(rows: Path, opened: list[Any], asked: dict[str, Any]) -> None:
    if asked.get("films") == "in-countries.csv":
        rows.with_name("countries.csv").write_text("country\nDE\nFR\n")
    arguments = {**asked_of(rows, **asked), "k": 1}
    with open_counts(str(rows), **arguments) as counts:
        expected = everything(counts)
    cache = KeptCounts()
    for _ in range(3):
        with cache.open_counts(str(rows), **arguments) as found:
            assert everything(found) == expected
    assert len(opened) == 1


def test_items_that_are_numbers_stay_numbers(tmp_path: Path) -> None:
    table = pyarrow.table({"film": pyarrow.array([7, 7, 9], pyarrow.int32()), "viewer": ["a", "b", "a"]})
    pyarrow.parquet.write_table(table, tmp_path / "rows.parquet")
    pyarrow.parquet.write_table(pyarrow.table({"film": [5, 6, 7, 8, 9]}), tmp_path / "films.parquet")
    arguments = asked_of(tmp_path / "rows.parquet", films="films.parquet")
    with open_counts(str(tmp_path / "rows.parquet"), **arguments) as counts:
        expected = everything(counts)
    with KeptCounts().open_counts(str(tmp_path / "rows.parquet"), **arguments) as found:
        assert everything(found) == expected
        assert isinstance(found, HeldCounts)


def test_the_same_bits_give_the_same_release(rows: Path, opened: list[Any]) -> None:
    question = TopQuestion.of(
        k=2,
        epsilon=1.0,
        domain=str(rows.with_name("films.csv")),
        by="country",
        groups=str(rows.with_name("countries.csv")),
    )
    where = TopRows(str(rows), item="film", person="viewer")
    cache = KeptCounts()
    for seed in range(5):
        plain, *cached = [
            release_top(question, where, ChargeTarget.of(None, None, ""), bit_source(seed), kept=each).to_dict()
            for each in (None, cache, cache)
        ]
        assert cached == [plain, plain]
    assert len(opened) == 1


@pytest.mark.parametrize("changed", ["rows.csv", "films.csv", "countries.csv"])
def test_a_changed_file_is_read_again(rows: Path, opened: list[Any], changed: str) -> None:
    cache, file = KeptCounts(), rows.with_name(changed)
    before = read(cache, rows, groups=asked_of(rows, grouped=True)["groups"])
    text = file.read_text()
    file.write_text(text + {"rows.csv": "L,new,PL\n", "films.csv": "M\n", "countries.csv": "CZ\n"}[changed])
    after = read(cache, rows, groups=asked_of(rows, grouped=True)["groups"])
    assert before != after
    assert len(opened) == 2


def test_a_change_shows_although_size_and_time_are_the_same(rows: Path) -> None:
    cache, status = KeptCounts(), rows.stat()
    assert read(cache, rows) == read(cache, rows)
    rows.write_text(rows.read_text().replace("\nA,", "\nL,"))
    os.utime(rows, ns=(status.st_atime_ns, status.st_mtime_ns))
    assert (rows.stat().st_size, rows.stat().st_mtime_ns) == (status.st_size, status.st_mtime_ns)
    with open_counts(str(rows), **asked_of(rows)) as counts:
        assert read(cache, rows) == counts.histograms()


def test_a_file_that_changes_while_it_is_read_is_not_kept(rows: Path, opened: list[Any]) -> None:
    cache = KeptCounts()
    with cache.open_counts(str(rows), **asked_of(rows)) as counts:
        before = counts.histograms()
        rows.write_text(rows.read_text() + "L,new,PL\n")
    assert read(cache, rows) != before
    assert len(opened) == 2


def test_a_fresh_file_is_not_kept(rows: Path, opened: list[Any]) -> None:
    cache = KeptCounts()
    assert read(cache, rows) == read(cache, rows)
    assert len(opened) == 2


def test_a_vanished_file_is_the_usual_error(rows: Path) -> None:
    cache = KeptCounts()
    read(cache, rows)
    rows.unlink()
    with pytest.raises(InvalidInput, match="there is no such file"):
        read(cache, rows)


def test_another_question_is_not_answered_by_these_counts(rows: Path, opened: list[Any]) -> None:
    cache = KeptCounts()
    plain = read(cache, rows)
    assert read(cache, rows, where="country = 'DE'") != plain
    assert read(cache, rows, **{"contribution": Contribution.of(None, None, None, 1)}) != plain
    assert len(opened) == 3
    assert read(cache, rows, k=12) == plain
    with pytest.raises(InvalidInput, match="must be at most 12"):
        read(cache, rows, k=13)
    assert len(opened) == 3


@pytest.mark.parametrize(
    ("where", "times"),
    [
        ("country IN ('DE', 'PL') AND lower(film) <> 'x'", 1),
        ("CAST(country AS VARCHAR) LIKE 'D%'", 1),
        ("country = 'DE' AND current_date > DATE '2020-01-01'", 2),
        ("country = 'DE' AND today() > DATE '2020-01-01'", 2),
        ("country = 'DE' AND age(DATE '2020-01-01') > INTERVAL 3 DAYS", 2),
    ],
)
def test_a_condition_that_may_hold_for_other_rows_tomorrow_is_asked_each_time(
    rows: Path, opened: list[Any], where: str, times: int
) -> None:
    cache = KeptCounts()
    assert read(cache, rows, where=where) == read(cache, rows, where=where)
    assert len(opened) == times


def test_only_files_and_lists_of_files_are_kept(rows: Path, opened: list[Any]) -> None:
    cache = KeptCounts()
    table = pyarrow.table({"film": ["A", "B"], "viewer": ["ann", "bob"]})
    for _ in range(2):
        assert read(cache, rows, domain=Domain.of(["A", "B"]))
        with cache.open_counts(table, **asked_of(rows)) as counts:
            assert isinstance(counts, Counts)
        with cache.open_counts(str(rows), **{**asked_of(rows), "domain": Domain.of(UNKNOWN)}) as counts:
            assert isinstance(counts, Counts)
    assert len(opened) == 6


def test_memory_is_bounded(rows: Path, opened: list[Any], monkeypatch: pytest.MonkeyPatch) -> None:
    cache, conditions = KeptCounts(), ["country = 'DE'", "country = 'FR'", "country = 'PL'"]
    with KeptCounts().open_counts(str(rows), **asked_of(rows)) as counts:
        counts.histograms()
        assert isinstance(counts, HeldCounts)
        monkeypatch.setattr(kept, "MOST_BYTES", 2 * counts.size_in_memory)
    opened.clear()
    for where in conditions:
        read(cache, rows, where=where)
    assert len(opened) == 3
    read(cache, rows, where=conditions[1])
    read(cache, rows, where=conditions[2])
    assert len(opened) == 3
    read(cache, rows, where=conditions[0])  # the one that was asked longest ago
    assert len(opened) == 4
    monkeypatch.setattr(kept, "MOST_BYTES", 0)
    assert read(cache, rows) == read(cache, rows)
    assert len(opened) == 6


def test_the_size_of_counts_is_not_less_than_what_they_take(rows: Path) -> None:
    many = rows.with_name("many.csv")
    many.write_text("country\n" + "".join(f"{number}\n" for number in range(5000)))
    groups, cache = Groups.of("country", str(many), 1), KeptCounts()
    read(cache, rows, groups=groups)  # what the library keeps for all questions
    gc.collect()
    tracemalloc.start()
    try:
        with cache.open_counts(str(rows), **{**asked_of(rows), "groups": groups}, where="country <> 'PL'") as counts:
            counts.histograms()
        assert isinstance(counts, HeldCounts)
        gc.collect()
        assert tracemalloc.get_traced_memory()[0] < counts.size_in_memory
    finally:
        tracemalloc.stop()


def test_the_size_of_counts_does_not_depend_on_the_rows(rows: Path) -> None:
    """It decides which counts are forgotten first, which shows in the time of an answer."""
    sizes = set()
    for where in (None, "film = 'A'", "viewer = 'nobody'"):
        with KeptCounts().open_counts(str(rows), **asked_of(rows), where=where) as counts:
            assert isinstance(counts, HeldCounts)
            [(scores, _)] = counts.histograms()
            sizes.add((len(scores), counts.size_in_memory))
    assert len({distinct for distinct, _ in sizes}) > 1
    assert len({size for _, size in sizes}) == 1


def test_a_list_that_is_too_long_stays_in_the_engine(rows: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    expected = read(KeptCounts(), rows)
    monkeypatch.setattr(kept, "MOST_ITEMS", 11)
    with KeptCounts().open_counts(str(rows), **asked_of(rows)) as counts:
        assert isinstance(counts, Counts)
        assert counts.histograms() == expected


def test_digests_read_no_row_and_what_was_not_read_is_not_kept(rows: Path, opened: list[Any]) -> None:
    cache = KeptCounts()
    for _ in range(2):
        with cache.open_counts(str(rows), **asked_of(rows)) as counts:
            assert (len(counts.domain_digest()), counts.groups_digest()) == (64, None)
            assert isinstance(counts, HeldCounts)
            assert not counts.was_read
    assert len(opened) == 2


def test_a_failed_read_is_not_kept(rows: Path, opened: list[Any]) -> None:
    cache = KeptCounts()
    with cache.open_counts(str(rows), **asked_of(rows)) as counts:
        rows.unlink()
        with pytest.raises(SourceError):
            counts.histograms()
    rows.write_text("film,viewer\nA,ann\n")
    assert read(cache, rows) == [([1, 0], [1, 11])]
    assert len(opened) == 2


def test_nothing_private_is_shown_or_logged(rows: Path, caplog: pytest.LogCaptureFixture) -> None:
    cache = KeptCounts()
    with caplog.at_level(logging.DEBUG, logger="dpselect"):
        for _ in range(2):
            with cache.open_counts(str(rows), **asked_of(rows)) as counts:
                counts.histograms()
    assert PRIVATE not in repr(cache) + repr(counts) + caplog.text
    assert not caplog.records
