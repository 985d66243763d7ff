"""Finished points are kept and never computed again, whatever interrupts the work; bad input is refused by name."""

from __future__ import annotations

import builtins
import csv
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from small_sets import write_rows

import dpselect as dps
from dpselect._pictures import picture
from dpselect.reproduce import PAPERS, Paper, Study, Verdict, reproduce
from dpselect.reproduce.data import Data, look_alike, zipf
from dpselect.reproduce.drawing import log_axis, panels
from dpselect.reproduce.run import Store, as_table, studies_named, write_result
from dpselect.reproduce.study import Claim, Point, Row, counted, exceptions, seed_of


class Interrupted(Exception):
    """What stops a run in the middle."""


class Work:
    """A study that counts how often each of its points is computed, and can be stopped before any of them."""

    def __init__(self, points: int = 5) -> None:
        self.number = points
        self.computed: list[int] = []
        self.stop_before: int | None = None

    def compute(self, point: Point, data: Data) -> Iterator[Row]:
        if point["place"] == self.stop_before:
            raise Interrupted
        self.computed.append(point["place"])
        yield {**point, "third": np.float64(1) / 3, "largest": data.counts("netflix")[0]}

    def install(self, monkeypatch: pytest.MonkeyPatch) -> None:
        study = Study(
            name="figure-1",
            title="a small study",
            claim="Thirds are the same.",
            short="equal thirds",
            quick_only="k = 3 only",
            data=("netflix",),
            points=lambda quick: [{"place": place, "quick": quick} for place in range(self.number)],
            compute=self.compute,
            judge=lambda rows: Verdict(len({row["third"] for row in rows}), 1, f"{len(rows)} rows.", "a third"),
        )
        monkeypatch.setitem(PAPERS, "small", Paper("small", "A test", [study]))


@pytest.fixture
def work(monkeypatch: pytest.MonkeyPatch) -> Work:
    work = Work()
    work.install(monkeypatch)
    return work


def numbers(out: Path) -> str:
    return (out / "small" / "figure-1.csv").read_text(encoding="utf-8")


@pytest.mark.parametrize("place", [0, 3])
def test_an_interrupted_run_goes_on_where_it_stopped(work: Work, folder: Path, tmp_path: Path, place: int) -> None:
    list(reproduce("small", data=folder, out=tmp_path / "whole"))
    work.computed, work.stop_before = [], place
    with pytest.raises(Interrupted):
        list(reproduce("small", data=folder, out=tmp_path / "broken"))
    work.stop_before = None
    list(reproduce("small", data=folder, out=tmp_path / "broken"))
    assert work.computed == [0, 1, 2, 3, 4]
    assert numbers(tmp_path / "broken") == numbers(tmp_path / "whole")


def test_a_finished_run_computes_nothing_again_until_settings_or_data_change(
    work: Work, folder: Path, tmp_path: Path
) -> None:
    for _ in range(2):
        list(reproduce("small", data=folder, out=tmp_path))
    assert len(work.computed) == 5
    list(reproduce("small", data=folder, out=tmp_path, quick=True))
    assert len(work.computed) == 10, "a quick run has points of its own"
    list(reproduce("small", data=folder, out=tmp_path))
    assert len(work.computed) == 10, "which leave those of the long run alone"
    write_rows(tmp_path / "other" / "netflix" / "counts.csv.gz", ["item", "count"], [("a", 7), ("b", 3)])
    list(reproduce("small", data=tmp_path / "other", out=tmp_path))
    assert len(work.computed) == 15, "other data, other numbers"
    assert {row["largest"] for row in csv.DictReader(numbers(tmp_path).splitlines())} == {"7"}


def test_progress_grows_and_files_are_named(work: Work, folder: Path, tmp_path: Path) -> None:
    shares: list[float] = []
    (outcome,) = reproduce("small", data=folder, out=tmp_path, progress=shares.append)
    assert shares == [0.0, 0.2, 0.4, 0.6, 0.8]
    plain = outcome.to_dict()
    assert (plain["holds"], plain["held"], plain["settings"]) == (True, 1, 1)
    assert [path.name for path in outcome.files] == ["figure-1.csv", "figure-1.md"]
    page = outcome.files[1].read_text(encoding="utf-8")
    assert "The paper: Thirds are the same." in page
    assert "\n\nClaim: equal thirds · Here: a third · Verdict: holds\n\nThe paper:" in page
    assert "Here: 5 rows." in page
    assert outcome.line in page
    assert (plain["short_claim"], plain["figure"], plain["judgement"]) == ("equal thirds", "a third", "holds")
    assert (plain["failed"], plain["undecided"]) == (0, 0)


