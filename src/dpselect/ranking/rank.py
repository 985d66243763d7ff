"""rank(): from a table of comparisons to the k best items."""

from __future__ import annotations

import contextlib
import logging
import os
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from dpselect._numbers import positive_integer, seed_or_none
from dpselect.errors import InvalidInput, plain
from dpselect.mechanisms import FOR_UNKNOWN_DOMAINS, Gaussian, Mechanism, UnknownDomain
from dpselect.plan import Plan, plan_release
from dpselect.privacy.ledger import Ledger, reservation
from dpselect.privacy.naming import WHERE_OTHERS_HAVE_THE_SAME
from dpselect.privacy.sensitivity import Sensitivity
from dpselect.ranking.matrix import Pairs, Walk
from dpselect.ranking.sensitivity import DEFAULT_DAMPING, Bounds
from dpselect.ranking.stationary import stationary
from dpselect.release import PUBLIC, ROWS, Release, StatedDomain
from dpselect.sampling import BitSource, bit_source
from dpselect.scores import Scores
from dpselect.sources import Domain, check_not_rows, fresh_key
from dpselect.sources.comparisons import Columns, open_comparisons


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
    values: float | None = None,
    protects: str | None = None,
    seed: int | None = None,
    table_name: str | None = None,
    where: str | None = None,
    ledger: Ledger | str | os.PathLike[str] | None = None,
    dataset: str | None = None,
    purpose: str = "",
    progress: Callable[[float | None], None] | None = None,
) -> Release:
    """Choose the k best items from comparisons of pairs, so that no one comparison or person shows in the answer.

    comparisons: pairs (winner, loser), whose items are taken by their text, or a table as in `top`, with a row for each
        comparison. Rows that lack something, that compare an item with itself or with one outside the domain are left
        out.
    comparisons_per_pair, max_degree: L and D, public caps. Each pair of items keeps at most L comparisons and each
        item at most D·L that it lost, a random choice. Choose them from how the comparisons were planned, not from the
        rows. Caps far above what the rows hold gain nothing.
    damping: the chance that a step of the random walk starts afresh. More means less noise, and less regard for how
        strong the losers were.
    winner, loser, person, tie: columns. Without `person` one comparison is protected. With it one person is, of whose
        comparisons `max_votes_per_person` are kept, a random choice. `tie` says which comparisons have no winner: true,
        a number other than 0, or "true", "t", "yes", "y", "1" in any case. A tie counts as half a win for each.
    domain, domain_column, domain_header: the items that could be answered, as in `top`, in a column called like that of
        the winners or named; those never compared count too. If left out, the rows name them, and people who alone name
        an item are not covered.
    promised_rho: as published, no damping: instead YOU PROMISE that the ergodicity coefficient of the walk, which only
        the private data could tell, is at most this number. If it is not, nothing is guaranteed.
    Other arguments: as in `top`; noisy values are the scores, which sum up to 1.

    >>> from dpselect import ranking
    >>> games = [("ann", "bob")] * 60 + [("bob", "cem")] * 60 + [("ann", "cem")] * 60
    >>> players = ["ann", "bob", "cem"]
    >>> best = ranking.rank(games, k=1, epsilon=2.0, comparisons_per_pair=60, max_degree=2, domain=players)
    >>> best.guarantee.protects
    'one comparison'
    """
    bounds = Bounds(
        comparisons_per_pair=comparisons_per_pair,
        max_degree=max_degree,
        damping=damping,
        promised_rho=promised_rho,
        votes=_votes(person, max_votes_per_person),
    )
    if person is None and protects is not None:
        raise InvalidInput(
            "protects", protects, "without `person` one comparison is protected: name the column of persons"
        )
    possible = _possible(domain, domain_column, domain_header)
    if possible is not None:
        check_not_rows(comparisons, table_name, possible)
    _check_mechanism(mechanism)
    condition = _condition(bounds, possible)
    if ledger is not None and condition:
        raise InvalidInput(*_refused(bounds), "a ledger can only charge what covers everybody: " + _instead(bounds))

    def planned(size: int) -> Plan:
        needed = bounds.sensitivity(size)
        if isinstance(mechanism, Mechanism):
            _check_covered(mechanism, needed)
        plan = plan_release(
            mechanism,
            k=k,
            epsilon=epsilon,
            delta=delta,
            sensitivity=mechanism.sensitivity if isinstance(mechanism, Mechanism) else needed,
            ordered=ordered,
            values=values,
            protects=protects or ("one comparison" if person is None else "one person"),
            details=bounds.describe(),
        )
        return replace(plan, guarantee=replace(plan.guarantee, neighbours=f"add or remove{condition}"))

    if not isinstance(mechanism, Mechanism):
        planned(2)  # whatever is wrong with the arguments shows before anything is opened
    reserved = reservation(ledger, dataset, purpose)
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
        progress=progress,
    ) as found:
        # With a ledger the items are listed, so that no row is read yet. Rows that name no item name fewer than k.
        plan = planned(max(found.size, 1))
        _check_size(plan.mechanism, found.size, listed=possible is not None)
        plan = plan.charge(reserved, secure=bits.secure)
        if promised_rho is not None:
            logging.getLogger("dpselect").warning(
                "the guarantee rests on your promise that rho is at most %g; nothing checks it, and the release "
                "protects nobody if it is wrong",
                promised_rho,
            )
        scores = scores_of(Pairs(found.size, *found.pairs()), bounds, bits, progress)
        members = plan.mechanism.draw(scores, bits)
        items = found.fetch(members.positions().tolist())
        # Where the rows name the items, their number is private.
        stated = StatedDomain(None, ROWS) if possible is None else StatedDomain(found.size, PUBLIC)
    return plan.release(items, members.values, bits, stated)


