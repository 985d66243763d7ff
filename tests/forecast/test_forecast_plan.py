"""Plans and comparisons, and the pictures of them."""

from __future__ import annotations

import dataclasses
import json
import math
import xml.etree.ElementTree
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from scipy.optimize import brentq

import dpselect as dps
from dpselect.forecast import compare, plan, smallest_epsilon, write_plot
from dpselect.forecast.plan import GAMMAS
from dpselect.forecast.reach import lead_needed, worst_case
from dpselect.mechanisms import mechanism_for
from dpselect.sampling import NOISES

VOTES = [412, 398, 190, 187, 35, 12, 12, 3]


def needs(result: Any) -> dict[str, float]:
    return {need.label: need.epsilon for need in result.needs}


def test_the_plan_by_its_closed_forms() -> None:
    """All other subsets lose the gap: Canonical and one-shot with gumbel noise can be worked out on paper."""
    found = needs(plan(10, gap=50, accuracy=0.99, items=10_000).comparison)
    others = math.comb(10_000, 10) - 1
    assert found["canonical, gumbel"] == pytest.approx((math.log(others) + math.log(99)) / 50, rel=1e-9)
    weight = brentq(lambda weight: (1 - math.exp(-weight)) / weight - 0.99, 1e-3, 1.0)
    assert found["canonical"] == pytest.approx((math.log(others) - math.log(weight)) / 50, rel=1e-9)
    # Published: the gap counts half.
    assert found["canonical, published"] == pytest.approx(2 * found["canonical, gumbel"], rel=1e-9)
    epsilon = found["oneshot, gumbel"]
    chance = math.prod(left / (left + 9990 * math.exp(-5 * epsilon)) for left in range(1, 11))
    assert chance == pytest.approx(0.99, rel=1e-8)


@pytest.mark.slow
def test_the_model_is_the_worst_case_for_its_gap() -> None:
    """Whatever else the scores are, as long as the gaps are no smaller, no more ε is needed."""
    generator = np.random.default_rng(5)
    for ordered in (False, True):
        worst = needs(plan(3, gap=4, items=12, ordered=ordered).comparison)
        for _ in range(6):
            rest = -np.sort(generator.integers(0, 9, 9))[::-1]
            rest -= rest.max()
            gaps = generator.integers(4 if ordered else 0, 9, 3)
            gaps[-1] = max(gaps[-1], 4)
            top = np.cumsum(gaps[::-1])[::-1]
            found = needs(compare([*top.tolist(), *rest.tolist()], 3, ordered=ordered))
            assert all(found[label] <= worst[label] * (1 + 1e-9) for label in worst)


def test_more_items_more_accuracy_or_a_smaller_gap_need_more() -> None:
    usual = needs(plan(5, gap=20, items=100, accuracy=0.9).comparison)
    for changed in ({"items": 1000}, {"accuracy": 0.99}, {"gap": 10}):
        harder = needs(plan(5, **{"gap": 20, "items": 100, "accuracy": 0.9, **changed}).comparison)
        assert all(harder[label] > usual[label] for label in usual)


def test_rows_are_sorted_and_the_default_is_marked() -> None:
    for ordered in (False, True):
        for k in (1, 2, 3):
            rows = compare(VOTES, k, ordered=ordered).needs
            assert [row.epsilon for row in rows] == sorted(row.epsilon for row in rows)
            [default] = [row for row in rows if row.default]
            assert default.mechanism.name == dps.select(VOTES, k=k, epsilon=1.0, ordered=ordered).mechanism.name


@pytest.mark.slow
def test_at_most_one_row_is_the_default_and_it_is_what_auto_takes_at_the_stated_epsilon() -> None:
    """With m = 2 and this delta auto takes one-shot or Laplace, depending on ε."""
    facts: Any = {"delta": 1e-3, "max_items_per_person": 2}
    taken = set()
    for epsilon in (0.05, 1.0, 5.0):
        at: Any = plan(3, like=VOTES, epsilon=epsilon, **facts)
        for found in (compare(VOTES, 3, epsilon=epsilon, draws=0, **facts), at.comparison):
            [default] = [need for need in found.needs if need.default]
            chosen = mechanism_for("auto", k=3, epsilon=epsilon, **facts)
            assert dataclasses.replace(default.mechanism, epsilon=epsilon) == chosen
            taken.add(chosen.name)
        assert f"<td>{default.label} (the default)</td>" in found._repr_html_()
    assert taken == {"oneshot", "laplace"}
    for ordered in (False, True):
        rows = plan(3, gap=9, ordered=ordered, **facts).comparison.needs  # type: ignore[union-attr]
        assert [row.default for row in rows].count(True) <= 1


