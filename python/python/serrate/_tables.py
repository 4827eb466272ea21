"""`RaggedTable` and `RaggedArray`: the classes of Rust, with what needs torch."""

from __future__ import annotations

from typing import Any

from . import _serrate
from ._torch import jagged, share

RaggedArray = _serrate.RaggedArray
RaggedTable = _serrate.RaggedTable


def to_nested(array: _serrate.RaggedArray) -> Any:
    """An array of one axis of lists as a nested tensor of torch (jagged layout), over the same memory."""
    offsets = array.offsets
    if len(offsets) != 1:
        from ._errors import InvalidError

        raise InvalidError(
            f"an array with {array.ndim} axes; the jagged layout has one axis of lists (two axes): flatten "
            "the table first"
        )
    return jagged(array.leaves, offsets[0])


def to_torch(self: Any, padding_side: str = "right", **options: Any) -> Any:
    """Padded tensors of torch over the memory of `to_dense`, whose options these are."""
    dense = self.to_dense(padding_side=padding_side, **options)
    if isinstance(dense, dict):
        return {name: share(array) for name, array in dense.items()}
    return share(dense)
