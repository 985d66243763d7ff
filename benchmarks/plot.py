"""Draw how the time of a release grows: `python -m benchmarks.plot` writes docs/images/scaling.svg."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import dpselect as dps
from benchmarks.baseline import K, long_tail, noisy_argpartition
from benchmarks.growth import KINDS, SIZES, Growth, along_lengths, along_sizes
from benchmarks.timing import best_cpu_times
from dpselect._pictures import greys, look, picture, set_title
from dpselect.reproduce.drawing import legend, panels, tick

PICTURE = Path(__file__).parents[1] / "docs" / "images" / "scaling.svg"

REFERENCES = [
    ("OpenDP peeling, 32 s", 166_000, 32.0, "peeling", (8, 1), "left"),
    ("reference Canonical, 26 s", 166_000, 26.0, "canonical, published", (-8, -4), "right"),
    ("reference Joint, 19 s", 166_000, 19.0, "joint, published", (8, -7), "left"),
    ("FastJoint, 0.14 s", 166_000, 0.14, "joint, published", (-8, -3), "right"),
    ("FastJoint, 1.5 s", 10**7, 1.5, "joint, published", (8, -3), "left"),
]
"""Other programs at k = 200, seconds, timed once outside this benchmark on a machine of the same kind."""

A = {"array": "an array", "histogram": "a histogram"}
"""What the scores come from."""

FORMS = {"array": ("-", True), "histogram": (":", False)}
"""Dash of each form of the scores, and whether markers are filled."""


def draw(by_size: list[Growth], by_length: list[Growth], baseline: tuple[list[int], list[float]]) -> bytes:
    """Return the picture: time against d on the left, against k on the right."""
    figure, panes = panels(1, 2, width=5.2, height=4.6, sharey=True)
    left, right = panes[0]
    for axes, growths in ((left, by_size), (right, by_length)):
        for growth in growths:
            dash, filled = FORMS[growth.form]
            style = replace(look(growth.kind.name, default=growth.kind is dps.Canonical), linestyle=dash, filled=filled)
            label = f"{growth.kind.__name__}, from {A[growth.form]}"
            axes.loglog(growth.places, growth.seconds, label=label, **style.options())
    grey = greys(2)[1].options() | {"marker": ""}
    left.loglog(*baseline, label="baseline: NumPy exponential noise and argpartition", **grey)
    for label, size, seconds, name, offset, side in REFERENCES:
        left.loglog([size], [seconds], **look(name).options() | {"linestyle": "none", "markersize": 7})
        left.annotate(label, (size, seconds), offset, textcoords="offset points", fontsize=9, ha=side)
    left.set(xlabel="number of items d, at k = 200", ylabel="seconds", xlim=(1.5e3, 4e8), ylim=(2e-4, 1e2))
    right.set(xlabel="k, at d = 1,000,000")
    default = [growth for growth in by_size if growth.kind is dps.Canonical]
    times = [f"{1000 * one.seconds[-1]:.2g} ms for {tick(one.places[-1])} items from {A[one.form]}" for one in default]
    set_title(figure, f"The default takes {' and '.join(times)}")
    legend(figure, left, columns=2)
    return picture(figure, "svg")


def main() -> None:
    """Measure and draw."""
    by_size = [along_sizes(kind, form, quick=False) for kind in KINDS for form in SIZES]
    by_length = [along_lengths(kind, form, quick=False) for kind in KINDS for form in SIZES]
    sizes = SIZES["array"]
    arrays = map(long_tail, sizes)
    seconds = [
        best_cpu_times(lambda: noisy_argpartition(scores, K, "exponential"), rounds=3)[0]  # noqa: B023
        for scores in arrays
    ]
    PICTURE.write_bytes(draw(by_size, by_length, (sizes, seconds)))
    for growth in (*by_size, *by_length):
        times = ", ".join(f"{1000 * second:.1f}" for second in growth.seconds)
        print(
            f"{growth.kind.name}, {growth.form}, {growth.along} {growth.places}: slope {growth.slope:.2f}, {times} ms"
        )


if __name__ == "__main__":
    main()
