"""The page of the desk alone, in a real browser: every step from the description to the downloaded chart."""

from __future__ import annotations

import csv
import io
import json
import os
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from browsing import MARKS, Desk, alone_in, answer, ask, chromium, describe, opened, settled, spent
from desks import FILMS, PRIVATE, running

pytestmark = MARKS


@pytest.fixture(scope="module")
def browser() -> Iterator[Any]:
    with chromium() as started:
        yield started


@pytest.fixture
def desk(tmp_path: Path) -> Iterator[Desk]:
    with alone_in(tmp_path) as served:
        yield served


@pytest.fixture
def page(browser: Any, desk: Desk) -> Iterator[Any]:
    with opened(browser, desk.address) as shown:
        yield shown


def test_a_newcomer_gets_from_the_command_to_a_chart(browser: Any, tmp_path: Path) -> None:
    """The command of the README in an empty folder; on the page only what it asks for is filled in."""
    with running(tmp_path) as desk, opened(browser, f"{desk.url}/#token={desk.token}") as page:
        page.wait_for_selector("#dataset-facts:has-text('demo/views.parquet')")
        assert "token" not in page.url, "the token does not stay in the address"
        page.select_option("#describe-person", "viewer")
        page.select_option("#describe-item-0", "film")
        assert page.input_value("#describe-file-0") == "demo/films.csv", "the list is found by its name"
        page.click("#describe-button")
        settled(page)
        page.check("#with-values")
        page.click("#preview-button")
        page.wait_for_selector("#preview:visible .chart")
        assert "GENERATED DATA" in page.text_content("#preview")
        assert spent(desk) == 0
        page.click("#release-button")
        assert "epsilon 0.5 of the 2" in page.text_content("#confirm-text")
        page.click("#confirm-release")
        answer(page)
        names = page.locator("#answer .chart .name").all_text_contents()
        assert "Patient Shadows" in names, "the film that has the most viewers by far"
        page.wait_for_selector("#buys:has-text('What is left buys 3 more like it.')")
        assert "spent 0.5, left 1.5, of 2" in page.get_attribute("#budget .bar", "aria-label")
        assert spent(desk) == 0.5


def test_what_is_wrong_is_said_beside_its_field(page: Any, desk: Desk) -> None:
    page.click("#describe-button")
    assert page.text_content("#describe-person-error") == "Choose the column that says who a row is about."
    assert page.text_content("#describe-item-0-error") == "Choose the column that holds the items."
    assert page.evaluate("document.activeElement.id") == "describe-person", "the first of them has the keyboard"
    assert page.get_attribute("#describe-person", "aria-invalid") == "true"
    page.select_option("#describe-person", "viewer")
    assert page.text_content("#describe-person-error") == "", "a message goes when its field is changed"
    page.select_option("#describe-item-0", "film")
    for file, said in (
        ("none.csv", "there is no such file in the folder"),
        ("views.csv", "a public list, not the private rows"),
    ):
        page.fill("#describe-file-0", file)
        page.click("#describe-button")
        page.wait_for_selector(f"#describe-file-0-error:has-text('{said}')")
    page.fill("#describe-file-0", "films.csv")
    page.click("#describe-more > summary")
    page.click("#add-filter")
    page.fill("#describe-filter-name-1", "adults")
    page.fill("#describe-filter-condition-1", "agee >= 18")
    page.click("#describe-button")
    page.wait_for_selector("#describe-filter-condition-1-error:has-text('has no column')")
    assert not (desk.folder / "desk.toml").exists(), "nothing was fixed yet"
    page.fill("#describe-filter-condition-1", "CAST(age AS INTEGER) >= 18")
    page.click("#describe-button")
    settled(page)
    for field, value, said in (
        ("k", "0", "k must be a whole number from 1 on"),
        ("k", "13", "k must be at most 12"),
        ("epsilon", "0", "Epsilon must be a number above 0"),
        ("epsilon", "3", "This costs epsilon 3; only 2 is left."),
    ):
        before = page.input_value(f"#{field}")
        page.fill(f"#{field}", value)
        page.wait_for_selector(f"#{field}-error:has-text('{said}')")
        page.fill(f"#{field}", before)
        page.wait_for_selector(f"#{field}-error:empty", state="attached")


