"""Errors say what must hold and what was given, never show rows, and can be pickled."""

from __future__ import annotations

import pickle

import numpy as np
import pandas as pd
import pytest

import dpselect as dps
from dpselect.errors import plain


def test_every_error_is_a_dpselect_error() -> None:
    for error in (dps.InvalidInput, dps.BudgetExceeded, dps.SourceError):
        assert issubclass(error, dps.DpSelectError)
    assert issubclass(dps.InvalidInput, ValueError)


def test_a_bad_argument_is_named_with_what_was_given_and_what_is_accepted() -> None:
    error = dps.InvalidInput("k", "two", "must be a whole number; round it")
    assert str(error) == "k must be a whole number, got 'two'; round it"
    assert (error.argument, error.given, error.accepted) == ("k", "two", "must be a whole number; round it")
    assert str(dps.InvalidInput("file", "a.csv", "it is empty")) == "file 'a.csv': it is empty"


@pytest.mark.parametrize(
    "given",
    ["x" * 10_000, list(range(10_000)), 10**4000, 10**5000, -(10**5000)],
    ids=["text", "list", "printable integer", "huge integer", "negative integer"],
)
def test_a_long_argument_does_not_flood_the_message(given: object) -> None:
    assert len(str(dps.InvalidInput("k", given, "less is needed"))) < 120


def test_a_budget_error_states_requested_remaining_and_difference() -> None:
    error = dps.BudgetExceeded(requested=1.5, remaining=0.5)
    assert (error.requested, error.remaining, error.difference) == (1.5, 0.5, 1.0)
    assert "requested 1.5, remaining 0.5, short by 1" in str(error)


@pytest.mark.parametrize(
    "error",
    [
        dps.InvalidInput("k", 0, "must be a whole number"),
        dps.InvalidInput("k", plain("no item"), "must be one"),
        dps.BudgetExceeded(2.0, 1.0),
        dps.SourceError("cannot be read"),
    ],
    ids=["number", "plain text", "budget", "source"],
)
def test_errors_cross_process_boundaries(error: Exception) -> None:
    back = pickle.loads(pickle.dumps(error))
    assert type(back) is type(error)
    assert str(back) == str(error)
    assert vars(back) == vars(error)


@pytest.mark.parametrize(
    ("given", "shown"), [(pd.Index([1]), "an Index"), ({"a": 1}, "a dict"), ([1], "a list")], ids=type
)
def test_what_is_named_by_its_type_has_its_article(given: object, shown: str) -> None:
    assert str(dps.InvalidInput("k", given, "must be a number")) == f"k must be a number, got {shown}"


def test_a_budget_error_never_shows_more_left_than_there_is() -> None:
    words = str(dps.BudgetExceeded(requested=0.1234561, remaining=0.0999999999))
    assert "requested 0.123457, remaining 0.0999999, short by 0.0234562" in words
    assert "requested 0.4, remaining 0.1, short by 0.3" in str(dps.BudgetExceeded(requested=0.4, remaining=0.1))


class TestPrivateArguments:
    """A value that could contain rows is named by its type, whichever argument it was passed as."""

    SECRET = pd.DataFrame({"film": ["secret film"], "viewer": ["secret person"]})

    @pytest.mark.parametrize("argument", ["k", "epsilon", "delta", "mechanism", "sensitivity", "seed"])
    def test_select_never_shows_them(self, argument: str) -> None:
        for slip in (self.SECRET, self.SECRET["film"], {"secret": 1}, ["secret"], np.array(["secret"])):
            arguments = {"k": 1, "epsilon": 1.0, argument: slip}
            with pytest.raises(dps.InvalidInput) as caught:
                dps.select({"a": 1, "b": 2}, **arguments)
            assert "secret" not in str(caught.value)
            assert "secret" not in repr(caught.value.given)
            assert b"secret" not in pickle.dumps(caught.value)

    @pytest.mark.parametrize("argument", ["item", "person", "k", "epsilon"])
    def test_top_never_shows_them(self, argument: str) -> None:
        arguments = {"item": "film", "person": "viewer", "k": 1, "epsilon": 1.0, argument: self.SECRET["viewer"]}
        with pytest.raises(dps.InvalidInput) as caught:
            dps.top(self.SECRET, domain=["a", "b"], **arguments)
        assert "secret" not in str(caught.value)
        assert "secret" not in repr(caught.value.given)
