"""Names for the array types used in signatures."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

Array = npt.NDArray[Any]
BitArray = npt.NDArray[np.unsignedinteger[Any]]
BoolArray = npt.NDArray[np.bool_]
ComplexArray = npt.NDArray[np.complex128]
FloatArray = npt.NDArray[np.float64]
IndexArray = npt.NDArray[np.intp]
IntArray = npt.NDArray[np.int64]
