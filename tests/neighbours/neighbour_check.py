"""Whether a source answers as documented, for a table and for the table without any one person."""

from __future__ import annotations

import contextlib
import math
import tempfile
from collections.abc import Callable, Iterator, Sequence
from fractions import Fraction
from pathlib import Path
from typing import Any
from unittest import mock

import pyarrow
import pyarrow.parquet
from hypothesis import HealthCheck, Phase, given, seed, settings
from hypothesis import strategies as st
from neighbour_oracle import (
    KEY,
    NUMBERS_OF_ITEMS,
    Outcome,
    bounds,
    expected,
    listed,
    people,
    shown,
    usable_rows,
    without,
)
from neighbour_sources import TYPES, DuckDbFile, Source
from neighbour_tables import Case, Holder, cases

from dpselect.errors import DpSelectError
from dpselect.sources import UNKNOWN, Contribution, Domain, Unseen, counts, open_counts
from dpselect.sources.embedded import embedded_engine

PHASES = (Phase.generate, Phase.shrink)
Check = Callable[[Case, int], int]


def draw_and_check(holders: Sequence[Holder], number: int, check: Check) -> int:
    """Draw the case of that number, check it, and let Hypothesis find a smaller one if it fails.

    Each number is a run of its own, of which the first example is the smallest one, which is left out, and the second is
    random: within a long run Hypothesis would make most examples out of earlier ones. Returns how many tables were read.
    """
    tables = 0
    smallest: list[str] = []

    @seed(number)
    @settings(max_examples=2, database=None, deadline=None, phases=PHASES, suppress_health_check=list(HealthCheck))
    @given(cases(holders), st.integers(0, 11))
    def run(case: Case, leaver: int) -> None:
        nonlocal tables
        if not smallest:
            smallest.append(repr(case))
        if smallest[0] != repr(case):
            tables += check(case, leaver)

    run()
    return tables


def check(source: Source, case: Case, leaver: int = 0) -> int:
    """Check a case and the same without one person, the one at place `leaver`; return how many tables were read.

    Without every other person, only the plain scores are compared: they are those of the source. A table of which no
    row counts is mostly left out.
    """
    if case.variant and not usable_rows(source, case):
        return 0
    before = check_scores(source, case)
    everybody = people(source, case)
    for person in everybody:
        check_moves(case, expected(source, case), expected(source, without(source, case, person)))
    if not everybody:
        return 1
    neighbour = without(source, case, everybody[leaver % len(everybody)])
    check_moves(case, before, check_scores(source, neighbour))
    return 2


def check_scores(source: Source, case: Case) -> Outcome:
    """Check that a source gives the scores as documented, or is refused with the words that are documented."""
    should, found = expected(source, case), observed(source, case)
    if _may_be_refused(source, case) and found.scores is None:
        assert found.refusal == observed(source, case.with_rows([])).refusal, "a refusal that depends on the rows"
    elif should.scores is None:
        assert should.refusal in found.refusal, f"{source.name} does not refuse: {found}"
    else:
        assert found.scores is not None, f"{source.name} refuses: {found.refusal}"
        assert found.scores == should.scores, f"{source.name} gives {found.scores}, documented is {should.scores}"
    return found


def check_everybody(source: Source, case: Case) -> None:
    """Check a case and the same without each person in turn."""
    before = check_scores(source, case)
    for person in people(source, case):
        check_moves(case, before, check_scores(source, without(source, case, person)))


def check_agreement(sources: Sequence[Source], case: Case) -> int:
    """Check that several sources answer the same, items by their text; return how many tables were read."""
    outcomes = [observed(source, case) for source in sources]
    for source, found in zip(sources, outcomes, strict=True):
        agrees = _by_text(found) == _by_text(outcomes[0])
        assert agrees, f"{source.name} gives {found}, {sources[0].name} gives {outcomes[0]}"
    return len(sources)


def _by_text(outcome: Outcome) -> Any:
    return None if outcome.scores is None else {shown(item): score for item, score in outcome.scores.items()}


class Common:
    """What several sources hold and mean alike: without types, text and whole numbers only."""

    def __init__(self, sources: Sequence[Source]) -> None:
        self._sources = sources
        self.kinds = frozenset.intersection(*(source.kinds for source in sources))
        self.kinds -= {"float", "decimal", "date", "mixed"} if any(source.as_text for source in sources) else {"mixed"}
        self.tells_case = all(source.tells_case for source in sources)
        self.hashes = frozenset.intersection(*(source.hashes for source in sources))
        # Where one column is text, amounts are floats there and whole numbers elsewhere, which fail otherwise.
        conditions = sources[0].conditions
        self.conditions = {name: conditions[name] for name in conditions if not conditions[name].fails}

    def holds(self, kind: str, cell: Any) -> bool:
        """Tell whether all hold a cell; NaN is a null in pandas, and so is not the same everywhere."""
        return cell == cell and all(source.holds(kind, cell) for source in self._sources)


