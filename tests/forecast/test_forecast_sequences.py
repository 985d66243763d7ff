"""Figures of Joint on domains too large to list: against plain sums over every loss, and however they are divided."""

from __future__ import annotations

from itertools import pairwise
from typing import Any

import numpy as np
import pytest

import dpselect as dps
from dpselect.forecast import loss_bounds, metrics, row_counts, sequence_figures
from dpselect.forecast.figures import exact_figures
from dpselect.forecast.sequence_figures import SequenceFigures
from dpselect.forecast.sequences import Sequences
from dpselect.scores import Ranking

Array = np.ndarray[Any, Any]


def tied_counts(seed: int) -> Array:
    generator = np.random.default_rng(seed)
    return np.round(generator.pareto(1.1, 160) * 12).astype(np.int64)


def plain_figures(mechanism: dps.Joint, scores: Array) -> dict[str, float]:
    """Return the figures as sums over every loss s, rows one by one: row r is any of the `t_r(s) − r` ranks left.

    All sequences of a loss are equally likely, so the law is a mixture over bounds s of any of the N(s) sequences of
    loss at most s, with weight `(p_s − p_{s+}) N(s)`.
    """
    k, size = mechanism.k, len(scores)
    descending = np.sort(scores)[::-1]
    top = descending[:k]
    levels = mechanism.levels(scores)
    log_within = np.logaddexp.accumulate(levels.log_sizes)
    log_each = np.log(np.maximum(levels.probabilities, 1e-300)) - levels.log_sizes
    each = np.append(np.exp(log_each + log_within), 0.0)
    following = np.append(np.exp(log_each[1:] + log_within[:-1]), 0.0)
    figures = dict.fromkeys(("total_error", "relative_error", "score_ratio", "correct", "great", "good"), 0.0)
    distances = np.abs(top[:, None] - descending)
    for loss, weight in zip(levels.losses, each[:-1] - following, strict=True):
        if weight < 1e-15:
            continue
        bounds = np.array([(score - descending <= loss).sum() for score in top])
        rows, left = np.zeros((k, size)), np.ones(size)
        for row, bound in enumerate(bounds):
            rows[row, :bound] = left[:bound] / (bound - row)
            left[:bound] *= 1 - 1 / (bound - row)
        chosen = rows.sum(axis=0)
        figures["total_error"] += weight * (rows * distances).sum()
        figures["score_ratio"] += weight * (chosen @ descending) / top.sum()
        figures["correct"] += weight * chosen[:k].sum()
        for score, lower in pairwise(descending):
            if lower < min(score, top[-1]):
                above = int((descending > lower).sum())
                missed = 1 - np.prod((np.minimum(bounds, above) - np.arange(k)) / (bounds - np.arange(k)))
                figures["relative_error"] += weight * (min(score, top[-1]) - lower) * missed
        for name, ranks in (("great", metrics.great_ranks), ("good", metrics.good_ranks)):
            figures[name] += weight * plain_within(descending, bounds, *ranks(k, size))
    return figures


def plain_within(descending: Array, bounds: Array, held: int, last: int) -> float:
    """P[the `held` highest are there, none below rank `last`], by how many are taken; none of them may be tied."""
    assert descending[held - 1] > descending[held]
    end = int((descending >= descending[last - 1]).sum())
    chances = {0: 1.0}
    for row, bound in enumerate(bounds):
        following: dict[int, float] = {}
        for taken, chance in chances.items():
            wanted, allowed = min(bound, held) - taken, min(bound, end) - row
            for gained, ways in ((1, wanted), (0, allowed - wanted)):
                share = chance * ways / (bound - row)
                following[taken + gained] = following.get(taken + gained, 0.0) + share
        chances = {taken: chance for taken, chance in following.items() if chance}
    return chances.get(held, 0.0)


@pytest.mark.parametrize("noise", ["exponential", "gumbel"])
@pytest.mark.parametrize(("seed", "k"), [(1, 9), (2, 16), (5, 33)])
@pytest.mark.parametrize("epsilon", [0.02, 0.2, 1.0])
def test_every_loss_one_by_one(noise: str, seed: int, k: int, epsilon: float) -> None:
    scores = tied_counts(seed)
    descending = np.sort(scores)[::-1]
    assert descending[k - 1] > descending[k]
    assert len(np.unique(scores)) < 100
    mechanism = dps.Joint(k=k, epsilon=epsilon, noise=noise)
    found, plain = exact_figures(dps.Scores.of(scores), mechanism), plain_figures(mechanism, scores)
    for name, value in plain.items():
        assert found[name] == pytest.approx(value, rel=1e-9, abs=1e-12), name


def test_real_numbers_one_by_one() -> None:
    scores = np.random.default_rng(5).normal(0, 3, 60) ** 3
    mechanism = dps.Joint(k=8, epsilon=0.3)
    found, plain = exact_figures(dps.Scores.of(scores), mechanism), plain_figures(mechanism, scores)
    for name, value in plain.items():
        assert found[name] == pytest.approx(value, rel=1e-9, abs=1e-12), name


