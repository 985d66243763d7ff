"""Bits come from the operating system or from a seed, in the width asked for."""

from __future__ import annotations

import os
import threading

import numpy as np
import pytest

from dpselect.sampling import SeededBits, SystemBits, bit_source


@pytest.mark.parametrize("source", [SystemBits(), SeededBits(1)], ids=["system", "seeded"])
def test_integers_have_the_width_asked_for(source):
    """Each of the 200 · width bits is fair: a bit that never changes has a probability of 2^-199."""
    for width in (1, 3, 8, 9, 16, 31, 33, 56, 64):
        drawn = source.integers(200, width)
        assert len(drawn) == 200
        assert int(drawn.max()) < 1 << width
        assert int(np.bitwise_or.reduce(drawn)) == (1 << width) - 1
        assert int(np.bitwise_and.reduce(drawn)) == 0


def test_a_seed_is_reproducible_and_not_secure():
    assert bit_source(7).integers(5, 64).tolist() == bit_source(7).integers(5, 64).tolist()
    assert bit_source(7).integers(5, 64).tolist() != bit_source(8).integers(5, 64).tolist()
    assert not bit_source(7).secure


def test_without_a_seed_bits_are_secure_and_differ():
    assert bit_source().secure
    assert bit_source().integers(4, 64).tolist() != bit_source().integers(4, 64).tolist()


@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")
def test_forked_children_do_not_repeat_their_parent():
    source = SystemBits()
    source.integers(1, 64)
    reader, writer = os.pipe()
    child = os.fork()
    if child == 0:
        os.write(writer, source.integers(4, 64).tobytes())
        os._exit(0)
    os.waitpid(child, 0)
    os.close(writer)
    theirs = os.read(reader, 32)
    os.close(reader)
    assert theirs != source.integers(4, 64).tobytes()


def test_threads_do_not_repeat_each_other():
    source, drawn = SystemBits(), []
    threads = [threading.Thread(target=lambda: drawn.append(source.integers(2, 64).tobytes())) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(set(drawn)) == 8
