"""What a broken twin is, and how the checks are run on it and on its sound counterpart."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cache, partial
from typing import Any, Literal

from dpselect._arrays import Array
from dpselect.privacy import Guarantee, Sensitivity
from dpselect.verify.domain import Domain
from dpselect.verify.exact import ExactCheck
from dpselect.verify.privacy import Check, Subject, check_privacy, shared_privacy_check
from dpselect.verify.sampler import SamplerCheck, check_sampler

Result = Check | SamplerCheck | ExactCheck

Law = Callable[[Any], Mapping[Any, float]]
Draw = Callable[[Any, int | None], Any]


@dataclass(frozen=True)
class Twin:
    """A broken mechanism or figure and its sound counterpart, under the check that must tell them apart.

    Parameters
    ----------
    name, flaw
        A short name, and what is wrong.
    noise
        The noise, if any.
    rejected_by
        The kind of check.
    broken, sound
        Run the check on either.
    k, parameters
        The number of items and further parameters, for twins of mechanisms.

    Examples
    --------
    >>> from dpselect.verify.broken import TWINS
    >>> TWINS[0].name, TWINS[0].flaw
    ('halved noise', 'the noise scale is half of k w / epsilon')
    >>> TWINS[0].broken().passed, TWINS[0].sound().passed
    (False, True)
    """

    name: str
    flaw: str
    noise: str
    rejected_by: Literal["privacy", "sampler", "exact"]
    broken: Callable[[], Result]
    sound: Callable[[], Result]
    k: int | None = None
    parameters: str = ""


@dataclass(frozen=True, kw_only=True)
class Altered:
    """A sound mechanism with one mistake in its law or in its draws; the claim is unchanged.

    Parameters
    ----------
    sound
        The mechanism without the mistake.
    wrong_law
        Maps scores to the wrong law; by default the law is right.
    wrong_draw
        Maps scores and a seed to a wrong draw; by default the draws are right.
    lists
        Whether the outcomes are ordered, if that differs from the sound mechanism.

    Examples
    --------
    Noise for twice the epsilon that is claimed:

    >>> from dpselect import OneShot
    >>> broken = Altered(sound=OneShot(k=1, epsilon=1.0), wrong_law=OneShot(k=1, epsilon=2.0).law)
    >>> check_privacy(broken, Domain(3, 2)).passed
    False
    """

    sound: Subject
    wrong_law: Law | None = None
    wrong_draw: Draw | None = None
    lists: bool | None = None

    @property
    def k(self) -> int:
        """The number of items returned."""
        return self.sound.k

    @property
    def sensitivity(self) -> Sensitivity:
        """The bounds on the change that one person makes to a score."""
        return self.sound.sensitivity

    @property
    def ordered(self) -> bool:
        """Whether the order of the items is part of the outcome."""
        return self.sound.ordered if self.lists is None else self.lists

    @property
    def places_are_items(self) -> bool:
        """Whether permuting the scores must permute the outcomes."""
        return getattr(self.sound, "places_are_items", True)

    @property
    def guarantee(self) -> Guarantee:
        """The claim."""
        return self.sound.guarantee

    def law(self, scores: Any) -> Mapping[Any, float]:
        """Return the probability of every outcome."""
        return self.sound.law(scores) if self.wrong_law is None else self.wrong_law(scores)

    def select(self, scores: Any, *, seed: int | None = None) -> Array:
        """Draw an outcome."""
        drawn: Array = (
            self.sound.select(scores, seed=seed) if self.wrong_draw is None else self.wrong_draw(scores, seed)
        )
        return drawn


def by_privacy(
    name: str,
    flaw: str,
    broken: Subject,
    sound: Subject,
    *,
    noise: str | None = None,
    domain: Domain | None = None,
    parameters: str = "",
) -> Twin:
    """Return a twin that the privacy check must reject."""
    domain = domain or Domain(4, 3, broken.sensitivity)
    return Twin(
        name,
        flaw,
        getattr(sound, "noise", "") if noise is None else noise,
        "privacy",
        partial(check_privacy, broken, domain),
        partial(shared_privacy_check, sound, domain),
        broken.k,
        parameters,
    )


def altered(name: str, flaw: str, sound: Any, law: Law, **more: Any) -> Twin:
    """Return the twin of a mechanism with a wrong law."""
    lists = more.pop("lists", None)
    return by_privacy(name, flaw, Altered(sound=sound, wrong_law=law, lists=lists), sound, **more)


def by_sampler(
    name: str,
    flaw: str,
    draw: Draw,
    sound: Subject,
    scores: tuple[float, ...],
    *,
    draws: int = 3000,
    parameters: str = "",
) -> Twin:
    """Return a twin whose law is sound and whose draws the sampler check must reject."""
    broken = Altered(sound=sound, wrong_draw=draw)
    return Twin(
        name,
        flaw,
        getattr(sound, "noise", ""),
        "sampler",
        partial(check_sampler, broken, list(scores), draws=draws),
        partial(_sampler, sound, scores, draws),
        sound.k,
        parameters,
    )


@cache
def _sampler(mechanism: Subject, scores: tuple[float, ...], draws: int) -> SamplerCheck:
    return check_sampler(mechanism, list(scores), draws=draws)