def test_a_quick_run_says_which_settings_it_computed(work: Work, folder: Path, tmp_path: Path) -> None:
    (outcome,) = reproduce("small", data=folder, out=tmp_path, quick=True)
    assert outcome.line == "Claim: equal thirds · Here: a third · Verdict: holds (k = 3 only)"
    assert outcome.line in outcome.files[1].read_text(encoding="utf-8").splitlines()
    assert outcome.to_dict()["judgement"] == "holds (k = 3 only)"


STUDIES = [(paper.name, study) for paper in PAPERS.values() for study in paper.studies]


@pytest.mark.parametrize("column", ["k", "epsilon", "epsilons"])
def test_a_study_whose_quick_form_leaves_settings_out_names_those_it_computes(column: str) -> None:
    def values(study: Study, quick: bool) -> set[Any]:
        points = [point for point in study.points(quick) if column in point]
        return {one for point in points for one in (point[column] if column == "epsilons" else [point[column]])}

    for paper, study in STUDIES:
        computed = values(study, True)
        if computed != values(study, False) and (paper, study.name) != ("oneshot", "theorem-2.2"):
            named = study.quick_only.partition("=")[2]
            for one in computed - ({10} if (paper, study.name) == ("canonical", "figure-2") else set()):
                assert re.search(rf"\b{one:g}\b", named), f"{paper}, {study.name}"


PRECISION = ("draws", "trials", "jump", "places", "step")
"""Parts of a point that do not name a setting, but how finely it is computed."""


def test_a_study_whose_quick_form_leaves_settings_out_says_so() -> None:
    def settings(study: Study, quick: bool) -> list[str]:
        points = study.points(quick)
        return sorted(str({name: point[name] for name in point if name not in PRECISION}) for point in points)

    for paper, study in STUDIES:
        left_out = settings(study, True) != settings(study, False)
        assert bool(study.quick_only) == left_out, f"{paper}, {study.name}"


def test_every_study_has_a_short_claim() -> None:
    for _, study in STUDIES:
        assert 10 < len(study.short) <= 110
        assert "|" not in study.short


def test_half_written_and_foreign_files_of_points_are_started_anew(tmp_path: Path) -> None:
    path = tmp_path / "points.json"
    for content in ("", '{"fingerprint": "a", "fini', "[]", '{"fingerprint": "b", "finished": {}}', "\x00"):
        path.write_text(content)
        store = Store(path, "a")
        assert store.rows({"k": 1}) is None
    store.keep({"k": 1}, [{"k": 1}])
    assert Store(path, "a").rows({"k": 1}) == [{"k": 1}]
    assert Store(path, "b").rows({"k": 1}) is None
    assert [file.name for file in tmp_path.iterdir()] == ["points.json"], "nothing temporary stays"


def test_two_runs_at_once_keep_each_others_points(tmp_path: Path) -> None:
    first, second = Store(tmp_path / "points.json", "a"), Store(tmp_path / "points.json", "a")
    first.keep({"k": 1}, [{"k": 1}])
    second.keep({"k": 2}, [{"k": 2}])
    assert [Store(tmp_path / "points.json", "a").rows({"k": k}) for k in (1, 2)] == [[{"k": 1}], [{"k": 2}]]


