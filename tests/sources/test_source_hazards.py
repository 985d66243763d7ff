"""Files whose lines, names or folders could make the engine read something else than what is written."""

from __future__ import annotations

import random
from collections import Counter
from pathlib import Path

import pandas as pd
import pytest

from dpselect.sources import Domain, open_counts

ALPHABET = ["a", "B", "7", " ", ";", "'", "\r", "\t", "é", "\\", "#", "\x00"]


def counted(
    table: object, item: str = "film", person: str = "viewer", domain: object = ("A", "B", "C")
) -> dict[int, int]:
    with open_counts(table, item=item, person=person, domain=Domain.of(list(domain)), k=1) as counts:
        return dict(zip(*counts.histogram(), strict=True))


@pytest.mark.parametrize("line_end", ["\n", "\r\n"], ids=["LF", "CRLF"])
@pytest.mark.parametrize("ending", [".csv", ".jsonl"])
def test_one_odd_row_leaves_every_other_row_as_it_is(tmp_path: Path, ending: str, line_end: str) -> None:
    """Whatever a row without a quote holds, stray carriage returns included, the people around it count as before."""
    odd = random.Random(5)
    path = tmp_path / f"rows{ending}"
    plain = {".csv": ["film,viewer", "A,p0", "", "A,p1", "A,p2"], ".jsonl": ["", "", "", "", ""]}[ending]
    if ending == ".jsonl":
        plain = ['{"film": "B", "viewer": "p9"}', *(f'{{"film": "A", "viewer": "p{n}"}}' for n in (0, 1, 1, 2))]
    for _ in range(15):
        plain[2] = "".join(odd.choice(ALPHABET) for _ in range(odd.randint(0, 6)))
        path.write_bytes(line_end.join([*plain, ""]).encode())
        scores = Counter(counted(path))
        assert scores[3] + scores[4] == 1, plain[2]


def test_names_that_differ_in_case_only_are_different_columns(tmp_path: Path) -> None:
    rows = pd.DataFrame({"film": ["A", "A", "B"], "Film": ["p", "q", "r"]})
    expected = {2: 1, 1: 1, 0: 1}
    assert counted(rows, "film", "Film") == expected
    rows.to_csv(tmp_path / "rows.csv", index=False)
    rows.to_json(tmp_path / "rows.jsonl", orient="records", lines=True)
    assert counted(tmp_path / "rows.csv", "film", "Film") == expected
    assert counted(tmp_path / "rows.jsonl", "film", "Film") == expected
    rows.to_parquet(tmp_path / "rows.parquet")
    assert counted(tmp_path / "rows.parquet", "film", "Film") == expected


@pytest.mark.parametrize("folder", ["viewer=1", "film=A"])
@pytest.mark.parametrize("ending", [".parquet", ".csv", ".jsonl"])
def test_the_name_of_a_folder_is_not_a_column(tmp_path: Path, folder: str, ending: str) -> None:
    rows = pd.DataFrame({"film": ["A", "A", "B"], "viewer": ["p", "q", "r"]})
    place = tmp_path / folder
    place.mkdir()
    path = place / f"rows{ending}"
    if ending == ".parquet":
        rows.to_parquet(path)
    elif ending == ".csv":
        rows.to_csv(path, index=False)
    else:
        rows.to_json(path, orient="records", lines=True)
    assert counted(path) == {2: 1, 1: 1, 0: 1}
