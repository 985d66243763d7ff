"""Checks of every promise: exact privacy checks, sampler checks, exact comparisons, and broken twins to be rejected.

`check_privacy` compares a guarantee with the laws on every pair of neighbours; `check_sampler` and `check_groups`
compare draws with the law; `check_borders` finds the random words at which answers change, `check_attained` how much of
a guarantee is used. `verify_all` runs all checks of every mechanism. `open_audit` and `run_audit` bound epsilon from
below by releases alone.
"""

from dpselect.verify.audit import ERROR, POWER, Audited, Evidence, Probe, run_audit
from dpselect.verify.domain import Domain, neighbours
from dpselect.verify.exact import Border, ExactCheck, check_borders
from dpselect.verify.privacy import Check, Subject, Witness, check_privacy
from dpselect.verify.registry import (
    Rejection,
    exact_checks,
    open_audit,
    privacy_checks,
    rejections,
    sampler_checks,
    verify_all,
)
from dpselect.verify.sampler import SamplerCheck, check_groups, check_sampler
from dpselect.verify.tightness import Pair, check_attained

__all__ = [
    "ERROR",
    "POWER",
    "Audited",
    "Border",
    "Check",
    "Domain",
    "Evidence",
    "ExactCheck",
    "Pair",
    "Probe",
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
    "open_audit",
    "privacy_checks",
    "rejections",
    "run_audit",
    "sampler_checks",
    "verify_all",
]
