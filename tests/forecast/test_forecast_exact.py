"""Exact figures are those of the law: every outcome of small domains, and closed forms of large ones."""

from __future__ import annotations

import math
from fractions import Fraction
from itertools import product
from typing import Any

import numpy as np
import pytest
from forecast_brute import DATA, expected, found, within

import dpselect as dps
from dpselect.forecast.classes import Subsets
from dpselect.forecast.levels import JointLevels
from dpselect.forecast.noisy import noisy_items
from dpselect.sampling import NOISES

WIDE = dps.Sensitivity(-1, 2)
SETS = {"exact", "inexact", "great", "good", "correct", "f1", "score_ratio", "total_error"}
LISTS = SETS - {"total_error"}
EPSILONS = (0.05, 1.0, 6.0)


def gaussian(k: int, epsilon: float, people: int = 1) -> dps.Gaussian:
    return dps.Gaussian(k=k, epsilon=epsilon, delta=1e-6, max_items_per_person=people)


def agree(mechanism: dps.Mechanism, scores: list[float], names: set[str], error: float = 1e-6) -> None:
    """Compare every figure that is said to be exact with the law, by what is wrong where little is."""
    figures, law = found(mechanism, np.array(scores)), expected(mechanism, scores)
    assert set(figures) == names, mechanism
    spread = float(np.ptp(scores))
    for name, value in figures.items():
        rounding = 1e-11 * (spread if "error" in name else mechanism.k if name == "correct" else 1.0)
        allowed = rounding + error * min(abs(law[name]), abs(1 - law[name]) if name in ("great", "good") else math.inf)
        if name in ("correct", "f1", "score_ratio"):
            best = mechanism.k if name == "correct" else 1.0
            allowed = rounding + error * abs(best - law[name])
        assert abs(value - law[name]) <= allowed, (name, value, law[name], mechanism, scores)


@pytest.mark.slow
@pytest.mark.parametrize("scores", DATA, ids=str)
@pytest.mark.parametrize(
    ("gamma", "margin"), [(0.5, True), (0.25, False), (1.0, True), (0.0, False)], ids=["half", "quarter", "one", "zero"]
)
def test_canonical_has_the_figures_of_its_law(scores: list[float], gamma: float, margin: bool) -> None:
    for k, epsilon in product((1, 2, 3, 5), EPSILONS):
        for noise in ("exponential", "gumbel"):
            mechanism = dps.Canonical(k=k, epsilon=epsilon, gamma=gamma, margin=margin, noise=noise, sensitivity=WIDE)
            agree(mechanism, scores, SETS | {"relative_error"})


@pytest.mark.slow
@pytest.mark.parametrize("scores", DATA, ids=str)
@pytest.mark.parametrize("noise", NOISES)
def test_one_shot_has_the_figures_of_its_law(scores: list[float], noise: str) -> None:
    for k in (1, 2, 3, 5):
        for epsilon in (0.05, 3.0):
            agree(dps.OneShot(k=k, epsilon=epsilon, noise=noise, sensitivity=WIDE), scores, SETS)


@pytest.mark.slow
@pytest.mark.parametrize("scores", DATA, ids=str)
def test_lists_have_the_figures_of_their_law(scores: list[float]) -> None:
    for k, epsilon in product((1, 2, 3), EPSILONS):
        for noise, margin in product(("exponential", "gumbel"), (True, False)):
            agree(dps.Joint(k=k, epsilon=epsilon, noise=noise, margin=margin, sensitivity=WIDE), scores, LISTS)
        agree(dps.Peeling(k=k, epsilon=epsilon, noise="gumbel", sensitivity=WIDE), scores, LISTS)
        for noise in ("exponential", "laplace"):
            agree(dps.Peeling(k=k, epsilon=epsilon, noise=noise, sensitivity=WIDE), scores, {"exact", "inexact"})


@pytest.mark.slow
@pytest.mark.parametrize("scores", [*DATA, [100, 1, 1], [0, 101, 100]], ids=str)
def test_gaussian_and_laplace_have_the_figures_of_their_laws(scores: list[float]) -> None:
    for k, epsilon in product((1, 2, 3), (0.05, 4.0)):
        agree(gaussian(k, epsilon), scores, LISTS)
        agree(dps.Laplace(k=k, epsilon=epsilon, max_items_per_person=2), scores, LISTS)


