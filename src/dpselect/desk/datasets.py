"""A data set of the desk: its public facts, and its questions turned into releases.

Everything but `release`, `discover` and `true_scores` uses declared facts alone: the configuration, the schema, the
public lists of items and groups, and the ledger. No row is read for them.
"""

from __future__ import annotations

import json
import re
from collections import deque
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from datetime import UTC, date, datetime, timedelta
from functools import lru_cache
from itertools import zip_longest
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

import dpselect
from dpselect._top import TopQuestion, TopRows, release_top
from dpselect.charging import REDUCED, ChargeTarget
from dpselect.desk.padding import leaves_at
from dpselect.desk.questions import BudgetState, DataSetState, PastRelease, Question, QuestionsAllowed
from dpselect.errors import InvalidInput, KeyReused, SourceError, plain
from dpselect.ledger import Entry, Ledger, OnceCharge
from dpselect.periods import UNITS, Period, utc_now
from dpselect.request import ReleasePlan
from dpselect.sampling import bit_source
from dpselect.sources import (
    Contribution,
    Counts,
    Domain,
    Groups,
    KeptCounts,
    PeriodFilter,
    open_counts,
    read_columns,
)

if TYPE_CHECKING:
    from dpselect.desk.config import DataSetConfig

UNKNOWN = "unknown"
LOOKED = "parameters chosen after looking at the rows"
USUAL_PEOPLE = 50_000
"""People in generated data if their number is not stated."""

MOST_GENERATED = 100_000
MOST_ANSWERED = 100_000
"""Items of an answer, in all its groups: the service holds many answers in memory at the same time."""

_ITEMS_PER_PERSON = 5
_HISTORY = 100
_SOME_PERIOD = {"day": "2020-01-01", "week": "2020-W01", "month": "2020-01"}
_MADE_UP_GROUPS = ["group 1", "group 2", "group 3"]


