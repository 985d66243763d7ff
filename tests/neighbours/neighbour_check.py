"""Whether a source answers as documented, for a table and for the table without any one person."""

from __future__ import annotations

import contextlib
import csv
import itertools
import math
import random
import tempfile
from collections import Counter
from collections.abc import Callable, Sequence
from fractions import Fraction
from pathlib import Path
from typing import Any
from unittest import mock

import neighbour_oracle as oracle
import polars
import pyarrow
import pyarrow.parquet
from hypothesis import HealthCheck, Phase, given, seed, settings
from hypothesis import strategies as st
from neighbour_oracle import Outcome, expected, people, without
from neighbour_sources import EMBEDDED, TYPES, Source, arrow_backed
from neighbour_tables import Case, Holder, cases

from dpselect.errors import DpSelectError
from dpselect.periods import Period
from dpselect.sources import UNKNOWN, Contribution, Domain, Groups, PeriodFilter, Unseen, counts, open_counts
from dpselect.sources.duckdb import embedded_engine


def try_case(source: Source, number: int) -> int:
    """Check the case of that number, with and without one person; return how many tables were read."""
    return _drawn(source, number, lambda *drawn: check(source, *drawn))


def try_agreement(number: int) -> int:
    """Check that four sources agree in the case of that number; return how many tables were read."""
    sources = random.Random(number).sample(EMBEDDED, 4)
    return _drawn(Common(sources), number, lambda case, _: check_agreement(sources, case))


def _drawn(holder: Holder, number: int, check_drawn: Callable[[Case, int], int]) -> int:
    """Draw the case of that number, check it, and let Hypothesis find a smaller one if it fails.

    Each number is a run of its own. Its first example is the smallest one and left out, its second one is random; in a
    longer run Hypothesis would make most examples out of earlier ones.
    """
    tables, smallest = 0, ""

    @seed(number)
    @settings(
        max_examples=2,
        database=None,
        deadline=None,
        phases=(Phase.generate, Phase.shrink),
        report_multiple_bugs=False,
        suppress_health_check=list(HealthCheck),
    )
    @given(cases(holder), st.integers(0, 11))
    def run(case: Case, leaver: int) -> None:
        nonlocal tables, smallest
        smallest = smallest or repr(case)
        if repr(case) != smallest:
            tables += check_drawn(case, leaver)

    run()
    return tables


def check(source: Source, case: Case, leaver: int) -> int:
    """Check a case, and the same without the person at place `leaver`; of the others, the documented scores only.

    Most tables of which no row counts are left out. Returns how many tables were read.
    """
    if case.variant and not oracle.usable_rows(source, case):
        return 0
    before, everybody = check_scores(source, case), people(source, case)
    for person in everybody:
        check_moves(case, expected(source, case), expected(source, without(source, case, person)))
    for person in everybody[leaver % max(1, len(everybody)) :][:1]:
        check_moves(case, before, check_scores(source, without(source, case, person)))
    return 2 if everybody else 1


def check_everybody(source: Source, case: Case) -> None:
    """Check a case and the same without each person in turn."""
    check_without(source, case, *people(source, case))


def check_without(source: Source, case: Case, *leavers: Any) -> None:
    """Check a case and the same without each of these people in turn."""
    before = check_scores(source, case)
    for person in leavers:
        check_moves(case, before, check_scores(source, without(source, case, person)))


def check_scores(source: Source, case: Case) -> Outcome:
    """Check that a source gives the scores as documented, or is refused with the words that are documented."""
    should, found = expected(source, case), observed(source, case)
    is_documented = should.scores is None and should.refusal in found.refusal
    if found.scores is None and case.question.where and source.conditions[case.question.where].fails:
        is_public = is_documented or found == observed(source, case.with_rows([]))
        assert is_public, "a condition is refused because of the rows"
    elif should.scores is None:
        assert is_documented, f"{source.name} does not refuse: {found}"
    else:
        assert found.scores is not None, f"{source.name} refuses: {found.refusal}"
        assert found.scores == should.scores, f"{source.name} gives {found.scores}, documented is {should.scores}"
    return found


