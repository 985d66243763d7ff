"""The restricted paper's figures (4, 5, 7 to 10) and its remark on variance, in seeded draws on the data at hand."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace
from itertools import pairwise
from typing import TYPE_CHECKING

import numpy as np

import dpselect as dps
from dpselect._arrays import Array
from dpselect._pictures import greys, look
from dpselect.forecast import f1_score, forecast, items_returned, score_ratio
from dpselect.reproduce.data import Data, as_histogram
from dpselect.reproduce.drawing import bars, legend, line, panels
from dpselect.reproduce.judging import ERROR, Mean, Variance, is_more, is_more_variable
from dpselect.reproduce.study import Claim, Point, Row, Study, Verdict, counted, seed_of
from dpselect.sampling import bit_source

if TYPE_CHECKING:
    from matplotlib.figure import Figure

SETS = ("epinions", "foursquare_lbsn_Jakarta", "games_steam")
"""Data sets of pairs with a long tail, in place of Yelp, Foursquare and Gowalla."""

LENGTHS = (10, 50, 100)
POOLS = (1, 10, 50)
"""Sizes of the pool, as multiples of k."""

MOST_ITEMS = 8
"""Known bound on the items of one person (restricted, appendix E)."""

ADDED = {0: "no", 10**8: "100 million", 10**9: "1 billion", 10**10: "10 billion"}
"""Numbers of items of count 1 added to the domain, and their names (restricted, appendix D)."""

RG, LD, TS, RN, LL, EM = (
    "RestrictedGumbel",
    "LimitedDomain",
    "TopStable",
    "RestrictedNormal",
    "LimitedDomain, Laplace",
    "Exponential mechanism",
)
Maker = Callable[[int, float, float, int], dps.Mechanism]
MECHANISMS: dict[str, Maker] = {
    RG: lambda k, epsilon, delta, pool: dps.RestrictedGumbel(k=k, epsilon=epsilon, delta=delta, pool=pool),
    LD: lambda k, epsilon, delta, pool: dps.LimitedDomain(k=k, epsilon=epsilon, delta=delta, pool=pool),
    TS: lambda k, epsilon, delta, pool: dps.TopStable(k=k, epsilon=epsilon, delta=delta, pool=pool),
    RN: lambda k, epsilon, delta, pool: dps.RestrictedNormal(
        k=k, epsilon=epsilon, delta=delta, pool=pool, max_items_per_person=MOST_ITEMS
    ),
    LL: lambda k, epsilon, delta, pool: dps.LimitedDomain(
        k=k, epsilon=epsilon, delta=delta, pool=pool, noise="laplace", max_items_per_person=MOST_ITEMS
    ),
    EM: lambda k, epsilon, delta, pool: dps.Peeling(k=k, epsilon=epsilon, delta=delta, noise="gumbel"),
}
"""All are (ε, 1/(2n))-DP for n people. How each divides its budget is the package's own rule."""

KNOWN_BOUND = (RN, LL)
METRICS = {"returned": items_returned, "score_ratio": score_ratio, "f1": f1_score}
LABELS = {"returned": "items returned", "score_ratio": "score ratio", "f1": "F1"}
SHORT_NAMES = {"foursquare_lbsn_Jakarta": "foursquare Jakarta"}
STYLE = {
    RG: look("restricted"),
    LD: look("limited"),
    TS: look("top-stable"),
    RN: look("restricted"),
    LL: look("limited, laplace"),
    EM: look("peeling"),
}
_MARKERS = {1: "o", 10: "s", 50: "^"}
QUICK_DRAWS, DRAWS, DOMAIN_DRAWS = 20, 200, 1000
"""Draws of a mean. The paper has 100, and 5 in the larger domains, where only RestrictedGumbel is drawn here."""

EXACT = 1e-9
"""Relative tolerance of the exact score ratios."""

DECIDED = (
    f"A setting counts as decided if a test says so, at a level at which all are right with probability {1 - ERROR:g}"
)


def short_name(name: str) -> str:
    """Return the name of a data set for a line of text."""
    return SHORT_NAMES.get(name, name)


