"""Converts numpy arrays to torch tensors. torch is imported only when a tensor is requested."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np


def torch_module() -> Any:
    """Returns the module torch. If it is not installed, the error says how to install it."""
    try:
        import torch
    except ImportError as e:  # pragma: no cover
        raise ImportError("torch is not installed, but tensors are requested; run pip install torch") from e
    return torch


def share(array: np.ndarray) -> Any:
    """Returns a tensor over the memory of an array. Times become integers."""
    torch = torch_module()
    if array.dtype.kind == "M" or array.dtype.kind == "m":
        array = array.view("i8")
    if array.flags.writeable:
        return torch.from_numpy(array)
    with warnings.catch_warnings():
        # torch has no read-only tensors, and warns about the read-only array.
        warnings.simplefilter("ignore")
        return torch.from_numpy(array)


def jagged(values: np.ndarray, offsets: np.ndarray) -> Any:
    """Returns a nested tensor of the jagged layout over the memory of values and offsets."""
    torch = torch_module()
    return torch.nested.nested_tensor_from_jagged(share(values), share(np.asarray(offsets, dtype=np.int64)))
