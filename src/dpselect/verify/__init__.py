"""Exact privacy checks on small domains, statistical checks of samplers, and a corpus that must be rejected.

`check_privacy` compares a guarantee with the laws on every pair of neighbours; `check_sampler` and
`check_groups` compare what is drawn with the law; `verify_all` runs them for every mechanism.
"""

from dpselect.verify.domain import Domain, neighbours
from dpselect.verify.privacy import Check, Subject, Witness, check_privacy
from dpselect.verify.registry import Rejection, privacy_checks, rejections, sampler_checks, verify_all
from dpselect.verify.sampler import SamplerCheck, check_groups, check_sampler

__all__ = [
    "Check",
    "Domain",
    "Rejection",
    "SamplerCheck",
    "Subject",
    "Witness",
    "check_groups",
    "check_privacy",
    "check_sampler",
    "neighbours",
    "privacy_checks",
    "rejections",
    "sampler_checks",
    "verify_all",
]
