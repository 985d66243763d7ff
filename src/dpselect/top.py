"""top(): from a table of people's rows to a release."""

from __future__ import annotations

import os
from collections.abc import Callable
from typing import Any

from dpselect.errors import InvalidInput
from dpselect.mechanisms import Gaussian, Mechanism
from dpselect.plan import plan_release
from dpselect.privacy.ledger import Ledger, reservation
from dpselect.privacy.sensitivity import COUNTS
from dpselect.release import Release
from dpselect.sampling import bit_source
from dpselect.scores import Scores
from dpselect.sources import Domain, open_counts
from dpselect.validation import seed_or_none


def top(
    table: Any,
    *,
    item: str,
    person: str,
    k: int | None = None,
    epsilon: float | None = None,
    delta: float | None = None,
    domain: Any,
    mechanism: str | Mechanism = "auto",
    ordered: bool = False,
    values: float | None = None,
    protects: str = "one person",
    seed: int | None = None,
    ledger: Ledger | str | os.PathLike[str] | None = None,
    dataset: str | None = None,
    purpose: str = "",
    progress: Callable[[float | None], None] | None = None,
) -> Release:
    """Choose k items that many people have, so that no one person shows in the answer.

    table: the path of a CSV, JSON lines or Parquet file, an Ibis table, or a pandas, polars or Arrow table.
    item, person: the columns that say what and who; where `person` names something else than people, say what it
        stands for with `protects`. Each person counts at most once per item; rows with a null in
        either column are dropped. A misspelt field of a JSON file cannot be noticed: it is read as null in every row.
    domain: the items that could be answered, which are public: a list, array or table column, the path of a file that
        lists them, or their number. Of a number, items that nobody has are answered as `Unseen`.
    progress: called every tenth of a second while the engine counts, with the share done, or None if it is not known.
    ledger, dataset, purpose: as in `select`; the release is charged before any row is read.
    Other arguments: as in `select`.

    >>> import dpselect as dps
    >>> import pandas
    >>> rows = pandas.DataFrame({"film": ["Heat", "Heat", "Up"], "viewer": ["ann", "bob", "ann"]})
    >>> dps.top(rows, item="film", person="viewer", k=2, epsilon=1.0, domain=["Heat", "Up", "Her"], seed=1).k
    2
    """
    plan = plan_release(
        mechanism,
        k=k,
        epsilon=epsilon,
        delta=delta,
        sensitivity=COUNTS,
        ordered=ordered,
        values=values,
        protects=protects,
    )
    chosen = plan.mechanism
    if chosen.sensitivity.spread < COUNTS.spread:
        raise InvalidInput(
            "mechanism", chosen.sensitivity, "counting people needs a mechanism with sensitivity=dpselect.COUNTS"
        )
    if isinstance(chosen, Gaussian):
        raise InvalidInput(
            "mechanism",
            chosen.name,
            "top does not yet bound how many items a person has, on which its noise relies; bound them yourself and "
            "use select on the counts",
        )
    reserved = reservation(ledger, dataset, purpose)
    bits = bit_source(seed_or_none(seed))
    possible = Domain.of(domain)
    if possible.number is not None:
        chosen.check_size(possible.number)

    def charge() -> None:
        nonlocal plan
        plan = plan.charge(reserved, secure=bits.secure)

    with open_counts(
        table, item=item, person=person, domain=possible, k=chosen.k, progress=progress, before_reading=charge
    ) as counts:
        members = plan.mechanism.draw(Scores.from_histogram(*counts.histogram()), bits)
        items = counts.fetch(members.values.tolist(), members.indexes.tolist())
    return plan.release(items, members.values, bits)