class DataSet:
    """One data set of the desk.

    Parameters
    ----------
    name : str
        Its name in URLs.
    config : DataSetConfig
        What the curator states about it.
    ledger : Ledger
        The ledger that holds its budget.
    kept : KeptCounts
        The counts of earlier questions, which all data sets of the desk share.
    """

    def __init__(self, name: str, config: DataSetConfig, ledger: Ledger, kept: KeptCounts) -> None:
        self.name = name
        self.config = config
        self.ledger = ledger
        self._kept = kept
        self.budget = config.budget or name
        self._sizes: dict[str, int | None] = {}
        self._numbers_of_groups: dict[str, int] = {}
        self._on_their_way: set[str] = set()
        self._left: deque[str] = deque(maxlen=1000)

    def check(self) -> None:
        """Open the source and the public lists once for each thing that may be asked about; no private row is read.

        Raises
        ------
        InvalidInput, SourceError
            If a column, list, condition or address cannot be used.
        """
        items = list(self.config.items)
        # Together, since an engine such as Spark takes long to open.
        for item, by, name in zip_longest(items, self.config.groups, self.config.filters):
            with self._opened(self._trial(item or items[0], by=by, filter=name)):
                pass
        for column in items:
            self.size_of(column)
        for column in self.config.groups:
            self._number_of_groups(column)
        for name in self.config.like:
            try:
                self.like(name)
            except SourceError:
                raise InvalidInput("like", name, "its file must have a column 'count' of numbers") from None

    def state(self, analyst: str) -> DataSetState:
        """Return the public facts."""
        config = self.config
        sizes = {column: self.size_of(column) for column in config.items}
        return DataSetState(
            name=self.name,
            columns=list(config.items),
            domain_size=sizes,
            budget=self._budget_state(self.budget),
            analyst_budget=self._budget_state(self._analyst_account(analyst)),
            questions=QuestionsAllowed(
                items={
                    column: {"source": UNKNOWN if config.items[column] == UNKNOWN else "list", "size": size}
                    for column, size in sizes.items()
                },
                filters=list(config.filters),
                groups={column: self._number_of_groups(column) for column in config.groups},
                max_groups_per_person=config.max_groups_per_person,
                period=config.every,
                values=True,
                max_items_per_person=config.max_items_per_person,
                like=list(config.like),
                people=config.people,
            ),
            protects=config.protects,
            described=True,
            answer_after=config.answer_after,
            looked=config.looked,
        )

    def size_of(self, column: str) -> int | None:
        """Return the public number of items of a column; None if nobody can list them."""
        listed = self.config.items[column]
        if listed == UNKNOWN:
            return None
        if listed.startswith("table:"):
            return self._size_in_engine(column)
        return len(public_list(listed, column))

    def question(self, asked: Question) -> TopQuestion:
        """Return the settled question; refuse what the configuration does not offer, before any row is read."""
        settled = self._settled(asked)
        size = self.size_of(asked.item)
        if size is not None and asked.k > size:
            raise InvalidInput("k", asked.k, f"must be at most {size} (the number of items in the list)")
        groups = 1 if asked.by is None else self._number_of_groups(asked.by)
        if asked.k * groups > MOST_ANSWERED:
            text = f"must be at most {MOST_ANSWERED // groups}, since an answer has at most {MOST_ANSWERED} items"
            raise InvalidInput("k", asked.k, f"{text} in its {groups} groups")
        return settled

    def release(self, asked: Question, analyst: str, key: str) -> dpselect.Release:
        """Answer a question once under the analyst's key, charged to the data set and to the analyst.

        If the source or a public list fails, the answer that is stored under the key is still returned.
        """
        also = self._analyst_account(analyst)
        arguments = self._arguments(asked)
        rows = TopRows(self.config.source, **{name: arguments[name] for name in _OF_THE_SOURCE})
        target = ChargeTarget.of(
            self.ledger,
            [self.budget] if also is None else [self.budget, also],
            self.purpose(_in_short(asked), asked.purpose),
            once_key(analyst, key),
            period=asked.period,
        )
        settled = self._settled(asked)
        try:
            return release_top(self.question(asked), rows, target, bit_source(None), kept=self._kept)
        except (InvalidInput, SourceError) as error:
            stored = None if isinstance(error, KeyReused) else self._stored(asked, settled.plan, analyst, key)
            if stored is None:
                raise
            return stored

    @contextmanager
    def leaving(self, analyst: str, key: str) -> Iterator[None]:
        """Keep an answer out of the history for the block, at whose end it leaves."""
        once = once_key(analyst, key)
        self._on_their_way.add(once)
        try:
            yield
            self._left.append(once)
        finally:
            self._on_their_way.remove(once)

    def was_charged(self, analyst: str, key: str) -> bool:
        """Whether a question under this key was charged, answered or not."""
        return self.ledger.find(self.budget, once_key(analyst, key)) is not None

    def history(self, analyst: str | None) -> list[PastRelease]:
        """Return the releases of an analyst from this data set, or everybody's under its budget, the latest first."""
        entries = [
            entry
            for entry in reversed(self.ledger.entries(self.budget))
            if analyst is None or ((entry.once or "").startswith(f"{analyst}:") and self._is_of_this(entry))
        ]
        found = [
            (entry, self.ledger.find(self.budget, entry.once) if entry.once else None) for entry in entries[:_HISTORY]
        ]
        return [self._past(entry, charge) for entry, charge in found]

    def past(self, analyst: str, key: str) -> PastRelease | None:
        """Return the release of an analyst from this data set under a key."""
        found = self.ledger.find(self.budget, once_key(analyst, key))
        return None if found is None or not self._is_of_this(found.entry) else self._past(found.entry, found)

    def generated(self, asked: Question) -> tuple[dpselect.Release, int]:
        """Answer a question on generated rows of the declared shape; return the answer and the number of people."""
        self.question(asked)
        people = min(self.config.people or USUAL_PEOPLE, MOST_GENERATED)
        arguments = self._arguments(asked)
        for name in ("where", "table_name"):
            arguments.pop(name, None)
        size = self.size_of(asked.item)
        listed = self.config.items[asked.item]
        names = (
            [f"item {number + 1}" for number in range(size or 1000)]
            if size is None or listed.startswith("table:")
            else list(public_list(listed, asked.item))
        )
        rows = _generated_rows(
            people,
            names,
            item=asked.item,
            person=self.config.person,
            groups=None if asked.by is None else (asked.by, self._groups(asked.by)),
            time=None if asked.period is None else (str(self.config.time), Period.of(asked.period)),
        )
        if size is not None:
            arguments["domain"] = names
        if asked.by is not None:
            arguments["groups"] = self._groups(asked.by)
        return dpselect.top(rows, **arguments), people

    def true_scores(self, asked: Question) -> list[tuple[list[Any], list[int]]]:
        """Return the true histogram of scores of each group: private, for the curator alone."""
        with self._opened(asked) as counts:
            if self.config.items[asked.item] == UNKNOWN:
                return [(scores, [1] * len(scores)) for _, scores in counts.pools(10 * asked.k + 1)]
            return counts.histograms()

    @contextmanager
    def _opened(self, asked: Question) -> Iterator[Counts]:
        """Open the source for a question; no row is read yet."""
        arguments = self._arguments(asked)
        with open_counts(
            self.config.source,
            item=asked.item,
            person=self.config.person,
            domain=Domain.of(arguments["domain"]),
            k=asked.k,
            contribution=Contribution.of(None, None, None, self.config.max_items_per_person),
            groups=Groups.of(asked.by, arguments["groups"], arguments["max_groups_per_person"]),
            key="0" * 32,
            table_name=self.config.table,
            where=arguments["where"],
            during=PeriodFilter.of(arguments["time"], asked.period, unfinished=False),
        ) as counts:
            yield counts

    def like(self, name: str) -> list[float]:
        """Return the counts of a look-alike that the configuration names."""
        if name not in self.config.like:
            raise _not_offered("like", name, self.config.like)
        try:
            table = read_columns(self.config.like[name], ["count"], numbers=["count"], argument="like")
        except InvalidInput:
            raise SourceError(f"like: the file of {name!r} must have a column 'count' of numbers") from None
        counts: list[float] = table["count"].to_pylist()
        return [count for count in counts if count is not None]

    def _settled(self, asked: Question) -> TopQuestion:
        """Return the settled question; no list is read."""
        arguments = self._arguments(asked)
        if not asked.purpose.isprintable():
            raise InvalidInput("purpose", asked.purpose, "must have printable characters only")
        return _settled(**{name: arguments[name] for name in arguments if name not in _OF_THE_SOURCE})

    def _arguments(self, asked: Question) -> dict[str, Any]:
        """Return the arguments of `top`; columns, filters and groups are looked up by name."""
        config = self.config
        if asked.item not in config.items:
            raise _not_offered("item", asked.item, config.items)
        if asked.filter is not None and asked.filter not in config.filters:
            raise _not_offered("filter", asked.filter, config.filters)
        if asked.by is not None and asked.by not in config.groups:
            raise _not_offered("by", asked.by, config.groups)
        self.check_period(asked.period)
        listed = config.items[asked.item]
        return {
            "item": asked.item,
            "person": config.person,
            "k": asked.k,
            "epsilon": asked.epsilon,
            "delta": asked.delta,
            "domain": dpselect.UNKNOWN if listed == UNKNOWN else listed,
            "max_items_per_person": config.max_items_per_person,
            "by": asked.by,
            "groups": None if asked.by is None else config.groups[asked.by],
            "max_groups_per_person": config.max_groups_per_person if asked.by is not None else 1,
            "aim": asked.aim,
            "ordered": asked.ordered,
            "values": asked.values,
            "protects": config.protects,
            "table_name": config.table,
            "where": None if asked.filter is None else config.filters[asked.filter],
            "time": None if asked.period is None else config.time,
            "period": asked.period,
        }

    def check_period(self, period: str | None) -> None:
        """Refuse a question without a period if the data set has periods, and one with a period if it has none."""
        every = self.config.every
        if period is not None and every is None:
            raise InvalidInput("period", period, "must be left out: this data set has no periods")
        if period is None and every is not None:
            raise InvalidInput("period", plain("none"), f"must name a {every}, as the budget is one per period")
        if period is not None:
            found = Period.of(period)
            if found.unit != every:
                raise InvalidInput("period", period, f"must be a {every}, such as {UNITS[str(every)].example}")
            if utc_now().date() < found.end:
                raise InvalidInput(
                    "period", period, f"must be a {every} that is over; it ends before {found.end}, in UTC"
                )

    def purpose(self, question: str, stated: str = "") -> str:
        """Return the note for the ledger: what the analyst says it is for, what is asked, and if rows were looked at.

        The name of the data set stands before what is asked, since data sets can share a budget.
        """
        return "; ".join(filter(None, (stated, f"{self.name}: {question}", LOOKED if self.config.looked else "")))

    def _stored(self, asked: Question, plan: ReleasePlan, analyst: str, key: str) -> dpselect.Release | None:
        """Return the answer that is stored under a key if the entry of its charge tells that it is to this question."""
        found = self.ledger.find(self.budget, once_key(analyst, key))
        if found is None or found.answer is None:
            return None
        parameters = dict(found.entry.parameters)
        if reduced := parameters.pop(REDUCED, None):
            plan = plan.with_budget(**reduced)
        told = (*_noted(found.entry)[1:], parameters)
        if told != (self.name, _in_short(asked), json.loads(json.dumps(plan.describe()))):
            return None
        return plan.answer_of(found.answer)

    def _is_of_this(self, entry: Entry) -> bool:
        """Whether an entry is of this data set, or does not say of which of those that share its budget."""
        return _noted(entry)[1] in (self.name, "")

    def _past(self, entry: Entry, charge: OnceCharge | None) -> PastRelease:
        analyst, colon, key = (entry.once or "").partition(":")
        analyst, key = (analyst, key) if colon else ("", "")  # a key of the command line has no analyst
        answer = None if charge is None or self._is_on_its_way(charge) else charge.answer
        purpose, dataset, question = _noted(entry)
        return PastRelease(
            key=key,
            analyst=analyst,
            time=entry.time.isoformat(),
            purpose=purpose,
            dataset=dataset,
            question=question,
            guarantee=entry.guarantee.to_dict(),
            parameters=dict(entry.parameters),
            answered=answer is not None,
            looked=entry.purpose.endswith(LOOKED),
            release=answer,
        )

    def _is_on_its_way(self, charge: OnceCharge) -> bool:
        """Whether an answer is stored and has not left yet: when it was stored can depend on the rows.

        If another process was asked, the time at which it leaves is counted from the charge.
        """
        if charge.entry.once in self._left:  # a repetition may be on its way
            return False
        if charge.entry.once in self._on_their_way:
            return True
        if charge.answered_at is None or not self.config.answer_after:
            return False
        elapsed = (charge.answered_at - charge.entry.time).total_seconds()
        since = (datetime.now(UTC) - charge.entry.time).total_seconds()
        return since < leaves_at(elapsed, self.config.answer_after)

    def _analyst_account(self, analyst: str) -> str | None:
        """Return the account of an analyst's own budget, if there is one."""
        name = f"{self.budget}/{analyst}"
        with suppress(InvalidInput):
            return self.ledger.account(name).dataset
        return None

    def _budget_state(self, account: str | None) -> BudgetState | None:
        if account is None:
            return None
        statement = self.ledger.statement(account, last=0)
        agreed = statement.account
        return BudgetState(
            epsilon=agreed.total.epsilon,
            delta=agreed.total.delta,
            spent=statement.spent.epsilon,
            remaining=statement.remaining.epsilon,
            remaining_delta=statement.remaining.delta,
            every=agreed.every or None,
            lifetime=None if agreed.lifetime is None else agreed.lifetime.epsilon,
        )

    def budgets(self, analyst: str, period: str | None) -> list[BudgetState]:
        """Return what a release would be charged to: the data set and, if there is one, the analyst's own budget.

        With a period, the amounts are those of that period.
        """
        found = []
        for account in (self.budget, self._analyst_account(analyst)):
            state = self._budget_state(account)
            if account is not None and state is not None:
                if period is not None:
                    spent, left = self.ledger.spent(account, period), self.ledger.remaining(account, period)
                    amounts = {"spent": spent.epsilon, "remaining": left.epsilon, "remaining_delta": left.delta}
                    state = state.model_copy(update=amounts)
                found.append(state)
        return found

    def _groups(self, by: str) -> list[Any]:
        """Return the public groups; made-up ones for a table, which only the engine can read."""
        listed = self.config.groups[by]
        return _MADE_UP_GROUPS if listed.startswith("table:") else list(public_list(listed, by))

    def _number_of_groups(self, by: str) -> int:
        """Return the number of public groups; a table is counted once."""
        if not self.config.groups[by].startswith("table:"):
            return len(self._groups(by))
        if by not in self._numbers_of_groups:
            with self._opened(self._trial(next(iter(self.config.items)), by=by)) as counts:
                self._numbers_of_groups[by] = len(counts.groups or ())
        return self._numbers_of_groups[by]

    def _size_in_engine(self, column: str) -> int | None:
        """Return the number of items that a public table lists, counted once."""
        if column not in self._sizes:
            with self._opened(self._trial(column)) as counts:
                self._sizes[column] = counts.size
        return self._sizes[column]

    def _trial(self, item: str, **asked: Any) -> Question:
        """Return a question with which the source can be opened."""
        return Question(item=item, k=1, epsilon=1.0, period=_SOME_PERIOD.get(self.config.every or ""), **asked)


