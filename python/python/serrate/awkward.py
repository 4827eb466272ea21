"""Converts arrays and tables to awkward arrays (version 2) and back, without a copy of their values.

>>> import awkward as ak
>>> from serrate.awkward import from_awkward, to_awkward
>>> to_awkward(serrate.RaggedArray([[[1, 2], [3]], []]))
<Array [[[1, 2], [3]], []] type='2 * var * var * int64'>
>>> from_awkward(ak.Array([[1.5], [], [2.5, 3.5]])).sum(axis=-1)
RaggedArray([1.5, 0.0, 6.0], shape=(3,), dtype=float64)

Booleans are copied, because Arrow stores them as bits and awkward as bytes. The conversion of anything but plain
numbers to awkward uses Arrow and needs pyarrow.
"""

from __future__ import annotations

from typing import Any


from ._errors import WrongTypeError
from ._serrate import RaggedArray, RaggedTable


def to_awkward(data: RaggedArray | RaggedTable) -> Any:
    """Returns an `awkward.Array` over the memory of an array, or records with a field per column of a table.

    >>> table = serrate.RaggedTable({"age": [71, 38], "code": [[1, 2], [3]]})
    >>> to_awkward(table).fields
    ['age', 'code']
    """
    import awkward as ak

    if isinstance(data, RaggedTable):
        columns = {name: to_awkward(data[name]) for name in data.columns}
        return ak.zip(columns, depth_limit=1)
    if not isinstance(data, RaggedArray):
        raise WrongTypeError(f"the data is a {type(data).__name__}; give a RaggedArray or a RaggedTable")
    leaves = None if data.has_nulls else data.leaves
    if leaves is None or leaves.dtype.kind == "O":
        import pyarrow

        return ak.from_arrow(pyarrow.array(data))
    content = ak.contents.NumpyArray(leaves)
    for offsets in reversed(data.offsets):
        content = ak.contents.ListOffsetArray(ak.index.Index64(offsets), content)
    return ak.Array(content)


def from_awkward(array: Any) -> RaggedArray | RaggedTable:
    """Returns a `RaggedArray` over the memory of an `awkward.Array`, or a `RaggedTable` of the fields of records.

    >>> import awkward as ak
    >>> from_awkward(ak.Array([{"x": 1, "y": [1, 2]}, {"x": 3, "y": []}])).to_dict()
    {'x': [1, 3], 'y': [[1, 2], []]}
    """
    import awkward as ak

    if not isinstance(array, ak.Array):
        raise WrongTypeError(f"the array is a {type(array).__name__}; give an awkward.Array")
    layout = ak.to_layout(array)
    if layout.is_record:
        return RaggedTable({name: from_awkward(array[name]) for name in array.fields})
    import pyarrow

    made = ak.to_arrow(array, extensionarray=False)
    kind = made.type
    while hasattr(kind, "value_type"):
        kind = kind.value_type
    if pyarrow.types.is_union(kind):
        raise WrongTypeError(f"the array has values of {array.type.content}; give an array with values of one kind")
    return RaggedArray(_Arrow(made))


class _Arrow:
    """Wraps a pyarrow array so that `__arrow_c_array__` is its only interface."""

    def __init__(self, array: Any):
        self._array = array

    def __arrow_c_array__(self, requested_schema: Any = None) -> Any:
        return self._array.__arrow_c_array__(requested_schema)


__all__ = ["from_awkward", "to_awkward"]
