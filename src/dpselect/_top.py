"""top(): from a table of people's rows to a release."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from dpselect._discover import top_of_discovered
from dpselect._numbers import seed_or_none
from dpselect.charging import ChargeTarget
from dpselect.errors import InvalidInput
from dpselect.mechanisms import (
    FOR_UNKNOWN_DOMAINS,
    Discovered,
    Mechanism,
    PooledDomain,
    UnknownDomain,
    automatic_for_unknown,
)
from dpselect.mechanisms.unknown import Pool
from dpselect.privacy.guarantee import WHERE_OTHERS_HAVE_THE_SAME
from dpselect.release import NUMBER, PUBLIC, UNKNOWN, Release, StatedDomain
from dpselect.request import ReleasePlan, ReleaseRequest, check_covers
from dpselect.sampling import BitSource, bit_source
from dpselect.scores import Scores
from dpselect.sources import (
    Contribution,
    Counts,
    Domain,
    Groups,
    HeldCounts,
    KeptCounts,
    PeriodFilter,
    check_not_rows,
    fresh_key,
    open_counts,
    public_name,
)

if TYPE_CHECKING:
    from dpselect.ledger import Ledger


def top(
    table: Any,
    *,
    item: str,
    person: str,
    k: int | None = None,
    epsilon: float | None = None,
    delta: float | None = None,
    domain: Any,
    domain_column: str | None = None,
    domain_header: bool = True,
    value: str | None = None,
    clip: tuple[float, float] | None = None,
    weight: str | None = None,
    max_items_per_person: int | None = None,
    pool: int | None = None,
    by: str | None = None,
    groups: Any = None,
    max_groups_per_person: int = 1,
    mechanism: str | Mechanism = "auto",
    options: Mapping[str, Any] | None = None,
    aim: str = "most",
    ordered: bool = False,
    lowest: bool = False,
    values: float | bool | None = None,
    protects: str = "one person",
    seed: int | None = None,
    table_name: str | None = None,
    where: str | None = None,
    time: str | None = None,
    period: str | None = None,
    unfinished: bool = False,
    ledger: Ledger | str | os.PathLike[str] | None = None,
    dataset: str | Sequence[str] | None = None,
    purpose: str = "",
    once: str | None = None,
    progress: Callable[[float | None], None] | None = None,
) -> Release:
    """Choose k items that many people have, without revealing whether any one person is in the data.

    Parameters
    ----------
    table
        The path of a CSV, JSON lines or Parquet file, an Ibis table, or a pandas, polars, Arrow or Spark table. Or,
        with `table_name`, an engine: duckdb://FILE, postgresql://…, spark://HOST:PORT or spark+local://
        (docs/engines.md).
    item, person
        The columns with the items and the people. Each person counts at most once per item; rows with a null in either
        column are dropped. A misspelt field of a JSON file is not detected: it reads as null in every row.
    k, epsilon, delta, mechanism, options, aim, ordered, values, seed
        As in `select`. With a `max_items_per_person`, "auto" may choose "laplace" or "gaussian".
    lowest
        Whether to choose the k items that the fewest people have, from a domain that lists the items. Listed items
        that nobody has take part, with a score of 0.
    domain
        The possible items, which are public: a list, array or table column, the path of a file that lists them,
        table:NAME in the engine of the rows, or their number. With a number, an item that nobody has is returned as
        `Unseen`, and a person who is the only one with an item is covered only if `max_items_per_person` and `delta`
        are given. Or
        `dpselect.UNKNOWN` if nobody can list the items: then it is private which items exist, a `delta` is needed, and
        the answer may have fewer than k items (docs/unknown.md). The table itself, or a column of it, is refused.
    domain_column, domain_header
        The column of a file or table that lists the items, if its name is not `item`; and domain_header=False for a
        text file without a header, in which every line is an item.
    value, clip
        Score an item by a sum over people instead of their number: each person adds the sum of their values for the
        item, clipped to (low, high).
    weight
        A column of numbers in [0, 1]: what a person adds is multiplied by their largest weight for the item.
    max_items_per_person
        Keep at most that many items of each person, chosen at random; "laplace" and "gaussian" need it.
    pool
        For an unknown domain, how many of the highest scores are considered; by default 10 k.
    by, groups
        A column of groups, such as countries, and the public list of the groups: k items are chosen for each of them,
        from the rows of that group. The list is a list, array or table column, the path of a file or table:NAME with a
        column of that name. Rows with another group or a null there are dropped. A domain file or table that also has
        the column `by` lists the items of each group. See docs/groups.md.
    max_groups_per_person
        In how many of these groups each person counts: groups in which they have rows, chosen at random. With 1, all
        groups together cost what one of them costs; otherwise epsilon and delta are shared by that many groups.
        `max_items_per_person` holds within each group.
    protects
        The unit of protection, if `person` names something other than people: "one household", say.
    table_name, where
        The table of an engine, and a condition on one row in the SQL of the engine. Do not choose the condition by
        looking at the private rows.
    time, period, unfinished
        Read only the rows of one period: the column with dates or times, and a day ("2026-11-18"), an ISO week
        ("2026-W46") or a month ("2026-11"). Times are in UTC, also those without a zone; cells that are no time are
        dropped. The release then protects "one person's week", say. A period that is not over is refused unless
        `unfinished`, and a data set with periods refuses releases without one (docs/ledger.md).
    ledger, dataset, purpose
        As in `select`; the release is charged before any row is read.
    once
        As in `select`. The question is what is asked of which columns, the condition, the items that the domain lists,
        and the name of the table or file, without its folder; not the rows.
    progress
        Called every tenth of a second while the engine counts, with the share that is done, or None if unknown.

    Returns
    -------
    The release; with groups, its `groups` is a dict group → Release, in the order of the list.

    Raises
    ------
    InvalidInput, BudgetExceeded
        As in `select`; both are raised before any row is read, unless the error depends on the rows.
    SourceError
        If the ledger, a file or an engine fails. What fails after the charge stays charged.

    Examples
    --------
    >>> import dpselect as dps
    >>> import pandas
    >>> rows = pandas.DataFrame({"film": ["Heat", "Heat", "Up"], "viewer": ["ann", "bob", "ann"]})
    >>> dps.top(rows, item="film", person="viewer", k=2, epsilon=1.0, domain=["Heat", "Up", "Her"], seed=1).k
    2
    >>> views = rows.assign(country=["DE", "FR", "DE"])
    >>> asked = {"item": "film", "person": "viewer", "domain": ["Heat", "Up", "Her"], "by": "country"}
    >>> charts = dps.top(views, k=1, epsilon=1.0, groups=["DE", "FR"], seed=1, **asked)
    >>> {country: len(chart.items) for country, chart in charts.groups.items()}
    {'DE': 1, 'FR': 1}
    """
    question = TopQuestion.of(
        k=k,
        epsilon=epsilon,
        delta=delta,
        domain=domain,
        domain_column=domain_column,
        domain_header=domain_header,
        value=value,
        clip=clip,
        weight=weight,
        max_items_per_person=max_items_per_person,
        pool=pool,
        by=by,
        groups=groups,
        max_groups_per_person=max_groups_per_person,
        mechanism=mechanism,
        options=options,
        aim=aim,
        ordered=ordered,
        lowest=lowest,
        values=values,
        protects=protects,
        time=time,
        period=period,
        unfinished=unfinished,
    )
    target = ChargeTarget.of(ledger, dataset, purpose, once, seed=seed, period=question.period_name)
    rows = TopRows(table, item=item, person=person, table_name=table_name, where=where)
    return release_top(question, rows, target, bit_source(seed_or_none(seed)), progress=progress)


@dataclass(frozen=True)
class TopRows:
    """Where people's rows are, and which of them are read; see `top`."""

    table: Any
    item: str
    person: str
    table_name: str | None = None
    where: str | None = None


