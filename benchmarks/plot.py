"""Draw how the time of a release grows: `python -m benchmarks.plot` writes docs/images/scaling.svg."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import dpselect as dps
from benchmarks.baseline import K, long_tail, noisy_argpartition
from benchmarks.growth import KINDS, SIZES, Growth, along_lengths, along_sizes
from benchmarks.timing import best_cpu_times

PICTURE = Path(__file__).parents[1] / "docs" / "images" / "scaling.svg"

REFERENCES = [
    ("OpenDP peeling, 32 s", 166_000, 32.0, "^", (8, 1), "left"),
    ("reference Canonical, 26 s", 166_000, 26.0, "D", (-8, -4), "right"),
    ("reference Joint, 19 s", 166_000, 19.0, "v", (8, -7), "left"),
    ("FastJoint, 0.14 s", 166_000, 0.14, "*", (-8, -3), "right"),
    ("FastJoint, 1.5 s", 10**7, 1.5, "*", (8, -3), "left"),
]
"""Other programs at k = 200, seconds, timed once outside this benchmark on a machine of the same kind."""

LINES = {
    (dps.Joint, "array"): {"color": "black", "linestyle": "-", "marker": "o", "label": "Joint, from an array"},
    (dps.Canonical, "array"): {"color": "0.45", "linestyle": "-", "marker": "s", "label": "Canonical, from an array"},
    (dps.Joint, "histogram"): {"color": "black", "linestyle": ":", "marker": "o", "label": "Joint, from a histogram"},
    (dps.Canonical, "histogram"): {
        "color": "0.45",
        "linestyle": ":",
        "marker": "s",
        "label": "Canonical, from a histogram",
    },
}
"""Dash and marker tell the lines apart without colour; hollow markers stand for histograms."""


def draw(by_size: list[Growth], by_length: list[Growth], baseline: tuple[list[int], list[float]]) -> None:
    """Write the picture: time against d on the left, against k on the right."""
    import matplotlib

    matplotlib.use("svg")
    matplotlib.rcParams.update({"svg.hashsalt": "dpselect", "svg.fonttype": "none", "font.family": "sans-serif"})
    import matplotlib.pyplot as plt

    figure, (left, right) = plt.subplots(1, 2, figsize=(10.5, 5.2), sharey=True, layout="constrained")
    for axes, growths in ((left, by_size), (right, by_length)):
        for growth in growths:
            style: dict[str, Any] = dict(LINES[growth.kind, growth.form])
            style["markerfacecolor"] = style["color"] if growth.form == "array" else "white"
            axes.loglog(growth.places, growth.seconds, markersize=5, linewidth=1.3, **style)
    left.loglog(
        *baseline,
        color="black",
        linestyle="--",
        linewidth=1,
        label="baseline: NumPy exponential noise and argpartition",
    )
    for label, size, seconds, marker, offset, side in REFERENCES:
        left.loglog([size], [seconds], linestyle="none", marker=marker, color="black", markersize=7)
        left.annotate(label, (size, seconds), offset, textcoords="offset points", fontsize=9, ha=side)
    left.set(
        xlabel="number of items d, at k = 200",
        ylabel="seconds",
        title="Ten million items take two passes over the counts",
    )
    right.set(xlabel="k, at d = 1,000,000", title="From a histogram, only k counts")
    for axes in (left, right):
        axes.set_ylim(2e-4, 1e2)
        axes.grid(True, which="major", color="0.88", linewidth=0.6)
        axes.set_axisbelow(True)
        axes.spines[["top", "right"]].set_visible(False)
    left.set_xlim(1.5e3, 4e8)
    figure.legend(*left.get_legend_handles_labels(), loc="outside lower center", ncols=3, fontsize=9, frameon=False)
    figure.savefig(PICTURE, format="svg", metadata={"Date": None})
    text = PICTURE.read_text(encoding="utf-8")
    PICTURE.write_text("\n".join(line.rstrip() for line in text.splitlines()) + "\n", encoding="utf-8")


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
    draw(by_size, by_length, (sizes, seconds))
    for growth in (*by_size, *by_length):
        times = ", ".join(f"{1000 * second:.1f}" for second in growth.seconds)
        print(
            f"{growth.kind.name}, {growth.form}, {growth.along} {growth.places}: slope {growth.slope:.2f}, {times} ms"
        )


if __name__ == "__main__":
    main()
