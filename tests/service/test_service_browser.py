"""The browser's client in a real Chromium: exact noise, nothing private in the traffic, and a page that works.

Its bits come from the browser, so there is no seed: each statistical test states a bound that sound noise exceeds with
a probability of at most 1e-6. The mean distance of n draws to their law is at most `½ Σ √(p/n)`, and one draw moves it
by at most 1/n, so that by McDiarmid's inequality it is exceeded by `√(ln 10⁶ / (2n))` at most once in a million times.
"""

from __future__ import annotations

import json
import math
import os
import shutil
from collections import Counter
from collections.abc import Iterator
from typing import Any

import pytest
from serving import Served, served

from dpselect.multiselect.noise import GridNoise
from dpselect.multiselect.offsets import expected_cost
from dpselect.multiselect.quality import QualityModel
from dpselect.service import Offer, VectorOffer, coast

CHROMIUM = next(filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), None)
OPTIONS = [
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
]
PRIVATE = 61.80339887
FILMS = VectorOffer([[0.0, 1.0], [1.0, 0.0]], k=1)

pytestmark = [
    pytest.mark.slow,
    pytest.mark.xdist_group("browser"),
    pytest.mark.skipif(CHROMIUM is None, reason="no Chromium here: apt-get install chromium, or make test as root"),
]


@pytest.fixture(scope="module")
def service() -> Iterator[Served]:
    with served({"coast": coast(100_000), "line": Offer([1.0, 2.0, 3.0], k=1)}) as running:
        yield running


@pytest.fixture(scope="module")
def browser() -> Iterator[Any]:
    from playwright.sync_api import sync_playwright

    # Chromium refuses to lock itself in when it runs as root, as it does in containers.
    alone = ["--no-sandbox"] if os.geteuid() == 0 else []
    with sync_playwright() as tools:
        running = tools.chromium.launch(executable_path=CHROMIUM, headless=True, args=[*OPTIONS, *alone])
        yield running
        running.close()


@pytest.fixture(scope="module")
def shops() -> Iterator[Served]:
    """A catalogue of somebody's own, with a name that an address cannot hold as it is."""
    with served({"50% #1": Offer({"west": 1000.0, "east": 1500.0, "far": 3000.0}, k=2, unit="mile")}) as running:
        yield running


@pytest.fixture
def page(browser: Any, service: Served) -> Iterator[Any]:
    """A page of a fresh profile on the service, which must not complain about anything."""
    context = browser.new_context(viewport={"width": 1120, "height": 1200})
    opened = context.new_page()
    complaints: list[str] = []
    opened.on("pageerror", lambda error: complaints.append(str(error)))
    opened.on("console", lambda message: complaints.append(message.text) if message.type == "error" else None)
    opened.goto(service.url)
    opened.wait_for_selector("#ask:not([disabled])")
    yield opened
    context.close()
    assert complaints == []


def noises(page: Any, epsilon: float, grid: float, count: int) -> Counter[int]:
    """Draw noise in the browser, in steps of the grid."""
    program = """async ([epsilon, grid, count]) => {
        const { Client } = await import("/dpselect.js");
        const client = new Client({ epsilon, grid });
        return Array.from({ length: count }, () => client.signal(0));
    }"""
    drawn = page.evaluate(program, [epsilon, grid, count])
    assert all(number == round(number / grid) * grid for number in drawn)
    return Counter(round(number / grid) for number in drawn)


def distance(counts: Counter[int], law: dict[int, float]) -> float:
    ends = min(law), max(law)
    shown: Counter[int] = Counter()
    for place, times in counts.items():
        shown[min(max(place, ends[0]), ends[1])] += times
    return sum(abs(shown[place] / counts.total() - chance) for place, chance in law.items()) / 2


def allowed(law: dict[int, float], count: int) -> float:
    return sum(math.sqrt(chance / count) for chance in law.values()) / 2 + math.sqrt(math.log(1e6) / (2 * count))


@pytest.mark.parametrize(("epsilon", "grid"), [(1.0, 0.25), (0.7, 0.3)], ids=str)
def test_the_noise_follows_its_law_and_no_other(page: Any, epsilon: float, grid: float) -> None:
    count = 20_000
    drawn = noises(page, epsilon, grid, count)
    law = GridNoise(epsilon, grid).law(0, -30, 30)
    bound = allowed(law, count)
    assert distance(drawn, law) < bound
    assert distance(drawn, GridNoise(1.5 * epsilon, grid).law(0, -30, 30)) > bound
    # Minus zero kept: no noise at all would be more likely by a factor of 1 + q.
    ratio = math.exp(-epsilon * grid)
    twice = {place: chance * (1 + ratio if place == 0 else 1) for place, chance in law.items()}
    if epsilon * grid == 1:
        assert distance(drawn, {place: chance / sum(twice.values()) for place, chance in twice.items()}) > bound