def release_top(
    question: TopQuestion,
    rows: TopRows,
    target: ChargeTarget,
    bits: BitSource,
    *,
    progress: Callable[[float | None], None] | None = None,
    kept: KeptCounts | None = None,
) -> Release:
    """Return the release of a settled question: charged before any row is read, then drawn and published.

    `kept` may hold the counts of earlier questions; the release is the same.
    """
    possible, contribution, grouping, during = question.domain, question.contribution, question.groups, question.during
    plan = question.plan
    check_not_rows(rows.table, rows.table_name, possible)
    if grouping is not None:
        check_not_rows(rows.table, rows.table_name, grouping.listed)
    if target.ledger is not None and plan.guarantee.neighbours.startswith(WHERE_OTHERS_HAVE_THE_SAME):
        raise InvalidInput(
            "domain",
            possible.number,
            "must list the items if a ledger is charged: with a number alone, a person who alone has an item is not "
            "covered; list the items, or give max_items_per_person and delta",
        )
    if isinstance(plan.mechanism, Discovered):
        return top_of_discovered(
            plan,
            target,
            contribution,
            bits,
            rows.table,
            item=rows.item,
            person=rows.person,
            table_name=rows.table_name,
            where=rows.where,
            during=during,
            progress=progress,
        )
    if possible.number is not None:
        plan.mechanism.check_size(possible.number)
    opened = open_counts if kept is None else kept.open_counts
    with opened(
        rows.table,
        item=rows.item,
        person=rows.person,
        domain=possible,
        k=plan.mechanism.k,
        contribution=contribution,
        groups=grouping,
        key="" if contribution.max_items_per_person is None and grouping is None else fresh_key(bits),
        table_name=rows.table_name,
        where=rows.where,
        during=during,
        progress=progress,
    ) as counts:
        # Everything that needs no row is checked, and no row is read yet.
        charge = target.charge(
            plan,
            secure=bits.secure,
            asked=lambda: {
                "command": "top",
                "table": public_name(rows.table, rows.table_name),
                "item": rows.item,
                "person": rows.person,
                "value": contribution.value,
                "weight": contribution.weight,
                "where": rows.where,
                "time": None if during is None else during.column,
                "unfinished": during is not None and during.unfinished,
                "domain": counts.domain_digest(),
                "by": None if grouping is None else grouping.by,
                "groups": counts.groups_digest(),
            },
        )
        if charge.stored is not None:
            return charge.plan.answer_of(charge.stored)
        releases = (_from_pools if possible.unknown else _from_histograms)(charge.plan, counts, bits)
    if counts.groups is None:
        return charge.published(*releases)
    return charge.published(Release.of_groups(dict(zip(counts.groups, releases, strict=True))))


