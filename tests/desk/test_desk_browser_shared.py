"""The page of a shared desk, in a real browser: tokens, refusals, and two analysts who race for one budget."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from browsing import MARKS, answer, ask, chromium, opened, settled, shared_by, spent
from desks import PRIVATE, served, token_for, write_config

from dpselect import top
from dpselect.desk import SharedDesk, TokenStore, create_app, read_config
from dpselect.ledger import Ledger

pytestmark = MARKS


@pytest.fixture(scope="module")
def browser() -> Iterator[Any]:
    with chromium() as started:
        yield started


def enter(page: Any, token: str) -> None:
    page.wait_for_selector("#sign-in:visible")
    page.fill("#token", token)
    page.click("#sign-in-button")


def test_an_analyst_enters_a_token_and_sees_public_facts_alone(browser: Any, tmp_path: Path) -> None:
    config = write_config(tmp_path, analysts={"ann": 0.5}, like={"last year": "like.csv"})
    (tmp_path / "like.csv").write_text("count\n" + "".join(f"{900 - 70 * place}\n" for place in range(12)))
    with shared_by(config) as desk, opened(browser, desk.url) as page:
        page.wait_for_selector("#sign-in:visible")
        page.click("#sign-in-button")
        assert page.text_content("#token-error") == "Paste the token that you were given."
        enter(page, f"{desk.token[:-1]}x")
        page.wait_for_selector("#token-error:has-text('The token is not accepted')")
        enter(page, desk.address)
        settled(page)
        assert page.evaluate("document.activeElement.id") == "dataset", "the keyboard goes to the first choice"
        assert "You are ann" in page.text_content("#session")
        assert page.input_value("#epsilon") == "0.13", "a quarter of what is left to ann"
        assert page.locator("#budget .bar").count() == 2
        assert "views.csv" not in page.content(), "where the rows are is not for analysts"
        assert not page.is_visible("#look")
        assert not page.is_visible("#change-facts")
        page.click("#commands > summary")
        page.wait_for_selector("#command-http")
        assert page.locator("#command-line, #command-python").count() == 0
        page.fill("#k", "3")
        page.check("#expect-like")
        page.click("#like-button")
        page.wait_for_selector("#curve-tag:has-text('from a look-alike')")
        page.fill("#accuracy", "0.5")
        assert page.text_content("#accuracy-label") == "Wanted share of right items"
        page.click("#needed-button")
        page.wait_for_selector("#use-needed:visible")
        page.fill("#epsilon", "0.25")
        page.click("#release-button")
        page.click("#confirm-cancel")
        assert spent(desk) == 0, "not yet"
        ask(page)
        assert len(answer(page)) == 3
        page.wait_for_selector("#history details")
        assert not page.is_visible("#everyone-choice"), "the history of others is for the curator"
        assert PRIVATE not in desk.traffic.text


def test_a_curator_sees_the_history_of_everybody(browser: Any, tmp_path: Path) -> None:
    config = write_config(tmp_path)
    with shared_by(config) as desk:
        assert desk.release({"item": "film", "k": 2, "epsilon": 0.25})[0] == 201
        with Ledger(read_config(config).ledger) as ledger:
            ledger.charge("views", epsilon=0.5, purpose="restored from the log")
            answered = {"item": "film", "person": "viewer", "k": 2, "domain": config.parent / "films.csv"}
            top(config.parent / "views.csv", **answered, epsilon=0.125, ledger=ledger, dataset="views", once="job")
        token = token_for(config, "carl", scopes=["ask", "curate"])
        with opened(browser, f"{desk.url}/#token={token}") as page:
            page.wait_for_selector("#history:has-text('Nothing was released yet.')")
            page.check("#everyone")
            page.wait_for_selector("#history:has-text('Top 2 of film')")
            job, restored, asked = page.locator("#history li").all_inner_texts()
            assert "recorded outside of this desk" in job
            assert "epsilon 0.125 ·" not in job, "a key of the command line is not an analyst"
            assert restored.startswith("restored from the log")
            assert "recorded outside of this desk" in restored
            assert "not answered" not in restored
            assert "ann" in asked


def test_the_budget_of_a_period_is_shown_for_the_period_that_is_asked_about(browser: Any, tmp_path: Path) -> None:
    weekly = {"time": "day", "every": "week", "lifetime": 1.5, "analysts": {"ann": 0.5}}
    with shared_by(write_config(tmp_path, epsilon=1.0, **weekly)) as desk:
        assert desk.release({"item": "film", "k": 2, "epsilon": 0.5, "period": "2025-W46"})[0] == 201
        with opened(browser, desk.address) as page:
            settled(page)
            page.fill("#period", "2025-W46")
            page.wait_for_selector("#epsilon-error:has-text('nothing more about 2025-W46')")
            data, together, own = page.locator("#budget .budget-part").all_inner_texts()
            assert data.splitlines()[:3] == ["Budget of the data for 2025-W46 (epsilon)", "spent", "0.5"]
            assert together.splitlines()[:3] == ["Budget of all weeks together (epsilon)", "spent", "0.5"]
            assert own.splitlines()[:3] == ["Your own budget for 2025-W46 (epsilon)", "spent", "0.5"]
            page.fill("#period", "2025-W47")
            page.wait_for_selector("#budget:has-text('2025-W47')")
            spent = [part.splitlines()[2] for part in page.locator("#budget .budget-part").all_inner_texts()]
            assert spent == ["0", "0.5", "0"]
            assert "1.5 for all together" in page.inner_text("#dataset-facts")


def test_a_data_set_that_is_taken_away_is_named_and_not_replaced_in_silence(browser: Any, tmp_path: Path) -> None:
    config = write_config(tmp_path)
    without = config.read_text()
    (tmp_path / "more.csv").write_bytes((tmp_path / "views.csv").read_bytes())
    facts = 'source = "more.csv"\nperson = "viewer"\nitems = { film = "films.csv" }\nepsilon = 1.0\n'
    config.write_text(f"{without}\n[datasets.more]\n{facts}")
    services: list[Any] = []

    def restarted(app: Any) -> Any:
        services.append(app)

        async def latest(scope: Any, receive: Any, send: Any) -> None:
            await services[-1](scope, receive, send)

        return latest

    with served(config, wrapped=restarted) as desk, opened(browser, f"{desk.url}/#token={desk.token}") as page:
        settled(page)
        page.select_option("#dataset", "more")
        settled(page)
        page.fill("#k", "3")
        config.write_text(without)
        services.append(create_app(SharedDesk(read_config(config))))
        page.click("#preview-button")
        page.wait_for_selector("#preview-status:has-text('does not offer this data set any more')")
        ask(page)
        page.wait_for_selector("#dataset-error:has-text('The desk does not offer “more” any more')")
        assert page.input_value("#dataset") == "views"
        assert page.evaluate("document.activeElement.id") == "dataset"
        assert page.inner_text("#commands summary") == "The same question over HTTP"


def test_an_expired_token_asks_for_a_new_one_and_loses_nothing(browser: Any, tmp_path: Path) -> None:
    config = write_config(tmp_path)
    with shared_by(config) as desk, opened(browser, desk.address) as page:
        settled(page)
        store = TokenStore(read_config(config).ledger)
        store.revoke(store.all()[0].id)
        store.close()
        ask(page)
        page.wait_for_selector("#token-error:has-text('it has expired or was revoked')")
        assert not page.is_visible("#step-question")
        enter(page, token_for(config, "bob"))
        settled(page)
        assert not page.is_visible("#pending"), "the key is ann's"
        page.reload()
        page.evaluate("sessionStorage.removeItem('dpselect-token')")
        page.reload()
        enter(page, token_for(config, "ann"))
        page.wait_for_selector("#pending:visible")
        page.click("#retry")
        assert len(answer(page)) == 3
        assert spent_by(config, desk) == 0.25


def spent_by(config: Path, desk: Any) -> float:
    desk.token = token_for(config, "ann")
    return spent(desk)


def test_a_refusal_says_what_is_left_and_offers_it(browser: Any, tmp_path: Path) -> None:
    with shared_by(write_config(tmp_path, epsilon=0.5)) as desk, opened(browser, desk.address) as page:
        settled(page)
        page.fill("#epsilon", "0.75")
        page.wait_for_selector("#epsilon-error:has-text('This costs epsilon 0.75; only 0.5 is left.')")
        page.click("#release-button")
        assert not page.is_visible("#confirm"), "what cannot be paid is not offered"
        assert page.evaluate("document.activeElement.id") == "epsilon"
        assert page.text_content("#epsilon-error") == "This costs epsilon 0.75; only 0.5 is left."
        page.wait_for_selector("#budget .over", state="attached")
        assert spent(desk) == 0
        page.click("#use-rest")
        assert page.input_value("#epsilon") == "0.5"
        page.wait_for_selector("#epsilon-error:empty", state="attached")
        ask(page, epsilon="0.5")
        answer(page)
        assert spent(desk) == 0.5


def test_of_two_analysts_who_race_for_the_last_of_a_budget_one_is_refused(browser: Any, tmp_path: Path) -> None:
    config = write_config(tmp_path, epsilon=0.5, answer_after=0.5)
    with shared_by(config) as desk:
        bob = token_for(config, "bob")
        with opened(browser, desk.address) as one, opened(browser, f"{desk.url}/#token={bob}") as other:
            for page in (one, other):
                settled(page)
                page.fill("#k", "3")
                page.fill("#epsilon", "0.3")
                page.click("#release-button")
            for page in (one, other):
                page.evaluate("document.getElementById('confirm-release').click()")
            for page in (one, other):
                page.wait_for_selector("#answer:visible .answer-table, #release-status.bad")
            answered = [page.is_visible("#answer") for page in (one, other)]
            assert sorted(answered) == [False, True]
            refused = (one, other)[answered.index(False)]
            assert "Refused: this costs epsilon 0.3, and 0.2 is left" in refused.text_content("#release-status")
            assert spent(desk) == 0.3
            refused.click("#use-rest")
            assert refused.input_value("#epsilon") == "0.2"
        assert PRIVATE not in desk.traffic.text
