"""The exceptions of dpselect.

* DpSelectError
  * InvalidInput (also a ValueError): an argument, file or table that cannot be used
    * KeyReused: another question under a key that was used before
  * BudgetExceeded: a release that would cost more than the remaining budget
  * SourceError: an engine or file that failed while it was being read
"""

from __future__ import annotations

import re
from enum import Enum
from numbers import Number
from pathlib import PurePath

from dpselect._format import difference_above, shown_above, shown_below


class DpSelectError(Exception):
    """Base class of the exceptions of dpselect.

    Examples
    --------
    >>> import dpselect as dps
    >>> try:
    ...     dps.select([3, 1], k=5, epsilon=1.0)
    ... except dps.DpSelectError as error:
    ...     print(error)
    k must be at most 2 (the number of items), got 5
    """


class InvalidInput(DpSelectError, ValueError):
    """A bad argument: its name, what was given, and what must hold.

    It never contains private data: a value that could contain rows, such as a table passed as a number, is replaced by
    the name of its type.

    Parameters
    ----------
    argument
        Name of the argument.
    given
        The value given.
    accepted
        What must hold, starting with "must", or what is wrong with the value; advice may follow after "; ".

    Examples
    --------
    >>> print(InvalidInput("k", 5, "must be at most 2 (the number of results); ask for fewer"))
    k must be at most 2 (the number of results), got 5; ask for fewer
    >>> print(InvalidInput("domain", "films.csv", "the header has no column 'film'; name another column"))
    domain 'films.csv': the header has no column 'film'; name another column
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
            text = f"{argument} {_brief(given)}".rstrip() + f": {accepted}"
        super().__init__(text)

    def __reduce__(self) -> tuple[type[InvalidInput], tuple[str, object, str]]:
        """Pickle the arguments, since the message alone does not rebuild the error."""
        return (type(self), (self.argument, self.given, self.accepted))


class KeyReused(InvalidInput):
    """Another question was asked under this key before. The message says nothing about that question.

    Examples
    --------
    >>> print(KeyReused("once", "2026-W46", "another question was asked under this key; choose another key"))
    once '2026-W46': another question was asked under this key; choose another key
    """


class BudgetExceeded(DpSelectError):
    """A release would cost more than the remaining budget.

    Parameters
    ----------
    requested, remaining
        Epsilon requested and remaining; `difference` is what is missing. For a budget in rho these are the epsilons
        of pure releases that cost as much rho.
    requested_delta, remaining_delta
        Delta requested and remaining.
    dataset
        Name of the data set, if known.
    requested_rho, remaining_rho
        Rho requested and remaining, for a budget in rho.
    scope
        Which part of the budget is short, such as "for 2026-W46" or "over all periods"; empty if it has no parts.

    Examples
    --------
    >>> print(BudgetExceeded(requested=1.5, remaining=0.5))
    the budget does not allow this release: requested 1.5, remaining 0.5, short by 1
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
        scope: str = "",
    ) -> None:
        self.requested = requested
        self.remaining = remaining
        self.difference = requested - remaining
        self.requested_delta = requested_delta
        self.remaining_delta = remaining_delta
        self.dataset = dataset
        self.requested_rho = requested_rho
        self.remaining_rho = remaining_rho
        self.scope = scope
        whose = "the budget" if dataset is None else f"the budget of {_brief(dataset)}"
        whose += f" {scope}" if scope else ""
        super().__init__(f"{whose} does not allow this release: " + "; ".join(self._shortages()))

    def _shortages(self) -> list[str]:
        """Return a phrase for each part of the budget that is short."""
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
        """Pickle the amounts, since the message alone does not rebuild the error."""
        amounts = (self.requested, self.remaining, self.requested_delta, self.remaining_delta)
        return (type(self), (*amounts, self.dataset, self.requested_rho, self.remaining_rho, self.scope))


def _shortage(requested: float, remaining: float) -> str:
    """Return the amounts as text, with all digits if fewer would make the two look equal."""
    short = f"short by {difference_above(requested, remaining)}"
    if f"{requested:g}" == f"{remaining:g}":
        return f"requested {requested!r}, remaining {remaining!r}, {short}; sums are exact, so ask for {remaining!r}"
    return f"requested {shown_above(requested)}, remaining {shown_below(remaining)}, {short}"


class SourceError(DpSelectError):
    """A file or engine failed while it was read. The message never quotes rows.

    Examples
    --------
    >>> print(SourceError("the connection was lost; try again"))
    the connection was lost; try again
    """


def how_to_install(extra: str) -> str:
    """Return the command that installs the packages of an extra.

    Examples
    --------
    >>> print(how_to_install("serve"))
    pip install 'dpselect[serve]', or pip install '.[serve]' in a checkout
    """
    return f"pip install 'dpselect[{extra}]', or pip install '.[{extra}]' in a checkout"


_PASSWORD = re.compile(r":/+[^\s/@]*:[^\s@]*@|\b(?:password|passwd|pwd)\s*=", re.IGNORECASE)


def has_password(text: str) -> bool:
    """Return whether text looks like a server address with a password; such text is never shown."""
    return _PASSWORD.search(text) is not None


def _is_public(given: object) -> bool:
    """Return whether a value may be shown: a name, a number or a setting, nothing that contains data."""
    if isinstance(given, tuple):
        return len(given) <= 4 and all(_is_public(part) for part in given)
    if type(given).__module__.partition(".")[0] == "dpselect":
        return hasattr(type(given), "__dataclass_params__") or isinstance(given, _Plain | Enum)
    return given is None or isinstance(given, str | bytes | Number | PurePath | Enum | type)


def _brief(value: object, length: int = 60) -> str:
    """Return a value as text of limited length."""
    try:
        shown = str(value) if isinstance(value, PurePath) else value
        text = shown if isinstance(shown, _Plain) else repr(shown)
    except ValueError:  # Python refuses to spell out integers of thousands of digits
        text = f"{_with_article(type(value).__name__)} too long to show"
    return text if len(text) <= length else text[: length - 1] + "…"


def _with_article(name: str) -> str:
    """Return a name with "a" or "an" before it."""
    return f"{'an' if name[:1].lower() in 'aeiou' else 'a'} {name}"


class _Plain(str):
    """Text that is shown in an error message without quotes."""


def plain(text: str) -> str:
    """Mark `text` to be shown without quotes, as in "…, got NaN or infinity"."""
    return _Plain(text)
