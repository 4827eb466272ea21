"""Tensors of torch over arrays of numpy. Imported when tensors are asked for."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np


def torch_module() -> Any:
    """torch, or an error that says what to install."""
    try:
        import torch
    except ImportError as e:  # pragma: no cover
        raise ImportError("tensors are those of torch: pip install torch") from e
    return torch


def share(array: np.ndarray) -> Any:
    """A tensor over the memory of an array."""
    torch = torch_module()
    if array.dtype.kind == "M" or array.dtype.kind == "m":
        array = array.view("i8")
    if array.flags.writeable:
        return torch.from_numpy(array)
    with warnings.catch_warnings():
        # The memory is read only for numpy; torch knows no such thing and says so.
        warnings.simplefilter("ignore")
        return torch.from_numpy(array)


def jagged(values: np.ndarray, offsets: np.ndarray) -> Any:
    """A nested tensor of the jagged layout over the memory of both."""
    torch = torch_module()
    return torch.nested.nested_tensor_from_jagged(share(values), share(np.asarray(offsets, dtype=np.int64)))