def epsilons(quick: bool) -> list[float]:
    """Return the values of ε: 0.01 to 1, or four of them."""
    return [0.1, 0.4, 0.7, 1.0] if quick else [0.01, 0.1, 0.25, 0.4, 0.55, 0.7, 0.85, 1.0]


def points(mechanisms: tuple[str, ...]) -> Callable[[bool], list[Point]]:
    """Return one point per data set, k, pool and mechanism, with 200 draws at every ε, or 20 with `quick`."""
    return lambda quick: [
        {
            "data": name,
            "k": k,
            "times": times,
            "mechanism": mechanism,
            "epsilons": epsilons(quick),
            "draws": QUICK_DRAWS if quick else DRAWS,
        }
        for name in SETS
        for k in LENGTHS
        for times in POOLS
        for mechanism in mechanisms
    ]


def domain_points(quick: bool) -> list[Point]:
    """Return the points of Figure 7: the largest data set, with more and more items of count 1, which only EM sees."""
    compared = [(RG, 0), *((EM, size) for size in ADDED)]
    return [
        {
            "data": SETS[0],
            "k": k,
            "times": 50,
            "mechanism": name,
            "added": size,
            "epsilons": epsilons(quick),
            "draws": 0 if name == EM else 5 * QUICK_DRAWS if quick else DOMAIN_DRAWS,
        }
        for k in LENGTHS
        for name, size in compared
    ]


def compute(point: Point, data: Data) -> Iterator[Row]:
    """Yield for each ε the mean and deviation of every metric, or without draws the exact score ratio."""
    k, name, mechanism = point["k"], point["data"], point["mechanism"]
    counts = data.bounded_counts(name, MOST_ITEMS, k) if mechanism in KNOWN_BOUND else data.counts(name, more_than=k)
    scores = with_ones(counts, point.get("added", 0))
    delta, bits = 1 / (2 * data.people(name)), bit_source(seed_of(point))
    about: Row = {part: point[part] for part in ("data", "k", "times", "mechanism", "added", "draws") if part in point}
    for epsilon in point["epsilons"]:
        chooser = MECHANISMS[mechanism](k, epsilon, delta, k * point["times"])
        if not point["draws"]:
            outlook = forecast(scores, chooser, draws=0, tolerance=EXACT, ordered=False)
            assert outlook.score_ratio is not None
            yield {**about, "delta": delta, "epsilon": epsilon, "score_ratio": outlook.score_ratio.value}
            continue
        answers = [chooser.draw(scores, bits).values for _ in range(point["draws"])]
        row: Row = {**about, "delta": delta, "epsilon": epsilon}
        for metric, measure in METRICS.items():
            values = np.array([measure(counts[:k], answer) for answer in answers], dtype=np.float64)
            row |= {metric: float(values.mean()), f"{metric}_deviation": float(values.std(ddof=1))}
            row[f"{metric}_fourth"] = float(np.mean((values - values.mean()) ** 4))
        yield row


def with_ones(counts: Array, added: int) -> dps.Scores:
    """Return scores with `added` further items of count 1, which cost nothing in a histogram."""
    if not added:
        return as_histogram(counts)
    values, sizes = np.unique(np.append(counts, 1), return_counts=True)
    sizes[values == 1] += added - 1
    return dps.Scores.from_histogram(list(zip(values.tolist(), sizes.tolist(), strict=True)))


Setting = tuple[str, int, int, float]
"""Data set, k, pool as a multiple of k, and ε."""


def _by_setting(rows: list[Row], mechanism: str) -> dict[Setting, Row]:
    """Return the rows of a mechanism by setting."""
    return {(row["data"], row["k"], row["times"], row["epsilon"]): row for row in rows if row["mechanism"] == mechanism}


def _mean(row: Row, metric: str) -> Mean:
    """Return a drawn mean of a row, or an exact figure."""
    return Mean.of(row[metric], row[f"{metric}_deviation"], row["draws"]) if row.get("draws") else Mean(row[metric])