def check_moves(case: Case, with_person: Outcome, without_person: Outcome) -> None:
    """Check that one person moves scores by no more than stated, and shows in nothing else."""
    if with_person.scores is None or without_person.scores is None:
        exceeds = case.question.domain == "number too small" and without_person.scores is not None
        assert exceeds or with_person == without_person, (
            "one person decides whether there is an answer, or what is said"
        )
        return
    low, high = oracle.bounds(case.question)
    both = with_person.scores.keys() & without_person.scores.keys()
    either = with_person.scores.keys() | without_person.scores.keys()
    moves = {place: with_person.scores.get(place, 0) - without_person.scores.get(place, 0) for place in either}
    for place, move in moves.items():
        # Of an unknown domain, what is not above 0 is not seen.
        is_seen = case.question.domain != "unknown" or place in both
        assert not is_seen or low <= move <= high, f"one person moves {place!r} by {move}"
    moved = Counter(group for (group, _), move in moves.items() if move != 0)
    most = case.question.max_items_per_person or math.inf
    assert max(moved.values(), default=0) <= most, "one person moves more items than stated"
    most = case.question.max_groups_per_person or math.inf
    assert len(moved) <= most, "one person moves more groups than stated"


def check_agreement(sources: Sequence[Source], case: Case) -> int:
    """Check that several sources answer the same, items by their text; return how many tables were read."""
    outcomes = [observed(source, case) for source in sources]
    by_text = [
        None
        if found.scores is None
        else {(group, oracle.shown(item)): score for (group, item), score in found.scores.items()}
        for found in outcomes
    ]
    assert all(found == by_text[0] for found in by_text), dict(zip(sources, outcomes, strict=True))
    return len(sources)


class Common:
    """What several sources hold and mean alike: text and whole numbers only, where one has no types."""

    def __init__(self, sources: Sequence[Source]) -> None:
        self._sources = sources
        untyped = any(source.as_text for source in sources)
        self.kinds = frozenset.intersection(*(source.kinds for source in sources)) - {"mixed"}
        self.kinds -= {"float", "decimal", "date", "boolean"} if untyped else set()
        self.hashes = frozenset.intersection(*(source.hashes for source in sources))
        self.numbers: frozenset[str] = frozenset()
        self.times = frozenset({"text"})
        self.tells_case = all(source.tells_case for source in sources)
        # Arithmetic fails for whole numbers, but not for the floats that text is read as.
        self.conditions = {sql: one for sql, one in sources[0].conditions.items() if not one.fails}

    def holds(self, kind: str, cell: Any) -> bool:
        """Tell whether all hold a cell alike: NaN is a null in pandas alone, and text files drop what is not text."""
        return cell == cell and all(one.holds(kind, cell) and one.is_readable((cell,)) for one in self._sources)


def observed(source: Source, case: Case) -> Outcome:
    """Return what a source gives just before the mechanism, in the words of an error if there is one."""
    question, table, charged = case.question, case.table, 0
    with tempfile.TemporaryDirectory() as name, contextlib.ExitStack() as stack:
        given_rows = source.write(Path(name), case)
        arguments = given_rows if isinstance(given_rows, dict) else {"table": given_rows}
        if source.beside is None:
            stack.enter_context(_one_engine())
        try:
            contribution = Contribution.of(
                None if question.clip is None else table.name("amount"),
                question.clip,
                table.name("share") if question.weighted else None,
                question.max_items_per_person,
            )
            found = stack.enter_context(
                open_counts(
                    **arguments,
                    item=table.name("item"),
                    person=table.name("person"),
                    domain=Domain.of(_domain(source, case, Path(name))),
                    k=1,
                    contribution=contribution,
                    groups=_groups(source, case, Path(name)),
                    key=oracle.KEY,
                    where=source.where(case),
                    during=question.period and PeriodFilter(table.name("day"), Period.of(question.period)),
                )
            )
            charged = 1
            if question.groups:
                assert found.groups == oracle.listed_groups(source, case), "groups are not in the order of the list"
            parts = found.pools(1000) if question.domain == "unknown" else _all(found, question.domain)
            return Outcome({(group, item): score for group, part in enumerate(parts) for item, score in _scores(*part)})
        except DpSelectError as error:
            return Outcome(None, str(error).replace(name, "…"), charged)


