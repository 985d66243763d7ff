"""Every error that dpselect raises on purpose.

* DpSelectError
  * InvalidInput (also a ValueError): an argument, file or table that cannot be used
  * BudgetExceeded: a release that would cost more than is left
  * SourceError: an engine or file that failed while it was being read
"""

from __future__ import annotations

import re
from enum import Enum
from numbers import Number
from pathlib import PurePath

from dpselect._format import difference_above, shown_above, shown_below


class DpSelectError(Exception):
    """Base of every error raised by dpselect."""


class InvalidInput(DpSelectError, ValueError):
    """A bad argument: which one, what was given, and what is accepted.

    Never built from private data: what could hold rows, such as a table passed where a number belongs, is kept and
    shown as the name of its type only.
    """

    def __init__(self, argument: str, given: object, accepted: str) -> None:
        given = given if _is_public(given) else _Plain(_with_article(type(given).__name__))
        if isinstance(given, str | bytes | PurePath) and has_password(str(given)):
            given = _Plain("something with a password in it")
        self.argument = argument
        self.given = given
        self.accepted = accepted
        requirement, _, advice = accepted.partition("; ")
        if requirement.startswith("must "):
            text = f"{argument} {requirement}, got {_brief(given)}" + (f"; {advice}" if advice else "")
        else:
            text = f"{argument}: {_brief(given)} was given; {accepted}"
        super().__init__(text)

    def __reduce__(self) -> tuple[type[InvalidInput], tuple[str, object, str]]:
        """Rebuild from the three parts, so that the error crosses process boundaries."""
        return (type(self), (self.argument, self.given, self.accepted))


class BudgetExceeded(DpSelectError):
    """A release would cost more than what is left of the budget.

    `requested`, `remaining` and `difference` are epsilons; where a delta is part of the budget, `requested_delta` and
    `remaining_delta` say how much of it was asked for and is left; `requested_rho` and `remaining_rho` do so for a
    budget that adds up rho, whose epsilons are those of pure releases that cost as much rho. `dataset` names whose
    budget it is, if known.
    """

    def __init__(
        self,
        requested: float,
        remaining: float,
        requested_delta: float = 0.0,
        remaining_delta: float = 0.0,
        dataset: str | None = None,
        requested_rho: float = 0.0,
        remaining_rho: float = 0.0,
    ) -> None:
        self.requested = requested
        self.remaining = remaining
        self.difference = requested - remaining
        self.requested_delta = requested_delta
        self.remaining_delta = remaining_delta
        self.dataset = dataset
        self.requested_rho = requested_rho
        self.remaining_rho = remaining_rho
        whose = "the budget" if dataset is None else f"the budget of {_brief(dataset)}"
        super().__init__(f"{whose} does not allow this release: " + "; ".join(self._shortages()))

    def _shortages(self) -> list[str]:
        shortages = []
        if self.requested_delta > self.remaining_delta:
            shortages.append("delta: " + _shortage(self.requested_delta, self.remaining_delta))
        if self.requested_rho > self.remaining_rho:
            pure = f"as pure releases, epsilon {shown_above(self.requested)} of {shown_below(self.remaining)}"
            return [f"rho: {_shortage(self.requested_rho, self.remaining_rho)}; {pure}"]
        if self.requested > self.remaining or not shortages:
            shortages.insert(0, _shortage(self.requested, self.remaining))
        return shortages

    def __reduce__(self) -> tuple[type[BudgetExceeded], tuple[float | str | None, ...]]:
        """Rebuild from the amounts, so that the error crosses process boundaries."""
        amounts = (self.requested, self.remaining, self.requested_delta, self.remaining_delta)
        return (type(self), (*amounts, self.dataset, self.requested_rho, self.remaining_rho))


def _shortage(requested: float, remaining: float) -> str:
    """Say what is short, with all digits where fewer would make the two amounts look the same."""
    short = f"short by {difference_above(requested, remaining)}"
    if f"{requested:g}" == f"{remaining:g}":
        return f"requested {requested!r}, remaining {remaining!r}, {short}; sums are exact, so ask for {remaining!r}"
    return f"requested {shown_above(requested)}, remaining {shown_below(remaining)}, {short}"


class SourceError(DpSelectError):
    """A file or engine failed while it was read; the text never quotes its rows."""


_PASSWORD = re.compile(r":/+[^\s/@]*:[^\s@]*@|\b(?:password|passwd|pwd)\s*=", re.IGNORECASE)


def has_password(text: str) -> bool:
    """Tell whether text looks like the address of a server with a password in it; such text is never shown."""
    return _PASSWORD.search(text) is not None


def _is_public(given: object) -> bool:
    """Whether a value is small enough in kind to be shown: a name, a number, a setting; nothing that holds data."""
    if isinstance(given, tuple):
        return len(given) <= 4 and all(_is_public(part) for part in given)
    if type(given).__module__.partition(".")[0] == "dpselect":
        return hasattr(type(given), "__dataclass_params__") or isinstance(given, _Plain | Enum)
    return given is None or isinstance(given, str | bytes | Number | PurePath | Enum | type)


def _brief(value: object, length: int = 60) -> str:
    """Show a value in an error message without flooding it."""
    try:
        text = value if isinstance(value, _Plain) else repr(value)
    except ValueError:  # Python refuses to spell out integers of thousands of digits
        text = f"{_with_article(type(value).__name__)} too long to show"
    return text if len(text) <= length else text[: length - 1] + "…"


def _with_article(name: str) -> str:
    return f"{'an' if name[:1].lower() in 'aeiou' else 'a'} {name}"


class _Plain(str):
    """Text that is shown in an error message as it is, without quotes."""


def plain(text: str) -> str:
    """Mark `text` to be shown without quotes, as in `k: 12 items was given`."""
    return _Plain(text)
