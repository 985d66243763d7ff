"""The page of the desk alone with what newcomers bring: several files, long names, short lists, huge epsilons."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from browsing import MARKS, alone_in, answer, ask, chromium, describe, opened, settled
from desks import served_app

from dpselect.desk import AloneDesk, create_app
from dpselect.privacy import Guarantee

pytestmark = MARKS

LONG = "x" * 300


@pytest.fixture(scope="module")
def browser() -> Iterator[Any]:
    with chromium() as started:
        yield started


def test_what_was_typed_for_one_data_set_is_not_stated_of_another(browser: Any, tmp_path: Path) -> None:
    (tmp_path / "sales.csv").write_text("buyer,product,hour\n")
    with (
        served_app(create_app(desk := two_data_sets(tmp_path))) as url,
        opened(browser, f"{url}/#token={desk.token}") as page,
    ):
        page.wait_for_selector("#describe-person")
        usual = stated(page)
        page.click("#describe-more > summary")
        for name, text in (("epsilon", "9"), ("delta", "1e-3"), ("lifetime", "20"), ("protects", "one household")):
            page.fill(f"#describe-{name}", text)
        page.select_option("#describe-every", "week")
        page.select_option("#dataset", "views")
        page.wait_for_selector("#describe-person option[value='viewer']", state="attached")
        assert stated(page) == usual, "these are fixed for good, so that no one may overlook them"


def two_data_sets(folder: Path) -> AloneDesk:
    (folder / "views.csv").write_text("viewer,film,day\n")
    return AloneDesk(folder, [folder / "sales.csv", folder / "views.csv"])


def stated(page: Any) -> list[str]:
    return [page.input_value(f"#describe-{name}") for name in ("epsilon", "delta", "every", "lifetime", "protects")]


def test_files_without_rows_are_named_as_such(browser: Any, tmp_path: Path) -> None:
    (tmp_path / "films.csv").write_text("film\nHeat\n")
    desk = AloneDesk(tmp_path, [tmp_path / "films.csv"])
    with served_app(create_app(desk)) as url, opened(browser, f"{url}/#token={desk.token}") as page:
        page.wait_for_selector("#dataset-error:has-text('There are no rows about people in')")
        assert "films.csv" in page.text_content("#dataset-error")


def test_a_short_list_is_found_by_its_name_and_starts_with_a_k_that_it_allows(browser: Any, tmp_path: Path) -> None:
    (tmp_path / "visits.csv").write_text("city,guest\nOslo,ann\n")
    (tmp_path / "cities.csv").write_text("city\nOslo\nBergen\nTromsø\n")
    desk = AloneDesk(tmp_path, [tmp_path / "visits.csv", tmp_path / "cities.csv"])
    with served_app(create_app(desk)) as url, opened(browser, f"{url}/#token={desk.token}") as page:
        page.select_option("#describe-person", "guest")
        page.select_option("#describe-item-0", "city")
        page.click("#describe-button")
        settled(page)
        assert page.input_value("#k") == "2"
        assert page.text_content("#k-error") == ""


def test_a_list_that_comes_out_whole_has_words_instead_of_a_curve(browser: Any, tmp_path: Path) -> None:
    with alone_in(tmp_path) as desk, opened(browser, desk.address) as page:
        describe(page)
        page.fill("#k", "12")
        page.wait_for_selector("#curve-title:has-text('so the answer tells nothing new')")
        assert not page.is_visible("#curve")
        page.check("#with-values")
        page.wait_for_selector("#curve-title:has-text('how precise the numbers are')")
        page.check("#ordered")
        page.wait_for_selector("#curve-title:has-text('each chosen item must lead')")
        assert page.is_visible("#curve")


def test_a_list_for_which_too_little_delta_is_left_is_refused_for_its_delta(browser: Any, tmp_path: Path) -> None:
    with alone_in(tmp_path) as desk, opened(browser, desk.address) as page:
        page.select_option("#describe-person", "viewer")
        page.select_option("#describe-item-0", "film")
        page.check("#describe-list-0-discover")
        page.click("#describe-button")
        settled(page)
        page.fill("#discover-delta", "0.001")
        page.check("#discover-agree")
        page.click("#discover-button")
        page.wait_for_selector("#discover-delta-error:has-text('this costs delta 0.001, and 1e-6 is left')")
        assert page.text_content("#discover-epsilon-error") == ""


def test_a_file_that_is_no_look_alike_is_refused_with_the_reason_as_long_as_it_is_chosen(
    browser: Any, tmp_path: Path
) -> None:
    with alone_in(tmp_path) as desk, opened(browser, desk.address) as page:
        describe(page)
        page.check("#expect-like")
        page.set_input_files("#like-file", {"name": "last.csv", "mimeType": "text/csv", "buffer": b"film,n\nA,3\n"})
        page.wait_for_selector("#like-error:has-text('The first line must name a column')")
        page.click("#like-button")
        page.wait_for_selector("#like-error:has-text('The first line must name a column')")


def test_the_page_says_by_how_much_one_person_changes_a_probability_as_the_guarantee_does(
    browser: Any, tmp_path: Path
) -> None:
    with alone_in(tmp_path) as desk, opened(browser, desk.address) as page:
        for epsilon in (0.012, 0.05, 0.1, 0.5, 2.0, 6.9, 13.9, 20.0, 800.0):
            said = page.evaluate("async (each) => (await import('/elements.js')).change(each)", epsilon)
            assert str(Guarantee(epsilon=epsilon)).endswith(f"by {said}"), epsilon


def test_the_labels_of_the_curve_fit_beside_it(browser: Any, tmp_path: Path) -> None:
    with alone_in(tmp_path) as desk, opened(browser, desk.address, width=360) as page:
        describe(page)
        left = page.evaluate(
            """async () => {
                const { drawCurve } = await import("/charts.js");
                const svg = document.getElementById("curve");
                const points = [0.01, 10].map((epsilon) => ({ epsilon, value: 2000 / epsilon }));
                drawCurve(svg, { curve: { kind: "lead", points }, epsilon: 1, k: 10 });
                const label = [...svg.querySelectorAll("text")].find((each) => each.textContent === "100,000");
                return label.getBBox().x;
            }"""
        )
        assert left >= 0


def test_rows_that_are_gone_are_told_once_with_whether_it_was_charged(browser: Any, tmp_path: Path) -> None:
    with alone_in(tmp_path) as desk, opened(browser, desk.address) as page:
        describe(page)
        (tmp_path / "views.csv").unlink()
        ask(page)
        page.wait_for_selector("#pending:visible")
        said = page.text_content("#pending-text")
        assert said.startswith("The source of the data failed (table")
        assert said.count("Nothing was charged") == 1
        assert "Nothing was charged: ask again. The question to “views” was" in said


@pytest.mark.parametrize("width", [1280, 360])
def test_names_in_every_script_fit_beside_their_bars(browser: Any, tmp_path: Path, width: int) -> None:
    with alone_in(tmp_path) as desk, opened(browser, desk.address, width=width) as page:
        describe(page)
        lefts_and_rights = page.evaluate(
            """async (width) => {
                const { valuesChart } = await import("/charts.js");
                const items = ["東".repeat(40), "x".repeat(300), "Съешь ещё ".repeat(9), "🎬🍿".repeat(30), "Up"];
                const svg = valuesChart(items.map((item) => ({ item, value: 1, low: 0, high: 2 })), width, "title");
                document.getElementById("curve-place").append(svg);
                const boxes = [...svg.querySelectorAll("text")].map((each) => each.getBBox());
                return boxes.map(({ x, width }) => [x, x + width]);
            }""",
            min(width, 760),
        )
        assert all(left >= 0 and right <= min(width, 760) for left, right in lefts_and_rights), lefts_and_rights


def test_a_long_name_does_not_push_the_numbers_off_the_page_or_the_report(browser: Any, tmp_path: Path) -> None:
    films = [LONG, *(f"Film {number}" for number in range(9))]
    (tmp_path / "films.csv").write_text("film\n" + "".join(f"{film}\n" for film in films))
    (tmp_path / "views.csv").write_text("film,viewer\n" + "".join(f"{film},ann\n" for film in films))
    desk = AloneDesk(tmp_path, [tmp_path / "views.csv", tmp_path / "films.csv"])
    with served_app(create_app(desk)) as url, opened(browser, f"{url}/#token={desk.token}") as page:
        describe(page)
        page.check("#with-values")
        ask(page, k="10", epsilon="1")
        answer(page)
        page.set_viewport_size({"width": 360, "height": 800})
        page.click("#answer details > summary")
        assert page.evaluate("document.documentElement.scrollWidth") == 360
        with page.expect_download() as started:
            page.click('#answer [data-download="report"]')
        report = tmp_path / "report.html"
        started.value.save_as(report)
    with opened(browser, report.as_uri(), width=390) as printed:
        assert LONG in printed.text_content("table")
        assert printed.evaluate("document.documentElement.scrollWidth") == 390
