"""Releases made at the same time in threads and in forked children are valid and independent."""

from __future__ import annotations

import json
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from functools import partial

import numpy as np
import pytest

import dpselect as dps
from dpselect.sampling import topk

FORKED = """
import json, multiprocessing, os, sys
import dpselect as dps

scores = [0] * 1000
release = lambda: dps.select(scores, k=20, epsilon=1.0).items
def send(queue):
    queue.put(release())

answers = [release()]
for _ in range(4):
    read, write = os.pipe()
    child = os.fork()
    if child == 0:
        os.write(write, json.dumps(release()).encode())
        os._exit(0)
    os.close(write)
    with os.fdopen(read) as pipe:
        answers.append(json.load(pipe))
    os.waitpid(child, 0)
context = multiprocessing.get_context("fork")
queue = context.Queue()
children = [context.Process(target=send, args=(queue,)) for _ in range(4)]
for child in children:
    child.start()
answers += [queue.get() for _ in children]
for child in children:
    child.join()
answers.append(release())
print(json.dumps(answers))
"""


@pytest.mark.skipif(not hasattr(__import__("os"), "fork"), reason="this system does not fork")
def test_forked_children_draw_different_noise() -> None:
    """Twenty of a thousand equal items, ten times: equal answers have probability below 10^-50.

    In an interpreter of its own, because forking a process that has threads is not safe.
    """
    finished = subprocess.run([sys.executable, "-c", FORKED], capture_output=True, text=True, check=True)
    answers = json.loads(finished.stdout)
    assert len(answers) == 10
    assert len({tuple(answer) for answer in answers}) == 10
    assert all(len(set(answer)) == 20 for answer in answers)


@pytest.mark.slow
@pytest.mark.parametrize("mechanism", ["oneshot", "peeling"])
def test_threads_sharing_one_scores_object_draw_different_noise(mechanism: str) -> None:
    scores = dps.Scores.of(np.zeros(1 << 16, dtype=np.int64))

    def release(_: int) -> tuple[int, ...]:
        return tuple(dps.select(scores, k=20, epsilon=1.0, mechanism=mechanism).items)

    with ThreadPoolExecutor(8) as pool:
        answers = list(pool.map(release, range(64)))
    assert len(set(answers)) == 64
    assert all(len(set(answer)) == 20 and set(answer) <= set(range(1 << 16)) for answer in answers)


@pytest.mark.parametrize("noise", ["exponential", "laplace"])
def test_contested_comparisons_are_settled_in_several_threads_at_once(
    noise: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """With two bits a draw nearly every comparison needs ball arithmetic; a seed must still give one answer."""
    settled: list[int] = []

    def counting(entrants: list[object], *arguments: object) -> object:
        settled.append(len(entrants))
        return original(entrants, *arguments)

    original = topk.sort_exactly
    monkeypatch.setattr(topk, "Widths", partial(topk.Widths, screen=2, word=2, step=2))
    monkeypatch.setattr(topk, "sort_exactly", counting)

    def release(seed: int) -> list[int]:
        return dps.select([0.5] * 12, mechanism=dps.OneShot(k=4, epsilon=1.0, noise=noise), seed=seed).items

    alone = [release(seed) for seed in range(40)]
    assert len(settled) >= 20
    with ThreadPoolExecutor(8) as pool:
        together = list(pool.map(release, range(40)))
    assert together == alone