_OF_THE_SOURCE = {"item", "person", "table_name", "where"}


def _in_short(asked: Question) -> str:
    """Return what is asked in a few words."""
    parts = [asked.item, asked.by and f"by {asked.by}", asked.filter and f"where {asked.filter}", asked.period]
    return " ".join(filter(None, parts))


def _noted(entry: Entry) -> tuple[str, str, str]:
    """Return from a note what the analyst said, the data set ("" if it is not named), and what was asked.

    An entry without a key is not from the desk, and says neither.
    """
    parts = [part for part in entry.purpose.split("; ") if part != LOOKED]
    last = parts.pop() if entry.once and parts else ""
    named = re.fullmatch(r"([A-Za-z0-9_-]{1,60}): (.*)", last)
    return "; ".join(parts), named[1] if named else "", named[2] if named else last


_settled = lru_cache(maxsize=256, typed=True)(TopQuestion.of)
"""Each question is asked for several times: for its estimate, its checks and its release."""


def once_key(analyst: str, key: str) -> str:
    """Return the ledger's key of an analyst's key."""
    return f"{analyst}:{key}"


def public_list(path: str, column: str) -> tuple[str, ...]:
    """Return the distinct items of a public file, read again when the file changes."""
    try:
        found = Path(path).stat()
        return _listed(path, column, found.st_mtime_ns, found.st_size)
    except (OSError, InvalidInput):
        text = f"the public list {Path(path).name} cannot be read: it must be a file with the column {column!r}"
        raise SourceError(text) from None