def _named(setting: Setting, held: bool | None, where: str = "") -> Claim:
    name, k, times, epsilon = setting
    return Claim(f"{short_name(name)}, k = {k}, pool {times} k{where}, epsilon", f"{epsilon:g}", held)


def judge_pair(ours: str, theirs: str, metric: str) -> Callable[[list[Row]], Verdict]:
    """Return a judge of the claim that one mechanism is better than another in every setting, by Welch's t-test."""

    def judge(rows: list[Row]) -> Verdict:
        first, second = _by_setting(rows, ours), _by_setting(rows, theirs)
        found = {
            setting: is_more(_mean(row, metric), _mean(second[setting], metric), len(first))
            for setting, row in first.items()
        }
        checks = [_named(setting, held) for setting, held in found.items()]
        level = sum(first[s][metric] == second[s][metric] for s in first)
        by_pool = ", ".join(
            f"{np.mean([first[s][metric] for s in own]):.3g} against {np.mean([second[s][metric] for s in own]):.3g} "
            f"(pool {times} k)"
            for times in POOLS
            for own in [[s for s in first if s[2] == times]]
        )
        example = (SETS[0], LENGTHS[-1], POOLS[-1], max(setting[3] for setting in first))
        text = (
            f"{ours} is clearly ahead of {theirs} in {LABELS[metric]} at "
            f"{sum(held is True for held in found.values())} of {len(found)} settings of set, k, pool and epsilon, "
            f"clearly behind at {sum(held is False for held in found.values())}; the means are equal at {level}. "
            f"{DECIDED} (Welch's t-test on means of {rows[0]['draws']} draws). On average over sets, k and epsilon: "
            f"{by_pool}. On {example[0]} with k = {example[1]}, pool = {example[2]} k and epsilon = {example[3]:g}: "
            f"{first[example][metric]:.3g} against {second[example][metric]:.3g}. The sets are not the paper's, which "
            "cannot be had, and budgets are divided by this package's rules."
        )
        told = ", ".join(
            f"{name.split(', ')[0]} {row[example][metric]:.3g}" for name, row in ((ours, first), (theirs, second))
        )
        figure = f"{told} ({example[0]}, k = {example[1]}, pool {example[2]} k, ε = {example[3]:g})"
        return counted(checks, figure, text)

    return judge


def judge_variance(rows: list[Row]) -> Verdict:
    """Judge the remark on variance (restricted, section 8.4): where RG varies more than LD, it also returns more."""
    ours, theirs, comparisons = _by_setting(rows, RG), _by_setting(rows, LD), 2 * len(_by_setting(rows, RG))

    def variance(row: Row) -> Variance:
        return Variance(row["returned_deviation"] ** 2, row["returned_fourth"], row["draws"])

    found = {s: is_more_variable(variance(row), variance(theirs[s]), comparisons) for s, row in ours.items()}
    larger = [s for s, answer in found.items() if answer]
    ahead = {s: is_more(_mean(ours[s], "returned"), _mean(theirs[s], "returned"), comparisons) for s in larger}
    checks = [Claim("larger variance of", RG, True if larger else None)]
    checks += [_named(setting, held, ", not more items despite its larger variance") for setting, held in ahead.items()]
    ratios = [ours[s]["returned"] / max(theirs[s]["returned"], 1 / theirs[s]["draws"]) for s in larger]
    typical = f"{np.median(ratios):.1f} times as many items in the median of these" if ratios else "no such setting"
    example = " and ".join(f"{mean:.1f} ± {deviation:.1f} ({name})" for name, mean, deviation in _all_epsilons(rows))
    figure = f"larger at {len(larger)} of {len(found)} settings, {typical}; {example} items on {SETS[0]}, k = pool = 50"
    text = (
        f"The variance of the number of items that {RG} returns is clearly larger than that of {LD} at "
        f"{len(larger)} of {len(found)} settings, clearly smaller at "
        f"{sum(answer is False for answer in found.values())}. Where it is "
        f"larger, {RG} clearly returns more items at {sum(held is True for held in ahead.values())} of {len(ahead)}; "
        f"{typical}. {DECIDED} (variances by their fourth moments, means by Welch's t-test, {rows[0]['draws']} draws). "
        f"The paper's example, k = pool = 50 over all values of epsilon, on {SETS[0]}: {example}; the paper has 10.9 ± "
        "7.3 and 5.2 ± 4.3 on Yelp."
    )
    return counted(checks, figure, text)