@pytest.mark.parametrize("scores", DATA[:4:3], ids=str)
def test_an_ordered_answer_to_a_question_for_a_set_is_judged_by_the_set(scores: list[float]) -> None:
    """With k items per person Laplace draws the sequence whose set is that of one-shot noise."""
    for k, epsilon in product((1, 3), (0.5, 4.0)):
        listed = dps.Laplace(k=k, epsilon=epsilon, max_items_per_person=k)
        as_set = dps.OneShot(k=k, epsilon=epsilon, noise="laplace")
        figures = found(listed, np.array(scores), ordered=False)
        assert figures == pytest.approx(found(as_set, np.array(scores)), rel=1e-9, abs=1e-15)
        assert found(listed, np.array(scores))["exact"] <= figures["exact"] + 1e-12
        needed = dps.forecast.smallest_epsilon(scores, listed, 0.9, ordered=False)
        assert needed == pytest.approx(dps.forecast.smallest_epsilon(scores, as_set, 0.9), rel=1e-6)
        drawn = dps.forecast.forecast(scores, dps.Joint(k=k, epsilon=epsilon), ordered=False).exact
        assert drawn is not None
        assert not drawn.exact
    with pytest.raises(dps.InvalidInput, match="as a set, joint and peeling"):
        dps.forecast.success(scores, dps.Joint(k=2, epsilon=1.0), ordered=False)
    with pytest.raises(dps.InvalidInput, match="has no order"):
        dps.forecast.forecast(scores, dps.OneShot(k=2, epsilon=1.0), ordered=True)


@pytest.mark.slow
@pytest.mark.parametrize(
    "scores", [[8, 6, 5, 4, 4, 4, 4, 2, 1, 1], [5, 5, 5, 5, 5, 3, 3, 0], [9, 3, 3, 3, 3, 3, 3, 3]], ids=str
)
def test_ties_at_rank_k_are_interchangeable(scores: list[float]) -> None:
    for k, epsilon in product((3, 5, 6), (0.01, 1.0)):
        agree(dps.Canonical(k=k, epsilon=epsilon), scores, SETS | {"relative_error"})
        for noise in ("exponential", "laplace"):
            agree(dps.OneShot(k=k, epsilon=epsilon, noise=noise), scores, SETS)
        if k == 3:
            agree(dps.Joint(k=k, epsilon=epsilon), scores, LISTS)


@pytest.mark.slow
@pytest.mark.parametrize("scores", [[5, 5, 4, 4, 4, 3, 3, 2, 2, 0], [7, 6, 6, 6, 6, 3, 3, 3, 3, 1]], ids=str)
@pytest.mark.parametrize("k", [3, 6])
@pytest.mark.parametrize("kind", [dps.Canonical, dps.OneShot, dps.Joint])
def test_any_pair_of_ranks_to_be_within(scores: list[float], k: int, kind: Any) -> None:
    """Great and good of small k hardly meet ties among required items, so that all pairs of ranks are tried."""
    if kind is dps.Joint:
        k, scores = min(k, 4), scores[: 12 - k]
    mechanism, table = kind(k=k, epsilon=1.3), dps.Scores.of(np.array(scores))
    law, data, top = mechanism.law(scores), np.array(scores), np.sort(scores)[::-1]
    for held in range(1, k + 1):
        for last in range(k, len(scores) + 1):
            judge = within(held, top[last - 1])
            wanted = sum(share * judge(top[:k], data[list(outcome)]) for outcome, share in law.items())
            if kind is dps.OneShot:
                probability = noisy_items(table, mechanism).within(held, last, 1e-9)  # type: ignore[union-attr]
            elif kind is dps.Joint:
                bounds = JointLevels.of(mechanism, table, 1.3).bounds(1.3, "exponential")
                probability = bounds._within(held, last)
            else:
                subsets = Subsets.of(mechanism, table, 1.3)
                shares, row, column = subsets.law(1.3, "exponential")
                places = subsets.heads[row], subsets.runs[column], subsets.log_sizes[row, column]
                probability = float(shares[0] + shares[1:] @ subsets._share_within(*places, held, last))
            assert probability == pytest.approx(wanted, rel=1e-8), (held, last)


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(18))
def test_random_domains(seed: int) -> None:
    """Scores of all kinds and scales, any k and ε, for all mechanisms with exact figures."""
    generator = np.random.default_rng(seed)
    size = int(generator.integers(1, 7))
    k, epsilon = int(generator.integers(1, size + 1)), float(10.0 ** generator.uniform(-4, 4))
    scores = [
        generator.integers(0, 6, size).astype(np.float64),
        np.round(generator.normal(0, 10.0 ** generator.integers(-3, 5), size), 3),
        generator.integers(0, 10 ** int(generator.integers(1, 12)), size).astype(np.float64),
    ][seed % 3].tolist()
    for kind, noises in ((dps.Canonical, 2), (dps.Joint, 2), (dps.Peeling, 2), (dps.OneShot, 5)):
        noise = [*NOISES][:noises][int(generator.integers(0, noises))]
        mechanism: dps.Mechanism = kind(k=k, epsilon=epsilon, noise=noise)
        agree(mechanism, scores, set(found(mechanism, scores)))