def test_positions_are_rounded_as_in_python(page: Any) -> None:
    """With epsilon 1000 a step has noise with a probability of 2e-434 at most."""
    values = [0.0, 0.49, 0.5, -0.5, -0.51, 1.5, 2.4999999999999996, 1e9 + 0.5, -7.25]
    program = """async (values) => {
        const { Client } = await import("/dpselect.js");
        return values.map((value) => new Client({ epsilon: 1000, grid: 1 }).signal(value));
    }"""
    noise = GridNoise(1000.0, 1.0)
    assert page.evaluate(program, values) == [noise.position(noise.nearest(value)) for value in values]


def test_numbers_become_the_exact_fractions_of_python(page: Any) -> None:
    values = [0.1, 1.0, 2.0**-40, 1e300, 5e-324, 123456.789, -0.3]
    program = """async (values) => {
        const { fraction } = await import("/dpselect.js");
        return values.map((value) => fraction(value).map(String));
    }"""
    assert page.evaluate(program, values) == [[str(part) for part in value.as_integer_ratio()] for value in values]


def test_a_model_chooses_in_the_browser_as_in_python(page: Any) -> None:
    model = QualityModel([[1.0, -2.0], [0.5, 3.0]], linear=[0.1, 0.2], squares=[-1.0, -0.5])
    program = """async ({ model, user, results }) => {
        const { Client, qualityOf } = await import("/dpselect.js");
        const client = new Client({ epsilon: 1, grid: 0.5 });
        client.signal(3);
        const tied = [{ position: 1 }, { position: 5 }, { position: 9 }];
        const refused = (() => { try { client.choose(tied, () => NaN); } catch (error) { return error.message; } })();
        return {
            qualities: results.map((result) => qualityOf(model)(user, result)),
            nearest: client.choose(tied, qualityOf({ bilinear: [[2]], linear: [0], squares: [-1] })).position,
            farthest: client.choose(tied, (value, result) => Math.abs(value - result.position)).position,
            refused,
        };
    }"""
    user, results = [1.5, -0.25], [{"vector": [0.5, 2.0]}, {"vector": [-1.0, 0.0]}]
    found = page.evaluate(program, {"model": model.to_dict(), "user": user, "results": results})
    assert found["qualities"] == pytest.approx([model(user, result) for result in results])
    assert (found["nearest"], found["farthest"]) == (1, 9), "the first of equals"
    assert found["refused"] == "the quality of every result needs to be a finite number"


def test_the_page_shows_the_first_catalogue_on_a_line_and_says_where_feature_vectors_are(browser: Any) -> None:
    for offers, shown, place in (
        ({"films": FILMS, "coast": coast(1000)}, "", "POST /v1/multiselect/films"),
        ({"films": FILMS}, "this service has no catalogue on a line", "POST /v1/multiselect/films"),
        ({"coast": coast(1000)}, "", "dpselect serve films.csv --features"),
    ):
        with served(offers) as running:
            context = browser.new_context()
            opened = context.new_page()
            opened.goto(running.url)
            opened.wait_for_selector("#status:not(:empty)" if shown else "#ask:not([disabled])", state="attached")
            assert shown in opened.text_content("#status")
            assert place in opened.text_content("#vectors")
            assert opened.locator("#served li").count() == len(offers)
            assert opened.locator("#ask").is_visible() is not bool(shown)
            context.close()


def test_when_a_client_refuses_depends_on_the_number_of_requests_alone(page: Any) -> None:
    program = """async (journeys) => {
        const { BudgetExceeded, Client, Ledger } = await import("/dpselect.js");
        return journeys.map((journey) => {
            const client = new Client({ epsilon: 0.1, grid: 0.5, ledger: new Ledger(0.3) });
            return journey.map((value) => {
                try { return typeof client.signal(value); } catch (error) { return error instanceof BudgetExceeded; }
            });
        });
    }"""
    journeys = [[5, 5, 5, 5], [5, 5, 5.5, 5], [5, 9, 5, 9], [0, 1e300, -5e300, 0]]
    # 0.1 as a float exceeds a third of 0.3, so that two signals are drawn.
    assert page.evaluate(program, journeys) == [["number", "number", True, True]] * 4


