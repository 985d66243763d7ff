"""Random decisions that have exactly the law the proofs assume (exactness.md).

Mechanisms receive winners, ranks and integers; a noisy floating-point value never leaves this package.
"""

from dpselect.sampling.bits import BitSource, SeededBits, SystemBits, bit_source
from dpselect.sampling.bounds import Field
from dpselect.sampling.noise import NOISES, Noise
from dpselect.sampling.topk import categorical, rounded_top_k, top_k
from dpselect.sampling.uniform import shuffled, uniform_integer, uniform_sequence, uniform_subset

__all__ = [
    "NOISES",
    "BitSource",
    "Field",
    "Noise",
    "SeededBits",
    "SystemBits",
    "bit_source",
    "categorical",
    "rounded_top_k",
    "shuffled",
    "top_k",
    "uniform_integer",
    "uniform_sequence",
    "uniform_subset",
]