def test_a_wrong_rate_is_noticed() -> None:
    """The comparison with the law can fail: one percent more of ε is seen in every figure."""
    right, wrong = (dps.OneShot(k=2, epsilon=epsilon) for epsilon in (1.0, 1.01))
    law, figures = expected(right, DATA[0]), found(wrong, DATA[0])
    for name in SETS:
        assert abs(figures[name] - law[name]) > 1e-4 * law[name], name


def test_delta_is_used_where_the_mechanism_has_it() -> None:
    scores = [9.0, 7.0, 4.0, 4.0, 1.0]
    for kind, names in ((dps.OneShot, SETS), (dps.Peeling, LISTS)):
        mechanism = kind(k=3, epsilon=0.5, noise="gumbel", delta=0.05)
        agree(mechanism, scores, names)
        assert found(mechanism, scores)["exact"] > found(kind(k=3, epsilon=0.5, noise="gumbel"), scores)["exact"]


def test_scores_may_be_fractions() -> None:
    exact = [Fraction(1, 3), Fraction(1, 7), Fraction(2, 5), Fraction(1, 9)]
    for mechanism in (dps.OneShot(k=2, epsilon=9.0), dps.Canonical(k=2, epsilon=9.0), dps.Joint(k=2, epsilon=9.0)):
        wanted = found(mechanism, [float(score) for score in exact])
        assert found(mechanism, exact) == pytest.approx(wanted, rel=1e-9)


@pytest.mark.slow
@pytest.mark.parametrize(
    "noise",
    [noise if noise in ("exponential", "gumbel") else pytest.param(noise, marks=pytest.mark.long) for noise in NOISES],
)
@pytest.mark.parametrize(
    ("leaders", "ties", "k", "leads"),
    [(3, 50, 8, (1, 2)), (3, 10**5, 100, (4, 6)), (3, 10**9, 400, (11, 13)), (21, 2979, 84, (0.05, 1))],
    ids=["few", "many", "billions", "close"],
)
def test_a_missing_leader_is_replaced_by_a_tied_item(
    noise: str, leaders: int, ties: int, k: int, leads: tuple[float, float]
) -> None:
    """Few items lead a large tie that fills the answer: what is missing is a sum over them, the number wrong one over
    the tie, and the two have to agree.
    """
    table = dps.Scores.from_histogram([9, 5], [leaders, ties])
    unit = float(dps.OneShot(k=k, epsilon=1.0, noise=noise).rate(ties + leaders))
    for lead in leads:
        figures = found(dps.OneShot(k=k, epsilon=lead / 4 / unit, noise=noise), table)
        wrong = k - figures["correct"]
        assert 1e-3 < wrong < leaders
        assert figures["total_error"] == pytest.approx(4 * wrong, rel=1e-6)


@pytest.mark.parametrize("size", [5, 50, 655])
def test_the_lowest_of_many_tied_items(size: int) -> None:
    """Two items compete with a tie for the last place: it loses one if its lowest is below both."""
    mechanism = dps.OneShot(k=size + 1, epsilon=0.9 * (size + 1))
    wanted = math.exp(-2 * float(mechanism.rate(size + 2))) * size / (size + 2)
    figures = found(mechanism, np.repeat([1.0, 0.0], [size, 2]))
    assert size + 1 - figures["correct"] == pytest.approx(wanted, rel=1e-6)
    assert figures["total_error"] == pytest.approx(wanted, rel=1e-6)
    assert figures["inexact"] == pytest.approx(wanted, rel=1e-6)
    assert figures["good"] == pytest.approx(1.0, rel=1e-9)


@pytest.mark.parametrize("lead", [0.5, 1.0, 2.5])
def test_rare_mistakes_keep_their_digits(lead: float) -> None:
    """All but the lowest of 23 values are chosen; ten items lead twelve, by so many e-folds."""
    unit = float(dps.OneShot(k=22, epsilon=1.0).rate(23))
    scores = np.repeat([1e3, lead, 0.0], [1, 10, 12])
    inexact = found(dps.OneShot(k=22, epsilon=1 / unit), scores)["inexact"]
    assert inexact == pytest.approx(10 / 22 * math.exp(-12 * lead), rel=1e-6, abs=0)


