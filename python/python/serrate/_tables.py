"""Exports the Rust classes `RaggedTable` and `RaggedArray`, and converts them to torch tensors."""

from __future__ import annotations

from typing import Any

from . import _serrate
from ._torch import jagged, share

RaggedArray = _serrate.RaggedArray
RaggedTable = _serrate.RaggedTable


def to_nested(array: _serrate.RaggedArray) -> Any:
    """Returns an array with one axis of lists as a nested torch tensor (jagged layout) over the same memory.

    >>> nested = serrate.to_nested(serrate.RaggedArray([[1, 2, 3], [4]]))
    >>> nested.values(), nested.offsets()
    (tensor([1, 2, 3, 4]), tensor([0, 3, 4]))
    """
    offsets = array.offsets
    if len(offsets) != 1:
        from ._errors import InvalidError

        raise InvalidError(
            f"the array has {array.ndim} axes, but the jagged layout has two (rows and one axis of lists); "
            "flatten the table first"
        )
    return jagged(array.leaves, offsets[0])


def to_torch(self: Any, padding_side: str = "right", **options: Any) -> Any:
    """Returns padded torch tensors over the memory of the arrays of `to_dense`, which gets the options.

    >>> table = serrate.RaggedTable({"age": [71, 38], "code": [[1, 2, 3], [4]]})
    >>> serrate.to_torch(table["code"], padding_side="left").tolist()
    [[1, 2, 3], [0, 0, 4]]
    >>> {name: tuple(tensor.shape) for name, tensor in serrate.to_torch(table).items()}
    {'age': (2,), 'code': (2, 3), 'dim1/mask': (2, 3)}
    """
    dense = self.to_dense(padding_side=padding_side, **options)
    if isinstance(dense, dict):
        return {name: share(array) for name, array in dense.items()}
    return share(dense)