def test_with_reuse_the_last_signal_is_sent_again_for_the_same_grid_point_only(page: Any) -> None:
    program = """async () => {
        const { BudgetExceeded, Client, Ledger } = await import("/dpselect.js");
        const ledger = new Ledger(0.3);
        const client = new Client({ epsilon: 0.1, grid: 0.5, ledger, reuse: true });
        const sent = [5, 5.1, 5.2, 4.8].map((value) => client.signal(value));
        let refused = false;
        try { client.signal(9); } catch (error) { refused = error instanceof BudgetExceeded; }
        return { sent, refused, spent: ledger.spent, kept: client.choose([{ position: 4 }, { position: 5 }]).position };
    }"""
    found = page.evaluate(program)
    assert found["sent"][1] == found["sent"][2] == found["sent"][3]
    assert found["refused"] is True
    assert found["spent"] == 0.2
    assert found["kept"] == 5


def test_nothing_private_is_in_the_traffic(page: Any, service: Served) -> None:
    """Every request as the browser made it and as the server received it."""
    seen: list[str] = []
    session = page.context.new_cdp_session(page)
    session.send("Network.enable")
    session.on("Network.requestWillBeSent", lambda event: seen.append(json.dumps(event["request"])))
    session.on("Network.requestWillBeSentExtraInfo", lambda event: seen.append(json.dumps(event["headers"])))
    service.requests.clear()
    service.bodies.clear()
    page.evaluate(
        "value => { const field = document.getElementById('position');"
        " field.value = value; field.dispatchEvent(new Event('input')); }",
        PRIVATE,
    )
    assert page.text_content("#kept-position") == "61.80 km"
    signals = []
    for _ in range(20):
        before = len(service.bodies)
        page.click("#ask")
        page.wait_for_selector("#ask:not([disabled])")
        assert len(service.bodies) == before + 1
        signals.append(json.loads(service.bodies[-1])["signal"])
    traffic = [*seen, *(text.decode() for text in service.requests + service.bodies)]
    assert len(service.bodies) == 20
    assert all(set(json.loads(body)) == {"signal"} for body in service.bodies)
    for text in traffic:
        assert str(PRIVATE) not in text
        assert "cookie" not in text.lower()
        # Now and then noise is so small that the signal itself begins like the position; it is allowed to.
        for signal in signals:
            text = text.replace(repr(signal), "")
        assert "61.80" not in text
    assert all(service.url in json.loads(text).get("url", service.url) for text in seen)
    # The browser and the server agree on what was sent, so that the record is whole.
    assert [json.loads(body) for body in service.bodies] == [
        json.loads(json.loads(text)["postData"]) for text in seen if "postData" in json.loads(text)
    ]
    assert page.evaluate("[document.cookie, localStorage.length, sessionStorage.length]") == ["", 0, 0]


def test_signals_on_the_wire_follow_the_law_around_the_position(page: Any, service: Served) -> None:
    """As they arrive at the server, and rejected for a position three steps away."""
    count, epsilon, grid, value = 600, 2.0, 0.25, 4.6
    service.bodies.clear()
    program = """async ([epsilon, grid, value, count]) => {
        const { Client, ask } = await import("/dpselect.js");
        const client = new Client({ epsilon, grid });
        for (let sent = 0; sent < count; sent += 50) {
            await Promise.all(Array.from({ length: 50 }, () => ask("/v1/multiselect/line", client.signal(value))));
        }
    }"""
    page.evaluate(program, [epsilon, grid, value, count])
    drawn = Counter(round(json.loads(body)["signal"] / grid) for body in service.bodies)
    assert drawn.total() == count
    noise = GridNoise(epsilon, grid)
    law = noise.law(value, 0, 36)
    assert distance(drawn, law) < allowed(law, count)
    assert distance(drawn, noise.law(value + 0.75, 0, 36)) > allowed(law, count)


def test_the_page_shows_what_was_sent_and_what_was_kept(page: Any) -> None:
    page.click("#ask")
    page.wait_for_selector("#sent:has-text('signal')")
    sent = page.text_content("#sent").splitlines()
    assert sent[0] == "POST /v1/multiselect/coast?k=5&epsilon=0.2"
    signal = json.loads(sent[1])["signal"]
    assert page.text_content("#kept-noise") == f"{signal - 37.4:.2f} km"
    assert page.locator("#strip .pin").count() == 5
    assert page.locator("#strip .pin.kept").count() == 1
    assert page.locator("#strip .sent-mark").count() == 1
    assert page.text_content("#spent") == "0.2"
    chosen = float(page.text_content("#kept-choice").split(" at ")[1].removesuffix(" km"))
    kept = float(page.text_content("#kept-distance").removesuffix(" km"))
    assert kept == pytest.approx(abs(chosen - 37.4), abs=0.011)