@lru_cache(maxsize=64)
def _listed(path: str, column: str, modified: int, size: int) -> tuple[str, ...]:
    from dpselect.sources.files import FileTable

    name = FileTable.at("domain", path, public=True).only_column(column)
    items = read_columns(path, [name], argument="domain")[name].to_pylist()
    return tuple(dict.fromkeys(str(item) for item in items if item is not None))


def _not_offered(field: str, given: str, offered: Mapping[str, Any]) -> InvalidInput:
    names = ", ".join(offered) or "none is offered"
    return InvalidInput(field, given, f"must be a name that the data set offers ({names})")


def _generated_rows(
    people: int,
    names: list[str],
    *,
    item: str,
    person: str,
    groups: tuple[str, list[Any]] | None,
    time: tuple[str, Period] | None,
) -> Any:
    """Return a table of made-up rows: the r-th item is popular ∝ 1/(r + 5)^0.9, in an order drawn at random."""
    import pyarrow

    random = np.random.default_rng()
    rows = people * _ITEMS_PER_PERSON
    popularity = (np.arange(1, len(names) + 1) + 5.0) ** -0.9
    order = random.permutation(len(names))
    chosen = order[random.choice(len(names), size=rows, p=popularity / popularity.sum())]
    persons = random.integers(people, size=rows)
    columns: dict[str, Any] = {
        person: persons,
        item: pyarrow.DictionaryArray.from_arrays(chosen.astype("int32"), names).cast(pyarrow.string()),
    }
    if groups is not None:
        home = random.integers(len(groups[1]), size=people)[persons]
        listed = [str(group) for group in groups[1]]
        columns[groups[0]] = pyarrow.DictionaryArray.from_arrays(home.astype("int32"), listed).cast(pyarrow.string())
    if time is not None:
        days = (time[1].end - time[1].start) // timedelta(days=1)
        columns[time[0]] = np.datetime64(date.isoformat(time[1].start)) + random.integers(days, size=rows)
    return pyarrow.table(columns)