@pytest.mark.parametrize("noise", ["exponential", "gumbel"])
@pytest.mark.parametrize("epsilon", [1.0, 40.0, 150.0])
def test_the_complement_keeps_its_digits(noise: str, epsilon: float) -> None:
    """Two items, one place: the closed forms of both noises."""
    weight = math.exp(-epsilon)
    wanted = weight / 2 if noise == "exponential" else weight / (1 + weight)
    for kind in (dps.OneShot, dps.Peeling, dps.Joint, dps.Canonical):
        # Without their margins Joint and Canonical would need twice the ε.
        figures = found(kind(k=1, epsilon=epsilon, noise=noise), [1, 0])
        assert figures["inexact"] == pytest.approx(wanted, rel=1e-6, abs=0), kind
        assert figures["exact"] == pytest.approx(1 - wanted, rel=1e-12)


def test_groups_far_larger_than_memory() -> None:
    """With 10^15 unseen items there is a closed form: all subsets lose the same."""
    table = dps.Scores.from_histogram([60, 0], [2, 10**15])
    log_others = math.log(10**15) + math.log(10**15 - 1) - math.log(2)
    exact = found(dps.Canonical(k=2, epsilon=1.2, noise="gumbel"), table)["exact"]
    assert exact == pytest.approx(1 / (1 + math.exp(log_others - 72) + 2e15 * math.exp(-72)), rel=1e-9)
    rest = 10**15 * math.exp(-45)
    exact = found(dps.OneShot(k=2, epsilon=1.5, noise="gumbel"), table)["exact"]
    assert exact == pytest.approx(2 / (2 + rest) * 1 / (1 + rest), rel=1e-6)


def test_a_top_sequence_that_only_its_margin_makes_likely_is_not_cut_off() -> None:
    """Without the margin it would weigh e^-35 beside the lists of tied items, and small losses far less."""
    table = dps.Scores.from_histogram([*range(3850, 1400, -300), 1350, 0], [1] * 10 + [10**60])
    figures = found(dps.Joint(k=10, epsilon=0.7), table)
    assert 0.8 < figures["exact"] < 0.9
    assert figures["correct"] == pytest.approx(10 * figures["exact"], rel=1e-9)


def test_the_largest_of_many_normal_values() -> None:
    from scipy.special import log_ndtr

    mechanism, scores = gaussian(1, 1e-3), -np.arange(1000.0)
    z = np.linspace(-12, 12, 4001)
    log_others = log_ndtr(z - scores[1:, None] / float(mechanism.sigma)).sum(axis=0)
    density = np.exp(-z * z / 2 + log_others) / math.sqrt(2 * math.pi)
    wanted = float(density.sum() * (z[1] - z[0]))
    figures = found(mechanism, scores)
    assert [figures[name] for name in ("exact", "great")] == pytest.approx([wanted, wanted], rel=1e-6)


@pytest.mark.parametrize("noise", ["exponential", "gumbel"])
def test_a_real_size_agrees_with_the_classes_and_levels_listed_one_by_one(noise: str) -> None:
    counts = [round(4000 / rank**0.6) for rank in range(1, 401)]
    for epsilon in (0.02, 0.1, 1.0):
        canonical = dps.Canonical(k=20, epsilon=epsilon, noise=noise)
        assert found(canonical, counts)["exact"] == pytest.approx(
            canonical.classes(counts).probability_of_top(), rel=1e-9
        )
        joint = dps.Joint(k=20, epsilon=epsilon, noise=noise)
        assert found(joint, counts)["exact"] == pytest.approx(joint.levels(counts).probability_of_best(), rel=1e-9)


@pytest.mark.parametrize(
    "mechanism", [dps.OneShot(k=40, epsilon=4.0), dps.Joint(k=40, epsilon=0.2)], ids=["set", "list"]
)
def test_a_finer_tolerance_changes_no_more_than_the_tolerance(mechanism: dps.Mechanism) -> None:
    counts = [round(9000 / rank**0.7) for rank in range(1, 1501)]
    rough, fine = (found(mechanism, counts, tolerance=tolerance) for tolerance in (1e-5, 1e-9))
    assert rough == pytest.approx(fine, rel=1e-5)
