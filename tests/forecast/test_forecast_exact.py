"""Exact figures are those of the law, on every outcome of small domains, and agree with draws on larger ones."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
from forecast_brute import DATA, expected, within

import dpselect as dps
from dpselect.forecast import metrics
from dpselect.forecast.bounded_rows import BoundedRows
from dpselect.forecast.curves import noisy_groups
from dpselect.forecast.figures import exact_figures
from dpselect.forecast.loss_bounds import LossBounds
from dpselect.forecast.outcome import TITLES
from dpselect.forecast.row_counts import within as sequences_within
from dpselect.forecast.sequences import Sequences
from dpselect.forecast.subsets import Subsets
from dpselect.sampling import NOISES, bit_source
from dpselect.scores import Ranking

WIDE = dps.Sensitivity(-1, 2)
ALL_BUT_LARGEST = set(TITLES) - {"largest_error"}
COUNTS = [round(4000 / rank**0.6) for rank in range(1, 401)]


def agree(mechanism: dps.Mechanism, scores: list[float], names: set[str]) -> None:
    """Compare every figure that is said to be exact with the law."""
    found = exact_figures(dps.Scores.of(np.array(scores)), mechanism)
    law = expected(mechanism, scores)
    assert set(found) == names
    for name, value in found.items():
        assert value == pytest.approx(law[name], rel=1e-8, abs=1e-10), (name, mechanism, scores)


@pytest.mark.parametrize("scores", DATA)
@pytest.mark.parametrize("k", [1, 2, 3, 5])
@pytest.mark.parametrize("noise", ["exponential", "gumbel"])
@pytest.mark.parametrize(("gamma", "margin"), [(0.5, True), (0.25, False), (1.0, True), (0.0, False)])
def test_canonical(scores: list[float], k: int, noise: str, gamma: float, margin: bool) -> None:
    for epsilon in (0.05, 1.0, 6.0):
        mechanism = dps.Canonical(k=k, epsilon=epsilon, gamma=gamma, margin=margin, noise=noise, sensitivity=WIDE)
        agree(mechanism, scores, ALL_BUT_LARGEST)


@pytest.mark.parametrize("scores", [[5, 5, 4, 4, 4, 3, 3, 2, 2, 0], [7, 6, 6, 6, 6, 3, 3, 3, 3, 1]])
@pytest.mark.parametrize("k", [3, 4, 6])
@pytest.mark.parametrize("kind", [dps.Canonical, dps.OneShot, dps.Joint])
def test_every_pair_of_ranks_to_be_within(scores: list[float], k: int, kind: Any) -> None:
    """Great and good of small k hardly meet ties among what must be held; so all pairs of ranks are tried."""
    if kind is dps.Joint:
        k, scores = min(k, 4), scores[: 12 - k]
    mechanism, table = kind(k=k, epsilon=1.3), dps.Scores.of(np.array(scores))
    law = mechanism.law(scores)
    data, top = np.array(scores), np.sort(scores)[::-1]
    for held in range(1, k + 1):
        for last in range(k, len(scores) + 1):
            judge = within(held, top[last - 1])
            wanted = sum(chance * judge(top[:k], data[list(outcome)]) for outcome, chance in law.items())
            if kind is dps.OneShot:
                noisy = noisy_groups(table, k, mechanism.rate(len(scores)), NOISES["exponential"])
                assert noisy.within(held, last) == pytest.approx(wanted, rel=1e-8), (held, last)
                continue
            if kind is dps.Joint:
                levels = Sequences.of(k, 1.0, table, 1.3)
                bounds = LossBounds.of(levels, 1.3, "exponential")
                rows = BoundedRows.of(levels.steps, Ranking.of(table.distinct), k, bounds)
                assert sequences_within(rows, held, last) == pytest.approx(wanted, rel=1e-8), (held, last)
                continue
            subsets = Subsets.of(mechanism, table, 1.3)
            classes = mechanism.classes(scores)
            row, run = np.nonzero(np.isfinite(subsets.log_sizes))
            share = subsets._share_within(row, run, held, last)
            found = classes.probabilities[0] + classes.probabilities[1:] @ share
            assert found == pytest.approx(wanted, rel=1e-8), (held, last)


@pytest.mark.parametrize("scores", DATA)
@pytest.mark.parametrize("k", [1, 2, 3, 5])
@pytest.mark.parametrize("noise", list(NOISES))
def test_oneshot(scores: list[float], k: int, noise: str) -> None:
    for epsilon in (0.05, 1.0, 6.0):
        agree(dps.OneShot(k=k, epsilon=epsilon, noise=noise, sensitivity=WIDE), scores, ALL_BUT_LARGEST)


@pytest.mark.parametrize("scores", DATA)
@pytest.mark.parametrize("k", [1, 2, 3, 5])
@pytest.mark.parametrize("noise", ["exponential", "gumbel"])
@pytest.mark.parametrize("kind", [dps.Joint, dps.Peeling])
def test_sequences(scores: list[float], k: int, noise: str, kind: Any) -> None:
    for epsilon in (0.05, 1.0, 6.0):
        mechanism = kind(k=k, epsilon=epsilon, noise=noise, sensitivity=WIDE)
        agree(mechanism, scores, ALL_BUT_LARGEST if kind is dps.Joint or noise == "gumbel" else {"exact"})


@pytest.mark.parametrize("scores", [[8, 6, 5, 4, 4, 4, 4, 2, 1, 1], [5, 5, 5, 5, 5, 3, 3, 0], [9, 3, 3, 3, 3, 3, 3, 3]])
@pytest.mark.parametrize("k", [3, 4, 5, 6])
def test_ties_at_rank_k(scores: list[float], k: int) -> None:
    for epsilon in (0.01, 0.5, 3.0):
        agree(dps.Canonical(k=k, epsilon=epsilon), scores, ALL_BUT_LARGEST)
        for noise in ("exponential", "laplace"):
            agree(dps.OneShot(k=k, epsilon=epsilon, noise=noise), scores, ALL_BUT_LARGEST)
        if k < 5:
            agree(dps.Joint(k=k, epsilon=epsilon), scores, ALL_BUT_LARGEST)


@pytest.mark.parametrize("seed", range(40))
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
        noise = ["exponential", "gumbel", "laplace", "logistic", "half-logistic"][int(generator.integers(0, noises))]
        mechanism: dps.Mechanism = kind(k=k, epsilon=epsilon, noise=noise)
        found, law = exact_figures(dps.Scores.of(np.array(scores)), mechanism), expected(mechanism, scores)
        scale = max(1.0, *np.abs(scores))
        for name, value in found.items():
            allowed = 1e-9 * (scale if "error" in name else 1.0)
            assert value == pytest.approx(law[name], rel=1e-7, abs=allowed), (name, mechanism, scores)


def test_delta_is_used_where_the_mechanism_has_it() -> None:
    for kind in (dps.OneShot, dps.Peeling):
        mechanism = kind(k=3, epsilon=0.5, noise="gumbel", delta=0.05)
        agree(mechanism, [9.0, 7.0, 4.0, 4.0, 1.0], ALL_BUT_LARGEST)
        pure = exact_figures(dps.Scores.of([9, 7, 4, 4, 1]), kind(k=3, epsilon=0.5, noise="gumbel"))
        assert exact_figures(dps.Scores.of([9, 7, 4, 4, 1]), mechanism)["exact"] > pure["exact"]


def test_gaussian() -> None:
    mechanism = dps.Gaussian(k=2, epsilon=1.0, delta=1e-3, max_items_per_person=2)
    agree(mechanism, [9.0, 6.0, 4.0, 4.0, 1.0], ALL_BUT_LARGEST)


@pytest.mark.parametrize(
    "mechanism",
    [
        dps.Canonical(k=20, epsilon=0.12),
        dps.Canonical(k=20, epsilon=0.12, margin=False, noise="gumbel"),
        dps.OneShot(k=20, epsilon=3.0),
        dps.OneShot(k=20, epsilon=3.0, noise="laplace"),
        dps.Peeling(k=20, epsilon=8.0, noise="gumbel"),
        dps.Joint(k=20, epsilon=0.3),
        dps.Gaussian(k=20, epsilon=0.2, delta=1e-3, max_items_per_person=1),
    ],
    ids=lambda mechanism: f"{mechanism.name}-{getattr(mechanism, 'noise', 'normal')}",
)
def test_draws_agree_with_exact_figures(mechanism: dps.Mechanism) -> None:
    """Means of 1,500 seeded draws lie within 6 standard errors: fails by chance less than once in 1e7 runs."""
    from dpselect.forecast.simulation import simulated

    table = dps.Scores.of(np.array(COUNTS))
    exact = exact_figures(table, mechanism)
    drawn = simulated(table, mechanism, 1500, 7, list(exact))
    for name, value in exact.items():
        figure = drawn[name]
        assert figure is not None
        if name in ("exact", "great", "good"):
            error = math.sqrt(max(value * (1 - value), 1 / 1500) / 1500)
        else:
            error = max((figure.high - figure.low) / 2 / 1.96, 1e-3 * abs(value))
        assert abs(figure.value - value) <= 6 * error, (name, figure, value)


def test_a_wrong_rate_is_noticed_by_the_draws() -> None:
    """The comparison above can fail: with half as much ε again the chance is another one."""
    table = dps.Scores.of(np.array(COUNTS))
    right, wrong = (exact_figures(table, dps.OneShot(k=20, epsilon=epsilon))["exact"] for epsilon in (3.0, 4.5))
    bits, mechanism = bit_source(7), dps.OneShot(k=20, epsilon=3.0)
    hits = [sorted(mechanism.draw(table, bits).values.tolist(), reverse=True) == COUNTS[:20] for _ in range(1500)]
    allowed = 6 * math.sqrt(right * (1 - right) / 1500)
    assert abs(sum(hits) / 1500 - right) < allowed < abs(sum(hits) / 1500 - wrong)


def test_leaving_out_what_cannot_matter_changes_nothing() -> None:
    table = dps.Scores.of(np.array(COUNTS))
    for epsilon in (0.02, 0.1, 1.0):
        mechanism = dps.Canonical(k=20, epsilon=epsilon)
        whole, cut = Subsets.of(mechanism, table), Subsets.of(mechanism, table, epsilon)
        assert cut.chance(epsilon, "exponential") == pytest.approx(whole.chance(epsilon, "exponential"), rel=1e-10)
        assert whole.chance(epsilon, "gumbel") == pytest.approx(
            dps.Canonical(k=20, epsilon=epsilon, noise="gumbel").classes(COUNTS).probability_of_top(), rel=1e-9
        )
        joint = [Sequences.of(20, 1.0, table, smallest).chance(epsilon, "exponential") for smallest in (0.0, epsilon)]
        assert joint[0] == pytest.approx(joint[1], rel=1e-10)
    assert Subsets.of(dps.Canonical(k=20, epsilon=1.0), table, 1.0).log_sizes.size < whole.log_sizes.size / 10


def test_groups_far_larger_than_memory() -> None:
    """With 10^15 unseen items the chance still has a closed form: all subsets lose the same."""
    table = dps.Scores.from_histogram([60, 0], [2, 10**15])
    log_others = math.log(10**15) + math.log(10**15 - 1) - math.log(2)
    found = exact_figures(table, dps.Canonical(k=2, epsilon=1.2, noise="gumbel"))["exact"]
    assert found == pytest.approx(1 / (1 + math.exp(log_others - 72) + 2e15 * math.exp(-72)), rel=1e-9)
    oneshot = exact_figures(table, dps.OneShot(k=2, epsilon=1.5, noise="gumbel"))["exact"]
    rest = 10**15 * math.exp(-45)
    assert oneshot == pytest.approx(2 / (2 + rest) * 1 / (1 + rest), rel=1e-9)


def test_gaps_beyond_what_a_float_resolves() -> None:
    for kind in (dps.OneShot, dps.Peeling, dps.Canonical, dps.Joint):
        for noise in ("gumbel", "exponential"):
            found = exact_figures(dps.Scores.of([9 * 10**18, 10**15, 3]), kind(k=1, epsilon=7.0, noise=noise))
            assert found["exact"] == pytest.approx(1.0, abs=1e-12)


def test_where_all_are_tied_every_answer_is_exact() -> None:
    outlook = dps.forecast.forecast([5, 5, 5], dps.OneShot(k=2, epsilon=1.0, noise="laplace"))
    assert [figure and figure.value for figure in (outlook.exact, outlook.great, outlook.good)] == [1.0, 1.0, 1.0]


def test_the_largest_error_lies_between_the_others() -> None:
    """Few draws may say otherwise of a mean; what is exact corrects them."""
    for seed in range(5):
        outlook = dps.forecast.forecast(COUNTS, dps.Joint(k=5, epsilon=0.05), draws=2, seed=seed)
        low, middle, high = outlook.relative_error, outlook.largest_error, outlook.total_error
        assert low is not None
        assert middle is not None
        assert high is not None
        assert low.value <= middle.low <= middle.value <= middle.high <= high.value


def test_draws_that_miss_what_is_rare_leave_the_exact_bounds() -> None:
    """The 20 draws of seed 0 are all right, which bounds nothing: the error lies between the two that are exact."""
    outlook = dps.forecast.forecast(COUNTS, dps.Canonical(k=20, epsilon=0.4), draws=20)
    low, middle, high = outlook.relative_error, outlook.largest_error, outlook.total_error
    assert low is not None
    assert middle is not None
    assert high is not None
    assert 0 < low.value == middle.low < middle.high == high.value


def test_one_item_has_one_error() -> None:
    """With k = 1 the ℓ∞ error is the ℓ1 error, so that it needs no draws to be known."""
    outlook = dps.forecast.forecast([9, 7, 4], dps.Canonical(k=1, epsilon=0.3), draws=20)
    assert outlook.largest_error == outlook.total_error
    assert outlook.largest_error is not None
    assert outlook.largest_error.exact


@pytest.mark.parametrize(
    "mechanism",
    [
        dps.LimitedDomain(k=2, epsilon=1.0, delta=1e-3, pool=4),
        dps.TopStable(k=2, epsilon=6.0, delta=1e-3, pool=4),
        dps.Restricted(inner=dps.OneShot(k=2, epsilon=1.0), pool=4, test_epsilon=1.0, test_delta=1e-3),
    ],
    ids=lambda mechanism: mechanism.name,
)
def test_unknown_domains_are_simulated(mechanism: dps.Mechanism) -> None:
    """Answers may be short: then errors by rank are not defined. A miss by 3.5 half-widths is 6.9 standard errors."""
    scores = [24, 17, 9, 4, 1, 0]
    outlook = dps.forecast.forecast(scores, mechanism, draws=400)
    assert outlook.figures() == dps.forecast.forecast(scores, mechanism, draws=400).figures()
    assert outlook.total_error is None
    data, top, wanted = (
        np.array(scores),
        np.array(scores[:2]),
        dict.fromkeys(("exact", "correct", "f1", "score_ratio"), 0.0),
    )
    for outcome, probability in mechanism.law(scores).items():
        chosen = data[[item for item in outcome if isinstance(item, int)]]
        chosen = chosen if mechanism.ordered else np.sort(chosen)[::-1]
        for name, judge in (
            ("exact", metrics.is_exact),
            ("correct", metrics.number_correct),
            ("f1", metrics.f1_score),
            ("score_ratio", metrics.score_ratio),
        ):
            wanted[name] += probability * judge(top, chosen)
    for name, value in wanted.items():
        figure = getattr(outlook, name)
        assert not figure.exact
        assert 0.01 < value / (2 if name == "correct" else 1) < 0.99, (name, value)
        assert abs(figure.value - value) <= 3.5 * (figure.high - figure.low) / 2, name


def test_a_forecast_as_a_whole() -> None:
    outlook = dps.forecast.forecast(COUNTS, dps.Canonical(k=20, epsilon=0.12), draws=50)
    figures = outlook.figures()
    assert list(figures) == list(TITLES)
    assert all(figure is not None for figure in figures.values())
    assert [name for name, figure in figures.items() if figure and not figure.exact] == ["largest_error"]
    low, high, between = (getattr(outlook, name) for name in ("relative_error", "total_error", "largest_error"))
    assert low.value <= between.low <= between.value <= between.high <= high.value
    chances = [getattr(outlook, name).value for name in ("exact", "great", "good")]
    assert chances == sorted(chances)
    assert 0 < chances[0] < chances[-1] <= 1
    data = outlook.to_dict()
    assert data["private"] is False
    assert data["exact"]["exact"] is True
    assert "not private" in outlook._repr_html_()


def test_a_page_says_why_a_figure_is_missing() -> None:
    assert "no exact form" in dps.forecast.forecast(COUNTS, dps.Canonical(k=20, epsilon=0.12), draws=0)._repr_html_()
    short = dps.forecast.forecast([120, 100, 80, 20, 10, 5], dps.TopStable(k=3, epsilon=1.0, delta=1e-6), draws=20)
    assert "not always defined" in short._repr_html_()


def test_without_draws_there_are_only_exact_figures() -> None:
    outlook = dps.forecast.forecast(COUNTS, dps.Joint(k=20, epsilon=0.3), draws=0)
    assert outlook.exact is not None
    assert outlook.largest_error is None


def test_other_mechanisms_are_simulated_with_an_interval() -> None:
    """A miss by 3.5 half-widths of a 95% interval is 6.9 standard errors."""
    mechanism, scores = dps.Gamma(k=2, epsilon=0.3), [40.0, 30.0, 20.0, 10.0, 0.0]
    outlook, law = dps.forecast.forecast(scores, mechanism, draws=400), expected(mechanism, scores)
    for name, figure in outlook.figures().items():
        assert figure is not None
        assert not figure.exact
        assert figure.low <= figure.value <= figure.high
        assert abs(figure.value - law[name]) <= 3.5 * (figure.high - figure.low) / 2, name


@pytest.mark.parametrize(
    ("arguments", "argument"),
    [
        ({"scores": []}, "scores"),
        ({"mechanism": "canonical"}, "mechanism"),
        ({"mechanism": dps.Canonical(k=9, epsilon=1.0)}, "k"),
        ({"draws": 1}, "draws"),
        ({"draws": -3}, "draws"),
        ({"draws": 2.5}, "draws"),
        ({"seed": -1}, "seed"),
    ],
)
def test_bad_input_is_refused(arguments: dict[str, Any], argument: str) -> None:
    given = {"scores": [3, 2, 1], "mechanism": dps.Canonical(k=1, epsilon=1.0), **arguments}
    with pytest.raises(dps.InvalidInput) as refused:
        dps.forecast.forecast(**given)
    assert refused.value.argument == argument


def test_more_classes_than_fit_are_refused_by_name() -> None:
    scores = dps.Scores.of(np.arange(200_000) / 7.0)
    with pytest.raises(dps.InvalidInput, match="too many distinct ones"):
        dps.forecast.success(scores, dps.Canonical(k=100, epsilon=1.0))
    assert dps.forecast.success(scores, dps.Canonical(k=100, epsilon=1.0), smallest=900.0).chance(900.0) > 0.99
