"""One rule for all verdicts: count the settings in which the paper's sentence is true, and name the others."""

from __future__ import annotations

import pytest

from dpselect.reproduce.verdict import Check, Verdict, counted, exceptions


def checks(*held: bool, group: str = "Foods, k =") -> list[Check]:
    return [Check(group, str(5 * (place + 1)), right) for place, right in enumerate(held)]


def test_a_claim_holds_only_if_it_is_true_in_every_setting() -> None:
    verdict = counted(checks(True, True, True), "Text.")
    assert (verdict.holds, verdict.word, verdict.text) == (True, "holds", "Text.")


def test_one_exception_is_counted_and_named() -> None:
    verdict = counted(checks(*[True] * 99, False), "Text.")
    assert not verdict.holds
    assert verdict.word == "holds in 99 of 100 settings"
    assert verdict.text == "Text. Exceptions: Foods, k = 500."


@pytest.mark.parametrize(
    ("held", "word"),
    [
        (2, "holds in 2 of 4 settings"),
        (1, "does not hold; it is true in 1 of 4 settings"),
        (0, "does not hold; it is true in 0 of 4 settings"),
    ],
)
def test_what_fails_in_most_settings_does_not_hold(held: int, word: str) -> None:
    assert Verdict(held, 4, "").word == word
    assert not Verdict(held, 4, "").holds


def test_exceptions_are_named_by_group_and_runs_are_shortened() -> None:
    found = exceptions(
        [
            *checks(False, False, True, False, False, False, True, False),
            *checks(True, True, group="Games, k ="),
            *checks(True, False, group="Books, k ="),
        ]
    )
    assert found == "Foods, k = 5, 10, 20 to 30, 40; Books, k = 10"


def test_nothing_is_judged_by_nothing() -> None:
    with pytest.raises(ValueError, match="at least one setting"):
        counted([], "Text.")