def test_the_curve_moves_with_epsilon_and_answers_which_epsilon_is_needed(page: Any) -> None:
    describe(page)
    slider = page.locator("#epsilon-slider")
    assert page.text_content("#epsilon-ends").split(",")[0] == "strong protection"
    assert "weak protection" in page.text_content("#epsilon-ends")
    page.wait_for_selector("#curve-title:has-text('At epsilon 0.5, the last chosen item must lead')")
    slider.fill("0.3")
    assert page.input_value("#epsilon") == "2"
    assert page.get_attribute("#epsilon-slider", "aria-valuetext") == "2: moderate protection"
    page.wait_for_selector("#curve-title:has-text('At epsilon 2,')")
    mark, thumb = page.evaluate(
        """() => {
            const box = document.getElementById("curve").querySelector(".curve-mark").getBoundingClientRect();
            const { left, width } = document.getElementById("epsilon-slider").getBoundingClientRect();
            return [box.left + box.width / 2, left + 8 + (width - 16) * (0.3 + 2) / 3];
        }"""
    )
    assert mark == pytest.approx(thumb, abs=3), "the thumb stands below the mark"
    page.fill("#epsilon", "0.5")
    page.check("#expect-lead")
    page.fill("#lead", "20")
    page.wait_for_selector("#curve-title:has-text('exactly the right 10 come out with')")
    page.click("#needed-button")
    page.wait_for_selector("#use-needed:visible")
    assert "gives exactly the right 10 with probability 0.9." in page.text_content("#needed")
    page.click("#use-needed")
    needed = float(page.input_value("#epsilon"))
    page.wait_for_selector(f"#curve-title:has-text('At epsilon {needed:g}, exactly the right 10')")
    page.wait_for_selector("#curve-title:has-text('a probability of at least 0.9')")
    page.fill("#k", "5")
    assert page.text_content("#needed") == "", "that epsilon was for another k"
    assert not page.is_visible("#use-needed")
    page.fill("#k", "10")
    page.wait_for_selector(f"#curve-title:has-text('At epsilon {needed:g}, exactly the right 10')")
    page.fill("#epsilon", "none")
    page.wait_for_selector("#epsilon-error:not(:empty)")
    assert page.locator("#curve .curve-mark").count() == 0, "no point for an epsilon that is not a number"
    assert "At epsilon" not in page.text_content("#curve-title")
    table = page.locator("#curve-table tbody tr")
    assert table.count() >= 10, "the curve is there as a table too"


def test_a_look_alike_is_read_here_and_computing_can_be_cancelled(page: Any, desk: Desk) -> None:
    describe(page)
    page.fill("#k", "3")
    page.check("#expect-like")
    page.click("#like-button")
    assert page.text_content("#like-error") == "Choose a CSV file first."
    rows = "film,count\n" + "".join(f"qpastq {place},{1000 - 70 * place}\n" for place in range(12))
    page.set_input_files("#like-file", {"name": "last.csv", "mimeType": "text/csv", "buffer": rows.encode()})
    page.click("#like-button")
    page.wait_for_selector("#curve-tag:has-text('from a look-alike')")
    assert "of 3 items are right" in page.text_content("#curve-title")
    assert "qpastq" not in desk.traffic.text, "only the counts are sent"
    page.route("**/estimate", lambda route: None)
    page.click("#like-button")
    page.wait_for_selector("#like-progress:visible")
    page.click("#like-cancel")
    page.wait_for_selector("#like-progress", state="hidden")
    page.wait_for_selector("#like-button:not([disabled])")
    page.unroute("**/estimate")


