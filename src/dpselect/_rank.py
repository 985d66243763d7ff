"""rank(): from a table of comparisons to the k best items."""

from __future__ import annotations

import contextlib
import logging
import os
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np

from dpselect._arrays import Array
from dpselect._numbers import positive_integer, seed_or_none
from dpselect.charging import ChargeTarget, is_rehearsal
from dpselect.errors import InvalidInput, plain
from dpselect.mechanisms import FOR_UNKNOWN_DOMAINS, Gaussian, Laplace, Mechanism, NoisyVector, UnknownDomain
from dpselect.privacy.guarantee import WHERE_OTHERS_HAVE_THE_SAME
from dpselect.ranking.bounds import DEFAULT_DAMPING, Bounds
from dpselect.ranking.walk import Pairs, Walk, stationary
from dpselect.release import PUBLIC, ROWS, Release, StatedDomain
from dpselect.request import ReleasePlan, ReleaseRequest, check_covers
from dpselect.sampling import BitSource, bit_source
from dpselect.scores import Scores
from dpselect.sources import Domain, PeriodFilter, check_not_rows, fresh_key, public_name
from dpselect.sources.comparisons import Columns, open_comparisons

if TYPE_CHECKING:
    from dpselect.ledger import Ledger


def rank(
    comparisons: Any,
    *,
    k: int | None = None,
    epsilon: float | None = None,
    delta: float | None = None,
    comparisons_per_pair: int,
    max_degree: int,
    damping: float = DEFAULT_DAMPING,
    mechanism: str | Mechanism = "auto",
    options: Mapping[str, Any] | None = None,
    aim: str = "most",
    max_votes_per_person: int | None = None,
    domain: Any = None,
    domain_column: str | None = None,
    domain_header: bool = True,
    winner: str = "winner",
    loser: str = "loser",
    person: str | None = None,
    tie: str | None = None,
    promised_rho: float | None = None,
    ordered: bool = False,
    lowest: bool = False,
    values: float | None = None,
    protects: str | None = None,
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
    """Choose the k best items from comparisons of pairs, without revealing any one comparison or person.

    Parameters
    ----------
    comparisons
        Pairs (winner, loser), whose items are taken by their text, or a table as in `top`, with a row for each
        comparison. Rows that lack a value, or that compare an item with itself or with one outside the domain, are left
        out.
    k, epsilon, delta, mechanism, options, aim, ordered, lowest, values, seed
        As in `select`; noisy values are the scores, which sum to 1.
    comparisons_per_pair, max_degree
        L and D, public caps. Each pair of items keeps at most L comparisons, and each item at most D·L that it lost,
        chosen at random. Choose them from how the comparisons were planned, not from the rows. Caps far above what the
        rows hold gain nothing.
    damping
        The probability that a step of the random walk restarts. More damping means less noise, and less weight on how
        strong the losers were.
    max_votes_per_person
        With `person`: keep at most that many comparisons of each person, chosen at random.
    domain, domain_column, domain_header
        The possible items, as in `top`, in a column with the name of the winners' column or the one named; items that
        were never compared count too. If left out, the rows name the items, and people who alone name an item are not
        covered.
    winner, loser, person, tie
        Columns. Without `person` one comparison is protected, with it one person. `tie` marks comparisons without a
        winner: true, a number other than 0, or "true", "t", "yes", "y", "1" in any case. A tie counts as half a win
        for each item.
    promised_rho
        Replaces damping, as in the published method: YOU PROMISE that the ergodicity coefficient ρ of the walk, which
        depends on the private data, is at most this number. It is not the rho of zCDP. If it is larger than promised,
        nothing is guaranteed.
    protects, table_name, where, time, period, unfinished, ledger, dataset, purpose, once, progress
        As in `top`.

    Returns
    -------
    The release.

    Raises
    ------
    InvalidInput, BudgetExceeded, SourceError
        As in `top`.

    Examples
    --------
    >>> import dpselect as dps
    >>> games = [("ann", "bob")] * 60 + [("bob", "cem")] * 60 + [("ann", "cem")] * 60
    >>> players = ["ann", "bob", "cem"]
    >>> best = dps.rank(games, k=1, epsilon=2.0, comparisons_per_pair=60, max_degree=2, domain=players)
    >>> best.guarantee.protects
    'one comparison'
    """
    during = PeriodFilter.of(time, period, unfinished=unfinished)
    bounds = Bounds(
        comparisons_per_pair=comparisons_per_pair,
        max_degree=max_degree,
        damping=damping,
        promised_rho=promised_rho,
        votes=_votes(person, max_votes_per_person),
    )
    if person is None and protects is not None:
        raise InvalidInput("protects", protects, "must be left out without `person`; name the column of persons")
    possible = _possible(domain, domain_column, domain_header)
    if possible is not None:
        check_not_rows(comparisons, table_name, possible)
    _check_mechanism(mechanism)
    condition = _condition(bounds, possible)
    if ledger is not None and condition:
        raise _not_for_ledgers(bounds)
    request = ReleaseRequest(
        mechanism=mechanism,
        k=k,
        epsilon=epsilon,
        delta=delta,
        sensitivity=bounds.sensitivity(2),
        ordered=ordered,
        aim=aim,
        values=values,
        protects=protects or ("one comparison" if person is None else "one person"),
        neighbours=f"add or remove{condition}",
        options=options,
        lowest=lowest,
        period=None if during is None else during.period,
        details=bounds.describe(),
    )
    if not isinstance(mechanism, Mechanism):
        request.plan()  # refuses bad arguments before anything is opened; the number of items is not known yet
    target = ChargeTarget.of(
        ledger, dataset, purpose, once, seed=seed, period=None if during is None else during.period.name
    )
    bits = bit_source(seed_or_none(seed))
    columns = Columns(winner, loser, person, tie)
    with open_comparisons(
        _table(comparisons, columns),
        columns,
        domain=possible,
        max_votes_per_person=max_votes_per_person,
        key="" if max_votes_per_person is None else fresh_key(bits),
        table_name=table_name,
        where=where,
        during=during,
        progress=progress,
    ) as found:
        if possible is None and is_rehearsal():
            plan = request.plan()  # only the rows name the items, and the sensitivity follows from their number
        else:
            # A ledger needs a list of items, whose number is known without a row.
            plan = _planned(request, bounds, found.size, listed=possible is not None)
        charge = target.charge(
            plan,
            secure=bits.secure,
            asked=lambda: {
                "command": "rank",
                "table": public_name(comparisons, table_name),
                **columns.named(),
                "max_votes_per_person": max_votes_per_person,
                "where": where,
                "time": time,
                "unfinished": unfinished,
                "domain": None if possible is None else found.domain_digest(),
            },
        )
        if charge.stored is not None:
            return charge.plan.answer_of(charge.stored)
        plan = charge.plan
        if promised_rho is not None:
            logging.getLogger("dpselect").warning(
                "the guarantee rests on your promise that the ergodicity coefficient is at most %g; nothing checks "
                "it, and the release protects nobody if it is wrong",
                promised_rho,
            )
        scores = scores_of(Pairs(found.size, *found.pairs()), bounds, bits, progress)
        members, _ = plan.draw(plan.seen(scores), bits)
        items = found.fetch(members.positions().tolist())
        # If the rows name the items, their number is private.
        stated = StatedDomain(None, ROWS) if possible is None else StatedDomain(found.size, PUBLIC)
    return charge.published(plan.release(items, plan.scores_of(members), bits, stated))


def scores_of(
    pairs: Pairs, bounds: Bounds, bits: BitSource, progress: Callable[[float | None], None] | None = None
) -> Scores:
    """Return the score of each item: its probability under the stationary distribution, after the caps. Private."""
    return Scores.of(stationary(Walk.of(pairs, bounds, bits), bounds, progress))


def _votes(person: str | None, max_votes_per_person: int | None) -> int:
    if person is None:
        if max_votes_per_person is not None:
            raise InvalidInput(
                "max_votes_per_person", max_votes_per_person, "must be left out without `person`; name that column too"
            )
        return 1
    if max_votes_per_person is None:
        raise InvalidInput("max_votes_per_person", None, "must be given with `person`: the votes kept of each person")
    return positive_integer("max_votes_per_person", max_votes_per_person)


def _possible(domain: Any, column: str | None, header: bool) -> Domain | None:
    if domain is None:
        if column is not None or not header:
            raise InvalidInput("domain", None, "must be given with domain_column or domain_header")
        return None
    possible = Domain.of(domain, column=column, header=header)
    if possible.unknown or possible.number is not None:
        raise InvalidInput(
            "domain", domain, "must be a list, file or table of the items; or leave it out to use the items in the rows"
        )
    return possible


def _condition(bounds: Bounds, possible: Domain | None) -> str:
    """Return the conditions under which everybody is covered, as the guarantee states them."""
    conditions = [] if possible is not None else [WHERE_OTHERS_HAVE_THE_SAME.removeprefix("add or remove, ")]
    if bounds.promised_rho is not None:
        conditions.append(f"if the promise holds that the ergodicity coefficient is at most {bounds.promised_rho!r}")
    return "".join(f", {condition}" for condition in conditions)


def _not_for_ledgers(bounds: Bounds) -> InvalidInput:
    if bounds.promised_rho is None:
        return InvalidInput(
            "domain", None, "must list the items if a ledger is charged, which needs a guarantee for everybody"
        )
    return InvalidInput(
        "promised_rho",
        bounds.promised_rho,
        "must be left out if a ledger is charged, which needs a guarantee for everybody; use damping",
    )


def _check_mechanism(mechanism: str | Mechanism) -> None:
    """Refuse mechanisms for unknown domains or for few items per person: one vote can move every score."""
    names = [*FOR_UNKNOWN_DOMAINS, Gaussian.name, Laplace.name]
    if isinstance(mechanism, UnknownDomain | NoisyVector) or (isinstance(mechanism, str) and mechanism in names):
        name = mechanism.name if isinstance(mechanism, Mechanism) else mechanism
        raise InvalidInput("mechanism", name, "must be auto, canonical, gamma, joint, oneshot or peeling")


def _planned(request: ReleaseRequest, bounds: Bounds, size: int, *, listed: bool) -> ReleasePlan:
    """Settle the request for a number of items, on which the sensitivity depends."""
    needed = bounds.sensitivity(max(size, 1))  # without any item, the check of k below refuses the rows
    if isinstance(request.mechanism, Mechanism):
        check_covers(request.mechanism, needed, values=request.values)
        needed = request.mechanism.sensitivity
    plan = replace(request, sensitivity=needed).plan()
    if listed:
        plan.mechanism.check_size(size)
    elif size < plan.mechanism.k:
        raise InvalidInput(
            "k",
            plan.mechanism.k,
            "must be at most the number of items that the comparisons name; list the possible items as `domain`",
        )
    return plan


def _table(comparisons: Any, columns: Columns) -> Any:
    """Return pairs in a list or array as a table; anything else as it is.

    Python objects are taken as text: a common type could only be found by looking at private rows.
    """
    if not isinstance(comparisons, np.ndarray | Sequence) or isinstance(comparisons, str | bytes):
        return comparisons
    import pyarrow

    if isinstance(comparisons, np.ndarray):
        if comparisons.ndim != 2 or comparisons.shape[1] != 2:
            raise _no_pairs()
        winners, losers = (_column(comparisons[:, side]) for side in (0, 1))
    else:
        if not all(isinstance(pair, Sequence) and not isinstance(pair, str) and len(pair) == 2 for pair in comparisons):
            raise InvalidInput("comparisons", plain("a list of something else"), "must be pairs (winner, loser)")
        winners, losers = (_texts([pair[side] for pair in comparisons]) for side in (0, 1))
    return pyarrow.table({columns.winner: winners, columns.loser: losers})


def _column(values: Array) -> Any:
    """Return one side of an array; only its type decides whether it is refused."""
    import pyarrow

    if values.dtype.kind in "UT":
        return _texts(values.tolist())
    if values.dtype.kind in "biufM":
        with contextlib.suppress(pyarrow.ArrowException):
            return pyarrow.array(values)
    raise _no_pairs()


def _no_pairs() -> InvalidInput:
    return InvalidInput("comparisons", plain("another array"), "must be an array of numbers or text with two columns")


def _texts(values: list[Any]) -> Any:
    import pyarrow

    from dpselect.sources.frames import text_of

    return pyarrow.array([text_of(value) for value in values], type=pyarrow.string())
