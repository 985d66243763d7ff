"""The k lowest scores: the law and guarantee of the k highest negated scores, and values with their own sign."""

from __future__ import annotations

import json
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from typer.testing import CliRunner

import dpselect as dps
from dpselect._arrays import Array
from dpselect.cli import app
from dpselect.ledger import Ledger
from dpselect.mechanisms.base import Law
from dpselect.privacy import Guarantee, Sensitivity
from dpselect.request import ReleasePlan, ReleaseRequest
from dpselect.scores import Scores
from dpselect.verify import Domain, check_privacy, check_sampler

VOTES = {"tea": 4120, "coffee": 3980, "water": 190, "juice": 87}
UNEVEN = Sensitivity(-1, 3)


@dataclass(frozen=True)
class Lowest:
    """What select(lowest=True) does, as a subject of the checks: it sees the scores, not their negation."""

    mechanism: dps.Mechanism

    @property
    def plan(self) -> ReleasePlan:
        return ReleaseRequest(
            mechanism=self.mechanism, k=None, epsilon=None, sensitivity=dps.COUNTS, lowest=True
        ).plan()

    @property
    def k(self) -> int:
        return self.mechanism.k

    @property
    def sensitivity(self) -> Sensitivity:
        return self.mechanism.sensitivity

    @property
    def ordered(self) -> bool:
        return self.mechanism.ordered

    @property
    def guarantee(self) -> Guarantee:
        return self.plan.guarantee

    def law(self, scores: Any) -> Law:
        return self.plan.mechanism.law(self.plan.seen(Scores.of(scores)))

    def select(self, scores: Any, *, seed: int | None = None) -> Array:
        return np.array(dps.select(scores, mechanism=self.mechanism, lowest=True, seed=seed).items)


@dataclass(frozen=True)
class WronglyNegated(Lowest):
    """The sensitivity of the negated scores is taken as [−high, low]; for counts that is right, by accident."""

    def law(self, scores: Any) -> Law:
        stated = self.mechanism.sensitivity
        wrong = replace(self.mechanism, sensitivity=Sensitivity(-stated.high, stated.low))
        return wrong.law(Scores.of(scores).negated())


SUBJECTS = [
    (dps.Canonical(k=2, epsilon=1.0), Domain(4, 2)),
    (dps.OneShot(k=2, epsilon=1.0, sensitivity=UNEVEN), Domain(3, 4, UNEVEN)),
    (dps.Joint(k=2, epsilon=1.0), Domain(4, 2)),
    (dps.Peeling(k=2, epsilon=0.5, noise="gumbel", delta=0.05), Domain(4, 2)),
    (
        dps.Laplace(k=1, epsilon=1.0, max_items_per_person=2, sensitivity=UNEVEN),
        Domain(3, 4, UNEVEN, items_per_person=2),
    ),
    (dps.Gaussian(k=1, epsilon=1.0, delta=0.1, max_items_per_person=2), Domain(3, 2, items_per_person=2)),
]
subjects = pytest.mark.parametrize(("mechanism", "domain"), SUBJECTS, ids=[each.name for each, _ in SUBJECTS])


@subjects
def test_the_guarantee_holds_on_all_neighbours(mechanism: dps.Mechanism, domain: Domain) -> None:
    check = check_privacy(Lowest(mechanism), domain)
    assert check.passed, check
    assert check.worst_loss > 0.5 * mechanism.epsilon


def test_a_sensitivity_that_is_negated_wrongly_is_rejected() -> None:
    mechanism, domain = SUBJECTS[1]
    assert check_privacy(Lowest(mechanism), domain).passed
    check = check_privacy(WronglyNegated(mechanism), domain)
    assert check.worst_loss > 1.5
    assert not check.passed
    assert check_privacy(WronglyNegated(dps.OneShot(k=2, epsilon=1.0)), Domain(3, 2)).passed


@subjects
def test_the_law_is_that_of_the_mechanism_on_negated_scores(mechanism: dps.Mechanism, domain: Domain) -> None:
    opposite = replace(mechanism, sensitivity=mechanism.sensitivity.negated())
    assert Lowest(mechanism).law([3, 1, 0, 2]) == opposite.law([-3, -1, 0, -2])