def test_the_same_question_can_be_asked_by_command_line_python_and_http(page: Any, desk: Desk) -> None:
    """The texts are copied with their buttons and run; under the key of the answer they return it and cost nothing."""
    describe(page, more=True)
    page.context.grant_permissions(["clipboard-read", "clipboard-write"])
    page.click("#commands > summary")
    page.check("#ordered")
    page.check("#with-values")
    page.select_option("#by", "country")
    page.select_option("#filter", "adults")
    page.fill("#purpose", "it's for the newsletter")
    page.wait_for_selector("#command-line:has-text('newsletter')")
    assert "--once" not in page.text_content("#command-line"), "before the release there is no key"
    ask(page, k="2", epsilon="0.5")
    answer(page)
    page.wait_for_selector("#command-line:has-text('--once')")
    texts = {}
    for name in ("line", "python", "http"):
        page.click(f"#command-{name} + button")
        page.wait_for_selector(f"#command-{name} + button:has-text('Copied')")
        texts[name] = page.evaluate("navigator.clipboard.readText()")
    path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
    environment = {**os.environ, "PATH": path, "DPSELECT_TOKEN": desk.token}
    files = download(page, "json")
    expected = {group: part["items"] for group, part in json.loads(files)["groups"].items()}

    def run(*command: str) -> str:
        found = subprocess.run(
            command, cwd=desk.folder, env=environment, capture_output=True, text=True, timeout=120, check=False
        )
        assert found.returncode == 0, found.stderr
        return found.stdout

    of_line = json.loads(run("bash", "-c", f"{texts['line']} --format json"))
    of_python = json.loads(
        run(
            sys.executable,
            "-c",
            texts["python"].replace("print(release)", "import json; print(json.dumps(release.to_dict()))"),
        )
    )
    for found in (of_line, of_python):
        assert {group: part["items"] for group, part in found["groups"].items()} == expected
    if shutil.which("curl") is not None:
        found = json.loads(run("bash", "-c", texts["http"].replace("curl", "curl -s", 1)))
        assert {group: part["items"] for group, part in found["groups"].items()} == expected
    assert spent(desk) == 0.5


def download(page: Any, kind: str) -> str:
    with page.expect_download() as waiting:
        page.click(f"#answer [data-download={kind}]")
    return Path(waiting.value.path()).read_text(encoding="utf-8")


def test_the_answer_can_be_downloaded_and_the_report_prints_on_one_page(
    page: Any, browser: Any, tmp_path: Path
) -> None:
    describe(page)
    page.check("#with-values")
    page.fill("#purpose", "newsletter <b>46</b>")
    ask(page, k="10", epsilon="1")
    answer(page)
    assert "protects one person" in page.text_content("#answer .notice")
    assert "come out with probability 0.9" in page.text_content("#answer .notice")
    assert "Strong protection (epsilon 1)." in page.text_content("#answer .notice")
    release = json.loads(download(page, "json"))
    rows = list(csv.DictReader(io.StringIO(download(page, "csv"))))
    assert {row["item"] for row in rows} == set(release["items"])
    assert {float(row["value"]) for row in rows} == set(map(float, release["values"]))
    report = tmp_path / "report.html"
    report.write_text(download(page, "report"), encoding="utf-8")
    with opened(browser, report.as_uri(), width=390) as printed:
        text = printed.text_content("body")
        for item in release["items"]:
            assert item in text
        assert "protects one person" in text
        assert "newsletter <b>46</b>" in text, "what is typed in stays text"
        assert printed.locator("svg .value-bar").count() == 10
        assert printed.evaluate("document.documentElement.scrollWidth") == 390
        printed.emulate_media(media="print")
        for paper in ("A4", "Letter"):
            assert printed.pdf(format=paper).count(b"/Type /Page\n") == 1


