"""`HetTensor` under the names of the library hettensor.

>>> from serrate.hettensor import HetTensor, cat
>>> import numpy as np
>>> z = HetTensor([np.array([[1, 2, 3], [4, 5, 6]]), np.array([[7, 8, 9]])])
>>> z.dim_type, z.shape
([het, het, batch], (-1, -1, 3))
>>> z * np.array([[[1, 10, 100]]])
[tensor([[1, 20, 300], [4, 50, 600]]), tensor([[7, 80, 900]])]

`scatter` and `running_counts` are missing, and gradients are not recorded. Unlike in hettensor, empty lists after the
last value are kept, means of integers are floats, and `==` compares element by element.
"""

from __future__ import annotations

from enum import Enum
from typing import Any, Sequence

from ._serrate import HetTensor, RaggedArray


class DimType(str, Enum):
    """The type of a dim: `batch` if its size is constant, `het` if it varies."""

    batch = "batch"
    het = "het"

    def __repr__(self) -> str:
        return self.value

    __str__ = __repr__


def cat(tensors: Sequence[Any], dim: int = 0) -> Any:
    """Concatenates tensors along a dim."""
    return HetTensor.cat(tensors, dim)


def _restored(array: RaggedArray, torch: bool) -> HetTensor:
    tensor = HetTensor.from_ragged(array)
    return tensor.torch() if torch else tensor


__all__ = ["DimType", "HetTensor", "cat"]
