"""Spark Connect, a client without a Java of its own: the same answers and errors, and Ctrl-C ends our query.

One process can have one kind of session, so each runs in a process of its own.
"""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

pytest.importorskip("grpc", reason="Spark Connect needs pyspark[connect]")

PROGRAM = """
import os, signal, threading, time
import pandas, pytest
from pyspark.sql import SparkSession
import dpselect as dps
from dpselect.sources.spark import java_runtime

people = [*range(30), *range(20), *range(5)]
rows = pandas.DataFrame({"item": ["ham"] * 30 + ["jam"] * 20 + ["tea"] * 5, "person": people})
asked = {"item": "item", "person": "person", "k": 2, "epsilon": 1.0, "seed": 1, "delta": 1e-3}
with java_runtime():
    session = SparkSession.builder.remote("local[2]").config("spark.sql.shuffle.partitions", "2").getOrCreate()
frame = session.createDataFrame(rows)
for domain in (["ham", "jam", "tea", "fig"], dps.UNKNOWN):
    assert dps.top(frame, domain=domain, **asked).to_dict() == dps.top(rows, domain=domain, **asked).to_dict()
with pytest.raises(dps.errors.SourceError) as caught:
    dps.top(frame.where("CAST(item AS INT) > 1"), domain=dps.UNKNOWN, **asked)
assert "ham" not in str(caught.value) and caught.value.__context__ is None
listed = ["ham", "jam", "tea", "fig"]
dps.top(frame, domain=listed, where="CAST(item AS INT) > 1", **asked)
with pytest.raises(dps.InvalidInput, match="pass a DataFrame of that session"):
    dps.top("spark+local://", table_name="orders", domain=dps.UNKNOWN, **asked)

def interrupt():
    time.sleep(5)
    os.kill(os.getpid(), signal.SIGINT)

signal.signal(signal.SIGINT, signal.default_int_handler)
endless = session.sql("SELECT 'ham' AS item, id % 1000 AS person FROM range(0, 1000000000000, 1, 2)")
threading.Thread(target=interrupt).start()
with pytest.raises(KeyboardInterrupt):
    dps.top(endless, domain=dps.UNKNOWN, **asked)
assert session.range(1000).repartition(2).count() == 1000
assert session.catalog.listTables() == []
print("all is well")
"""


@pytest.mark.long
def test_spark_connect_answers_fails_and_ends_as_spark_does(tmp_path: Path) -> None:
    """Were the endless query not cancelled, it would keep both threads, and what follows would wait for ever."""
    line = [sys.executable, "-c", PROGRAM]
    done = subprocess.run(line, capture_output=True, text=True, timeout=280, check=False, cwd=tmp_path)
    assert done.stdout.splitlines()[-1:] == ["all is well"], done.stderr
    assert "ham" not in done.stdout