def test_a_plan_says_if_the_other_aim_needs_less() -> None:
    planned: Any = plan(10, gap=50, ordered=True)
    assert planned.exact.label == "joint"
    assert planned.exact.epsilon == needs(planned.comparison)["joint"]
    assert plan(10, gap=50, ordered=True, aim="exact").exact is None  # type: ignore[union-attr]
    assert plan(10, gap=50).exact is None  # type: ignore[union-attr]


def test_a_look_alike_is_scaled_to_the_number_of_people() -> None:
    counts = np.array([4000, 3000, 2000, 1000, 0])
    scaled = plan(2, like=counts, people=100, like_people=10_000)
    assert needs(scaled.comparison) == needs(compare(counts // 100, 2))
    assert needs(plan(2, like=counts).comparison) == needs(compare(counts, 2))
    assert "look-alike" in scaled.model


def test_delta_adds_a_row_that_holds_what_it_says() -> None:
    found = compare([90, 80, 70, 60, 50, 40, 30, 0, 0, 0], 7, delta=0.001)
    [row] = [need for need in found.needs if need.label == "oneshot, gumbel, delta"]
    assert row.epsilon < needs(found)["oneshot, gumbel"]
    assert row.mechanism.guarantee.delta == 0.001
    again = dps.OneShot(k=7, epsilon=row.epsilon * (1 + 1e-9), noise="gumbel", delta=0.001)
    assert dps.forecast.success(found.scores, again).chance(again.epsilon) == pytest.approx(0.99, abs=1e-6)


def test_a_delta_can_be_all_that_is_needed() -> None:
    """Rounds of tiny range cost nothing beyond the delta: then any ε will do."""
    scores = [10**6 * place for place in range(8)]
    assert smallest_epsilon(scores, dps.OneShot(k=3, epsilon=1.0, noise="gumbel", delta=0.05), 0.99) == 0


def test_a_comparison_is_plain_data_and_html() -> None:
    found = compare(VOTES, 3, epsilon=0.5, draws=20)
    data = json.loads(json.dumps(found.to_dict()))
    assert data["private"] is False
    assert data["mechanisms"][0]["forecast"]["exact"]["value"] == found.forecasts[0].exact.value  # type: ignore[union-attr]
    page = found._repr_html_()
    assert "canonical, published" in page
    assert {row.count("<td>") for row in page.split("<tr>")[2:]} == {5}, "every row has all cells"
    assert "not private" in found._repr_html_()
    planned = plan(3, gap=5)
    assert "private" not in json.loads(json.dumps(planned.to_dict()))
    assert "not from private data" in planned._repr_html_()
    assert "10,000 were assumed" in planned.notes[0]


def test_no_epsilon_is_none_in_plain_data() -> None:
    need = compare([5, 3, 3], 2).needs[0]
    endless = type(need)(need.label, need.words, need.mechanism, math.inf, False)
    assert endless.to_dict()["epsilon"] is None
    assert endless.shown == "none is enough"
    assert dataclasses.replace(need, epsilon=0.0).shown == "any"


@pytest.mark.parametrize("epsilon", [1.0, 0.12301, 9.999, 1234.5, 1e-7, 0.13532])
def test_what_is_printed_is_enough(epsilon: float) -> None:
    shown = float(dataclasses.replace(compare([5, 3, 3], 2).needs[0], epsilon=epsilon).shown)
    assert epsilon <= shown <= epsilon * 1.011
    assert len(f"{shown:e}".split("e")[0].rstrip("0").replace(".", "")) <= 3


@pytest.mark.parametrize(
    ("arguments", "argument", "words"),
    [
        ({"gap": 0}, "gap", "no epsilon can distinguish them"),
        ({"gap": -1}, "gap", "above 0"),
        ({"gap": math.nan}, "gap", "finite"),
        ({"gap": 11, "people": 10}, "gap", "must be at most 10"),
        ({}, "gap", "or epsilon"),
        ({"gap": 1, "like": [1, 0]}, "gap", "must be left out with similar"),
        ({"like": []}, "scores", "at least one item"),
        ({"like": [1]}, "k", "at most 1"),
        ({"like": [3, 2, 1], "items": 5}, "items", "must be left out"),
        ({"like": [3, 2, 1], "like_people": 5}, "people", "scaled by their ratio"),
        ({"gap": 3, "items": 2}, "items", "more than k"),
        ({"gap": 3, "accuracy": 1}, "accuracy", "strictly between"),
        ({"gap": 3, "people": 0}, "people", "at least 1"),
        ({"epsilon": 1, "gap": 3}, "gap", "must be left out with epsilon"),
        ({"epsilon": 1, "accuracy": 0.9}, "accuracy", "must be left out with epsilon"),
        ({"epsilon": 1, "like": [3, 2, 1], "accuracy": 0.9}, "accuracy", "must be left out with epsilon"),
        ({"epsilon": 1, "like_people": 3}, "like_people", "must be left out"),
        ({"epsilon": 0}, "epsilon", "positive"),
        ({"epsilon": 1, "items": 2}, "items", "more than k"),
    ],
)
def test_bad_facts_are_refused(arguments: dict[str, Any], argument: str, words: str) -> None:
    with pytest.raises(dps.InvalidInput, match=words) as refused:
        plan(2, **arguments)
    assert refused.value.argument == argument


@pytest.mark.parametrize("ordered", [False, True])
def test_a_lead_is_the_smallest_whole_one_that_is_enough(ordered: bool) -> None:
    """At the lead P[exact] reaches the probability, one person below it does not; with a delta as without."""
    most_items = 2 if ordered else None
    found: Any = plan(3, epsilon=0.7, items=40, ordered=ordered, delta=1e-4, max_items_per_person=most_items)
    assert json.loads(json.dumps(found.to_dict()))["mechanisms"][0]["leads"] == found.rows[0].leads
    assert any(row.mechanism.guarantee.delta for row in found.rows)
    assert [row.default for row in found.rows].count(True) == 1
    for row in found.rows:
        for probability, lead in row.leads.items():
            for people, enough in ((lead, True), (lead - 1, False)):
                leaders = [place * people for place in (3, 2, 1)] if ordered else [people] * 3
                chance = dps.forecast.success([*leaders, *[0] * 37], row.mechanism).chance(0.7)
                assert (chance >= float(probability) - 1e-9) == enough, row.label
    assert row.label in found._repr_html_()


def test_a_reach_in_units_of_the_score_is_rounded_up_to_three_digits() -> None:
    """Three times the spread at a third of the rate: the same answer as for counts, times the spread."""
    scores = dps.Canonical(k=2, epsilon=0.5, sensitivity=dps.Sensitivity(-1.5, 1.5))
    found = dps.forecast.reach(scores, 30)
    exact = 3 * smallest_epsilon([1, 1] + [0] * 28, dps.Canonical(k=2, epsilon=1.0), 0.9) / 0.5
    assert found is not None
    assert exact <= found.lead <= 1.01 * exact
    assert str(found).endswith(f"leads the rest by a score of {found.lead} or more")


@pytest.mark.parametrize(
    "mechanism",
    [
        dps.OneShot(k=50, epsilon=1.0, ordered=True),
        dps.Peeling(k=50, epsilon=1.0),
        dps.Peeling(k=50, epsilon=1.0, noise="gumbel", delta=1e-6),
        dps.Laplace(k=50, epsilon=1.0, max_items_per_person=3),
        dps.Gaussian(k=50, epsilon=1.0, delta=1e-6, max_items_per_person=3),
    ],
    ids=lambda mechanism: f"{mechanism.name} {mechanism.guarantee.delta}",
)
def test_the_lead_of_a_long_list_is_that_of_its_whole_law(mechanism: Any) -> None:
    """Beyond rank 32 P[exact] is extrapolated: still, the lead is the one of the curve over all ranks."""
    for probability in (0.01, 0.99):
        lead = lead_needed(mechanism, 300, probability, ordered=True)
        curve = dps.forecast.success(worst_case(50, lead, 300, ordered=True), mechanism)
        assert curve.chance(1.0) == pytest.approx(probability, rel=1e-8)


@pytest.mark.parametrize(
    ("arguments", "argument"),
    [
        ({"items": "a"}, "items"),
        ({"items": 0}, "items"),
        ({"probability": 1}, "probability"),
        ({"probability": [0.9]}, "probability"),
        ({"mechanism": "canonical"}, "mechanism"),
        ({"ordered": True}, "ordered"),
    ],
)
def test_a_reach_of_bad_arguments_is_refused(arguments: dict[str, Any], argument: str) -> None:
    with pytest.raises(dps.InvalidInput) as refused:
        dps.forecast.reach(**{"mechanism": dps.Canonical(k=2, epsilon=1.0), "items": 10, **arguments})
    assert refused.value.argument == argument


def test_there_is_no_reach_where_nothing_can_be_said() -> None:
    assert dps.forecast.reach(dps.Canonical(k=3, epsilon=1.0), 3) is None
    assert dps.forecast.reach(dps.Gamma(k=2, epsilon=1.0), 10) is None
    assert dps.forecast.reach(dps.Canonical(k=2, epsilon=1.0, gamma=0.0, margin=False), 10) is None
    everything = dps.forecast.reach(dps.Joint(k=3, epsilon=1.0), 3)
    assert str(everything).startswith("the right 3 come out in the right order with probability 0.9 if each of them")


def test_a_look_alike_says_what_to_expect_at_an_epsilon_and_which_gamma_to_state() -> None:
    counts = [round(900 / rank) for rank in range(1, 60)]
    needed: Any = plan(5, like=counts)
    least = {gamma: smallest_epsilon(counts, dps.Canonical(k=5, epsilon=1.0, gamma=gamma), 0.99) for gamma in GAMMAS}
    assert needed.gamma == min(least, key=lambda gamma: least[gamma]) == 0.75
    assert needs(needed.comparison)["canonical, gamma 0.75"] == least[0.75]
    at: Any = plan(5, like=counts, epsilon=0.03)
    right = {
        gamma: dps.forecast.forecast(counts, dps.Canonical(k=5, epsilon=0.03, gamma=gamma)).correct for gamma in GAMMAS
    }
    assert at.gamma == max(right, key=lambda gamma: right[gamma].value)  # type: ignore[union-attr]
    data = json.loads(json.dumps(at.to_dict()))
    assert (data["epsilon"], data["gamma"]) == (0.03, at.gamma)
    assert data["mechanisms"][0]["forecast"]["correct"]["value"] > 0
    assert "expected number correct at epsilon = 0.03" in at._repr_html_()
    for free in (plan(5, like=counts, ordered=True), plan(1, like=counts)):
        assert free.to_dict()["gamma"] is None


def test_a_large_delta_is_remarked_on() -> None:
    assert any("1/people" in line for line in plan(2, gap=5, people=100, delta=0.05).notes)
    assert not any("1/people" in line for line in plan(2, gap=5, people=100, delta=0.001).notes)
    assert any("1/people" in line for line in plan(2, like=VOTES, people=100, delta=0.05).notes)


@pytest.mark.slow
def test_pictures_are_written_and_curves_tell_apart_without_colour(tmp_path: Path) -> None:
    found = compare(VOTES, 3, epsilon=0.5, draws=0)
    axes = found.plot()
    curves = [line for line in axes.get_lines() if line.get_marker() not in ("", "None", None)]
    assert len(curves) == len(found.needs)
    assert len({(line.get_linestyle(), line.get_marker()) for line in curves}) == len(curves)
    assert [text.get_text() for text in axes.get_legend().get_texts()] == [need.title for need in found.needs]
    assert "epsilon = 0.5" in [text.get_text() for text in axes.texts]
    for ending, start in ((".png", b"\x89PNG"), (".svg", b"<?xml"), (".html", b"<!doctype html>")):
        path = tmp_path / f"plot{ending}"
        write_plot(path, found, "A title & more")
        assert path.read_bytes().startswith(start)
    xml.etree.ElementTree.parse(tmp_path / "plot.svg")
    page = (tmp_path / "plot.html").read_text()
    assert "A title &amp; more" in page
    assert not any(mark in page for mark in ("<script", "src=", "@import", "url(http", "<link"))


def test_a_forecast_draws_itself_on_given_axes() -> None:
    from matplotlib.figure import Figure

    axes = Figure().subplots()
    outlook = dps.forecast.forecast(VOTES, dps.Canonical(k=3, epsilon=0.5), draws=0)
    assert outlook.plot(axes) is axes
    [line] = [line for line in axes.get_lines() if len(line.get_xdata()) > 2]
    curve = dps.forecast.success(VOTES, dps.Canonical(k=3, epsilon=1.0))
    assert line.get_ydata() == pytest.approx(curve.chances(line.get_xdata().tolist()))


@pytest.mark.slow
@pytest.mark.parametrize(
    "mechanism",
    [
        dps.Gamma(k=2, epsilon=0.4),
        dps.Restricted(inner=dps.Joint(k=2, epsilon=0.2), test_epsilon=0.2, test_delta=1e-3),
        dps.LimitedDomain(k=2, epsilon=0.4, delta=1e-3),
    ],
    ids=lambda mechanism: mechanism.name,
)
def test_a_forecast_without_an_exact_curve_draws_a_simulated_one(mechanism: dps.Mechanism) -> None:
    axes = dps.forecast.forecast([90, 170, 60, 30, 20], mechanism, draws=20).plot()
    places, chances = axes.get_lines()[0].get_data()
    assert "20 draws each" in axes.get_xlabel()
    assert places[0] < mechanism.epsilon < places[-1]
    assert min(chances) < max(chances)
    assert "epsilon = 0.4" in [text.get_text() for text in axes.texts]
    with pytest.raises(dps.InvalidInput, match="simulated"):
        dps.forecast.forecast([90, 170, 60, 30, 20], mechanism, draws=0).plot()


@pytest.mark.slow
@pytest.mark.parametrize(("epsilon", "words"), [(1e-5, "further left"), (1e6, "further right")])
def test_an_epsilon_beyond_the_curves_is_named_at_their_edge(epsilon: float, words: str) -> None:
    axes = compare(VOTES, 3, epsilon=epsilon, draws=0).plot()
    assert any(words in text.get_text() for text in axes.texts)


def test_accuracies_next_to_one_are_told_apart() -> None:
    """Failure of laplace noise in the model of a plan, by an integral of what goes wrong."""
    model = dps.Scores.from_histogram([50, 0], [10, 9990])
    mechanism = dps.OneShot(k=10, epsilon=1.0, noise="laplace")
    for wanted, off in ((1e-6, 1e-6), (1e-9, 1e-3), (1e-12, 0.1)):
        epsilon = smallest_epsilon(model, mechanism, 1 - wanted)
        gap = 50 * float(dps.OneShot(k=10, epsilon=epsilon, noise="laplace").rate(10_000))
        z = np.arange(-20.0, gap + 20, 1e-3)
        noise = NOISES["laplace"]
        lowest = 10 * noise.density(z - gap) * noise.survival(z - gap) ** 9
        failure = float((lowest * -np.expm1(9990 * np.log1p(-noise.survival(z)))).sum() * 1e-3)
        assert failure == pytest.approx(wanted, rel=off)


@pytest.mark.parametrize("name", ["plot.gif", "plot", "no/such/folder/plot.png"])
def test_a_plot_that_cannot_be_written_is_refused_before_any_work(name: str, tmp_path: Path) -> None:
    class Never:
        def plot(self) -> None:
            raise AssertionError("work was done")

    with pytest.raises(dps.InvalidInput, match="plot"):
        write_plot(tmp_path / name, Never(), "title")


def test_smallest_epsilon_is_what_compare_lists() -> None:
    found = needs(compare(VOTES, 3))
    assert found["canonical"] == smallest_epsilon(VOTES, dps.Canonical(k=3, epsilon=1.0), 0.99)
