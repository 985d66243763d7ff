"""The checks of `dpselect verify --quick` for some mechanisms, up to the first that fails.

`python -m mutants.quick NAME …` prints the kind of check that failed, with exit status 1, or nothing, with status 0.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from typing import Any


def first_failure(names: Sequence[str]) -> str | None:
    """Return the kind of the first check that fails, the cheapest first, or None."""
    from dpselect.verify import exact_checks, privacy_checks, rejections, sampler_checks

    kinds: list[tuple[str, Callable[[str], Sequence[Callable[[], Any]]]]] = [
        ("exact", exact_checks),
        ("privacy", lambda name: privacy_checks(name, quick=True)),
        ("sampler", lambda name: sampler_checks(name, quick=True)),
    ]
    for kind, checks in kinds:
        if not all(check().passed for name in names for check in checks(name)):
            return kind
    return None if all(check().passed for check in rejections()) else "broken twins"


if __name__ == "__main__":
    failed = first_failure(sys.argv[1:])
    print(failed or "")
    sys.exit(failed is not None)