def check_moves(case: Case, with_person: Outcome, without_person: Outcome) -> None:
    """Check that one person moves scores by no more than stated, and shows in nothing else."""
    if with_person.scores is None or without_person.scores is None:
        exceeded = case.question.domain == "number too small" and without_person.scores is not None
        assert exceeded or with_person == without_person, "one person decides whether there is an answer"
        return
    low, high = bounds(case.question)
    moved = 0
    for item in with_person.scores.keys() | without_person.scores.keys():
        change = with_person.scores.get(item, Fraction(0)) - without_person.scores.get(item, Fraction(0))
        moved += change != 0
        if case.question.domain == "unknown" and item not in with_person.scores.keys() & without_person.scores.keys():
            continue  # an item that is not above 0 is not seen
        assert low <= change <= high, f"one person moves {item!r} by {change}"
    assert moved <= (case.question.max_items_per_person or math.inf), "one person moves more items than stated"


def _may_be_refused(source: Source, case: Case) -> bool:
    return case.question.where is not None and source.conditions[case.question.where].fails


def observed(source: Source, case: Case) -> Outcome:
    """Return what a source gives just before the mechanism, in the words of an error if there is one."""
    question, table = case.question, case.table
    shared = contextlib.nullcontext() if isinstance(source, DuckDbFile) else one_engine()
    with tempfile.TemporaryDirectory() as name, source.opened(Path(name), case) as arguments, shared:
        try:
            contribution = Contribution.of(
                None if question.clip is None else table.name("amount"),
                question.clip,
                table.name("share") if question.weighted else None,
                question.max_items_per_person,
            )
            with open_counts(
                **arguments,
                item=table.name("item"),
                person=table.name("person"),
                domain=Domain.of(_domain(source, case, Path(name))),
                k=1,
                contribution=contribution,
                key=KEY,
                where=source.where(case),
            ) as found:
                return Outcome(_highest(found) if question.domain == "unknown" else _all(found, question.domain))
        except DpSelectError as error:
            return Outcome(None, str(error).replace(name, "…"))


def _highest(found: Any) -> dict[Any, Fraction]:
    items, scores = found.highest(1000)
    return _scores(items, scores)


def _all(found: Any, domain: str) -> dict[Any, Fraction]:
    """Return the score of every item that is listed or seen."""
    scores, numbers = found.histogram()
    stated = NUMBERS_OF_ITEMS.get(domain)
    assert stated is None or sum(numbers) == stated, "unseen items are not counted"
    places: list[tuple[Any, int]] = []
    for score, number in zip(scores, numbers, strict=True):
        # Of a number of items, most are such as nobody has; one more than the table can have is asked for.
        places += [(score, index) for index in range(min(number, 50))]
    items = found.fetch([score for score, _ in places], [index for _, index in places])
    seen = [(item, score) for item, (score, _) in zip(items, places, strict=True) if not isinstance(item, Unseen)]
    return _scores([item for item, _ in seen], [score for _, score in seen])


def _scores(items: list[Any], scores: list[Any]) -> dict[Any, Fraction]:
    assert len(set(items)) == len(items), "an item comes twice"
    assert not any(str(item) in ("-0.0", "-0") and not isinstance(item, str) for item in items), "a zero has a sign"
    return {item: Fraction(score) for item, score in zip(items, scores, strict=True)}


def _domain(source: Source, case: Case, folder: Path) -> Any:
    question, labels = case.question, listed(source, case)
    if question.domain == "unknown":
        return UNKNOWN
    if question.domain in NUMBERS_OF_ITEMS:
        return NUMBERS_OF_ITEMS[question.domain]
    assert labels
    if question.domain == "list":
        return [*labels, None, labels[0]]
    kind = pyarrow.string() if source.as_text else TYPES[case.table.kinds["item"]]
    items = pyarrow.table({case.table.name("item"): pyarrow.array(labels, kind)})
    if question.domain == "table":
        return source.listing(folder, items, case.variant)
    path = folder / "domain" / "items.parquet"
    path.parent.mkdir()
    pyarrow.parquet.write_table(items, path)
    return path


class OneEngine:
    """An embedded DuckDB for many tables: to open it anew takes as long as to ask it."""

    def __init__(self) -> None:
        self._stack = contextlib.ExitStack()
        self._engine: Any = None
        self._tables = 0

    @contextlib.contextmanager
    def __call__(self) -> Iterator[None]:
        """Let `open_counts` use it for the time of the block; what it has read before fades after a while."""
        if self._tables % 100 == 0:
            self._stack.close()
            self._engine = self._stack.enter_context(embedded_engine())
        self._tables += 1
        with mock.patch.object(counts, "embedded_when_needed", lambda stack, progress: lambda: self._engine):
            yield


one_engine = OneEngine()
