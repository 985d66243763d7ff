"""Random decisions whose law is exactly the one that the proofs speak of (exactness.md).

Everything above this layer receives winners, ranks and integers; a noisy floating-point value never leaves it.
"""

from dpselect.sampling.bits import BitSource, SeededBits, SystemBits, bit_source
from dpselect.sampling.categorical import categorical
from dpselect.sampling.field import Field
from dpselect.sampling.noise import NOISES, Noise
from dpselect.sampling.topk import top_k
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
    "shuffled",
    "top_k",
    "uniform_integer",
    "uniform_sequence",
    "uniform_subset",
]
