"""The desk alone: describe, discover, look and release; what was stated or recorded cannot be taken back."""

from __future__ import annotations

import contextlib
import json
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from desks import FILMS, QUESTION, RunningDesk, served_app, write_data

import dpselect as dps
from dpselect.desk import AloneDesk, create_app
from dpselect.desk.datasets import LOOKED
from dpselect.errors import InvalidInput
from dpselect.ledger import Ledger

pytestmark = pytest.mark.slow

DESCRIPTION: dict[str, Any] = {"person": "viewer", "epsilon": 2.0, "items": {"film": "films.csv"}}


@contextlib.contextmanager
def alone(folder: Path, *files: str, ledger: str | None = None) -> Iterator[RunningDesk]:
    """Serve a folder as its curator does; paths are as they would be typed there."""
    desk = AloneDesk(folder, [folder / file for file in files], ledger)
    with served_app(create_app(desk)) as url:
        yield RunningDesk(url, desk.token, folder)


@pytest.fixture
def desk(tmp_path: Path) -> Iterator[RunningDesk]:
    write_data(tmp_path)
    with alone(tmp_path, "views.csv", "films.csv") as found:
        yield found


def describe(desk: RunningDesk, name: str = "views", **changes: Any) -> tuple[int, Any]:
    status, _, content = desk.send("POST", f"/v1/datasets/{name}/describe", {**DESCRIPTION, **changes})
    return status, content


def facts(desk: RunningDesk, name: str = "views") -> Any:
    return next(each for each in desk.send("GET", "/v1/datasets")[2] if each["name"] == name)


def purposes(folder: Path) -> list[str]:
    with Ledger(folder / "ledger.sqlite") as ledger:
        return [entry.purpose for entry in ledger.entries("views")]


def test_the_token_host_and_origin_are_checked(desk: RunningDesk) -> None:
    assert desk.send("GET", "/v1/session")[2]["mode"] == "alone"
    for token in ("", "x", desk.token[:-1], desk.token + "x", "ü".encode().decode("latin-1")):
        assert desk.send("GET", "/v1/session", token=token)[0] == 401
    assert desk.send("GET", "/v1/session", headers={"Host": "evil.example"})[0] == 403
    assert desk.send("GET", "/v1/session", headers={"Origin": "http://evil.example"})[0] == 403
    assert desk.send("GET", "/v1/session", headers={"Origin": desk.url})[0] == 200


def test_files_are_offered_with_their_columns_and_lists_are_not_data(desk: RunningDesk) -> None:
    [found] = desk.send("GET", "/v1/datasets")[2]
    assert (found["name"], found["described"], found["budget"]) == ("views", False, None)
    assert found["schema"] == ["film", "viewer", "age", "country", "day"]
    status, error = desk.release()
    assert (status, error["error"]["code"]) == (409, "not-described")


def test_a_file_of_no_known_kind_is_refused_by_the_name_that_the_command_has_for_it(tmp_path: Path) -> None:
    (tmp_path / "rows.xyz").write_text("film,viewer\n")
    with pytest.raises(InvalidInput) as caught:
        AloneDesk(tmp_path, [tmp_path / "rows.xyz"])
    assert caught.value.argument == "files"


def test_the_first_description_makes_the_budget_and_no_other_raises_it(desk: RunningDesk) -> None:
    status, state = describe(desk)
    assert (status, state["budget"]["remaining"], state["domain_size"]) == (200, 2.0, {"film": len(FILMS)})
    for change in ({"epsilon": 3.0}, {"epsilon": 1.0}, {"delta": 1e-6}, {"person": "age"}, {"protects": "one row"}):
        status, error = describe(desk, **change)
        assert (status, error["error"]["code"], error["error"]["field"]) == (409, "fixed", next(iter(change)))
    assert desk.release()[0] == 201
    assert facts(desk)["budget"]["remaining"] == 1.75
    assert describe(desk, people=500)[0] == 200
    assert facts(desk)["budget"]["remaining"] == 1.75


