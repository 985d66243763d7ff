"""Tokens: made, listed and revoked on the command line, kept as hashes, and refused once they are not valid."""

from __future__ import annotations

import json
import re
import threading
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from desks import QUESTION, served, token_for, write_config
from typer.testing import CliRunner

import dpselect as dps
from dpselect.cli import app
from dpselect.desk import SharedDesk, TokenStore, read_config
from dpselect.ledger import Ledger
from servers import fresh_database


def desk(config: Path, *arguments: str, status: int = 0) -> Any:
    """Run `dpselect desk token …` with the configuration; return what it says."""
    result = CliRunner().invoke(app, ["desk", "token", *arguments, "--config", str(config)])
    assert result.exit_code == status, result.output
    return result


def listed(config: Path) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = json.loads(desk(config, "list", "--format", "json").stdout)["tokens"]
    return found


def test_a_token_is_shown_once_and_kept_as_a_hash(tmp_path: Path) -> None:
    config = write_config(tmp_path)
    text = desk(config, "create", "ann", "--days", "30").stdout.strip()
    assert re.fullmatch(r"dps_[0-9a-f]{8}_[\w-]{43}", text)
    secret = text.split("_", 2)[2].encode()
    assert not any(secret in file.read_bytes() for file in tmp_path.iterdir())
    [token] = listed(config)
    assert (token["analyst"], token["datasets"], token["scopes"], token["state"]) == ("ann", None, ["ask"], "valid")
    left = datetime.fromisoformat(token["expires"]) - datetime.now(UTC)
    assert timedelta(days=29) < left < timedelta(days=31)
    for form in ("table", "csv"):
        shown = desk(config, "list", "--format", form).stdout
        assert "ann" in shown
        assert secret.decode() not in shown


def test_tokens_that_are_not_valid_are_refused_alike(tmp_path: Path) -> None:
    config = write_config(tmp_path)
    with served(config) as running:
        expired = token_for(config, days=1e-9)
        revoked = desk(config, "create", "ann").stdout.strip()
        assert running.send("GET", "/v1/session", token=revoked)[0] == 200
        desk(config, "revoke", revoked.split("_")[1])
        other = running.token[:-1] + ("A" if running.token[-1] != "A" else "B")
        unknown = "dps_00000000_" + "A" * 43
        malformed = ["", "dps_", "x" * 5000, "Bearer", "dps_' OR 1=1 --_x", "ü", running.token + "x", "null"]
        answers = [
            running.send("GET", "/v1/session", headers={"Authorization": f"Bearer {token}".encode().decode("latin-1")})
            for token in (expired, revoked, other, unknown, *malformed)
        ]
        assert {status for status, _, _ in answers} == {401}
        assert len({json.dumps(error) for _, _, error in answers}) == 1
        assert answers[0][1]["www-authenticate"] == "Bearer"
        for header in ("", "Basic YTpi", f"Token {running.token}", running.token):
            assert running.send("GET", "/v1/session", headers={"Authorization": header})[0] == 401
        # The scheme has no case, and a token in the address is not read.
        assert running.send("GET", "/v1/session", headers={"Authorization": f"bearer {running.token}"})[0] == 200
        assert running.send("GET", f"/v1/session?token={running.token}", token="")[0] == 401
        for method, path in [("GET", "/v1/datasets"), ("POST", "/v1/datasets/views/releases")]:
            assert running.send(method, path, QUESTION if method == "POST" else None, key="k", token=revoked)[0] == 401


def test_a_token_allows_only_its_data_sets(tmp_path: Path) -> None:
    config = write_config(tmp_path)
    other = '[datasets.other]\nsource = "other.csv"\nperson = "viewer"\nitems = { film = "films.csv" }\nepsilon = 1.0\n'
    (tmp_path / "other.csv").write_bytes((tmp_path / "views.csv").read_bytes())
    config.write_text(config.read_text() + other)
    text = desk(config, "create", "bob", "--dataset", "other").stdout.strip()
    with served(config) as running:
        assert [each["name"] for each in running.send("GET", "/v1/datasets")[2]] == ["views", "other"]
        assert [each["name"] for each in running.send("GET", "/v1/datasets", token=text)[2]] == ["other"]
        assert running.send("GET", "/v1/session", token=text)[2]["datasets"] == ["other"]
        none = running.send("POST", "/v1/datasets/none/estimate", QUESTION, token=text)
        for call in ("estimate", "preview", "releases"):
            found = running.send("POST", f"/v1/datasets/views/{call}", QUESTION, key="k", token=text)
            assert (found[0], found[2]) == (404, none[2])
        assert running.send("GET", "/v1/datasets/views/releases", token=text)[0] == 404
        assert running.send("POST", "/v1/datasets/other/releases", QUESTION, key="k", token=text)[0] == 201