def test_a_file_that_cannot_be_written_is_refused_by_name(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(dps.InvalidInput, match="out must be a folder with free space and write permission"):
        write_result(tmp_path / "file" / "numbers.csv", "text")


def test_rows_with_different_columns_share_a_table() -> None:
    assert as_table([{"a": 1}, {"b": "x,y", "a": 2}]) == 'a,b\n1,\n2,"x,y"\n'


def test_seeds_depend_on_the_settings_alone() -> None:
    assert seed_of({"a": 1, "b": 2}) == seed_of({"b": 2, "a": 1}) != seed_of({"a": 1, "b": 3})


def test_counts_and_people_of_a_folder(folder: Path) -> None:
    data = Data(folder)
    counts = data.counts("epinions")
    assert (np.diff(counts) <= 0).all()
    assert data.people("epinions") == 120
    assert counts[0] <= 120
    assert (np.diff(data.counts("dpbench/PATENT")) <= 0).all()


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"paper": "nosuch"}, "paper must be one of canonical, joint"),
        ({"figure": "99"}, "figure must be one of 1, 2, 3, 4, 5, 6 for the joint paper, got '99'"),
        ({"plot_format": "gif"}, "plot_format must be svg or png, got 'gif'"),
        ({"data": "no-such-folder"}, "data must be an existing folder with the data sets, got 'no-such-folder'"),
    ],
    ids=["paper", "figure", "plot format", "data"],
)
def test_bad_input_is_refused_before_anything_is_computed(
    folder: Path, tmp_path: Path, arguments: dict[str, Any], message: str
) -> None:
    given: dict[str, Any] = {"paper": "joint", "data": folder, "out": tmp_path / "out", **arguments}
    with pytest.raises(dps.InvalidInput) as error:
        reproduce(given.pop("paper"), **given)
    assert str(error.value).startswith(message)
    assert not (tmp_path / "out").exists()


def test_a_missing_data_set_is_named_with_its_folder(tmp_path: Path) -> None:
    with pytest.raises(dps.InvalidInput) as error:
        reproduce("joint", data=tmp_path, out=tmp_path / "out")
    assert "books_goodreads/counts.csv.gz" in str(error.value)
    assert str(tmp_path)[:40] in str(error.value)


@pytest.mark.parametrize("content", [b"not gzip", None], ids=["damaged", "text for a count"])
def test_a_file_that_is_no_data_set_is_refused_without_quoting_it(tmp_path: Path, content: bytes | None) -> None:
    path = tmp_path / "netflix" / "counts.csv.gz"
    if content is None:
        write_rows(path, ["item", "count"], [("secret", "many")])
    else:
        path.parent.mkdir()
        path.write_bytes(content)
    with pytest.raises(dps.DpSelectError) as error:
        Data(tmp_path).counts("netflix")
    assert "netflix" in str(error.value)
    assert "secret" not in str(error.value)
    assert "many" not in str(error.value)