def test_neither_a_restart_nor_an_edited_file_raises_the_total(tmp_path: Path) -> None:
    write_data(tmp_path)
    with alone(tmp_path, "views.csv") as desk:
        assert describe(desk)[0] == 200
        assert desk.release()[0] == 201
    with alone(tmp_path, "views.csv") as desk:
        [found] = desk.send("GET", "/v1/datasets")[2]
        assert (found["described"], found["budget"]["remaining"]) == (True, 1.75)
        assert [entry["key"] for entry in desk.send("GET", "/v1/datasets/views/releases")[2]] == ["key"]
        assert desk.release()[0] == 200
    stated = (tmp_path / "desk.toml").read_text()
    (tmp_path / "desk.toml").write_text(stated.replace("epsilon = 2.0", "epsilon = 9.0"))
    with pytest.raises(dps.InvalidInput, match="never changes"):
        AloneDesk(tmp_path)
    (tmp_path / "desk.toml").unlink()
    with alone(tmp_path, "views.csv") as desk:
        status, error = describe(desk, epsilon=9.0)
        assert (status, error["error"]["field"]) == (400, "epsilon")
        assert "never changes" in error["error"]["message"]


def test_of_two_desks_in_one_folder_none_undoes_what_the_other_keeps(desk: RunningDesk) -> None:
    with alone(desk.folder, "views.csv", "films.csv") as other:
        assert describe(desk)[0] == 200
        assert desk.send("POST", "/v1/datasets/views/look", QUESTION)[0] == 200
        before = (desk.folder / "desk.toml").read_text()
        status, error = describe(other)
        assert (status, error["error"]["code"]) == (409, "changed")
        assert "stop this desk and start it again" in error["error"]["message"]
        assert (desk.folder / "desk.toml").read_text() == before
    assert describe(desk)[0] == 200


def test_the_column_of_times_is_fixed_with_the_period(desk: RunningDesk) -> None:
    """A row would else be in two periods, and each period has a budget of its own."""
    periods = {"time": "day", "every": "month"}
    assert describe(desk, **periods)[0] == 200
    status, error = describe(desk, **periods | {"time": "country"})
    assert (status, error["error"]["code"], error["error"]["field"]) == (409, "fixed", "time")


def test_a_tiny_delta_is_put_into_words(desk: RunningDesk) -> None:
    """1 / delta is no float any more; such a release must not keep the history from being shown."""
    assert describe(desk, items={"film": "unknown"}, delta=1e-5)[0] == 200
    status, release = desk.release({"item": "film", "k": 1, "epsilon": 0.25, "delta": 1e-310})
    assert (status, release["guarantee"]["delta"]) == (201, 1e-310)
    assert desk.send("GET", "/v1/datasets/views/releases")[0] == 200


def test_what_was_written_by_hand_is_kept(tmp_path: Path) -> None:
    write_data(tmp_path)
    (tmp_path / "last.csv").write_text("count\n9\n8\n")
    with alone(tmp_path, "views.csv") as desk:
        assert describe(desk)[0] == 200
    place = tmp_path / "desk.toml"
    place.write_text(place.read_text() + 'like = { last = "last.csv" }\nanalysts = { ann = 0.5 }\nbudget = "people"\n')
    with alone(tmp_path, "views.csv") as desk:
        assert describe(desk, people=500)[0] == 200
    text = place.read_text()
    assert all(key in text for key in ("last.csv", "ann", 'budget = "people"', "people = 500"))


WRONG: dict[str, tuple[dict[str, Any], str]] = {
    "person": ({"person": "viewr"}, "person"),
    "column": ({"items": {"movie": "films.csv"}}, "items"),
    "unknown items without delta": ({"items": {"film": "unknown"}}, "delta"),
    "person as item": ({"items": {"viewer": "unknown"}}, "items"),
    "missing list": ({"items": {"film": "none.csv"}}, ""),
    "private list": ({"items": {"film": "views.csv"}}, "items"),
    "no items": ({"items": {}}, "items"),
    "group": ({"groups": {"nation": ["DE"]}}, "groups"),
    "condition": ({"filters": {"adults": "agee > 3"}}, "where"),
    "two statements": ({"filters": {"adults": "true; DROP TABLE x"}}, "where"),
    "time": ({"time": "days", "every": "week"}, "time"),
    "time alone": ({"time": "day"}, ""),
    "epsilon": ({"epsilon": 0}, "epsilon"),
    "unknown field": ({"looked": False}, "looked"),
}


