"""A user's own function as a mechanism: what it promises, what the shuffle enforces, and that failures tell nothing."""

from __future__ import annotations

import json
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import dpselect as dps
from dpselect.verify import Domain, check_privacy, check_sampler
from dpselect.verify.boxes import KnownBox, UnshuffledBox, box_around, favouring_box

QUERIES = {"weather": 9120, "news": 8455, "football": 7010, "maps": 2210, "recipe for ann": 1}


def first(scores: Any, k: int) -> Any:
    """Return the first k positions, whatever the scores."""
    return np.arange(k)


def largest(scores: Any, k: int) -> Any:
    """Return the positions of the largest scores; not private."""
    return np.argsort(-scores)[:k]


def restricted(inner: dps.BlackBox) -> dps.Restricted:
    """Return Restricted around a box, with tests that pass sometimes on small scores."""
    return dps.Restricted(inner=inner, pool=3, test_epsilon=2.0, test_delta=0.1)


def test_the_shuffle_makes_a_function_that_prefers_a_position_symmetric_and_keeps_restricted_private() -> None:
    domain = Domain(4, 3)
    shuffled, listed = (
        check_privacy(restricted(favouring_box(kind, 1.0)), domain) for kind in (KnownBox, UnshuffledBox)
    )
    assert shuffled.passed
    assert not listed.passed
    assert listed.divergence > 1.5 * listed.delta


def test_on_a_known_domain_the_shuffle_keeps_the_guarantee() -> None:
    assert check_privacy(favouring_box(KnownBox, 1.0), Domain(4, 2)).passed

    class Listed(KnownBox):
        def orders(self, values: Any) -> list[tuple[int, ...]]:
            return [tuple(range(len(values)))]

    # Without the shuffle the same function is private on a list, but not symmetric.
    alone = check_privacy(favouring_box(Listed, 1.0), Domain(4, 2))
    assert alone.worst_loss <= 1 + 1e-9
    assert alone.faults == ("permuting the items does not permute the law",)


@pytest.mark.parametrize(
    "inner",
    [
        dps.Canonical(k=2, epsilon=1.0),
        dps.Joint(k=2, epsilon=1.0),
        dps.Peeling(k=2, epsilon=0.5, noise="gumbel", delta=0.05),
    ],
    ids=lambda inner: inner.name,
)
def test_around_one_of_our_mechanisms_the_law_and_the_guarantee_are_those_of_the_mechanism(inner: Any) -> None:
    box = box_around(inner)
    expected = inner.law([3, 1, 1, 0])
    assert box.law([3, 1, 1, 0]) == {outcome: pytest.approx(expected[outcome], rel=1e-12) for outcome in expected}
    assert check_privacy(restricted(box), Domain(4, 2)).passed


@pytest.mark.slow
@pytest.mark.parametrize("scores", [[3, 1, 0, 2, 1], [2, 2, 2, 0]], ids=str)
def test_draws_follow_the_law_of_the_shuffled_function_and_not_of_the_function_itself(scores: list[int]) -> None:
    """A correct sampler fails each check with probability at most 1e-6."""
    assert check_sampler(favouring_box(KnownBox, 1.0), scores, draws=2000).passed
    assert not check_sampler(favouring_box(UnshuffledBox, 1.0), scores, draws=2000).passed
    assert check_sampler(box_around(dps.Joint(k=2, epsilon=1.0)), scores, draws=1000).passed


def test_the_order_of_an_answer_that_is_no_sequence_is_discarded() -> None:
    """The scores lead by far. 60 draws in the same order have probability 2^-59."""
    box = dps.BlackBox(k=2, epsilon=1.0, choose=largest)
    answers = {tuple(box.select([9, 5, 1]).tolist()) for _ in range(60)}
    assert answers == {(0, 1), (1, 0)}
    ordered = dps.BlackBox(k=2, epsilon=1.0, choose=largest, ordered=True)
    assert {tuple(ordered.select([9, 5, 1]).tolist()) for _ in range(60)} == {(0, 1)}


def test_the_function_sees_every_score_once_whatever_its_kind_and_cannot_change_the_data() -> None:
    seen: list[list[Any]] = []

    def spoil(scores: Any, k: int) -> list[int]:
        seen.append(sorted(scores.tolist()))
        scores[:] = 0
        return [0]

    box = dps.BlackBox(k=1, epsilon=1.0, choose=spoil)
    data = np.array([4, 4, 1])
    box.select(data)
    box.select(dps.Scores.from_histogram([4, 1], [2, 1]))
    box.select([Fraction(1, 3), 10**30])
    restricted(box).select(data)
    assert seen == [[1, 4, 4], [1, 4, 4], [Fraction(1, 3), 10**30], [1, 4, 4]]
    assert data.tolist() == [4, 4, 1]


def test_a_release_says_what_it_takes_on_trust_and_no_ledger_takes_it(tmp_path: Path) -> None:
    inner = dps.BlackBox(k=3, epsilon=0.5, delta=1e-7, choose=largest, ordered=True)
    mechanism = dps.Restricted(inner=inner, test_epsilon=0.5, test_delta=1e-6)
    for each in (inner, mechanism):
        release = dps.select(QUERIES, mechanism=each)
        assert release.items == ["weather", "news", "football"]
        assert not release.secure
        promise = "largest is private with epsilon = 0.5 and delta = 1e-07 if a person moves each score by 0 to 1"
        assert release.guarantee.neighbours == f"add or remove, if the promise holds that {promise}"
        described = json.loads(json.dumps(release.to_dict()))["mechanism"]
        assert described["promise"] == promise
        assert described.get("inner", described)["choose"] == "largest"
        with pytest.raises(dps.InvalidInput, match="must draw exactly"):
            dps.select(QUERIES, mechanism=each, ledger=_ledger(tmp_path / each.name), dataset="queries")


