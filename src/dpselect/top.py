"""top(): from a table of people's rows to a release."""

from __future__ import annotations

import os
from collections.abc import Callable
from typing import Any

from dpselect._numbers import seed_or_none
from dpselect.errors import InvalidInput
from dpselect.mechanisms import FOR_UNKNOWN_DOMAINS, Mechanism, UnknownDomain
from dpselect.mechanisms.pool import Pool
from dpselect.plan import Plan, plan_release
from dpselect.privacy.ledger import Ledger, reservation
from dpselect.release import NUMBER, PUBLIC, UNKNOWN, Release, StatedDomain
from dpselect.sampling import BitSource, bit_source
from dpselect.scores import Scores
from dpselect.sources import Contribution, Counts, Domain, check_not_rows, fresh_key, open_counts


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
    mechanism: str | Mechanism = "auto",
    ordered: bool = False,
    values: float | None = None,
    protects: str = "one person",
    seed: int | None = None,
    table_name: str | None = None,
    where: str | None = None,
    ledger: Ledger | str | os.PathLike[str] | None = None,
    dataset: str | None = None,
    purpose: str = "",
    progress: Callable[[float | None], None] | None = None,
) -> Release:
    """Choose k items that many people have, so that no one person shows in the answer.

    table: the path of a CSV, JSON lines or Parquet file, an Ibis table, or a pandas, polars, Arrow or Spark table. Or,
        with `table_name`, an engine: duckdb://FILE, postgresql://…, spark://HOST:PORT or spark+local://
        (docs/engines.md).
    where: a condition on one row, in the SQL of the engine; it must not be chosen by looking at the private rows.
    item, person: the columns that say what and who; where `person` names something else than people, say what it
        stands for with `protects`. Each person counts at most once per item; rows with a null in
        either column are dropped. A misspelt field of a JSON file cannot be noticed: it is read as null in every row.
    domain: the items that could be answered, which are public: a list, array or table column, the path of a file that
        lists them, table:NAME in the engine of the rows, or their number. Of a number, items that nobody has are
        answered as `Unseen`, and people who alone have an item are covered only with `max_items_per_person` and a
        `delta`: the answer can name the item. Or `dpselect.UNKNOWN`, where nobody can list the items: then even which
        items exist is private, a `delta` is needed, and the answer may have fewer than k items (docs/unknown.md). The
        table itself, or a column of it, is refused.
    domain_column, domain_header: which column of a file or table lists the items, if it is not called like `item`; and
        domain_header=False for a text file without a header, of which every line is an item.
    value, clip: score an item by the sum over people, not by their number: of the sum of each person's values for it,
        clipped to (low, high). weight: a column of numbers in [0, 1]; what a person adds is multiplied by the largest
        of their weights for the item.
    max_items_per_person: keep that many of each person's items, a random choice; "gaussian" needs it.
    pool: of an unknown domain, how many of the highest scores are looked at; 10 k if left out.
    progress: called every tenth of a second while the engine counts, with the share done, or None if it is not known.
    ledger, dataset, purpose: as in `select`; the release is charged before any row is read.
    Other arguments: as in `select`.

    >>> import dpselect as dps
    >>> import pandas
    >>> rows = pandas.DataFrame({"film": ["Heat", "Heat", "Up"], "viewer": ["ann", "bob", "ann"]})
    >>> dps.top(rows, item="film", person="viewer", k=2, epsilon=1.0, domain=["Heat", "Up", "Her"], seed=1).k
    2
    """
    contribution = Contribution.of(value, clip, weight, max_items_per_person)
    possible = Domain.of(domain, column=domain_column, header=domain_header)
    check_not_rows(table, table_name, possible)
    plan = plan_release(
        _for_domain(mechanism, possible, pool),
        k=k,
        epsilon=epsilon,
        delta=delta,
        sensitivity=contribution.sensitivity,
        ordered=ordered,
        values=values,
        protects=protects,
        max_items_per_person=contribution.max_items_per_person,
        number_of_items=possible.number,
        pool=pool,
        details=contribution.describe(),
    )
    chosen = plan.mechanism
    _check_covered(chosen, contribution)
    if ledger is not None and plan.guarantee.neighbours != "add or remove":
        raise InvalidInput(
            "domain",
            possible.number,
            "of a number, a ledger can only charge what covers everybody: give max_items_per_person and delta, or list "
            "the items",
        )
    reserved = reservation(ledger, dataset, purpose)
    bits = bit_source(seed_or_none(seed))
    if possible.number is not None:
        chosen.check_size(possible.number)

    with open_counts(
        table,
        item=item,
        person=person,
        domain=possible,
        k=chosen.k,
        contribution=contribution,
        key="" if contribution.max_items_per_person is None else fresh_key(bits),
        table_name=table_name,
        where=where,
        progress=progress,
    ) as counts:
        # All that needs no row is checked, and no row is read yet.
        plan = plan.charge(reserved, secure=bits.secure)
        if possible.unknown:
            return _from_the_top(plan, counts, bits)
        members = plan.mechanism.draw(Scores.from_histogram(*counts.histogram()), bits)
        items = counts.fetch(members.values.tolist(), members.indexes.tolist())
        stated = StatedDomain(counts.size, PUBLIC if possible.number is None else NUMBER)
    return plan.release(items, members.values, bits, stated)