@pytest.mark.parametrize("case", WRONG)
def test_a_description_that_cannot_be_used_is_refused_and_makes_no_budget(desk: RunningDesk, case: str) -> None:
    change, field = WRONG[case]
    status, error = describe(desk, **change)
    assert (status, error["error"]["code"]) == (400, "invalid-input"), error
    assert error["error"].get("field", "") == field or not field
    assert facts(desk)["described"] is False
    assert not (desk.folder / "desk.toml").exists()
    assert describe(desk, epsilon=1.0)[0] == 200


def test_groups_can_be_typed_in_and_never_replace_a_file_of_the_curator(desk: RunningDesk) -> None:
    assert describe(desk, groups={"country": ["DE", "FR"]})[0] == 200
    assert (desk.folder / "views-country.csv").read_text().replace('"', "").split() == ["country", "DE", "FR"]
    status, charts = desk.release({**QUESTION, "by": "country"})
    assert (status, list(charts["groups"])) == (201, ["DE", "FR"])


def test_a_list_never_replaces_a_file_of_the_curator(tmp_path: Path) -> None:
    write_data(tmp_path)
    (tmp_path / "views-country.csv").write_bytes((tmp_path / "views.csv").read_bytes())
    with alone(tmp_path, "views.csv", "views-country.csv") as desk:
        for _ in range(2):
            status, state = describe(desk, groups={"country": ["DE"]}, delta=1e-5)
            assert (status, state["source"]["groups"]) == (200, {"country": "views-country-2.csv"})
        assert discover(desk, "list", item="country")[1]["file"] == "views-country-3.csv"
        assert facts(desk)["source"]["groups"] == {"country": "views-country-2.csv"}
    assert (tmp_path / "views-country.csv").read_bytes() == (tmp_path / "views.csv").read_bytes()


def test_a_refused_description_leaves_the_lists_as_they_were(desk: RunningDesk) -> None:
    assert describe(desk, groups={"country": ["DE", "FR"]})[0] == 200
    before = {path: path.read_bytes() for path in desk.folder.glob("*.csv")}
    for change in (
        {"people": 0},
        {"epsilon": 3.0},
        {"filters": {"adults": "agee > 3"}},
        {"items": {"film": "none.csv"}},
    ):
        assert describe(desk, **{"groups": {"country": ["PL"]}, **change})[0] in (400, 409)
        assert {path: path.read_bytes() for path in desk.folder.glob("*.csv")} == before
    assert list(desk.release({**QUESTION, "by": "country"})[1]["groups"]) == ["DE", "FR"]


def test_columns_whose_names_look_alike_in_a_file_name_have_a_list_each(tmp_path: Path) -> None:
    write_data(tmp_path)
    lines = (tmp_path / "views.csv").read_text().replace("film,viewer,age,country,day", "film,viewer,age,a b,a-b")
    (tmp_path / "views.csv").write_text(lines)
    with alone(tmp_path, "views.csv", "films.csv") as desk:
        assert describe(desk, groups={"a b": ["DE"], "a-b": ["2025-11-01"]})[0] == 200
        for column, group in (("a b", "DE"), ("a-b", "2025-11-01")):
            status, charts = desk.release({**QUESTION, "by": column}, key=column.replace(" ", ""))
            assert (status, list(charts["groups"])) == (201, [group])


