"""The page of the desk for everybody: keyboard alone, screen readers, both themes, phones, and a strict policy."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest
from browsing import MARKS, Desk, alone_in, answer, ask, chromium, describe, opened, settled

pytestmark = MARKS

BUTTONS = {"button", "checkbox", "combobox", "ComboBoxMenuSelect", "link", "radio", "slider", "spinbutton", "textbox"}
"""Roles of what can be used, which need a name."""


@pytest.fixture(scope="module")
def browser() -> Iterator[Any]:
    with chromium() as started:
        yield started


@pytest.fixture(scope="module")
def desk(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Desk]:
    """A desk that the tests share; the first of them describes the data."""
    with alone_in(tmp_path_factory.mktemp("desk")) as served:
        facts = {
            "person": "viewer",
            "epsilon": 100.0,
            "items": {"film": "films.csv"},
            "groups": {"country": "countries.csv"},
        }
        assert served.send("POST", "/v1/datasets/views/describe", facts)[0] == 200
        yield served


def test_the_keyboard_alone_goes_from_the_start_to_the_release(browser: Any, tmp_path: Path) -> None:
    with alone_in(tmp_path) as desk, opened(browser, desk.address) as page:
        page.wait_for_selector("#describe:visible")

        def reach(wanted: str, key: str = "Tab") -> None:
            for _ in range(60):
                page.keyboard.press(key)
                if page.evaluate("document.activeElement.id") == wanted:
                    return
            raise AssertionError(f"the keyboard does not reach {wanted}")

        page.keyboard.press("Tab")
        assert page.evaluate("document.activeElement.className") == "skip"
        reach("describe-person")
        page.keyboard.type("viewer")
        reach("describe-item-0")
        page.keyboard.type("film")
        reach("describe-button")
        page.keyboard.press("Enter")
        settled(page)
        assert page.evaluate("document.activeElement.id") == "item", "the next thing to decide"
        reach("k")
        page.keyboard.press("Control+A")
        page.keyboard.type("3")
        reach("with-values")
        page.keyboard.press("Space")
        reach("epsilon-slider")
        before = float(page.input_value("#epsilon"))
        for _ in range(5):
            page.keyboard.press("ArrowRight")
        assert float(page.input_value("#epsilon")) > before
        reach("preview-button")
        page.keyboard.press("Enter")
        page.wait_for_selector("#preview:visible")
        page.wait_for_selector("#preview-button:focus")
        reach("release-button")
        page.keyboard.press("Enter")
        page.wait_for_selector("#confirm[open]")
        assert page.evaluate("document.activeElement.id") == "confirm-cancel", "not the button that cannot be undone"
        page.keyboard.press("Escape")
        page.wait_for_selector("#confirm", state="hidden")
        assert page.evaluate("document.activeElement.id") == "release-button"
        page.keyboard.press("Enter")
        reach("confirm-release", "Shift+Tab")
        page.keyboard.press("Enter")
        answer(page)
        assert page.evaluate("document.activeElement.id") == "answer", "where reading goes on"


def test_the_keyboard_goes_to_fields_that_are_added_and_is_kept_when_they_go(browser: Any, desk: Desk) -> None:
    with opened(browser, desk.address) as page:
        settled(page)
        page.click("#change-facts")
        page.click("#describe-more > summary")
        for kind, first in (("item", "item-2"), ("group", "group-3"), ("filter", "filter-name-4")):
            page.focus(f"#add-{kind}")
            page.keyboard.press("Enter")
            assert page.evaluate("document.activeElement.id") == f"describe-{first}"
            page.focus(f".repeated:has(#describe-{first}) > button")
            page.keyboard.press("Enter")
            assert page.evaluate("document.activeElement.id") == f"add-{kind}"


def test_a_screen_reader_finds_a_name_for_everything(browser: Any, desk: Desk) -> None:
    with opened(browser, desk.address) as page:
        settled(page)
        page.click("#change-facts")
        page.click("#describe-more > summary")
        for button in ("#add-item", "#add-group", "#add-filter"):
            page.click(button)
        page.check("#with-values")
        page.check("#expect-like")
        page.click("#look > summary")
        page.click("#commands > summary")
        page.click("#preview-button")
        page.wait_for_selector("#preview .chart")
        ask(page)
        answer(page)
        page.wait_for_selector("#history details")
        page.click("#release-button")
        check_names(page)
        page.keyboard.press("Escape")
        check_names(page)
        assert page.get_attribute("html", "lang") == "en"
        found = page.evaluate(STRUCTURE)
        assert found["twice"] == [], "every id is there once"
        assert found["missing"] == [], "what is referred to exists"
        levels = found["levels"]
        assert levels[0] == 1
        assert all(after <= before + 1 for before, after in pairwise(levels)), levels
        assert found["small"] == [], "large enough for a finger"


def check_names(page: Any) -> None:
    session = page.context.new_cdp_session(page)
    nodes = session.send("Accessibility.getFullAXTree")["nodes"]
    used = [node for node in nodes if not node["ignored"] and node["role"]["value"] in BUTTONS]
    assert len(used) >= 2
    unnamed = [node["role"]["value"] for node in used if not node.get("name", {}).get("value", "").strip()]
    assert unnamed == []
    pictures = [node for node in nodes if not node["ignored"] and node["role"]["value"] in ("image", "img", "dialog")]
    assert all(node.get("name", {}).get("value", "").strip() for node in pictures), pictures


STRUCTURE = """() => {
    const shown = (each) => each.checkVisibility({ visibilityProperty: true });
    const all = [...document.querySelectorAll("[id]")].map(({ id }) => id);
    const named = ["aria-describedby", "aria-labelledby", "aria-controls", "for", "list"];
    const referring = named.flatMap((name) => [...document.querySelectorAll(`[${name}]`)].map((each) => [each, name]));
    const referred = referring.flatMap(([each, name]) => each.getAttribute(name).split(" "));
    const height = (each) => (each.closest("label") ?? each).getBoundingClientRect().height;
    const buttons = [...document.querySelectorAll("button, input:not([type=range]), select, summary")].filter(shown);
    return {
        twice: all.filter((id, place) => all.indexOf(id) !== place),
        missing: referred.filter((id) => id !== "" && document.getElementById(id) === null),
        levels: [...document.querySelectorAll("h1, h2, h3, h4")].filter(shown).map(({ tagName }) => Number(tagName[1])),
        small: buttons.filter((each) => height(each) < 24).map(({ id, className }) => id || className),
    };
}"""


@pytest.mark.parametrize("theme", ["light", "dark"])
@pytest.mark.parametrize("width", [390, 1280])
def test_every_step_fits_the_screen_in_both_themes(browser: Any, tmp_path: Path, theme: str, width: int) -> None:
    with alone_in(tmp_path) as desk, opened(browser, desk.address, width=width, color_scheme=theme) as page:
        page.wait_for_selector("#describe:visible")
        page.click("#describe-button")
        check_fit(page, width, theme)
        describe(page, epsilon="20", more=True)
        page.check("#with-values")
        page.check("#expect-lead")
        page.select_option("#by", "country")
        page.click("#look > summary")
        page.click("#commands > summary")
        page.click("#preview-button")
        page.wait_for_selector("#preview .chart")
        ask(page)
        answer(page)
        page.wait_for_selector("#history details")
        page.click("#history details > summary")
        page.wait_for_selector("#history .chart")
        page.click("#open-discover") if page.is_visible("#open-discover") else None
        check_fit(page, width, theme)
        texts = page.evaluate(TEXTS)
        assert len(texts) > 30
        assert all(size >= 12 for _, size, _ in texts), "legible"
        assert all(inside for _, _, inside in texts), [text for text, _, inside in texts if not inside]


def test_charts_of_groups_have_one_scale_and_are_drawn_again_for_another_width(browser: Any, desk: Desk) -> None:
    with opened(browser, desk.address, width=844) as page:
        settled(page)
        page.check("#with-values")
        page.select_option("#by", "country")
        ask(page, epsilon="20")
        answer(page)
        lengths = """[...document.querySelectorAll("#answer .chart")].map((chart) =>
            chart.querySelector(".value-bar").getAttribute("width")
                / Number(chart.querySelectorAll(".name")[1].textContent.replace(",", "")))"""
        scales = page.evaluate(lengths)
        assert len(scales) == 3
        assert scales == pytest.approx([scales[0]] * 3), "a person is as long in each chart"
        page.set_viewport_size({"width": 390, "height": 844})
        fits = """[...document.querySelectorAll("#answer .chart")].every((chart) =>
            chart.viewBox.baseVal.width === chart.parentNode.clientWidth)"""
        for _ in range(200):
            if page.evaluate(fits):
                break
            page.wait_for_timeout(50)
        assert page.evaluate(fits), "the words on them stay legible"
        assert page.locator("#answer .chart").count() == 3, "in place of the first ones"


def check_fit(page: Any, width: int, theme: str) -> None:
    assert page.evaluate("document.documentElement.scrollWidth") == width
    grounds, texts = page.evaluate(BRIGHTNESS)
    assert all(shade < 90 if theme == "dark" else shade > 200 for shade in grounds), grounds
    assert all(shade > 130 if theme == "dark" else shade < 130 for shade in texts), texts


TEXTS = """() => [...document.querySelectorAll("svg.chart")].filter((svg) => svg.checkVisibility()).flatMap((svg) => {
    const { width, left, right } = svg.getBoundingClientRect();
    return [...svg.querySelectorAll("text")].map((text) => {
        const box = text.getBoundingClientRect();
        const size = parseFloat(getComputedStyle(text).fontSize) * width / svg.viewBox.baseVal.width;
        return [text.textContent, size, box.left >= left - 1 && box.right <= right + 1];
    });
})"""
BRIGHTNESS = """() => {
    const shade = (each, property) => {
        const colour = getComputedStyle(each)[property].match(/[0-9.]+/g).map(Number);
        return (colour[0] + colour[1] + colour[2]) / 3;
    };
    const shown = (selector) => [...document.querySelectorAll(selector)].filter((each) => each.checkVisibility());
    return [
        shown("body, .card, pre, .notice:not(:empty)").map((each) => shade(each, "backgroundColor")),
        [...shown("h1, h2, label, .hint, .error, .notice p, pre").map((each) => shade(each, "color")),
            ...shown(".chart text").map((each) => shade(each, "fill"))],
    ];
}"""


def test_the_chosen_theme_goes_before_that_of_the_system_and_is_kept(browser: Any, desk: Desk) -> None:
    with opened(browser, desk.address, color_scheme="light") as page:
        settled(page)
        ground = "getComputedStyle(document.body).backgroundColor"
        light = page.evaluate(ground)
        page.select_option("#theme", "dark")
        dark = page.evaluate(ground)
        assert dark != light
        page.reload()
        settled(page)
        assert (page.evaluate(ground), page.input_value("#theme")) == (dark, "dark")
        page.select_option("#theme", "")
        assert page.evaluate(ground) == light


@pytest.mark.parametrize(
    ("mischief", "complaint"),
    [
        ("document.body.append(Object.assign(document.createElement('script'), { textContent: '1' }))", "script-src"),
        ("fetch('http://127.0.0.1:9/elsewhere').catch(() => null)", "connect-src"),
    ],
    ids=["a script in the page", "a request to another site"],
)
def test_the_pages_policy_forbids_what_the_other_tests_would_notice(
    browser: Any, desk: Desk, mischief: str, complaint: str
) -> None:
    def misbehave() -> None:
        with opened(browser, desk.address) as page:
            settled(page)
            with page.expect_console_message(lambda message: "policy: " in message.text):  # it comes later
                page.evaluate(mischief)

    with pytest.raises(AssertionError, match=f"policy: {complaint}"):
        misbehave()