def _all(found: Any, domain: str) -> list[tuple[list[Any], list[Any]]]:
    """Return every item that is listed or seen, and their scores, for each group."""
    asked = []
    for scores, numbers in found.histograms():
        assert sum(numbers) == oracle.NUMBERS_OF_ITEMS.get(domain, sum(numbers)), "unseen items are not counted"
        # Most of a large number of items are such as nobody has; more are asked for than a table has rows.
        asked.append(
            [(score, index) for score, number in zip(scores, numbers, strict=True) for index in range(min(number, 50))]
        )
    places = [([score for score, _ in part], [index for _, index in part]) for part in asked]
    parts = []
    for items, (scores, _) in zip(found.chosen(places), places, strict=True):
        seen = [place for place, item in enumerate(items) if not isinstance(item, Unseen)]
        parts.append(([items[place] for place in seen], [scores[place] for place in seen]))
    return parts


def _scores(items: list[Any], scores: list[Any]) -> list[tuple[Any, Fraction]]:
    assert len(set(items)) == len(items), "an item comes twice"
    assert not any(str(item) == "-0.0" and not isinstance(item, str) for item in items), "a zero has a sign"
    return [(item, Fraction(score)) for item, score in zip(items, scores, strict=True)]


def _groups(source: Source, case: Case, folder: Path) -> Groups | None:
    """Return the groups: a list, a file or a table."""
    question, by = case.question, case.table.name("group")
    if not question.groups:
        return None
    labels = oracle.listed_groups(source, case)
    most = min(question.max_groups_per_person or len(labels), len(labels))
    given: Any = [*labels, None, labels[0]]
    if case.variant % 2:
        kind = pyarrow.string() if source.as_text else TYPES[case.table.kinds["group"]]
        given = pyarrow.table({"other": ["x"] * len(given), by: pyarrow.array(given, kind)})
    if case.variant % 4 == 1:
        (folder / "groups").mkdir()
        pyarrow.parquet.write_table(given, folder / "groups" / "groups.parquet")
        given = folder / "groups" / "groups.parquet"
    return Groups.of(by, given, most)


def _domain(source: Source, case: Case, folder: Path) -> Any:
    """Return the argument `domain`: a list, a file of one kind or another, a table or a number."""
    question, item, by_group = case.question, case.table.name("item"), oracle.listed(source, case)
    if by_group is None:
        return oracle.NUMBERS_OF_ITEMS.get(question.domain, UNKNOWN)
    if question.domain == "list":
        return [*by_group[0], None, by_group[0][0]]
    groups = oracle.listed_groups(source, case)
    places = [(label, groups[group]) for group in by_group for label in by_group[group]] if question.of_groups else []
    labels = [label for label, _ in places] or by_group[0]
    kinds = {role: pyarrow.string() if source.as_text else TYPES[kind] for role, kind in case.table.kinds.items()}
    items = pyarrow.table({item: pyarrow.array(labels, kinds["item"])})
    if places:
        items = items.append_column(
            case.table.name("group"), pyarrow.array([group for _, group in places], kinds["group"])
        )
    if question.domain == "table" and source.beside is not None:
        return source.beside(folder, items)
    if question.domain == "table":
        return [items, polars.from_arrow(items), arrow_backed(items)][case.variant % 3]
    (folder / "domain").mkdir()
    is_plain = not places and all(isinstance(label, str) and label.isprintable() for label in labels)
    path = folder / "domain" / ("items.csv" if is_plain and case.variant % 2 else "items.parquet")
    if path.suffix == ".parquet":
        pyarrow.parquet.write_table(items, path)
    else:
        with path.open("w", encoding="utf-8", newline="") as file:
            csv.writer(file, quoting=csv.QUOTE_ALL).writerows([[label] for label in (item, *labels)])
    return path


_TABLES_OF_AN_ENGINE = 100
_tables, _opened = itertools.count(), contextlib.ExitStack()
_engine: Any = None


def _one_engine() -> Any:
    """Let `open_counts` use one embedded DuckDB for many tables: to open it anew takes as long as to ask it."""
    global _engine
    if next(_tables) % _TABLES_OF_AN_ENGINE == 0:
        _opened.close()
        _engine = _opened.enter_context(embedded_engine())
        # For tables of a few rows, DuckDB's threads cost more than they save.
        _engine.connection.execute("SET threads = 1")
    return mock.patch.object(counts, "embedded_when_needed", return_value=lambda: _engine)