def test_one_file_under_several_names_has_one_budget(tmp_path: Path) -> None:
    write_data(tmp_path)
    (tmp_path / "link.csv").symlink_to("views.csv")
    os.link(tmp_path / "views.csv", tmp_path / "hard.csv")
    with alone(tmp_path, "views.csv", "./views.csv", "link.csv", "hard.csv") as desk:
        names = [each["name"] for each in desk.send("GET", "/v1/datasets")[2]]
        assert len(names) == 2
        assert describe(desk, names[0])[0] == 200
        status, error = describe(desk, names[1])
        assert (status, error["error"]["code"]) == (409, "shared-rows")
    with alone(tmp_path, "views.csv", "link.csv") as desk:
        assert [each["described"] for each in desk.send("GET", "/v1/datasets")[2]] == [True]


def discover(desk: RunningDesk, key: str, **changes: Any) -> tuple[int, Any]:
    asked = {"item": "film", "epsilon": 1.0, "delta": 1e-6, "max_items_per_person": 12, **changes}
    sent = desk.send("POST", "/v1/datasets/views/discover", asked, key=key)
    return sent[0], sent[2]


def test_a_discovered_list_becomes_the_domain_and_is_charged_once(desk: RunningDesk) -> None:
    assert describe(desk, items={"film": "unknown"}, delta=1e-5)[0] == 200
    assert facts(desk)["domain_size"] == {"film": None}
    status, found = discover(desk, "list")
    assert (status, found["file"]) == (201, "views-film.csv")
    assert discover(desk, "list") == (200, found)
    assert facts(desk)["domain_size"] == {"film": found["items"]}
    assert facts(desk)["budget"]["remaining"] == 1.0
    assert (desk.folder / "views-film.csv").read_text().splitlines()[0] == '"film"'
    status, error = discover(desk, "list", epsilon=0.5)
    assert (status, error["error"]["code"]) == (409, "key-reused")
    status, error = discover(desk, "more", epsilon=1.5)
    assert (status, error["error"]["code"]) == (409, "budget-exceeded")
    status, error = discover(desk, "more", epsilon=0.5, delta=1e-3)
    assert (status, error["error"]["field"]) == (409, "delta"), "of which too little is left"
    for change in ({"delta": 0}, {"item": "none"}, {"max_items_per_person": 0}, {"seed": 1}):
        status, error = discover(desk, "wrong", **change)
        assert (status, error["error"]["field"]) == (400, next(iter(change)))
    assert facts(desk)["budget"]["remaining"] == 1.0


def test_a_discovery_reads_one_period_and_is_charged_to_it(desk: RunningDesk) -> None:
    stated = {"items": {"film": "unknown"}, "delta": 1e-5, "time": "day", "every": "month", "epsilon": 8.0}
    assert describe(desk, **stated)[0] == 200
    for change in ({}, {"period": "2025-11-03"}, {"period": "november"}):
        status, error = discover(desk, "list", **change)
        assert (status, error["error"]["code"], error["error"]["field"]) == (400, "invalid-input", "period")
    assert "must name a month" in discover(desk, "list")[1]["error"]["message"]
    assert purposes(desk.folder) == []
    status, found = discover(desk, "list", epsilon=8.0, period="2025-11")
    assert (status, found["guarantee"]["protects"]) == (201, "one person's month")
    assert found["items"] > 0
    assert discover(desk, "list", epsilon=8.0, period="2025-11") == (200, found)
    # In December nobody has an item, and November's budget is spent.
    assert discover(desk, "december", epsilon=8.0, period="2025-12")[1]["items"] == 0
    status, error = discover(desk, "more", period="2025-11")
    assert (status, error["error"]["code"]) == (409, "budget-exceeded")


def test_a_data_set_without_periods_refuses_a_discovery_with_one(desk: RunningDesk) -> None:
    assert describe(desk, delta=1e-5)[0] == 200
    status, error = discover(desk, "list", period="2025-11")
    assert (status, error["error"]["field"]) == (400, "period")