def test_discovery_publishes_the_list_and_then_the_answer_is_of_it(page: Any, desk: Desk) -> None:
    page.select_option("#describe-person", "viewer")
    page.select_option("#describe-item-0", "film")
    page.check("#describe-list-0-discover")
    assert page.input_value("#describe-delta") == "1e-6", "which discovery needs"
    page.fill("#describe-epsilon", "20")
    page.click("#describe-button")
    page.wait_for_selector("#discover:visible")
    assert page.evaluate("document.activeElement.id") == "discover-epsilon"
    settled(page)
    assert "Without a list of items there is no curve" in page.text_content("#curve-title")
    assert "nobody can list the items" in page.text_content("#list-source")
    before = desk.traffic.text
    assert not any(film in before for film in (*FILMS, PRIVATE)), "no item before it is published"
    page.fill("#discover-epsilon", "10")
    page.check("#discover-agree")
    page.click("#discover-button")
    page.wait_for_selector("#question-status.good:has-text('The list was published')")
    assert page.evaluate("document.activeElement.id") == "item"
    page.wait_for_selector("#list-source:has-text('a public list of')")
    assert "film" in (desk.folder / "views-film.csv").read_text().splitlines()[0]
    settled(page)
    assert page.input_value("#delta") == "0", "an answer from a public list needs none"
    ask(page, k="2", epsilon="5")
    assert "Film A" in answer(page)
    page.wait_for_selector("#history li:nth-child(2)")
    assert "Which items of film exist" in page.text_content("#history")
    assert f"{PRIVATE}-viewer" not in desk.traffic.text


def test_an_answer_from_unlisted_items_needs_a_delta_and_shows_no_item_before(page: Any, desk: Desk) -> None:
    page.select_option("#describe-person", "viewer")
    page.select_option("#describe-item-0", "film")
    page.check("#describe-list-0-unknown")
    page.fill("#describe-epsilon", "20")
    page.click("#describe-button")
    settled(page)
    assert page.input_value("#delta") == "1e-7"
    page.click("#preview-button")
    page.wait_for_selector("#preview:visible")
    assert not any(film in desk.traffic.text for film in (*FILMS, PRIVATE))
    ask(page, k="2", epsilon="10")
    assert "Film A" in answer(page)
    assert "if the data are of fewer than 10,000,000 people" in page.text_content("#answer .notice")
    assert f"{PRIVATE}-viewer" not in desk.traffic.text


def test_a_look_at_the_rows_is_marked_for_good(page: Any, desk: Desk, tmp_path: Path) -> None:
    describe(page)
    page.fill("#k", "3")
    page.click("#look > summary")
    assert page.is_disabled("#look-button"), "first the mark is accepted"
    page.check("#look-agree")
    page.click("#look-button")
    page.wait_for_selector("#curve-tag:has-text('NOT PRIVATE: from the real rows')")
    page.wait_for_selector("#look-status.warn")
    page.fill("#epsilon", "0.25")
    page.click("#release-button")
    assert "parameters chosen after looking" in page.text_content("#confirm-looked")
    page.click("#confirm-release")
    answer(page)
    marked = "parameters chosen after looking"
    assert marked in page.text_content("#answer .tag")
    page.wait_for_selector(f"#history .tag:has-text('{marked}')")
    assert marked in download(page, "report")
    page.click("#commands > summary")
    assert marked in page.text_content("#command-line"), "also what is asked elsewhere is noted"
    shown = subprocess.run(
        [sys.executable, "-m", "dpselect", "ledger", "show", "--ledger", "ledger.sqlite", "--format", "json"],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        timeout=120,
        check=True,
    )
    assert marked in shown.stdout
    assert PRIVATE not in desk.traffic.text


