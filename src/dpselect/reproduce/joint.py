"""The joint paper: errors of chosen sequences, times, and histograms of the data (Figures 1 to 6)."""

from __future__ import annotations

from collections.abc import Callable
from itertools import pairwise

from dpselect.reproduce.joint_plots import draw_baselines, draw_each_set, draw_errors
from dpselect.reproduce.joint_times import histograms, times
from dpselect.reproduce.sequences import ALL, CORE, DELTA, METRICS, REAL, SETS, compute, error_points, gap_points
from dpselect.reproduce.study import Paper, Row, Study
from dpselect.reproduce.verdict import Check, Verdict, counted

GAPPED, CROWDED = ("Books", "Movies", "News", "Tweets"), ("Foods", "Games")
SHORT = 30
"""Up to which k, about, the paper sees Joint ahead of CDP-PEEL where gaps are small."""

SHOWN = ("linf", "l1", "k_relative")


def median(rows: list[Row], name: str, mechanism: str, metric: str) -> dict[int, float]:
    """Return the median error at every k."""
    return {
        row["k"]: row[f"{metric}_median"] for row in rows if row["data"] == name and row.get("mechanism") == mechanism
    }


def at_most(rows: list[Row], name: str, better: str, worse: str, metric: str) -> list[Check]:
    """Check at every k whether the median error of one mechanism is at most that of another."""
    low, high = median(rows, name, better, metric), median(rows, name, worse, metric)
    group = f"{METRICS[metric]} of {better} above that of {worse} on {name}, k ="
    return [Check(group, str(k), low[k] <= high[k]) for k in low]


def _each(rows: list[Row], sets: tuple[str, ...], metric: str) -> str:
    found = {name: at_most(rows, name, "Joint", "CDP-PEEL", metric) for name in sets}
    return ", ".join(f"{name} {sum(one.held for one in own)} of {len(own)}" for name, own in found.items())


def _beside_approximate(rows: list[Row], metric: str) -> list[Check]:
    """Check that Joint is not beaten by CDP-PEEL where gaps are large, and only up to k = 30 where they are small."""
    checks = [one for name in GAPPED for one in at_most(rows, name, "Joint", "CDP-PEEL", metric)]
    for name in CROWDED:
        checks += [one for one in at_most(rows, name, "Joint", "CDP-PEEL", metric) if int(one.at) <= SHORT]
        checks += [one for one in at_most(rows, name, "CDP-PEEL", "Joint", metric) if int(one.at) > SHORT]
    return checks


def judge_errors(rows: list[Row]) -> Verdict:
    """Judge Figure 1."""
    pure = {
        metric: [one for name in SETS for one in at_most(rows, name, "Joint", "PNF-PEEL", metric)]
        for metric in ("linf", "l1")
    }
    linf, l1 = (f"{sum(one.held for one in own)} of {len(own)}" for own in pure.values())
    text = (
        f"The median ℓ∞ error of Joint is at most that of PNF-PEEL at {linf} pairs of set and k, its ℓ1 error at {l1}. "
        f"Against CDP-PEEL, which spends a delta of {DELTA:g}, the ℓ∞ error of Joint is at most as large at this many "
        f"values of k: {_each(rows, GAPPED, 'linf')} (large gaps); {_each(rows, CROWDED, 'linf')} (small gaps). Books "
        "and Games are the paper's sets, the other four generated."
    )
    return counted([*pure["linf"], *pure["l1"], *_beside_approximate(rows, "linf")], text)


def judge_ranks(rows: list[Row]) -> Verdict:
    """Judge Figure 2: from each k to the next, the rank of the largest error does not fall.

    Where the median draw has no error there is no rank, and such k are passed over.
    """
    steps: dict[str, list[Check]] = {}
    for mechanism in ("Joint", "PNF-PEEL", "CDP-PEEL"):
        for name in SETS:
            ranks = [(k, rank) for k, rank in median(rows, name, mechanism, "worst_rank").items() if rank]
            steps.setdefault(mechanism, []).extend(
                Check(f"{mechanism} moves back on {name} at k =", str(k), rank >= before)
                for (_, before), (k, rank) in pairwise(ranks)
            )
    falls = {name: [one for one in own if not one.held] for name, own in steps.items()}
    said = ", ".join(f"{name} {len(falls[name])} of {len(own)}" for name, own in steps.items())
    ways = []
    for name in CROWDED:
        for mechanism in steps:
            places = median(rows, name, mechanism, "worst_rank")
            ways.append(f"{mechanism} on {name} {max(places.values()):g} and {places[max(places)]:g}")
    text = (
        f"The median rank of the largest error moves back towards the top at this many steps from one k to the next: "
        f"{said}. The lowest rank that it reaches, and that at the largest k: {'; '.join(ways)}. Medians of few draws "
        "jump about, which is counted as it is."
    )
    peels = [Check("never moves back:", name, bool(falls[name])) for name in steps if name != "Joint"]
    return counted([*steps["Joint"], *peels], text)