def test_a_look_at_the_rows_is_recorded_with_every_release_from_then_on(desk: RunningDesk) -> None:
    assert describe(desk, delta=1e-5)[0] == 200
    assert desk.release(key="before")[0] == 201
    status, _, look = desk.send("POST", "/v1/datasets/views/look", QUESTION)
    assert status == 200
    assert "Not private" in look["warning"]
    assert 0 < look["curve"]["at"]["value"] <= 3
    # No later description takes the record back.
    assert describe(desk, delta=1e-5, people=500)[0] == 200
    assert facts(desk)["looked"] is True
    assert desk.release(key="after")[0] == 201
    assert discover(desk, "list", epsilon=0.5)[0] == 201
    assert [LOOKED in purpose for purpose in purposes(desk.folder)] == [False, True, True]
    past = desk.send("GET", "/v1/datasets/views/releases")[2]
    assert [entry["looked"] for entry in past] == [True, True, False]
    with alone(desk.folder, "views.csv") as again:
        assert facts(again)["looked"] is True
        assert again.release({**QUESTION, "k": 1}, key="later")[0] == 201
    assert LOOKED in purposes(desk.folder)[-1]


def test_a_purpose_cannot_claim_that_somebody_looked(desk: RunningDesk) -> None:
    assert describe(desk)[0] == 200
    assert desk.release({**QUESTION, "purpose": LOOKED})[0] == 201
    assert desk.send("GET", "/v1/datasets/views/releases")[2][0]["looked"] is False


def test_a_look_that_cannot_be_recorded_is_not_taken(desk: RunningDesk, monkeypatch: pytest.MonkeyPatch) -> None:
    assert describe(desk)[0] == 200

    def full(*arguments: Any) -> None:
        raise OSError("no room")

    monkeypatch.setattr("dpselect.desk.alone.write_config", full)
    monkeypatch.setattr("dpselect.desk.datasets.DataSet.true_scores", lambda *_: pytest.fail("the rows were read"))
    assert desk.send("POST", "/v1/datasets/views/look", QUESTION)[0] == 500
    assert facts(desk)["looked"] is False


def test_a_file_that_is_gone_leaves_the_page_usable_and_the_error_says_why(desk: RunningDesk) -> None:
    assert describe(desk)[0] == 200
    (desk.folder / "views.csv").unlink()
    assert facts(desk)["schema"] is None
    status, error = desk.release()
    assert (status, error["error"]["code"], error["error"]["charged"]) == (503, "source-failed", False)
    assert "there is no such file" in error["error"]["message"]


def test_everything_is_kept_beside_the_data(desk: RunningDesk) -> None:
    before = {path.name for path in desk.folder.iterdir()}
    assert describe(desk)[0] == 200
    assert desk.release()[0] == 201
    written = {path.name for path in desk.folder.iterdir()} - before
    assert {name for name in written if not name.startswith("ledger.sqlite")} == {"desk.toml"}
    assert desk.token not in (desk.folder / "desk.toml").read_text()
    assert json.dumps(DESCRIPTION["items"]["film"])[1:-1] in (desk.folder / "desk.toml").read_text()


def test_budgets_are_in_the_ledger_that_is_named_and_stay_there(tmp_path: Path) -> None:
    write_data(tmp_path)
    with alone(tmp_path, "views.csv", ledger="budgets.sqlite") as desk:
        assert describe(desk)[0] == 200
        assert desk.release()[0] == 201
        assert facts(desk)["source"]["ledger"] == "budgets.sqlite"
    assert not (tmp_path / "ledger.sqlite").exists()
    for ledger in (None, "./budgets.sqlite", str(tmp_path / "budgets.sqlite")):
        with alone(tmp_path, "views.csv", ledger=ledger) as desk:
            assert facts(desk)["budget"]["remaining"] == 1.75
    with pytest.raises(dps.InvalidInput, match=r"must be that of desk.toml \(budgets.sqlite\), where the budgets are"):
        AloneDesk(tmp_path, [], "ledger.sqlite")


def test_a_ledger_that_desk_toml_must_not_hold_is_refused(tmp_path: Path) -> None:
    for ledger in ("postgresql://ann:hunter2@127.0.0.1/shop", "dbname=shop password=hunter2", ""):
        with pytest.raises(dps.InvalidInput, match="ledger") as caught:
            AloneDesk(tmp_path, [], ledger)
        assert "hunter2" not in str(caught.value)