def scores_of(
    pairs: Pairs, bounds: Bounds, bits: BitSource, progress: Callable[[float | None], None] | None = None
) -> Scores:
    """Return the score of each item, its share of the stationary distribution, after the caps. Private."""
    return Scores.of(stationary(Walk.of(pairs, bounds, bits), bounds, progress))


def _votes(person: str | None, max_votes_per_person: int | None) -> int:
    if person is None:
        if max_votes_per_person is not None:
            raise InvalidInput("max_votes_per_person", max_votes_per_person, "name the column `person` as well")
        return 1
    if max_votes_per_person is None:
        raise InvalidInput("max_votes_per_person", None, "with `person`, the most votes that a person keeps are needed")
    return positive_integer("max_votes_per_person", max_votes_per_person)


def _possible(domain: Any, column: str | None, header: bool) -> Domain | None:
    if domain is None:
        if column is not None or not header:
            raise InvalidInput("domain", None, "name the file or table whose column is meant")
        return None
    possible = Domain.of(domain, column=column, header=header)
    if possible.unknown or possible.number is not None:
        raise InvalidInput(
            "domain", domain, "a list, file or table of the items is needed; or leave it out, and the rows name them"
        )
    return possible


def _condition(bounds: Bounds, possible: Domain | None) -> str:
    """Return under which condition everybody is covered, as the guarantee says it."""
    conditions = [] if possible is not None else [WHERE_OTHERS_HAVE_THE_SAME.removeprefix("add or remove, ")]
    if bounds.promised_rho is not None:
        conditions.append(f"if the promise holds that rho is at most {bounds.promised_rho!r}")
    return "".join(f", {condition}" for condition in conditions)


def _refused(bounds: Bounds) -> tuple[str, Any]:
    return ("domain", None) if bounds.promised_rho is None else ("promised_rho", bounds.promised_rho)


def _instead(bounds: Bounds) -> str:
    return "list the items" if bounds.promised_rho is None else "leave it out, and use damping"


def _check_mechanism(mechanism: str | Mechanism) -> None:
    """Refuse mechanisms for unknown domains, and noise that relies on few items per person: a vote can move all."""
    names = [*FOR_UNKNOWN_DOMAINS, Gaussian.name]
    if isinstance(mechanism, UnknownDomain | Gaussian) or (isinstance(mechanism, str) and mechanism in names):
        name = mechanism.name if isinstance(mechanism, Mechanism) else mechanism
        raise InvalidInput("mechanism", name, "auto, canonical, gamma, joint, oneshot or peeling is needed here")


def _check_covered(mechanism: Mechanism, needed: Sensitivity) -> None:
    if mechanism.sensitivity.spread < needed.spread:
        raise InvalidInput("mechanism", mechanism.sensitivity, f"a mechanism with sensitivity={needed!r} is needed")


def _check_size(mechanism: Mechanism, size: int, *, listed: bool) -> None:
    if listed:
        mechanism.check_size(size)
    elif size < mechanism.k:
        raise InvalidInput("k", mechanism.k, "the comparisons name fewer items; list the possible ones as `domain`")


def _table(comparisons: Any, columns: Columns) -> Any:
    """Return pairs in a list or array as a table; anything else as it is.

    Python objects have no type of their own, and none may be read off private rows: they are taken as text.
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
            raise InvalidInput("comparisons", plain("a list"), "pairs (winner, loser) are needed")
        winners, losers = (_texts([pair[side] for pair in comparisons]) for side in (0, 1))
    return pyarrow.table({columns.winner: winners, columns.loser: losers})


def _column(values: np.ndarray[Any, Any]) -> Any:
    """Return one side of an array; its type alone decides whether it is refused."""
    import pyarrow

    if values.dtype.kind in "UT":
        return _texts(values.tolist())
    if values.dtype.kind in "biufM":
        with contextlib.suppress(pyarrow.ArrowException):
            return pyarrow.array(values)
    raise _no_pairs()


def _no_pairs() -> InvalidInput:
    return InvalidInput("comparisons", plain("an array"), "an array of numbers or text with two columns is needed")


def _texts(values: list[Any]) -> Any:
    import pyarrow

    from dpselect.sources.frames import text_of

    return pyarrow.array([text_of(value) for value in values], type=pyarrow.string())