def test_what_may_be_asked_can_be_changed_and_the_budget_cannot(page: Any, desk: Desk) -> None:
    describe(page)
    page.click("#change-facts")
    assert not page.is_visible("#describe-epsilon")
    assert page.input_value("#describe-item-0") == "film"
    assert page.input_value("#describe-file-0") == "films.csv"
    page.click("#describe-more > summary")
    page.fill("#describe-people", "120")
    page.click("#add-group")
    page.select_option("#describe-group-1", "country")
    page.fill("#describe-group-list-1", "DE, FR, PL")
    page.click("#describe-button")
    page.wait_for_selector("#by:visible")
    assert "120" in page.text_content("#dataset-facts")
    page.select_option("#by", "country")
    ask(page, epsilon="0.5")
    answer(page)
    assert page.locator("#answer .answer-groups h4").all_text_contents() == ["DE", "FR", "PL"]
    assert spent(desk) == 0.5


def test_each_period_has_its_own_budget(page: Any, desk: Desk) -> None:
    page.select_option("#describe-person", "viewer")
    page.select_option("#describe-item-0", "film")
    page.fill("#describe-epsilon", "0.5")
    page.click("#describe-more > summary")
    page.select_option("#describe-time", "day")
    page.click("#describe-button")
    assert "Choose day, week or month" in page.text_content("#describe-every-error")
    page.select_option("#describe-every", "week")
    page.click("#describe-button")
    settled(page)
    page.fill("#period", "2025-W46")
    ask(page, epsilon="0.5")
    answer(page)
    page.wait_for_selector("#epsilon-error:has-text('The budget is spent')")
    page.fill("#period", "2025-W47")
    page.wait_for_selector("#epsilon-error:empty", state="attached")
    ask(page, epsilon="0.5")
    page.wait_for_selector("#history li:nth-child(2)")
    assert "one person's week" in page.text_content("#answer .notice")
    assert desk.send("GET", "/v1/datasets/views/releases")[2][0]["guarantee"]["epsilon"] == 0.5


@pytest.mark.parametrize("arrives", [True, False], ids=["the answer is lost", "the question is lost"])
def test_a_lost_release_is_asked_again_under_its_key(page: Any, desk: Desk, arrives: bool) -> None:
    describe(page)

    def lose(route: Any) -> None:
        if arrives:
            route.fetch()
        route.abort()

    page.route("**/releases", lambda route: lose(route) if route.request.method == "POST" else route.continue_())
    ask(page)
    page.wait_for_selector("#pending:visible")
    page.wait_for_selector("#retry:focus")
    assert "nothing is charged twice" in page.text_content("#pending-text")
    assert page.is_disabled("#release-button"), "no second question before the first is settled"
    page.unroute("**/releases")
    page.reload()
    page.wait_for_selector("#pending:visible")
    page.click("#retry")
    items = answer(page)
    asked = [line.split() for line in desk.traffic.received if line.startswith("POST") and "/releases" in line]
    keys = [words[words.index("idempotency-key") + 1] for words in asked]
    assert len(keys) == 1 + arrives
    assert len(set(keys)) == 1
    assert spent(desk) == 0.25
    (kept,) = desk.send("GET", "/v1/datasets/views/releases")[2]
    assert (kept["key"], kept["release"]["items"]) == (keys[0], items)


def test_no_private_value_is_in_the_traffic(page: Any, desk: Desk) -> None:
    """All of it is searched: requests, answers, files of the page; also for what is in the rows and in no list."""
    describe(page, more=True)
    page.click("#preview-button")
    page.wait_for_selector("#preview:visible")
    page.check("#with-values")
    ask(page, epsilon="0.5")
    answer(page)
    page.wait_for_selector("#history details")
    page.click("#history details > summary")
    rows = (desk.folder / "views.csv").read_text()
    assert PRIVATE in rows
    assert len(desk.traffic.text) > 50_000, "the record is whole"
    assert PRIVATE not in desk.traffic.text
    assert "cookie" not in desk.traffic.text.lower()
    assert desk.token not in "".join(desk.traffic.sent)
    assert page.evaluate("[document.cookie, localStorage.length]") == ["", 0]
    first_words = [line.split(" headers ")[0] for line in desk.traffic.received]
    assert not any(desk.token in line for line in first_words), "no token in an address"
