"""The joint paper's errors of chosen sequences, in seeded draws (joint, Definition 2.2; Figures 1, 2, 5 and 6)."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any

import numpy as np

import dpselect as dps
from dpselect._arrays import Array
from dpselect._pictures import look
from dpselect.reproduce.data import Data, as_histogram, look_alike
from dpselect.reproduce.drawing import legend, line, log_axis, panels
from dpselect.reproduce.judging import is_at_most, median_interval
from dpselect.reproduce.study import Claim, Point, Row, Study, Verdict, counted, seed_of
from dpselect.sampling import bit_source

if TYPE_CHECKING:
    from matplotlib.figure import Figure

EPSILON, DELTA = 1.0, 1e-6

REAL = {"Books": "books_goodreads", "Games": "games_steam"}
"""The data sets of the paper that are available, and their names in the folder."""

GENERATED: dict[str, tuple[int, float, float, float, float]] = {
    "Foods": (166_000, 10_000, 50, 1.2, 0),
    "Movies": (62_000, 81_000, 400, 2.0, 0),
    "News": (40_000, 843_000, 2, 0.65, 2),
    "Tweets": (52_000, 3_500_000, 5, 0.6, 3),
}
"""Generated look-alikes of the others: size (the paper's), highest count, bend, steepness, droop."""

MEDIAN_ERROR = 1e-5
"""The probability that the interval for a median misses it; a study has at most 720 medians, so 0.99 for all."""

DECIDED = "A setting is decided if intervals for the medians do not overlap, which are right together with P = 0.99"

GAPS = 200
"""The number of gaps shown; larger than every k."""

SETS = ("Books", "Foods", "Games", "Movies", "News", "Tweets")


def concentrated_round(k: int) -> float:
    """Return the ε' of each of k rounds of CDP-PEEL: `ε = k ε'²/8 + 2 ε' √(k ln(1/δ)/8)`, or ε/k if that is larger.

    Joint, section 4.1. Tighter calibrations exist; this is the paper's.
    """
    reach = 8 * math.log(1 / DELTA)
    return max(EPSILON / k, (math.sqrt(reach + 8 * EPSILON) - math.sqrt(reach)) / math.sqrt(k))


MECHANISMS: dict[str, Callable[[int], dps.Mechanism]] = {
    "Joint": lambda k: dps.Joint(k=k, epsilon=EPSILON, noise="gumbel", margin=False),
    "Joint, exponential noise": lambda k: dps.Joint(k=k, epsilon=EPSILON, margin=False),
    "PNF-PEEL": lambda k: dps.Peeling(k=k, epsilon=EPSILON),
    "CDP-PEEL": lambda k: dps.Peeling(k=k, epsilon=k * concentrated_round(k), noise="gumbel"),
    "Gamma": lambda k: dps.Gamma(k=k, epsilon=EPSILON),
}
"""All are 1-DP, except CDP-PEEL, which is (1, 1e-6)-DP. "Joint" is as published; the second changes its noise only."""

LAPLACE = "Laplace"
"""The k largest counts after Laplace noise of scale k/ε, in noisy order, as in the code of the joint paper; simulated
with NumPy."""

COMPARED = ("Joint", "Joint, exponential noise", "PNF-PEEL", "CDP-PEEL")
ALL = (*MECHANISMS, LAPLACE)
METRICS = {"linf": "ℓ∞ error", "l1": "ℓ1 error", "k_relative": "k-relative error", "worst_rank": "rank of the ℓ∞ error"}

LARGE_GAPS, SMALL_GAPS = ("Books", "Movies", "News", "Tweets"), ("Foods", "Games")
SMALL_K = 30
"""Where gaps are small, the paper reports Joint ahead of CDP-PEEL up to about this k."""

ERRORS = ("linf", "l1", "k_relative")

STYLE = {
    "Joint": look("joint, published"),
    "Joint, exponential noise": look("joint"),
    "PNF-PEEL": look("peeling"),
    "CDP-PEEL": look("peeling, delta"),
    "Gamma": look("gamma"),
    LAPLACE: look("oneshot, laplace"),
}

DRAWN = ("Joint", "PNF-PEEL", "CDP-PEEL")
"""The lines of Figure 1, in which exponential noise would hide Joint."""


def counts_of(name: str, data: Data) -> Array:
    """Return the counts of a data set of the paper or of its look-alike, highest first."""
    return data.counts(REAL[name], more_than=GAPS) if name in REAL else look_alike(*GENERATED[name])


def lengths(quick: bool) -> list[int]:
    """Return the values of k: 5, 15, … 195, or four of them."""
    return [5, 35, 95, 195] if quick else list(range(5, 200, 10))


def error_points(sets: tuple[str, ...], mechanisms: tuple[str, ...]) -> Callable[[bool], list[Point]]:
    """Return the points of a study of errors: 100 draws each, 20 with `quick`. The paper has 50."""
    return lambda quick: [
        {"data": name, "k": k, "mechanism": mechanism, "draws": 20 if quick else 100}
        for name in sets
        for mechanism in mechanisms
        for k in lengths(quick)
    ]


def gap_points(quick: bool) -> list[Point]:
    """Return one point per data set: the gaps between its first 200 ranks."""
    return [{"data": name, "gaps": GAPS} for name in SETS]


def compute(point: Point, data: Data) -> Iterator[Row]:
    """Yield the quartiles of every error over the draws of a point and an interval for its median, or a set's gaps."""
    counts = counts_of(point["data"], data)
    if "gaps" in point:
        gaps = counts[: point["gaps"]] - counts[1 : point["gaps"] + 1]
        yield from ({"data": point["data"], "k": rank + 1, "gap": int(gap)} for rank, gap in enumerate(gaps))
        return
    k = point["k"]
    if point["mechanism"] == LAPLACE:
        chosen = laplace_draws(counts, k, point["draws"], seed_of(point))
    else:
        chosen = draws(MECHANISMS[point["mechanism"]](k), counts, point["draws"], seed_of(point))
    row = {"data": point["data"], "k": k, "mechanism": point["mechanism"], "draws": point["draws"]}
    for metric, values in errors(counts[:k], chosen).items():
        for name, share in (("low", 25), ("median", 50), ("high", 75)):
            row[f"{metric}_{name}"] = float(np.percentile(values, share))
        row[f"{metric}_at_least"], row[f"{metric}_at_most"] = median_interval(values, MEDIAN_ERROR)
    yield row


def draws(mechanism: dps.Mechanism, counts: Array, number: int, seed: int) -> Array:
    """Return the scores of the chosen sequences, one row per draw; seeded, so never for a release."""
    bits, scores = bit_source(seed), as_histogram(counts)
    return np.array([mechanism.draw(scores, bits).values for _ in range(number)])


def laplace_draws(counts: Array, k: int, number: int, seed: int) -> Array:
    """Return the same as `draws` for the Laplace baseline."""
    generator, chosen = np.random.default_rng(seed), []
    for _ in range(number):
        noisy = counts + generator.laplace(scale=k / EPSILON, size=len(counts))
        highest = np.argpartition(-noisy, k - 1)[:k]
        chosen.append(counts[highest[np.argsort(-noisy[highest])]])
    return np.array(chosen)


def errors(true: Array, chosen: Array) -> dict[str, Any]:
    """Return all errors of each draw.

    With c the true counts and s the chosen ones: ℓ∞ = max |c_i − s_i|, ℓ1 = Σ |c_i − s_i|,
    k-relative = max (c_k − s_i), and the first rank i that attains ℓ∞, 0 if there is no error.
    """
    apart = np.abs(true - chosen)
    worst = apart.max(axis=1)
    return {
        "linf": worst,
        "l1": apart.sum(axis=1),
        "k_relative": (true[-1] - chosen).max(axis=1),
        "worst_rank": np.where(worst > 0, apart.argmax(axis=1) + 1, 0),
    }


def median(rows: list[Row], name: str, mechanism: str, metric: str) -> dict[int, float]:
    """Return the median error at every k."""
    return {
        row["k"]: row[f"{metric}_median"] for row in rows if row["data"] == name and row.get("mechanism") == mechanism
    }


def intervals(rows: list[Row], name: str, mechanism: str, metric: str) -> dict[int, tuple[float, float]]:
    """Return the interval for the median error at every k."""
    return {
        row["k"]: (row[f"{metric}_at_least"], row[f"{metric}_at_most"])
        for row in rows
        if row["data"] == name and row.get("mechanism") == mechanism
    }


def at_most(rows: list[Row], name: str, better: str, worse: str, metric: str) -> list[Claim]:
    """Claim at every k whether the median error of one mechanism is at most that of another."""
    low, high = intervals(rows, name, better, metric), intervals(rows, name, worse, metric)
    group = f"{METRICS[metric]} of {better} above that of {worse} on {name}, k ="
    return [Claim(group, str(k), is_at_most(low[k], high[k])) for k in low]


def held_of(checks: list[Claim]) -> str:
    """Return in how many settings a claim is clearly true, such as "19 of 20"."""
    return f"{sum(one.held is True for one in checks)} of {len(checks)}"


def _each(rows: list[Row], sets: tuple[str, ...], metric: str) -> str:
    return ", ".join(f"{name} {held_of(at_most(rows, name, 'Joint', 'CDP-PEEL', metric))}" for name in sets)


def _beside_approximate(rows: list[Row], metric: str) -> list[Claim]:
    """Check that Joint is not beaten by CDP-PEEL where gaps are large, and only up to k = 30 where they are small."""
    checks = [one for name in LARGE_GAPS for one in at_most(rows, name, "Joint", "CDP-PEEL", metric)]
    for name in SMALL_GAPS:
        checks += [one for one in at_most(rows, name, "Joint", "CDP-PEEL", metric) if int(one.at) <= SMALL_K]
        checks += [one for one in at_most(rows, name, "CDP-PEEL", "Joint", metric) if int(one.at) > SMALL_K]
    return checks


def judge_errors(rows: list[Row]) -> Verdict:
    """Judge Figure 1."""
    pure = {
        metric: [one for name in SETS for one in at_most(rows, name, "Joint", "PNF-PEEL", metric)]
        for metric in ("linf", "l1")
    }
    linf, l1 = (held_of(own) for own in pure.values())
    text = (
        f"The median ℓ∞ error of Joint is clearly at most that of PNF-PEEL at {linf} pairs of set and k, its ℓ1 error "
        f"at {l1}. "
        f"Against CDP-PEEL, which spends a delta of {DELTA:g}, the ℓ∞ error of Joint is clearly at most as large at "
        "this many "
        f"values of k: {_each(rows, LARGE_GAPS, 'linf')} (large gaps); {_each(rows, SMALL_GAPS, 'linf')} (small gaps). "
        f"{DECIDED}. Books and Games are the paper's sets, the other four generated."
    )
    beside = _beside_approximate(rows, "linf")
    figure = (
        f"no worse than PNF-PEEL in ℓ∞ at {linf}, as stated beside CDP-PEEL at {held_of(beside)} pairs of set and k"
    )
    return counted([*pure["linf"], *pure["l1"], *beside], figure, text)


def judge_ranks(rows: list[Row]) -> Verdict:
    """Judge Figure 2: from each k to the next, the rank of the largest error does not decrease.

    A k whose median draw has no error is skipped.
    """
    steps: dict[str, list[Claim]] = {}
    for mechanism in ("Joint", "PNF-PEEL", "CDP-PEEL"):
        for name in SETS:
            middle, found = median(rows, name, mechanism, "worst_rank"), intervals(rows, name, mechanism, "worst_rank")
            ranks = [(k, interval) for k, interval in found.items() if middle[k]]
            steps.setdefault(mechanism, []).extend(
                Claim(f"{mechanism} moves back on {name} at k =", str(k), _no_lower(ranks[: place + 1], interval))
                for place, (k, interval) in enumerate(ranks[1:])
            )
    falls = {name: sum(one.held is False for one in own) for name, own in steps.items()}
    said = ", ".join(f"{name} {falls[name]} of {len(own)}" for name, own in steps.items())
    ways = []
    for name in SMALL_GAPS:
        for mechanism in steps:
            places = median(rows, name, mechanism, "worst_rank")
            ways.append(f"{mechanism} on {name} {max(places.values()):g} and {places[max(places)]:g}")
    text = (
        "The median rank of the largest error is clearly nearer to the top than at some smaller k at this many values "
        f"of k: {said}. The lowest median rank, and that at the largest k: {'; '.join(ways)}. {DECIDED}; a step of "
        "Joint is undecided if its rank neither clearly grows nor clearly moves back."
    )
    peels = [Claim("never moves back:", name, True if falls[name] else None) for name in steps if name != "Joint"]
    figure = "moves back at " + ", ".join(f"{falls[name]} of {len(own)} k ({name})" for name, own in steps.items())
    return counted([*steps["Joint"], *peels], figure, text)


def _no_lower(before: list[tuple[int, tuple[float, float]]], interval: tuple[float, float]) -> bool | None:
    """Return whether a rank is at least that of the k before it, and False if clearly below that of any k before."""
    if any(is_at_most(earlier, interval) is False for _, earlier in before):
        return False
    return is_at_most(before[-1][1], interval)


def judge_relative(rows: list[Row]) -> Verdict:
    """Judge Figure 5."""
    pure = [one for name in SETS for one in at_most(rows, name, "Joint", "PNF-PEEL", "k_relative")]
    text = (
        f"The median k-relative error of Joint is clearly at most that of PNF-PEEL at {held_of(pure)} pairs of set and "
        f"k. Against CDP-PEEL: {_each(rows, SETS, 'k_relative')} values of k. {DECIDED}."
    )
    beside = _beside_approximate(rows, "k_relative")
    figure = f"no worse than PNF-PEEL at {held_of(pure)}, as stated beside CDP-PEEL at {held_of(beside)} pairs"
    return counted([*pure, *beside], figure, text)


def judge_baselines(rows: list[Row]) -> Verdict:
    """Judge Figure 6."""
    pairs = {
        worse: [one for metric in ERRORS for one in at_most(rows, "Movies", better, worse, metric)]
        for worse, better in (("Gamma", "PNF-PEEL"), ("Laplace", "CDP-PEEL"))
    }
    gamma, laplace = (held_of(own) for own in pairs.values())
    text = (
        f"PNF-PEEL's median error is clearly at most Gamma's at {gamma} pairs of metric and k, CDP-PEEL's at most "
        f"Laplace's at {laplace}, on a look-alike of Movies. {DECIDED}."
    )
    figure = f"Gamma no better at {gamma}, Laplace no better at {laplace} pairs of metric and k"
    return counted([*pairs["Gamma"], *pairs["Laplace"]], figure, text)


def title_of(name: str) -> str:
    """Return the name of a data set, marked if it is generated."""
    return name if name in REAL else f"{name} (generated)"


def draw_errors(rows: list[Row]) -> Figure:
    """Draw Figure 1: gaps, ℓ∞ and ℓ1 errors of the six sets."""
    figure, axes = panels(len(SETS), 3, height=2.0, sharex=True)
    for place, name in zip(axes[:, 0], SETS, strict=True):
        gaps = [row for row in rows if row["data"] == name and "gap" in row]
        # One bar for two ranks, as high as the smaller gap, which limits the accuracy at both.
        bars = [min(row["gap"] for row in gaps[start : start + 2]) + 1 for start in range(0, len(gaps), 2)]
        place.stairs(bars, [0.5 + 2 * step for step in range(len(bars) + 1)], fill=True, color="0.45", baseline=0.8)
        place.set_ylim(bottom=0.8)
        log_axis(place, "y")
        place.set_ylabel(title_of(name), fontsize=9)
    for column, metric in ((1, "linf"), (2, "l1")):
        _draw_metric(axes[:, column], rows, metric, DRAWN)
    for place, title in zip(axes[0], ("least gap of two ranks, + 1", "ℓ∞ error, + 1", "ℓ1 error, + 1"), strict=True):
        place.set_title(title, fontsize=10)
    for place in axes.flat:
        place.grid(False, axis="x")
    for place in axes[-1]:
        place.set_xlabel("k", fontsize=9)
    legend(figure, axes[0, 1])
    return figure


def _draw_metric(
    axes: Any, rows: list[Row], metric: str, mechanisms: tuple[str, ...], sets: tuple[str, ...] = SETS
) -> None:
    for place, name in zip(axes, sets, strict=True):
        for mechanism in mechanisms:
            own = [row for row in rows if row["data"] == name and row.get("mechanism") == mechanism]
            places = [row["k"] for row in own]
            low, middle, high = ([row[f"{metric}_{part}"] + 1 for row in own] for part in ("low", "median", "high"))
            place.fill_between(places, low, high, color=STYLE[mechanism].color, alpha=0.12, linewidth=0)
            line(place, places, middle, STYLE[mechanism], mechanism)
        log_axis(place, "y")
        place.set_ylim(0.8, max(place.get_ylim()[1], 10.0))


def draw_each_set(metric: str) -> Callable[[list[Row]], Figure]:
    """Return a drawing of one metric on the six sets."""

    def draw(rows: list[Row]) -> Figure:
        figure, axes = panels(2, 3, sharex=True)
        _draw_metric(axes.flat, rows, metric, COMPARED)
        for place, name in zip(axes.flat, SETS, strict=True):
            place.set_title(title_of(name), fontsize=10)
        for place in axes[:, 0]:
            place.set_ylabel(f"{METRICS[metric]}, + 1", fontsize=9)
        for place in axes[-1]:
            place.set_xlabel("k", fontsize=9)
        legend(figure, axes[0, 0], columns=4)
        return figure

    return draw


def draw_baselines(rows: list[Row]) -> Figure:
    """Draw Figure 6: every error of every mechanism on the look-alike of Movies."""
    figure, axes = panels(1, 3, height=3.0)
    for place, metric in zip(axes.flat, ERRORS, strict=True):
        _draw_metric([place], rows, metric, ALL, ("Movies",))
        place.set_title(f"{METRICS[metric]}, + 1", fontsize=10)
        place.set_xlabel("k", fontsize=9)
    legend(figure, axes[0, 0])
    return figure


_main_points = error_points(SETS, COMPARED)


QUICK_LENGTHS = f"k = {', '.join(map(str, lengths(True)))} only"


def _study(
    number: int,
    title: str,
    claim: str,
    short: str,
    judge: Callable[[list[Row]], Verdict],
    draw: Callable[[list[Row]], Figure],
    points: Callable[[bool], list[Point]] = _main_points,
) -> Study:
    return Study(
        name=f"figure-{number}",
        title=title,
        claim=claim,
        short=short,
        quick_only=QUICK_LENGTHS,
        data=tuple(REAL.values()),
        points=points,
        compute=compute,
        judge=judge,
        draw=draw,
        kept_as="errors",
    )


FIGURE_1 = _study(
    1,
    "gaps, ℓ∞ and ℓ1 errors at epsilon = 1",
    "Joint matches or beats the other pure mechanism, PNF-PEEL, in both errors. In ℓ∞ error it also "
    "beats CDP-PEEL, which has a delta, over a wide range of k where gaps are large (Books, Movies, News, "
    "Tweets), and only up to about k = 30 where they are small (Foods, Games).",
    "Joint no worse than PNF-PEEL, and than CDP-PEEL where gaps are large or k is at most 30",
    judge_errors,
    draw_errors,
    lambda quick: gap_points(quick) + _main_points(quick),
)
FIGURE_2 = _study(
    2,
    "the rank at which the ℓ∞ error occurs",
    "With growing k the rank of Joint's largest error changes monotonically, while those of PNF-PEEL and "
    "CDP-PEEL may move down the list and back, because they divide their budget by k.",
    "the rank of the largest error never moves back for Joint, but does for PNF-PEEL and CDP-PEEL",
    judge_ranks,
    draw_each_set("worst_rank"),
)
FIGURE_5 = _study(
    5,
    "errors relative to the k-th count at epsilon = 1",
    "As in Figure 1, with smaller differences: Joint matches or beats PNF-PEEL, mostly beats CDP-PEEL "
    "where gaps are large, and is mostly beaten by it where they are small, unless k is small.",
    "as in Figure 1, for the error relative to the k-th count",
    judge_relative,
    draw_each_set("k_relative"),
)
FIGURE_6 = _study(
    6,
    "the Gamma and Laplace mechanisms beside the others, on Movies",
    "Gamma is dominated by PNF-PEEL and Laplace by CDP-PEEL.",
    "Gamma dominated by PNF-PEEL, Laplace by CDP-PEEL",
    judge_baselines,
    draw_baselines,
    error_points(("Movies",), ALL),
)