def test_sliders_change_epsilon_and_k_and_the_budget_ends_at_every_place(page: Any, service: Served) -> None:
    page.locator("#epsilon").fill("6")
    page.wait_for_selector("#average-text:has-text('ε = 5')")
    page.locator("#k").fill("3")
    page.click("#ask")
    page.wait_for_selector("#sent:has-text('signal')")
    assert page.locator("#strip .pin").count() == 3
    service.bodies.clear()
    for place in ("37.4", "80"):
        page.locator("#position").fill(place)
        page.click("#ask")
        page.wait_for_selector("#status.refused")
        assert "Nothing was sent" in page.text_content("#status")
    assert service.bodies == []


def test_the_average_is_that_of_the_catalogue_which_is_served(page: Any, browser: Any, shops: Served) -> None:
    """On the coast results lie everywhere, so theory is met; three shops are far apart, where theory does not hold."""
    average, margin = shown_average(page)
    assert abs(average - expected_cost(5, 0.2)) < 3 * margin
    assert "4,000 simulated users, spread evenly from 0 to 100 km" in page.text_content("#average-note")
    assert page.locator("#averages .mean").count() == 9
    context = browser.new_context()
    other = context.new_page()
    other.goto(shops.url)
    other.wait_for_selector("#ask:not([disabled])")
    other.locator("#k").fill("3")
    average, margin = shown_average(other)
    # With all three shops as answers the nearest one is kept: (500²/4 + 1500²/4) / 2000.
    assert abs(average - 312.5) < 3 * margin
    assert "the 3 results served here" in other.text_content("#average-note")
    context.close()


def shown_average(page: Any) -> tuple[float, float]:
    """Return the average on the page and its margin."""
    average, margin = page.text_content("#average-text").split(": ")[1].split(" ± ")
    return float(average), float(margin.split()[0])


def test_the_page_fits_itself_to_any_catalogue(browser: Any, shops: Served) -> None:
    context = browser.new_context(viewport={"width": 360, "height": 700})
    page = context.new_page()
    page.goto(shops.url)
    page.wait_for_selector("#ask:not([disabled])")
    position = page.evaluate(
        "(({ min, max, value }) => [min, max, value].map(Number))(document.getElementById('position'))"
    )
    assert position == pytest.approx([1000, 3000, 1748])
    assert page.locator("#strip .town").count() == 0
    assert page.locator("#k").get_attribute("max") == "3"
    assert page.text_content("footer").count("mile") == 2
    page.click("#ask")
    page.wait_for_selector("#sent:has-text('signal')")
    assert page.text_content("#sent").startswith("POST /v1/multiselect/50%25%20%231?k=2&epsilon=1\n")
    assert "at 1500.0 mile" in page.text_content("#kept-choice")
    context.close()


@pytest.mark.parametrize("theme", ["light", "dark"])
@pytest.mark.parametrize("width", [360, 1280])
def test_the_page_fits_a_phone_and_follows_the_theme(browser: Any, service: Served, theme: str, width: int) -> None:
    context = browser.new_context(viewport={"width": width, "height": 800}, color_scheme=theme)
    page = context.new_page()
    page.goto(service.url)
    page.wait_for_selector("#ask:not([disabled])")
    page.click("#ask")
    page.wait_for_selector("#strip .sent-mark")
    assert page.evaluate("document.documentElement.scrollWidth") == width
    for picture in ("#strip", "#averages"):
        texts = page.evaluate(TEXTS, picture)
        assert len(texts) >= 9
        assert all(text["size"] >= 12 for text in texts), "legible"
        assert all(text["inside"] for text in texts), "nothing is cut off"
        assert not overlaps([text["box"] for text in texts if "town" in text["kind"]])
    brightness = page.evaluate(BRIGHTNESS)
    assert all(shade < 90 if theme == "dark" else shade > 200 for shade in brightness["grounds"]), brightness
    assert all(shade > 130 if theme == "dark" else shade < 130 for shade in brightness["texts"]), brightness
    # What the page itself states goes before the system's setting.
    page.evaluate("theme => { document.documentElement.dataset.theme = theme; }", {"light": "dark"}.get(theme, "light"))
    turned = page.evaluate(BRIGHTNESS)["grounds"]
    assert all((one > 127) != (other > 127) for one, other in zip(turned, brightness["grounds"], strict=True))
    context.close()