def test_without_matplotlib_it_says_what_to_install(
    folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    real_import = builtins.__import__

    def missing(name: str, *rest: Any) -> Any:
        if name.partition(".")[0] == "matplotlib":
            raise ImportError(name)
        return real_import(name, *rest)

    monkeypatch.setattr(builtins, "__import__", missing)
    with pytest.raises(dps.DpSelectError, match=r"pip install 'dpselect\[plot\]'"):
        reproduce("joint", data=folder, out=tmp_path)


def test_a_study_has_several_spellings() -> None:
    for name in ("4", "figure-4", " Figure 4 "):
        assert [study.name for study in studies_named(PAPERS["joint"], name)] == ["figure-4"]
    for name in ("2.2", "Theorem 2.2"):
        assert [study.name for study in studies_named(PAPERS["oneshot"], name)] == ["theorem-2.2"]
    for name in ("7.3", "Section 7.3"):
        assert [study.name for study in studies_named(PAPERS["canonical"], name)] == ["section-7.3"]


def test_generated_counts_have_the_shape_they_say() -> None:
    counts = look_alike(5000, 1000, 10, 1.1)
    assert len(counts) == 5000
    assert counts[-1] == 1
    assert 850 < counts[0] < 1100
    assert (np.diff(counts) <= 0).all()
    assert zipf(1000, 0.5).sum() == pytest.approx(1.5e8)
    assert zipf(1000, 0.5)[0] / zipf(1000, 0.5)[99] == pytest.approx(10.0)


@pytest.mark.parametrize(("paper", "figure"), [("canonical", "6"), ("joint", "2"), ("restricted", "4")])
def test_a_data_set_with_too_few_items_is_refused_by_name(tmp_path: Path, paper: str, figure: str) -> None:
    for name in ("netflix", "books_goodreads", "games_steam"):
        write_rows(tmp_path / name / "counts.csv.gz", ["item", "count"], [("a", 7), ("b", 3)])
    for name in ("PATENT", "SEARCHLOGS", "MEDCOST", "INCOME", "HEPTH"):
        write_rows(tmp_path / "dpbench" / f"{name}.csv.gz", ["item", "count"], [])
    for name in ("epinions", "foursquare_lbsn_Jakarta", "games_steam"):
        write_rows(tmp_path / name / "pairs.csv.gz", ["user", "item"], [("someone", "something")])
    with pytest.raises(dps.InvalidInput, match=r"must contain more than \d+ items in the data set \S+"):
        list(reproduce(paper, data=tmp_path, out=tmp_path / "out", figure=figure, quick=True))


def test_numbers_to_read_keep_all_their_digits() -> None:
    figure, axes = panels(1, 1)
    axes[0, 0].plot([0.00123456, 0.00456789], [1e6, 1e8])
    axes[0, 0].set_title("0.00123456")
    log_axis(axes[0, 0])
    log_axis(axes[0, 0], "y")
    content = picture(figure, "svg").decode()
    texts = re.findall(r"<text[^>]*>([^<]*)</text>", content)
    assert "0.00123456" in texts
    assert {"0.002", "10M"} <= set(texts)
    places = re.findall(r' d="([^"]*)"', content)
    assert places
    assert not any(re.search(r"\d\.\d\d", place) for place in places), "a tenth of a point is enough for lines"


def checks(*held: bool, group: str = "Foods, k =") -> list[Claim]:
    return [Claim(group, str(5 * (place + 1)), right) for place, right in enumerate(held)]


def test_a_claim_holds_only_if_it_is_true_in_every_setting() -> None:
    verdict = counted(checks(True, True, True), "three", "Text.")
    assert (verdict.holds, verdict.word, verdict.text) == (True, "holds in all 3 settings", "Text.")
    assert verdict.figure == "three"


def test_one_exception_is_counted_and_named() -> None:
    verdict = counted(checks(*[True] * 99, False), "", "Text.")
    assert not verdict.holds
    assert verdict.word == "holds in 99 of 100 settings, fails in 1"
    assert verdict.text == "Text. Exceptions: Foods, k = 500."


def test_comparisons_of_numpy_numbers_count_like_plain_ones() -> None:
    verdict = counted(checks(*(np.arange(3) > 0)), "", "Text.")
    assert verdict.word == "holds in 2 of 3 settings, fails in 1"
    assert verdict.text == "Text. Exceptions: Foods, k = 5."


def test_what_is_undecided_neither_holds_nor_fails() -> None:
    verdict = counted(checks(True, None, True), "", "Text.")
    assert (verdict.holds, verdict.failed, verdict.undecided) == (False, 0, 1)
    assert (verdict.word, verdict.text) == ("holds in 2 of 3 settings, undecided in 1", "Text.")
    assert counted(checks(None, None), "", "").word == "undecided in all 2 settings"
    assert counted(checks(None), "", "").word == "undecided"


def test_the_most_frequent_answer_comes_first() -> None:
    assert Verdict(2, 4, "").word == "holds in 2 of 4 settings, fails in 2"
    assert Verdict(1, 4, "").word == "fails in 3 of 4 settings, holds in 1"
    assert Verdict(1, 6, "", undecided=3).word == "undecided in 3 of 6 settings, fails in 2, holds in 1"
    assert not Verdict(2, 4, "").holds


def test_exceptions_are_named_by_group_and_runs_are_shortened() -> None:
    found = exceptions(
        [
            *checks(False, False, None, False, False, False, True, False),
            *checks(True, True, group="Games, k ="),
            *checks(True, False, group="Books, k ="),
        ]
    )
    assert found == "Foods, k = 5, 10, 20 to 30, 40; Books, k = 10"


def test_a_claim_without_settings_is_refused() -> None:
    with pytest.raises(ValueError, match="at least one setting"):
        counted([], "", "Text.")