def _all_epsilons(rows: list[Row]) -> list[tuple[str, float, float]]:
    """Return mean and deviation of the items that each mechanism returns at k = pool, over the draws of all ε."""
    found = []
    for name in (RG, LD):
        own = [
            row
            for row in rows
            if (row["mechanism"], row["data"], row["k"], row["times"]) == (name, SETS[0], LENGTHS[1], 1)
        ]
        means = [row["returned"] for row in own]
        within = np.mean([row["returned_deviation"] ** 2 for row in own])
        found.append((name, float(np.mean(means)), float(np.sqrt(within + np.var(means)))))
    return found


def draw_pair(ours: str, theirs: str, metric: str) -> Callable[[list[Row]], Figure]:
    """Return a drawing with a row for each data set, a column for each k and a marker for each pool.

    Vertical bars show one standard deviation of the draws, as in the paper.
    """

    def draw(rows: list[Row]) -> Figure:
        figure, axes = panels(len(SETS), len(LENGTHS), height=2.2, sharex=True)
        for across, name in enumerate(SETS):
            for column, k in enumerate(LENGTHS):
                place = axes[across, column]
                for mechanism in (ours, theirs):
                    for times in POOLS:
                        own = [
                            row
                            for row in rows
                            if (row["data"], row["k"], row["times"], row["mechanism"]) == (name, k, times, mechanism)
                        ]
                        # The marker stands for the pool, so that dashes tell the mechanisms apart.
                        style = replace(STYLE[mechanism], marker=_MARKERS[times], filled=False)
                        style = replace(style, linestyle="-" if mechanism == ours else "--")
                        label = f"{mechanism}, pool {'k' if times == 1 else f'{times} k'}"
                        places, values = [row["epsilon"] for row in own], [row[metric] for row in own]
                        bars(place, places, values, [row[f"{metric}_deviation"] for row in own], style)
                        line(place, places, values, style, label)
                place.set_ylim(0, (k if metric == "returned" else 1) * 1.06)
            axes[across, 0].set_ylabel(f"{short_name(name)}\n{LABELS[metric]}", fontsize=9)
        for column, k in enumerate(LENGTHS):
            axes[0, column].set_title(f"k = {k}", fontsize=10)
            axes[-1, column].set_xlabel("epsilon", fontsize=9)
        legend(figure, axes[0, 0], columns=2)
        return figure

    return draw


def judge_domain(rows: list[Row]) -> Verdict:
    """Judge Figure 7."""
    sizes = sorted({row["added"] for row in rows})
    largest = max(sizes)

    def mean(mechanism: str, added: int, k: int | None = None) -> float:
        own = [row for row in rows if (row["mechanism"], row["added"]) == (mechanism, added) and k in (None, row["k"])]
        return float(np.mean([row["score_ratio"] for row in own]))

    falls = ", ".join(f"{mean(EM, added):.3f} with {added:,} items added" for added in sizes)
    better = {k: mean(RG, 0, k) - mean(EM, largest, k) for k in LENGTHS}
    draws = next(row["draws"] for row in rows if row["mechanism"] == RG)
    text = (
        f"Averaged over k and epsilon, the score ratio of the exponential mechanism over the full domain is {falls}; "
        f"that of RestrictedGumbel is {mean(RG, 0):.3f}, whatever is added. With {largest:,} added, RestrictedGumbel "
        "is ahead by "
        + ", ".join(f"{lead:.3f} (k = {k})" for k, lead in better.items())
        + f". The score ratios of the exponential mechanism are exact, those of RestrictedGumbel means of {draws} "
        f"draws. {DECIDED}. The set is {SETS[0]}, not the paper's. As a histogram the added items cost no time."
    )
    falling, behind = _falling(rows, sizes), _behind(rows, sizes)
    level = sum(one.held is None for one in falling)
    if level:
        text += (
            f" At {level} of the {len(falling)} steps to a larger domain the exact ratio changes by less than its "
            f"tolerance, {EXACT:g} of the score that is lost."
        )
    figure = (
        f"worse at {sum(one.held is True for one in falling)} of {len(falling)} steps, behind {RG} at "
        f"{sum(one.held is True for one in behind)} of {len(behind)} settings"
    )
    return counted(falling + behind, figure, text)


