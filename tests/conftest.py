"""Settings shared by all tests."""

from __future__ import annotations

from hypothesis import HealthCheck, settings

# No test may depend on how fast the machine is, and a failure must come back on the next run.
settings.register_profile("dpselect", deadline=None, derandomize=True, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("dpselect")