def test_many_rows_with_few_choices_each() -> None:
    """Products of 1,200 chances of one half would be lost to underflow."""
    scores = np.arange(1300) * 5
    mechanism = dps.Joint(k=1200, epsilon=100.0)
    found, plain = exact_figures(dps.Scores.of(scores), mechanism), plain_figures(mechanism, scores)
    for name in ("total_error", "relative_error", "score_ratio", "correct"):
        assert found[name] == pytest.approx(plain[name], rel=1e-9), name
    assert 0.5 < found["total_error"] / (5 * 1200) < 10


@pytest.mark.parametrize("epsilon", [0.02, 0.3])
def test_bounds_may_be_looked_at_in_parts(monkeypatch: pytest.MonkeyPatch, epsilon: float) -> None:
    table, mechanism = dps.Scores.of(tied_counts(4)), dps.Joint(k=12, epsilon=epsilon)
    whole = exact_figures(table, mechanism)
    for limit, value in (("_RANGE", 3.0), ("_CELLS", 12 * 7)):
        with monkeypatch.context() as patch:
            patch.setattr(sequence_figures, limit, value)
            assert exact_figures(table, mechanism) == pytest.approx(whole, rel=1e-11)


@pytest.mark.parametrize("epsilon", [0.05, 0.068, 0.147, 0.5])
def test_bounds_that_hardly_matter_may_be_counted_with_others(monkeypatch: pytest.MonkeyPatch, epsilon: float) -> None:
    """Between small losses, which are likely, and large ones, which are many, are bounds that weigh nothing."""
    table = dps.Scores.of(np.round(20_000 / np.arange(1, 1501) ** 0.7).astype(np.int64))
    mechanism, ranking = dps.Joint(k=30, epsilon=epsilon), Ranking.of(table.distinct)
    together = exact_figures(table, mechanism)
    figures = SequenceFigures.of(Sequences.of(30, 1.0, table, epsilon, epsilon), ranking, 30, epsilon, mechanism.noise)
    assert figures is not None
    assert len(figures.coarser) < len(figures.bounds)
    monkeypatch.setattr(loss_bounds, "_TOGETHER", 1e-17)
    apart = exact_figures(table, mechanism)
    for name, highest in (("correct", 30.0), ("f1", 1.0), ("score_ratio", 1.0)):
        assert highest - together.pop(name) == pytest.approx(highest - apart.pop(name), rel=1e-10), name
    assert together == pytest.approx(apart, rel=1e-10)
    monkeypatch.setattr(loss_bounds, "_TOGETHER", 1e-3)
    assert exact_figures(table, mechanism)["total_error"] != pytest.approx(apart["total_error"], rel=1e-10)


def test_a_row_with_one_choice_settles_that_the_highest_scores_are_there(monkeypatch: pytest.MonkeyPatch) -> None:
    scores = np.concatenate([[900, 860, 700, 640], tied_counts(8) % 300])
    table, mechanism = dps.Scores.of(scores), dps.Joint(k=12, epsilon=0.5)
    settled = exact_figures(table, mechanism)
    monkeypatch.setattr(row_counts, "_settled", lambda rows, held: 0)
    counted = exact_figures(table, mechanism)
    assert 0.01 < settled["great"] < 0.99 < settled["good"]
    assert settled == pytest.approx(counted, rel=1e-13)


def test_losses_that_weigh_nothing_may_be_left_out() -> None:
    table = dps.Scores.of(tied_counts(6))
    ranking = Ranking.of(table.distinct)
    for epsilon in (0.03, 0.3, 3.0, 30.0):
        cut, whole = Sequences.of(20, 1.0, table, epsilon, epsilon), Sequences.of(20, 1.0, table)
        assert cut.chance(epsilon, "exponential") == pytest.approx(whole.chance(epsilon, "exponential"), rel=1e-12)
        figures = [SequenceFigures.of(levels, ranking, 20, epsilon, "gumbel") for levels in (cut, whole)]
        assert figures[0] is not None
        assert figures[1] is not None
        cut_figures, all_figures = (each.chances() | each.expectations(1.0) for each in figures if each)
        assert cut_figures == pytest.approx(all_figures, rel=1e-10, abs=1e-13)
    assert len(cut.losses) < len(whole.losses) / 2


def test_more_rows_than_can_be_held_leave_the_chance() -> None:
    """A table of rows by ranks would take gigabytes; the rest is then left to draws."""
    found = exact_figures(dps.Scores.of(np.arange(6500) * 50), dps.Joint(k=6400, epsilon=250.0))
    assert set(found) == {"exact"}
    assert 0.9 < found["exact"] <= 1


def test_denormal_scores_have_figures():
    figures = exact_figures(dps.Scores.of([5e-324, 0.0, 1e-323]), dps.Joint(k=2, epsilon=1.0))
    assert figures["exact"] == pytest.approx(1 / 6)
    assert figures["great"] == pytest.approx(1 / 3)
