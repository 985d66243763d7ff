"""The audit: what releases alone say about epsilon, with no look at code, laws or noise.

The same question is asked many times on two neighbouring inputs, through the public functions. An eighth of the answers
choose an event; the others bound its probabilities P and Q on the two inputs by Clopper–Pearson intervals. A mechanism
that is (ε, δ)-private has `P <= e^ε Q + δ`, so that `ε >= ln((P − δ) / Q)`: if the lower bound exceeds the claim, the
claim is wrong.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Hashable, Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass
from functools import cached_property, partial
from itertools import repeat
from multiprocessing import active_children, get_context
from typing import Any

import numpy as np

from dpselect._arrays import FloatArray
from dpselect.errors import DpSelectError, SourceError
from dpselect.privacy import Guarantee

ERROR = 1e-6
"""The probability, over all rows of an audit, that any sound claim is called broken."""

POWER = 0.95
"""The probability with which a row finds a violation of the size that it states."""

CHOOSING = 8
"""One in so many answers helps to choose the event."""

Answers = Callable[[bool, Iterator[int | None]], tuple[Guarantee, list[Hashable]]]
"""Given whether the person is in the data, and seeds: the guarantee that the releases state, and the answers.

An answer holds the guarantee as well, so that one which depends on the data is found like any other difference."""


@dataclass(frozen=True)
class Probe:
    """A question that is asked many times on two inputs which differ by one person.

    Parameters
    ----------
    door
        What is asked: "select", or `top` on an engine.
    name
        The question in words.
    answers
        Asks it on one of the inputs.
    flaw
        What is wrong with a deliberately broken mechanism, which the audit must reject; empty for all others.
    portable
        Whether another process can ask it: it holds no engine and can be pickled.
    """

    door: str
    name: str
    answers: Answers
    flaw: str = ""
    portable: bool = False


@dataclass(frozen=True)
class Evidence:
    """How often an event happened on either input, in the answers that did not choose it, and what follows from that.

    Parameters
    ----------
    first, second
        How often it happened on the input where it is more probable, and on the other one.
    runs
        The number of answers on each input.
    epsilon, delta
        The claim.
    error
        The probability that the lower bound is wrong.

    Examples
    --------
    An event of 900 of 1,000 answers on one input and 100 on the other contradicts an epsilon of 1:

    >>> evidence = Evidence(900, 100, 1000, epsilon=1.0, delta=0.0, error=1e-6)
    >>> round(evidence.lower_bound, 2), evidence.holds, round(evidence.detectable_epsilon, 2)
    (1.71, False, 1.42)
    """

    first: int
    second: int
    runs: int
    epsilon: float
    delta: float
    error: float

    @property
    def lower_bound(self) -> float:
        """The lower bound on ε at the claimed δ."""
        return float(
            lower_bounds(np.array([self.first]), np.array([self.second]), self.runs, self.delta, self.error)[0]
        )

    @property
    def holds(self) -> bool:
        """Whether the evidence is compatible with the claim."""
        return self.lower_bound <= self.epsilon

    @cached_property
    def detectable_epsilon(self) -> float | None:
        """The smallest true ε that these runs contradict with probability POWER; None if there is none.

        The event keeps its probability P on the one input, and has (P − δ) e^{−ε} on the other.
        """
        first = self.first / self.runs
        return _smallest(50.0, lambda epsilon: self._found(first, max(first - self.delta, 0.0) * math.exp(-epsilon)))

    @cached_property
    def detectable_delta(self) -> float | None:
        """The smallest true δ at the claimed ε that these runs contradict with probability POWER.

        The event keeps its probability Q on the other input, and has e^ε Q + δ on the one; None if that exceeds 1.
        """
        second = self.second / self.runs
        least = math.exp(self.epsilon) * second
        return _smallest(1 - least, lambda delta: self._found(least + delta, second)) if least < 1 else None

    def _found(self, first: float, second: float) -> float:
        """Return the probability that the claim is rejected if the event has these probabilities."""
        from scipy.stats import binom

        counts = np.arange(self.runs + 1)
        low, high = interval(counts, self.runs, self.error)
        # For each count on the one input, how many counts on the other reject the claim.
        rejecting = np.searchsorted(high, (low - self.delta) * math.exp(-self.epsilon))
        rejected = binom.pmf(counts, self.runs, first) * binom.cdf(rejecting - 1, self.runs, second)
        return float(rejected.sum())


@dataclass(frozen=True)
class Audited:
    """A row of the audit.

    Parameters
    ----------
    probe
        What was asked.
    evidence
        What the answers say.
    answers
        The number of answers on each input, with those that chose the event.
    """

    probe: Probe
    evidence: Evidence
    answers: int

    @property
    def passed(self) -> bool:
        """Whether a sound mechanism was accepted, or a broken one rejected."""
        return self.evidence.holds != bool(self.probe.flaw)


def _smallest(most: float, found: Callable[[float], float]) -> float | None:
    """Return the smallest violation up to `most` that is found with probability POWER."""
    from scipy.optimize import brentq

    return float(brentq(lambda size: found(size) - POWER, 0.0, most, xtol=1e-6)) if found(most) > POWER else None


def interval(hits: Any, runs: int, error: float) -> tuple[FloatArray, FloatArray]:
    """Return the Clopper–Pearson interval of a probability: either end is wrong with probability error/2 at most."""
    from scipy.special import betainccinv, betaincinv

    hits = np.asarray(hits, dtype=np.float64)
    misses = runs - hits
    low = np.where(hits > 0, betaincinv(np.maximum(hits, 1), misses + 1, error / 2), 0.0)
    high = np.where(misses > 0, betainccinv(hits + 1, np.maximum(misses, 1), error / 2), 1.0)
    return low, high


def lower_bounds(first: Any, second: Any, runs: int, delta: float, error: float) -> FloatArray:
    """Return the lower bounds on ε from counts of events on two inputs; 0 where there is nothing to say."""
    low, high = interval(first, runs, error)[0] - delta, interval(second, runs, error)[1]
    return np.log(np.maximum(low, high) / high)


def audit(probe: Probe, seeds: Iterator[int | None], error: float) -> Audited:
    """Ask a question on both inputs, and compare the answers with the guarantee that the releases state."""
    claim, without = probe.answers(False, seeds)
    _, with_person = probe.answers(True, seeds)
    used = max(len(without) // CHOOSING, 1)
    swapped, event = chosen_event(without[:used], with_person[:used], claim, error)
    sides = [sum(answer in event for answer in side[used:]) for side in (without, with_person)]
    first, second = sides[::-1] if swapped else sides
    evidence = Evidence(first, second, len(without) - used, claim.epsilon, claim.delta, error)
    return Audited(probe, evidence, len(without))


def chosen_event(
    without: Sequence[Hashable], with_person: Sequence[Hashable], claim: Guarantee, error: float
) -> tuple[bool, frozenset[Hashable]]:
    """Return the event that speaks most against the claim, and whether it is more probable with the person.

    Answers are ranked by the ratio of their frequencies, as the likelihood ratio would rank them. Of all that start the
    ranking, those are chosen whose lower bound on ε is largest; where all bounds are 0, the largest P − e^ε Q decides.
    """
    best: tuple[float, float, bool, frozenset[Hashable]] = (-1.0, -math.inf, False, frozenset())
    for swapped, one, other in ((False, without, with_person), (True, with_person, without)):
        ones, others = Counter(one), Counter(other)
        ranked = sorted(
            ones.keys() | others.keys(),
            key=lambda answer: ((ones[answer] + 0.5) / (others[answer] + 0.5), repr(answer)),
            reverse=True,
        )
        first = np.cumsum([ones[answer] for answer in ranked])
        second = np.cumsum([others[answer] for answer in ranked])
        bounds = lower_bounds(first, second, len(one), claim.delta, error)
        excess = (first - math.exp(claim.epsilon) * second) / len(one)
        size = max(range(len(ranked)), key=lambda place: (bounds[place], excess[place]))
        found = (float(bounds[size]), float(excess[size]), swapped, frozenset(ranked[: size + 1]))
        best = max(best, found, key=lambda each: each[:2])
    return best[2], best[3]


def run_audit(
    probes: Sequence[Probe],
    *,
    seed: int | None = None,
    processes: int = 0,
    progress: Callable[[float], None] = lambda share: None,
) -> list[Audited]:
    """Ask all questions.

    Parameters
    ----------
    probes
        The questions.
    seed
        Makes the answers reproducible; by default they are drawn from the randomness of the operating system, as those
        that are published.
    processes
        How many further processes ask the questions that are portable; by default this one asks everything.
    progress
        Called with the share that is done before each question.

    Returns
    -------
    list
        A row for each question. The probability that any sound claim is called broken is at most ERROR.

    Raises
    ------
    SourceError
        If a question is not answered; the message names it.

    Examples
    --------
    >>> from dpselect.verify import open_audit
    >>> with open_audit("oneshot", quick=True) as (probes, skipped):
    ...     [row] = run_audit([probe for probe in probes if not probe.flaw][:1], seed=1)
    >>> row.probe.name, row.evidence.epsilon, row.passed
    ('one-shot', 2.0, True)
    """
    error = ERROR / len(probes)
    asked: list[Callable[[], Audited]] = []
    with _workers(processes) if processes else nullcontext() as pool:
        for place, probe in enumerate(probes):
            arguments = (probe, None if seed is None else (seed, place), error)
            asked.append(
                pool.submit(_asked, *arguments).result if pool and probe.portable else partial(_asked, *arguments)
            )
        # What other processes ask goes on while this one asks the rest.
        order = sorted(range(len(probes)), key=lambda place: probes[place].portable and bool(pool))
        rows: dict[int, Audited] = {}
        for place in order:
            progress(len(rows) / len(probes))
            rows[place] = asked[place]()
    return [rows[place] for place in range(len(probes))]


@contextmanager
def _workers(processes: int) -> Iterator[ProcessPoolExecutor]:
    """Yield further processes; if the block is interrupted, they are stopped, and do not finish what they do."""
    others = active_children()
    pool = ProcessPoolExecutor(processes, get_context("spawn"))
    try:
        yield pool
    except BaseException:
        for worker in set(active_children()).difference(others):
            worker.terminate()
        raise
    finally:
        pool.shutdown(cancel_futures=True)


def _asked(probe: Probe, seed: Sequence[int] | None, error: float) -> Audited:
    """Ask one question; its answers depend on no other question."""
    try:
        return audit(probe, repeat(None) if seed is None else _seeds(seed), error)
    except DpSelectError as failure:
        raise SourceError(f"the audit stopped at {probe.door}, {probe.name}: {failure}") from failure


def _seeds(seed: Sequence[int]) -> Iterator[int]:
    numbers = np.random.default_rng(seed)
    while True:
        yield int(numbers.integers(2**63))
