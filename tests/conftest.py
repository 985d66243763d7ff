"""Settings shared by all tests."""

from __future__ import annotations

import pytest
from hypothesis import HealthCheck, settings

# No test may depend on how fast the machine is, and a failure must come back on the next run.
settings.register_profile("dpselect", deadline=None, derandomize=True, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("dpselect")

LONG = (
    "tests/cli/",
    "tests/experiments/",
    "tests/sampling/test_floating_point_attack.py",
    "tests/sampling/test_race.py::test_the_law_by_counting_bits",
    "tests/sampling/test_race.py::test_bounds_and_widths",
    "tests/sampling/test_topk.py::test_order_statistics",
    "tests/sampling/test_topk.py::test_pair_out_of_three",
    "tests/sampling/test_topk.py::test_set_law_by_counting",
    "tests/sampling/test_topk.py::test_tied_groups",
    "tests/sources/test_source_counts.py::test_odd_texts",
    "tests/sources/test_source_hazards.py",
    "tests/sources/test_source_silence.py",
    "tests/test_benchmarks.py",
    "tests/test_order.py",
    "tests/test_top.py::test_a_table_without_rows",
    "tests/verify/test_verify_broken.py",
    "tests/verify/test_verify_command.py",
    "tests/verify/test_verify_privacy.py::test_every_mechanism",
)
"""Tests that together take minutes: 'make check' leaves them to 'make test'."""


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Mark as slow what takes long as a whole, although no single test does."""
    for item in items:
        if item.nodeid.startswith(LONG):
            item.add_marker(pytest.mark.slow)
