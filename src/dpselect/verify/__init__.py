"""Exact checks of guarantees, samplers and figures, statistical ones of samplers, and a corpus that must be rejected.

`check_privacy` compares a guarantee with the laws on every pair of neighbours; `check_borders` finds the random words
at which answers change; `check_attained` looks where a guarantee is used up; `check_sampler` and `check_groups` compare
draws with the law; `verify_all` runs them all for every mechanism.
"""

from dpselect.verify.attained import Pair, check_attained
from dpselect.verify.borders import Border, check_borders
from dpselect.verify.domain import Domain, neighbours
from dpselect.verify.exact import ExactCheck
from dpselect.verify.privacy import Check, Subject, Witness, check_privacy
from dpselect.verify.registry import Rejection, exact_checks, privacy_checks, rejections, sampler_checks, verify_all
from dpselect.verify.sampler import SamplerCheck, check_groups, check_sampler

__all__ = [
    "Border",
    "Check",
    "Domain",
    "ExactCheck",
    "Pair",
    "Rejection",
    "SamplerCheck",
    "Subject",
    "Witness",
    "check_attained",
    "check_borders",
    "check_groups",
    "check_privacy",
    "check_sampler",
    "exact_checks",
    "neighbours",
    "privacy_checks",
    "rejections",
    "sampler_checks",
    "verify_all",
]