@dataclass(frozen=True)
class TopQuestion:
    """What is asked of people's rows, and the plan of its release; all of it is public, and no row is read."""

    domain: Domain
    contribution: Contribution
    groups: Groups | None
    during: PeriodFilter | None
    plan: ReleasePlan

    @property
    def period_name(self) -> str | None:
        """The name of the period that is read, if there is one."""
        return None if self.during is None else self.during.period.name

    @classmethod
    def of(
        cls,
        *,
        k: int | None,
        epsilon: float | None,
        domain: Any,
        delta: float | None = None,
        domain_column: str | None = None,
        domain_header: bool = True,
        value: str | None = None,
        clip: tuple[float, float] | None = None,
        weight: str | None = None,
        max_items_per_person: int | None = None,
        pool: int | None = None,
        by: str | None = None,
        groups: Any = None,
        max_groups_per_person: int = 1,
        mechanism: str | Mechanism = "auto",
        options: Mapping[str, Any] | None = None,
        aim: str = "most",
        ordered: bool = False,
        lowest: bool = False,
        values: float | bool | None = None,
        protects: str = "one person",
        time: str | None = None,
        period: str | None = None,
        unfinished: bool = False,
    ) -> TopQuestion:
        """Check these arguments of `top`, and choose mechanism and noise."""
        during = PeriodFilter.of(time, period, unfinished=unfinished)
        contribution = Contribution.of(value, clip, weight, max_items_per_person)
        possible = Domain.of(domain, column=domain_column, header=domain_header)
        grouping = Groups.of(by, groups, max_groups_per_person)
        if possible.unknown and isinstance(mechanism, str) and mechanism == "auto":
            # Discovery lists items once for all rows, so that with groups the tests of "restricted" decide in each.
            plain_counts = contribution.counts and grouping is None
            mechanism = automatic_for_unknown(k, contribution.max_items_per_person, pool, counts=plain_counts)
        if grouping is not None and (mechanism == Discovered.name or isinstance(mechanism, Discovered)):
            raise InvalidInput(
                "mechanism",
                Discovered.name,
                "must be another one with groups, such as restricted; or publish the items first",
            )
        plan = ReleaseRequest(
            mechanism=_mechanism_for(possible, mechanism, pool),
            k=k,
            epsilon=epsilon,
            delta=delta,
            sensitivity=contribution.sensitivity,
            ordered=ordered,
            aim=aim,
            values=values,
            protects=protects,
            max_items_per_person=contribution.max_items_per_person,
            number_of_items=possible.number,
            pool=pool,
            options=options,
            lowest=lowest,
            period=None if during is None else during.period,
            groups_per_person=None if grouping is None else grouping.most,
            details=contribution.describe() | ({} if grouping is None else grouping.describe()),
        ).plan()
        if isinstance(mechanism, Mechanism):
            check_covers(mechanism, contribution.sensitivity, contribution.max_items_per_person, values=values)
        return cls(possible, contribution, grouping, during, plan)


