"""What all offers of the service share: the values of k and epsilon that a client may choose, and checks of texts."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from dpselect._numbers import positive_integer, positive_number
from dpselect.errors import InvalidInput, plain
from dpselect.multiselect import QualityModel

EPSILONS = (0.05, 0.1, 0.2, 0.5, 1.0, 2.0, 5.0)

_ITEMS_AT_ONCE = 1000


class PublicSettings:
    """The public settings of an offer.

    Subclasses have `answer(signal, k, epsilon)`, the JSON of an answer, and `details(k, epsilon)`, what a client needs
    to know for a signal.
    """

    kind = "line"
    signal_form = "a finite number"
    largest_body = 256
    """Largest body of a request in bytes; a signal needs about thirty."""
    signal_schema: Mapping[str, Any] = {"type": "number", "exclusiveMinimum": -1e300, "exclusiveMaximum": 1e300}
    """JSON schema of a signal."""

    def __init__(
        self,
        results: int,
        *,
        k: int,
        epsilon: float,
        epsilons: Sequence[float],
        most: int,
        unit: str,
        title: str,
        model: Any = None,
    ) -> None:
        self._size = results
        self.epsilon = positive_number("epsilon", epsilon)
        self.epsilons = tuple(sorted({self.epsilon, *(positive_number("epsilons", each) for each in epsilons)}))
        self._spelt = {text: each for each in self.epsilons for text in _spellings(each)}
        self.k = positive_integer("k", k)
        if self.k > results:
            raise InvalidInput("k", k, f"must be at most {results} (the number of results)")
        self.most = min(max(self.k, positive_integer("most", most)), results)
        self.unit = checked_text("unit", unit)
        self.title = checked_text("title", title)
        self.model = model if model is None or isinstance(model, QualityModel) else QualityModel.of(model)

    def __len__(self) -> int:
        """Return the number of results."""
        return self._size

    def settings(self, asked: Sequence[tuple[str, str]]) -> tuple[int, float]:
        """Return the k and ε of a query, or the defaults; only values on offer are accepted.

        Each may be given once and in its usual spelling, because repetitions or more digits could encode private data.
        """
        fields = dict(asked)
        if len(fields) != len(asked) or not fields.keys() <= {"k", "epsilon"}:
            raise InvalidInput(
                "query", plain("another query"), "must have no field but k and epsilon, each at most once"
            )
        return self._asked_k(fields.get("k")), self._asked_epsilon(fields.get("epsilon"))

    def summary(self) -> dict[str, Any]:
        """Return the public settings."""
        return {
            "title": self.title,
            "kind": self.kind,
            "results": len(self),
            "unit": self.unit,
            "k": self.k,
            "most": self.most,
            "epsilon": self.epsilon,
            "epsilons": list(self.epsilons),
        }

    def description(self, k: int, epsilon: float) -> dict[str, Any]:
        """Return all that a client needs to know, for one k and ε; with the model of quality if there is one."""
        model = {} if self.model is None else {"model": self.model.to_dict()}
        return {**self.summary(), "k": k, "epsilon": epsilon, **self.details(k, epsilon), **model}

    def details(self, k: int, epsilon: float) -> dict[str, Any]:
        """Return what a client needs to know beyond the summary."""
        raise NotImplementedError

    def answer(self, signal: Any, k: int, epsilon: float) -> bytes:
        """Return the JSON of k results for a signal."""
        raise NotImplementedError

    def _asked_k(self, text: str | None) -> int:
        if text is None:
            return self.k
        if text.isascii() and text.isdecimal() and len(text) <= 6 and text[0] != "0" and int(text) <= self.most:
            return int(text)
        raise InvalidInput("k", plain("something else"), f"must be a whole number from 1 to {self.most}")

    def _asked_epsilon(self, text: str | None) -> float:
        if text is None:
            return self.epsilon
        if text in self._spelt:
            return self._spelt[text]
        accepted = ", ".join(repr(each).removesuffix(".0") for each in self.epsilons)
        raise InvalidInput("epsilon", plain("something else"), f"must be one of {accepted}")


def answer_json(results: list[dict[str, Any]], k: int, epsilon: float) -> bytes:
    """Return the JSON of an answer."""
    return _JSON.encode({"results": results, "k": k, "epsilon": epsilon}).encode()


def check_items(items: Sequence[Any] | None) -> None:
    """Refuse items that JSON cannot hold, a part at a time because items may be computed on access."""
    if items is None:
        return
    for start in range(0, len(items), _ITEMS_AT_ONCE):
        some = [items[number] for number in range(start, min(start + _ITEMS_AT_ONCE, len(items)))]
        if not _fits(some):
            wrong = next(number for number, item in enumerate(some, start) if not _fits([item]))
            raise InvalidInput(
                "items",
                plain(f"something else at index {wrong} (counted from 0)"),
                "must be text, finite numbers, or lists and mappings of these",
            )


def checked_text(argument: str, given: Any) -> str:
    """Return a text that JSON can hold."""
    if isinstance(given, str) and _fits(given):
        return given
    raise InvalidInput(argument, given, "must be text")


def _spellings(number: float) -> set[str]:
    """Return the accepted spellings of a number: those of Python, JavaScript and people."""
    shown = repr(number)
    whole = {f"{number:.0f}"} if number.is_integer() and number < 1e21 else set()
    return {shown, shown.replace("e-0", "e-"), *whole}


def _plain(item: Any) -> Any:
    """Return an item in a form that JSON can hold."""
    return item.item() if isinstance(item, np.generic) else str(item)


def _fits(data: Any) -> bool:
    """Return whether data can be written as JSON in UTF-8."""
    try:
        _JSON.encode(data).encode()
    except (TypeError, ValueError, OverflowError, RecursionError):
        return False
    return True


_JSON = json.JSONEncoder(ensure_ascii=False, allow_nan=False, default=_plain)