def test_a_budget_is_made_with_the_token_and_never_changes(tmp_path: Path) -> None:
    config = write_config(tmp_path)
    desk(config, "create", "ann", "--dataset", "views", "--epsilon", "0.25")
    desk(config, "create", "ann", "--epsilon", "0.25")
    refused = desk(config, "create", "ann", "--epsilon", "0.5", status=2)
    assert "never changes" in " ".join(refused.output.split())
    with Ledger(tmp_path / "ledger.sqlite") as ledger:
        assert ledger.account("views/ann").total.epsilon == 0.25
    with served(config) as running:
        assert running.release(key="a")[0] == 201
        second = desk(config, "create", "ann").stdout.strip()
        assert running.release(key="b", token=second)[0] == 409


@pytest.mark.parametrize("known", [["--epsilon", "0.25"], []], ids=["with a budget", "with a token"])
def test_an_analyst_has_one_spelling_so_that_no_other_one_escapes_the_budget(tmp_path: Path, known: list[str]) -> None:
    config = write_config(tmp_path)
    desk(config, "create", "ann", *known)
    for extra in ([], ["--epsilon", "0.25"]):
        told = " ".join(desk(config, "create", "Ann", *extra, status=2).output.split())
        assert "the desk knows 'ann', which differs only in case; write it so" in told
    assert [token["analyst"] for token in listed(config)] == ["ann"]
    with Ledger(tmp_path / "ledger.sqlite") as ledger:
        assert "views/Ann" not in {account.dataset for account in ledger.accounts()}
    desk(config, "create", "ann")
    desk(config, "create", "anna")
    if not known:
        for token in listed(config):
            desk(config, "revoke", token["id"])
        desk(config, "create", "Ann")


def test_a_desk_does_not_start_with_a_token_for_another_spelling_of_an_analyst_with_a_budget(tmp_path: Path) -> None:
    SharedDesk(read_config(write_config(tmp_path)))
    config = write_config(tmp_path, analysts={"ann": 0.25})
    token = token_for(config, "Ann")
    identity = token.split("_")[1]
    with pytest.raises(dps.InvalidInput, match=f"it is of 'Ann', and 'ann'.* has a budget; .*revoke {identity}"):
        SharedDesk(read_config(config))
    desk(config, "revoke", identity)
    token_for(config, "ann")
    SharedDesk(read_config(config))


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        (["a b"], "analyst must be letters"),
        (["a:b"], "analyst must be letters"),
        (["a/b"], "analyst must be letters"),
        (["x" * 61], "analyst must be letters"),
        (["ann", "--dataset", "none"], "dataset must be one of views"),
        (["ann", "--epsilon", "0"], "epsilon"),
        (["ann", "--epsilon", "nan"], "epsilon"),
        (["ann", "--epsilon", "-1"], "epsilon"),
        (["ann", "--epsilon", "0.5", "--days", "0"], "days must be above 0"),
        (["ann", "--epsilon", "0.5", "--days", "-3"], "days must be above 0"),
    ],
)
def test_a_token_that_cannot_be_used_is_not_made_nor_its_budget(
    tmp_path: Path, arguments: list[str], told: str
) -> None:
    config = write_config(tmp_path)
    desk(config, "create", "cleo")
    assert told in " ".join(desk(config, "create", *arguments, status=2).output.split())
    assert [token["analyst"] for token in listed(config)] == ["cleo"]
    with Ledger(tmp_path / "ledger.sqlite") as ledger:
        assert [account.dataset for account in ledger.accounts()] == ["views"]


def test_a_token_can_be_revoked_while_a_file_is_missing(tmp_path: Path) -> None:
    config = write_config(tmp_path)
    text = desk(config, "create", "ann").stdout.strip()
    (tmp_path / "views.csv").unlink()
    desk(config, "revoke", text.split("_")[1])
    desk(config, "revoke", text.split("_")[1])
    assert [token["state"] for token in listed(config)] == ["revoked"]
    assert "must be the ID of a token" in desk(config, "revoke", "00000000", status=2).output


def test_without_a_ledger_there_are_no_tokens_to_list(tmp_path: Path) -> None:
    config = write_config(tmp_path)
    desk(config, "list", status=2)
    assert not (tmp_path / "ledger.sqlite").exists()


def test_the_table_can_be_made_twice_at_once_on_sqlite_and_postgresql(tmp_path: Path, postgresql_server: str) -> None:
    for place in (str(tmp_path / "ledger.sqlite"), fresh_database(postgresql_server)):
        with Ledger(place) as ledger:
            ledger.create("views", epsilon=1.0)
        failed: list[Exception] = []

        def make(place: str = place, failed: list[Exception] = failed) -> None:
            try:
                TokenStore(place).close()
            except dps.DpSelectError as error:
                failed.append(error)

        threads = [threading.Thread(target=make) for _ in range(6)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert not failed


def test_a_database_that_cannot_be_used_is_an_error_without_its_address(tmp_path: Path) -> None:
    with pytest.raises(dps.SourceError, match="tokens: the ledger's database cannot be used"):
        TokenStore("postgresql://ann:hunter2@127.0.0.1:9/shop")
    (tmp_path / "x").write_bytes(b"no database" * 100)
    with pytest.raises(dps.SourceError, match="tokens: the ledger's database cannot be used"):
        TokenStore(str(tmp_path / "x"))