def _mechanism_for(domain: Domain, mechanism: str | Mechanism, pool: int | None) -> str | Mechanism:
    """Return the mechanism; refuse one that does not fit the domain."""
    if not domain.unknown:
        if pool is not None:
            raise InvalidInput(
                "pool", pool, "must be left out unless the domain is unknown; leave it out, or give domain=UNKNOWN"
            )
        return mechanism
    if isinstance(mechanism, str) and mechanism in FOR_UNKNOWN_DOMAINS:
        return mechanism
    if isinstance(mechanism, UnknownDomain):
        stated = mechanism.pool if isinstance(mechanism, PooledDomain) else None
        if pool not in (None, stated):
            raise InvalidInput("pool", pool, f"must be {stated}, as the mechanism object states; leave it out")
        return mechanism
    raise InvalidInput(
        "mechanism",
        mechanism.name if isinstance(mechanism, Mechanism) else mechanism,
        f"must be auto, {', '.join(FOR_UNKNOWN_DOMAINS)} or a dpselect.Restricted(inner=…) on an unknown domain",
    )


def _from_histograms(plan: ReleasePlan, counts: Counts | HeldCounts, bits: BitSource) -> list[Release]:
    """Return the release of each group of a known domain; without groups, one."""
    drawn = [plan.draw(plan.seen(Scores.from_histogram(*histogram)), bits) for histogram in counts.histograms()]
    chosen = counts.chosen([(plan.scores_of(members).tolist(), members.indexes.tolist()) for members, _ in drawn])
    stated = NUMBER if plan.request.number_of_items is not None else PUBLIC
    return [
        plan.release(items, plan.scores_of(members), bits, StatedDomain(size, stated), noisy)
        for items, (members, noisy), size in zip(chosen, drawn, counts.sizes, strict=True)
    ]


def _from_pools(plan: ReleasePlan, counts: Counts | HeldCounts, bits: BitSource) -> list[Release]:
    """Return the release of each group of an unknown domain, from the items of its pool and the one after them."""
    mechanism = plan.mechanism
    assert isinstance(mechanism, PooledDomain)
    assert isinstance(counts, Counts)  # those of unknown domains are not kept
    size = mechanism.pool_size
    releases = []
    for items, scores in counts.pools(size + 1):
        pool = Pool.of_rows(scores[:size], size, scores[size] if len(scores) > size else 0)
        members = mechanism.draw_from(pool, bits)
        chosen = [items[place] for place in members.positions().tolist()]
        releases.append(plan.release(chosen, members.values, bits, StatedDomain(None, UNKNOWN)))
    return releases