@pytest.mark.slow
@subjects
def test_draws_follow_that_law(mechanism: dps.Mechanism, domain: Domain) -> None:
    """A sound sampler fails for at most 1e-6 of the seeds."""
    check = check_sampler(Lowest(mechanism), [3, 1, 0, 2, 1], draws=2000)
    assert check.passed
    assert not check_sampler(Highest(mechanism), [3, 1, 0, 2, 1], draws=2000).passed


class Highest(Lowest):
    """Draws the highest scores where the lowest are asked for."""

    def select(self, scores: Any, *, seed: int | None = None) -> Array:
        return self.mechanism.select(scores, seed=seed)


@pytest.mark.parametrize("mechanism", ["auto", "canonical", "gamma", "joint", "oneshot", "peeling"])
def test_clear_scores_give_the_lowest(mechanism: str) -> None:
    """Gaps of 100 and more at a noise scale of 2: a miss has a probability below 1e-9, and the seed is fixed."""
    for scores in (VOTES, pd.Series(VOTES)):
        release = dps.select(scores, k=2, epsilon=1.0, mechanism=mechanism, lowest=True, seed=1)
        assert set(release.items) == {"juice", "water"}
        assert release.lowest
        assert release.reach is None or " is below the " in str(release.reach)
        assert release.mechanism.sensitivity == Sensitivity(-1, 0)


def test_items_of_a_histogram_keep_their_names() -> None:
    scores = Scores.from_histogram([900, 500, 3], [2, 3, 1], item=lambda score, index: f"{score}/{index}")
    assert dps.select(scores, k=1, epsilon=9.0, lowest=True, seed=1).items == ["3/0"]
    four = dps.select(scores, k=4, epsilon=9.0, lowest=True, seed=1).items
    assert set(four) == {"3/0", "500/0", "500/1", "500/2"}
    assert dps.select(Scores.from_histogram([(900, 2), (3, 1)]), k=1, epsilon=9.0, lowest=True, seed=1).items == [2]


def test_negated_scores_are_exact_for_every_kind_of_number() -> None:
    for values in ([2**61, -(2**61)], [2**70, 1], [0.5, -0.0], np.array([3, 250], dtype=np.uint8)):
        table = Scores.of(values)
        assert table.negated().exact() == [-score for score in table.exact()]
        assert table.negated().negated().exact() == table.exact()


@pytest.mark.parametrize(
    ("mechanism", "values"),
    [
        ("oneshot", 0.5),
        (dps.OneShot(k=2, epsilon=0.5), 0.5),
        (dps.Laplace(k=2, epsilon=1.0, max_items_per_person=2), True),
        (dps.Gaussian(k=2, epsilon=1.0, delta=1e-6, max_items_per_person=2), True),
    ],
    ids=["share", "object", "laplace", "gaussian"],
)
def test_values_have_the_sign_of_the_scores(mechanism: Any, values: Any) -> None:
    """Noise of a scale of at most 8; an interval fails with probability 0.05, and the seed is fixed."""
    totals = {"k": 2, "epsilon": 1.0} if mechanism == "oneshot" else {}
    release = dps.select(VOTES, mechanism=mechanism, values=values, lowest=True, seed=2, **totals)
    assert release.values is not None
    assert release.intervals is not None
    for item, value, (low, high) in zip(release.items, release.values, release.intervals, strict=True):
        assert all(isinstance(number, int) for number in (value, low, high))
        assert abs(value - VOTES[item]) < 80
        assert low <= VOTES[item] <= high


def test_included_values_of_low_scores_tend_to_be_too_low() -> None:
    """The interval reaches up by what one of d noises exceeds, and down by what one of k noises exceeds."""
    mechanism = dps.Laplace(k=1, epsilon=1.0, max_items_per_person=1)
    release = dps.select([500] * 1000, mechanism=mechanism, values=True, lowest=True, seed=3)
    assert release.values is not None
    assert release.intervals is not None
    [(low, high)], [value] = release.intervals, release.values
    assert value < 500 <= high
    assert high - value > value - low


def test_a_sum_may_be_negative() -> None:
    losses = {"a": -900.5, "b": 10.25, "c": 700.0}
    release = dps.select(losses, k=1, epsilon=2.0, sensitivity=UNEVEN, values=0.5, lowest=True, seed=1)
    assert release.items == ["a"]
    assert release.values is not None
    assert release.values[0] == pytest.approx(-900.5, abs=60)