def judge_relative(rows: list[Row]) -> Verdict:
    """Judge Figure 5."""
    pure = [one for name in SETS for one in at_most(rows, name, "Joint", "PNF-PEEL", "k_relative")]
    text = (
        f"The median k-relative error of Joint is at most that of PNF-PEEL at {sum(one.held for one in pure)} of "
        f"{len(pure)} pairs of set and k. Against CDP-PEEL: {_each(rows, SETS, 'k_relative')} values of k."
    )
    return counted([*pure, *_beside_approximate(rows, "k_relative")], text)


def judge_baselines(rows: list[Row]) -> Verdict:
    """Judge Figure 6."""
    pairs = {
        worse: [one for metric in SHOWN for one in at_most(rows, "Movies", better, worse, metric)]
        for worse, better in (("Gamma", "PNF-PEEL"), ("Laplace", "CDP-PEEL"))
    }
    gamma, laplace = (f"{sum(one.held for one in own)} of {len(own)}" for own in pairs.values())
    text = (
        f"PNF-PEEL's median error is at most Gamma's at {gamma} pairs of metric and k, CDP-PEEL's at most Laplace's at "
        f"{laplace}, on a look-alike of Movies."
    )
    return counted([*pairs["Gamma"], *pairs["Laplace"]], text)


_errors = error_points(SETS, CORE)
_real = tuple(REAL.values())


def _of_errors(name: str, title: str, claim: str, judge: Callable[[list[Row]], Verdict], column: str) -> Study:
    """Return a study of the same answers as Figure 1, which shows another column of them."""
    return Study(
        name=name,
        title=title,
        claim=claim,
        data=_real,
        points=_errors,
        compute=compute,
        judge=judge,
        draw=draw_each_set(column),
        kept_as="errors",
    )


PAPER = Paper(
    "joint",
    "A joint exponential mechanism for top-k sequences",
    [
        Study(
            name="figure-1",
            title="gaps, ℓ∞ and ℓ1 errors at epsilon = 1",
            claim="Joint matches or beats the other pure mechanism, PNF-PEEL, in both errors. In ℓ∞ error it also "
            "beats CDP-PEEL, which has a delta, over a wide range of k where gaps are large (Books, Movies, News, "
            "Tweets), and only up to about k = 30 where they are small (Foods, Games).",
            data=_real,
            points=lambda quick: gap_points(quick) + _errors(quick),
            compute=compute,
            judge=judge_errors,
            draw=draw_errors,
            kept_as="errors",
        ),
        _of_errors(
            "figure-2",
            "the rank at which the ℓ∞ error occurs",
            "With growing k the rank of Joint's largest error changes monotonically, while those of PNF-PEEL and "
            "CDP-PEEL may move down the list and back, because they divide their budget by k.",
            judge_ranks,
            "worst_rank",
        ),
        times(),
        histograms(),
        _of_errors(
            "figure-5",
            "errors relative to the k-th count at epsilon = 1",
            "As in Figure 1, with smaller differences: Joint matches or beats PNF-PEEL, mostly beats CDP-PEEL "
            "where gaps are large, and is mostly beaten by it where they are small, unless k is small.",
            judge_relative,
            "k_relative",
        ),
        Study(
            name="figure-6",
            title="the Gamma and Laplace mechanisms beside the others, on Movies",
            claim="Gamma is dominated by PNF-PEEL and Laplace by CDP-PEEL.",
            data=_real,
            points=error_points(("Movies",), ALL),
            compute=compute,
            judge=judge_baselines,
            draw=draw_baselines,
            kept_as="errors",
        ),
    ],
)