TEXTS = """picture => {
    const svg = document.querySelector(picture);
    const { width, left, right } = svg.getBoundingClientRect();
    return [...svg.querySelectorAll("text")].map((text) => {
        const box = text.getBoundingClientRect();
        return {
            size: parseFloat(getComputedStyle(text).fontSize) * width / svg.viewBox.baseVal.width,
            inside: box.left >= left - 1 && box.right <= right + 1,
            kind: text.getAttribute("class") ?? "",
            box: [box.left, box.right, box.top, box.bottom],
        };
    });
}"""
BRIGHTNESS = """() => {
    const shade = (selector, property) => {
        const colour = getComputedStyle(document.querySelector(selector))[property].match(/[0-9.]+/g).map(Number);
        return (colour[0] + colour[1] + colour[2]) / 3;
    };
    return {
        grounds: [["body", "backgroundColor"], [".card", "backgroundColor"], ["pre", "backgroundColor"],
            ["#strip .sea", "fill"], ["#strip .land", "fill"]].map((each) => shade(...each)),
        texts: [["h1", "color"], [".hint", "color"], ["#strip .town-name", "fill"], ["#averages text", "fill"],
            ["#averages .mean", "fill"]].map((each) => shade(...each)),
    };
}"""


def overlaps(boxes: list[list[float]]) -> bool:
    """Return whether any two boxes overlap sideways and have about the same height."""
    return any(
        one[0] < other[1] and other[0] < one[1] and abs(one[2] - other[2]) < 8
        for number, one in enumerate(boxes)
        for other in boxes[:number]
    )


def test_the_pictures_are_drawn_again_when_the_window_changes(page: Any) -> None:
    page.set_viewport_size({"width": 360, "height": 700})
    # The page's policy forbids what wait_for_function does when it has to look twice.
    page.wait_for_selector("#strip[viewBox^='0 0 306 ']")
    assert page.evaluate("document.documentElement.scrollWidth") == 360


@pytest.mark.parametrize("epsilon", [0.05, 1.0, 0.7])
def test_the_page_starts_with_the_epsilon_that_is_served(browser: Any, epsilon: float) -> None:
    with served({"line": Offer([1.0, 2.0, 3.0], k=1, epsilon=epsilon, unit="km")}) as running:
        context = browser.new_context()
        opened = context.new_page()
        opened.goto(running.url)
        opened.wait_for_selector("#ask:not([disabled])")
        assert opened.text_content("#epsilon-shown") == f"{epsilon:g} per km"
        assert opened.get_attribute("#epsilon", "aria-valuetext") == f"{epsilon:g} per km"
        context.close()


def test_the_keyboard_alone_asks_and_the_answer_is_announced(page: Any, service: Served) -> None:
    for wanted in ("position", "epsilon", "k", "ask"):
        for _ in range(4):
            page.keyboard.press("Tab")
            if page.evaluate("document.activeElement.id") == wanted:
                break
        assert page.evaluate("document.activeElement.id") == wanted
    before = len(service.bodies)
    page.keyboard.press("Enter")
    page.wait_for_selector("#status:has-text('answers came back')")
    assert len(service.bodies) == before + 1
    assert page.get_attribute("#status", "role") == "status"
    assert page.evaluate("document.activeElement.id") == "ask"
    assert "Kept: the one at" in page.get_attribute("#strip", "aria-label")
    unnamed = (
        "[...document.querySelectorAll('input, progress')].filter((each) => !each.labels.length && !each.ariaLabel)"
    )
    assert page.evaluate(f"{unnamed}.length") == 0


def test_an_answer_for_an_earlier_position_is_not_shown_for_the_present_one(page: Any) -> None:
    page.route("**/v1/multiselect/coast?*", lambda route: (page.locator("#position").fill("80"), route.continue_()))
    page.evaluate("document.getElementById('ask').click()")
    page.wait_for_selector("#sent:has-text('signal')")
    assert page.text_content("#kept-position") == "80.00 km"
    assert page.text_content("#kept-choice") == "–"
    assert page.locator("#strip .pin").count() == 0


def test_a_signal_without_an_answer_is_shown_as_sent(browser: Any, service: Served) -> None:
    context = browser.new_context()
    page = context.new_page()
    page.goto(service.url)
    page.wait_for_selector("#ask:not([disabled])")
    page.route("**/v1/multiselect/coast?*", lambda route: route.abort())
    page.click("#ask")
    page.wait_for_selector("#status.refused")
    assert "signal" in page.text_content("#sent")
    assert page.text_content("#spent") == "0.2"
    page.locator("#epsilon").fill("4")
    page.wait_for_selector("#status:has-text('failed')")
    context.close()