def test_only_listed_items_have_lowest_scores(tmp_path: Path) -> None:
    rows = pd.DataFrame({"film": ["Heat", "Up"], "viewer": ["ann", "bob"]})
    asked: dict[str, Any] = {"item": "film", "person": "viewer", "k": 1, "epsilon": 1.0, "lowest": True}
    for more in ({"domain": 5}, {"domain": dps.UNKNOWN, "delta": 1e-6}):
        with pytest.raises(dps.InvalidInput, match=r"lowest must be left out unless .*nobody has"):
            dps.top(rows, **asked, **more)
    restricted = dps.Restricted(inner=dps.Joint(k=1, epsilon=0.5), test_epsilon=0.5, test_delta=1e-6)
    for mechanism in (restricted, "restricted", "limited"):
        with pytest.raises(dps.InvalidInput, match="lowest must be left out"):
            dps.select(VOTES, k=1, epsilon=1.0, delta=1e-6, mechanism=mechanism, lowest=True)
    with pytest.raises(dps.InvalidInput, match="lowest must be True or False"):
        dps.select(VOTES, k=1, epsilon=1.0, lowest="yes")  # type: ignore[arg-type]


def test_listed_items_that_nobody_has_are_in_the_running() -> None:
    rows = pd.DataFrame({"film": ["Heat"] * 400 + ["Up"] * 200, "viewer": [f"v{row}" for row in range(600)]})
    release = dps.top(
        rows, item="film", person="viewer", k=2, epsilon=1.0, domain=["Heat", "Up", "Her"], lowest=True, seed=1
    )
    assert set(release.items) == {"Up", "Her"}
    assert release.reach is not None
    assert release.reach.unit == "people"
    object_too = dps.OneShot(k=2, epsilon=1.0)
    release = dps.top(
        rows, item="film", person="viewer", mechanism=object_too, domain=["Heat", "Up", "Her"], lowest=True, seed=1
    )
    assert set(release.items) == {"Up", "Her"}


def test_the_weakest_players() -> None:
    games = [("ann", "bob")] * 300 + [("bob", "cem")] * 300 + [("ann", "cem")] * 300
    asked: dict[str, Any] = {"comparisons_per_pair": 300, "max_degree": 2, "domain": ["ann", "bob", "cem"]}
    for mechanism in ("auto", dps.OneShot(k=1, epsilon=50.0, sensitivity=Sensitivity(-1, 1))):
        release = dps.rank(games, k=1, epsilon=50.0, mechanism=mechanism, lowest=True, seed=1, **asked)
        assert release.items == ["cem"]
        assert release.lowest


def test_the_record_and_the_answer_say_lowest(tmp_path: Path) -> None:
    with Ledger(tmp_path / "ledger.db") as ledger:
        ledger.create("votes", epsilon=2.0)
        release = dps.select(VOTES, k=1, epsilon=1.0, lowest=True, ledger=ledger, dataset="votes")
        dps.select(VOTES, k=1, epsilon=1.0, ledger=ledger, dataset="votes")
        first, second = ledger.entries("votes")
    assert first.parameters["lowest"] is True
    assert "lowest" not in second.parameters
    assert json.loads(json.dumps(release.to_dict()))["lowest"] is True
    assert "lowest" not in dps.select(VOTES, k=1, epsilon=1.0).to_dict()


def test_the_command_says_lowest(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    rows = "".join(f"{film},v{viewer}\n" for film, many in (("Heat", 400), ("Up", 200)) for viewer in range(many))
    Path("views.csv").write_text("film,viewer\n" + rows)
    Path("films.txt").write_text("film\nHeat\nUp\nHer\n")
    line = "top views.csv --item film --person viewer -k 1 --epsilon 2 --domain films.txt --lowest --ordered"
    shown = CliRunner().invoke(app, line.split()).stdout
    assert "Private lowest 1" in shown
    assert "Her" in shown
    assert "lowest first" in shown
    refused = CliRunner().invoke(app, line.replace("films.txt", "9").split())
    assert refused.exit_code == 2
    assert "--lowest must be left out" in refused.stderr