def _ratios(rows: list[Row]) -> dict[tuple[str, int, int, float], Mean]:
    """Return the score ratios by mechanism, items added, k and ε."""
    return {(row["mechanism"], row["added"], row["k"], row["epsilon"]): _mean(row, "score_ratio") for row in rows}


def _falling(rows: list[Row], sizes: list[int]) -> list[Claim]:
    """Claim at every k and ε that EM gets worse as items are added; undecided within the tolerance of the sums."""
    ratios = _ratios(rows)

    def worse(more: Mean, less: Mean) -> bool | None:
        # The tolerance is relative to the score that is lost.
        tolerance = EXACT * ((1 - more.value) + (1 - less.value))
        return None if abs(less.value - more.value) <= tolerance else more.value < less.value

    return [
        Claim(
            f"better with {ADDED[more]} items added than with {ADDED[less]}, k = {k}, epsilon",
            f"{epsilon:g}",
            worse(ratios[EM, more, k, epsilon], ratios[EM, less, k, epsilon]),
        )
        for less, more in pairwise(sizes)
        for mechanism, _, k, epsilon in ratios
        if mechanism == RG
    ]


def _behind(rows: list[Row], sizes: list[int]) -> list[Claim]:
    """Claim at every k and ε that EM over a larger domain is behind RestrictedGumbel."""
    ratios = _ratios(rows)
    places = [(size, k, epsilon) for size in sizes[1:] for name, _, k, epsilon in ratios if name == RG]
    return [
        Claim(
            f"EM with {ADDED[size]} items added ahead of {RG}, k = {k}, epsilon",
            f"{epsilon:g}",
            is_more(ratios[RG, 0, k, epsilon], ratios[EM, size, k, epsilon], len(places)),
        )
        for size, k, epsilon in places
    ]


def draw_domain(rows: list[Row]) -> Figure:
    """Draw Figure 7."""
    figure, axes = panels(1, len(LENGTHS), height=2.8, sharey=True)
    dashes = [one.linestyle for one in greys(len(ADDED))]
    lines = [(RG, 0, RG, STYLE[RG])]
    for (added, name), dash in zip(ADDED.items(), dashes, strict=True):
        lines.append((EM, added, f"EM, {name} items added", replace(STYLE[EM], linestyle=dash, filled=dash == "-")))
    for place, k in zip(axes.flat, LENGTHS, strict=True):
        for mechanism, added, label, style in lines:
            own = [row for row in rows if (row["mechanism"], row["added"], row["k"]) == (mechanism, added, k)]
            line(place, [row["epsilon"] for row in own], [row["score_ratio"] for row in own], style, label)
        place.set_title(f"k = {k}", fontsize=10)
        place.set_xlabel("epsilon", fontsize=9)
    axes[0, 0].set_ylabel("score ratio", fontsize=9)
    legend(figure, axes[0, 0])
    return figure


QUICK_EPSILONS = f"epsilon = {', '.join(f'{epsilon:g}' for epsilon in epsilons(True))} only"


def pair(
    number: int, title: str, claim: str, ours: str, theirs: str, metric: str, kept_as: str, but_for: str = ""
) -> Study:
    """Return the study of a figure that compares two mechanisms; `but_for` names the paper's own exception."""
    return Study(
        name=f"figure-{number}",
        title=title,
        claim=claim,
        short=f"{ours} beats {theirs} in {LABELS[metric]} {but_for or 'throughout'}",
        quick_only=QUICK_EPSILONS,
        data=SETS,
        points=points((ours, theirs)),
        compute=compute,
        judge=judge_pair(ours, theirs, metric),
        draw=draw_pair(ours, theirs, metric),
        kept_as=kept_as,
    )