def _for_domain(mechanism: str | Mechanism, domain: Domain, pool: int | None) -> str | Mechanism:
    """Return the mechanism, "auto" on an unknown domain being "restricted"; refuse one that does not fit the domain."""
    if not domain.unknown:
        if pool is not None:
            raise InvalidInput("pool", pool, "only unknown domains have one: leave it out, or say domain=UNKNOWN")
        return mechanism
    if isinstance(mechanism, str) and mechanism == "auto":
        return "restricted"
    if isinstance(mechanism, str) and mechanism in FOR_UNKNOWN_DOMAINS:
        return mechanism
    if isinstance(mechanism, UnknownDomain):
        if pool not in (None, mechanism.pool):
            raise InvalidInput("pool", pool, f"the mechanism object says {mechanism.pool}; leave it out")
        return mechanism
    raise InvalidInput(
        "mechanism",
        mechanism.name if isinstance(mechanism, Mechanism) else mechanism,
        f"on an unknown domain auto, {', '.join(FOR_UNKNOWN_DOMAINS)} or a dpselect.Restricted(inner=…) is needed",
    )


def _from_the_top(plan: Plan, counts: Counts, bits: BitSource) -> Release:
    """Return the release of an unknown domain, from the rows of the pool and the one after them."""
    mechanism = plan.mechanism
    assert isinstance(mechanism, UnknownDomain)
    size = mechanism.pool_size
    items, scores = counts.highest(size + 1)
    pool = Pool.of_rows(scores[:size], size, scores[size] if len(scores) > size else 0)
    members = mechanism.draw_from(pool, bits)
    chosen = [items[place] for place in members.positions().tolist()]
    return plan.release(chosen, members.values, bits, StatedDomain(None, UNKNOWN))


def _check_covered(chosen: Mechanism, contribution: Contribution) -> None:
    """Refuse a mechanism object whose noise does not cover what one person can do here."""
    needed, stated = contribution.sensitivity, chosen.sensitivity
    relies_on = getattr(chosen, "max_items_per_person", None)
    covered = stated.spread >= needed.spread
    if relies_on is not None:
        covered = stated.low <= needed.low and needed.high <= stated.high
    if not covered:
        raise InvalidInput("mechanism", stated, f"a mechanism with sensitivity={needed!r} is needed")
    if relies_on is not None and relies_on != contribution.max_items_per_person:
        raise InvalidInput(
            "max_items_per_person",
            contribution.max_items_per_person,
            f"the noise of the mechanism relies on {relies_on}; give the same here, so that no person has more items",
        )