def test_a_function_that_draws_exactly_is_secure_and_charged_by_promise(tmp_path: Path) -> None:
    box = dps.BlackBox(k=2, epsilon=0.5, choose=first, exact=True)
    place = _ledger(tmp_path / "ledger")
    release = dps.select(QUERIES, mechanism=box, ledger=place, dataset="queries")
    assert release.secure
    assert release.guarantee.neighbours.endswith(", and draws exactly")
    assert not dps.select(QUERIES, mechanism=box, seed=1).secure
    with dps.ledger.Ledger(place) as ledger:
        assert ledger.spent("queries").epsilon == 0.5


def _ledger(place: Path) -> str:
    url = f"{place}.db"
    with dps.ledger.Ledger(url) as ledger:
        ledger.create("queries", epsilon=5.0)
    return url


def _raises(scores: Any, k: int) -> Any:
    raise ValueError(f"secret scores {scores}")


WRONG: list[Any] = [
    _raises,
    lambda scores, k: None,
    lambda scores, k: [0],
    lambda scores, k: [0, 0],
    lambda scores, k: [-1, 0],
    lambda scores, k: [0, len(scores)],
    lambda scores, k: [0.0, 1.0],
    lambda scores, k: [[0, 1]],
    lambda scores, k: [True, False],
    lambda scores, k: [0, 2**63],
    lambda scores, k: ["0", "1"],
]


def test_whatever_goes_wrong_in_the_function_the_error_is_the_same_and_holds_no_data() -> None:
    texts = set()
    for choose in WRONG:
        box = dps.BlackBox(k=2, epsilon=1.0, choose=choose)
        for mechanism in (box, restricted(box)):
            with pytest.raises(dps.DpSelectError) as caught:
                dps.select(QUERIES, mechanism=mechanism)
            assert type(caught.value) is dps.DpSelectError
            assert caught.value.__context__ is None
            texts.add(str(caught.value))
    assert len(texts) == 1
    assert "secret" not in texts.pop()


@pytest.mark.parametrize(
    ("change", "argument"),
    [
        ({"choose": "noisy_max"}, "choose"),
        ({"delta": 1.0}, "delta"),
        ({"epsilon": 0}, "epsilon"),
        ({"ordered": 1}, "ordered"),
        ({"exact": "yes"}, "exact"),
        ({"max_items_per_person": 0}, "max_items_per_person"),
    ],
)
def test_bad_parameters_are_refused_by_name(change: dict[str, Any], argument: str) -> None:
    with pytest.raises(dps.InvalidInput) as caught:
        dps.BlackBox(**{"k": 2, "epsilon": 1.0, "choose": first, **change})
    assert caught.value.argument == argument


def test_a_promised_number_that_no_float_holds_is_rounded_up() -> None:
    box = dps.BlackBox(k=1, epsilon=Fraction(1, 3), delta=Fraction(1, 10**7), choose=first)  # type: ignore[arg-type]
    assert Fraction(box.guarantee.epsilon) >= Fraction(1, 3)
    assert Fraction(box.guarantee.delta) >= Fraction(1, 10**7)


def test_a_promise_for_some_moves_covers_no_others_of_the_same_spread() -> None:
    import pandas

    rows = pandas.DataFrame({"query": ["a", "a", "b"], "user": [1, 2, 1], "value": [-1, -1, -1]})
    asked: dict[str, Any] = {
        "item": "query",
        "person": "user",
        "value": "value",
        "clip": (-1, 0),
        "domain": dps.UNKNOWN,
    }
    with pytest.raises(dps.InvalidInput, match="sensitivity"):
        dps.top(rows, mechanism=restricted(dps.BlackBox(k=1, epsilon=1.0, choose=first)), **asked)
    box = dps.BlackBox(k=1, epsilon=1.0, choose=first, sensitivity=dps.Sensitivity(-1, 0))
    assert dps.top(rows, mechanism=restricted(box), **asked).items == []
    few = restricted(dps.BlackBox(k=1, epsilon=1.0, choose=first, max_items_per_person=2))
    asked = {"item": "query", "person": "user", "domain": dps.UNKNOWN, "mechanism": few}
    with pytest.raises(dps.InvalidInput, match="max_items_per_person"):
        dps.top(rows, **asked)
    assert len(dps.top(rows, **asked, max_items_per_person=2).items) <= 1


def test_more_items_than_fit_into_an_array_and_fewer_than_k_are_refused() -> None:
    box = dps.BlackBox(k=2, epsilon=1.0, choose=first)
    for scores, argument in ((dps.Scores.from_histogram([1], [10**18]), "scores"), ([1], "k")):
        with pytest.raises(dps.InvalidInput) as caught:
            dps.select(scores, mechanism=box)
        assert caught.value.argument == argument
    with pytest.raises(dps.InvalidInput, match="states its law"):
        box.law([1, 2, 3])
