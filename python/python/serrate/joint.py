"""`JointNestedRaggedTensorDict`: the class of nested_ragged_tensors 0.3.0 ("upstream"), implemented in Rust.

Names, types, shapes, error messages and text representations are upstream's, so that upstream's tests and code
written for it run unchanged. In cases in which upstream returns a wrong result, this class returns the right one or
raises an error: negative slices and slices past the end of ragged keys, indices through a level without keys, arrays of
indices with flat keys, slashes in names, and keys that differ in their number of rows.

Files are memory-mapped, and only the parts that are used are read. Only `to_dense` of large objects uses threads, and
not in the workers of a DataLoader, so objects work in forked and spawned workers. Objects can be pickled.
"""

from __future__ import annotations

import itertools
import re
import warnings
from collections.abc import Iterable
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np

from . import _serrate

_UNSIGNED = (np.uint8, np.uint16, np.uint32, np.uint64)
_SIGNED = (np.int8, np.int16, np.int32, np.int64)
_NUMBERS = (int, float, np.integer, np.floating, np.bool_)
_RESERVED = ("bounds", "mask")
_LISTS = (list, tuple, np.ndarray)


def is_ndim_list(L: Any, dim: int = 1) -> bool:
    """Returns whether `L` consists of nested lists of numbers that are exactly `dim` levels deep.

    >>> is_ndim_list([[1, 2], []], 2)
    True
    >>> is_ndim_list([[1, 2], 3], 2)
    False
    """
    if dim <= 0:
        raise ValueError(f"dim must be positive, but got {dim}")
    if isinstance(L, np.ndarray):
        return L.ndim == dim
    if not isinstance(L, list):
        return False
    if dim == 1:
        return all(isinstance(x, _NUMBERS) for x in L)
    return all(is_ndim_list(x, dim - 1) for x in L)


def pprint_dense(dense_dict: dict[str, np.ndarray]) -> None:
    """Prints the result of `to_dense` level by level, with dots for blank lines.

    >>> pprint_dense(JointNestedRaggedTensorDict({"a": [[1, 2], [3]]}).to_dense())
    dim1/mask
    [[ True  True]
     [ True False]]
    .
    a
    [[1 2]
     [3 0]]
    """
    mask = re.compile(r"dim\d+/mask")
    levels: dict[int, list[str]] = {int(_parts(k)[0]): [k] for k in dense_dict if mask.match(k)}
    for key, values in sorted(dense_dict.items()):
        if not mask.match(key):
            levels.setdefault(values.ndim - 1, []).append(key)
    shown = []
    for level in sorted(levels):
        entries = [f"{key}\n" + str(dense_dict[key]).replace("\n\n", "\n.\n") for key in levels[level]]
        shown.append("\n.\n".join(entries))
    print("\n.\n---\n.\n".join(shown))


def _parts(name: str) -> tuple[int, str]:
    """Returns the level and the key in a stored name `dim{level}/{key}`."""
    level, key = name.split("/", 1)
    return int(level[3:]), key


def _infer_dtype(values: Any) -> Any:
    """Returns the smallest type for flat values: bool, the narrowest integer type, or float32."""
    array = np.asarray(values)
    if array.size == 0:
        raise ValueError("Cannot infer dtype from empty values; provide an explicit `schema=`.")
    kind = array.dtype.kind
    if kind == "O":
        if not all(isinstance(v, _NUMBERS) for v in values):
            raise ValueError("Vals must all be ints, floats, or bools")
        if not any(isinstance(v, (float, np.floating)) for v in values):
            raise ValueError(f"No valid type available for {min(values)} - {max(values)}!")
        try:
            array = np.asarray(values, dtype=np.float64)
        except OverflowError:
            raise _no_float(min(values), max(values)) from None
        kind = "f"
    if kind == "b":
        return np.bool_
    if kind == "f":
        if np.isnan(array).all():
            return np.float32
        least, greatest = float(np.nanmin(array)), float(np.nanmax(array))
        limits = np.finfo(np.float32)
        if greatest > float(limits.max) or least < float(limits.min):
            raise _no_float(least, greatest)
        return np.float32
    if kind in "iu":
        least, greatest = int(array.min()), int(array.max())
        for dtype in _UNSIGNED if least >= 0 else _SIGNED:
            limits = np.iinfo(dtype)
            if limits.min <= least and greatest <= limits.max:
                return dtype
    raise ValueError("Vals must all be ints, floats, or bools")


def _no_float(least: Any, greatest: Any) -> ValueError:
    return ValueError(
        f"Cannot store range [{least}, {greatest}] as np.float32 (the only supported float dtype)."
    )


def _lengths_and_values(value: Any) -> tuple[list[list[int]], list]:
    """Returns the lengths of the lists of each level, and all values in one list."""
    lengths = []
    while not is_ndim_list(value, 2):
        nested = isinstance(value, list) and value and all(isinstance(x, _LISTS) for x in value)
        if not nested:
            raise TypeError("not lists of one depth around numbers")
        lengths.append([len(x) for x in value])
        value = list(itertools.chain.from_iterable(value))
    lengths.append([len(x) for x in value])
    return lengths, list(itertools.chain.from_iterable(value))


class _Accepting(type):
    """Makes `isinstance` accept objects of upstream's class."""

    def __instancecheck__(cls, instance: Any) -> bool:
        if super().__instancecheck__(instance):
            return True
        return cls is JointNestedRaggedTensorDict and any(
            c.__name__ == "JointNestedRaggedTensorDict" and c.__module__.startswith("nested_ragged_tensors")
            for c in type(instance).__mro__
        )


class JointNestedRaggedTensorDict(metaclass=_Accepting):
    """Named tensors that share the lengths of their nested lists.

    >>> J = JointNestedRaggedTensorDict({"age": [71, 38], "code": [[[1, 2], [3]], [[4]]]})
    >>> len(J), J.max_n_dims, sorted(J.keys())
    (2, 3, ['age', 'code'])
    >>> J[0].to_dense()["code"]
    array([[1, 2],
           [3, 0]], dtype=uint8)
    """

    _tensors: dict[str, np.ndarray] | None = None
    _made: _serrate.RaggedTable | None = None
    #: The table of a deferred `flatten`: its innermost dimension is merged when the result is used. Most callers use only
    #: a slice of the result, so only the values of the slice are merged.
    _unmerged: _serrate.RaggedTable | None = None
    #: The tables of a deferred `vstack`, one per row. Most callers use only `to_dense`, which reads them directly.
    _parts: list[_serrate.RaggedTable] | None = None
    _file: _serrate.JointFile | None = None
    _tensors_fp: Path | None = None
    _requested: tuple[str, ...] | None = None
    _schema: dict[str, Any] | None = None
    #: Whether this object is a slice, whose schema has stored names and includes bounds, as upstream's does.
    _of_slice: bool = False
    #: The object whose schema this object returns while it has no schema of its own.
    _schema_of: JointNestedRaggedTensorDict | None = None

    _RESERVED_SUBSET_NAMES: tuple[str, ...] = _RESERVED

    def __init__(
        self,
        raw_tensors: dict[str, Any] | None = None,
        processed_tensors: dict[str, np.ndarray] | None = None,
        tensors_fp: str | Path | None = None,
        schema: dict[str, Any] | None = None,
        keys: Iterable[str] | None = None,
    ):
        sources = {
            "raw_tensors": raw_tensors,
            "processed_tensors": processed_tensors,
            "tensors_fp": tensors_fp,
        }
        if sum(v is not None for v in sources.values()) != 1:
            given = " ".join(f"{name}={value}" for name, value in sources.items())
            raise ValueError(
                "Exactly one of `raw_tensors`, `processed_tensors`, `tensors_fp` must be non-null! Got " + given
            )
        if keys is not None and tensors_fp is None:
            raise ValueError("`keys` may only be specified alongside `tensors_fp`.")
        # Keeps the caller's dict, because callers read the inferred types from it.
        self._schema = schema if schema is not None else {}
        if raw_tensors is not None:
            self._tensors = self._read_raw(raw_tensors)
        elif processed_tensors is not None:
            self._tensors = processed_tensors
        else:
            path = Path(tensors_fp)
            if not path.is_file():
                raise FileNotFoundError(f"Tensors filepath must exist, got {tensors_fp}")
            self._tensors_fp = path
            if keys is not None:
                self._requested = self._checked_keys(path, keys)

    def _read_raw(self, raw: dict[str, Any]) -> dict[str, np.ndarray]:
        reserved = set(_RESERVED) & set(raw)
        if reserved:
            raise ValueError(
                f"Reserved meta-names {sorted(reserved)} cannot be used as user tensor names; they collide "
                "with internal ragged-structure tensors."
            )
        tensors: dict[str, np.ndarray] = {}
        rows: tuple[str, int] | None = None
        for key, value in raw.items():
            if len(value) == 0:
                raise ValueError(
                    f"Empty list found for key {key}! Nested Ragged Tensors does not support empty tensors."
                )
            if isinstance(value[0], _LISTS):
                try:
                    lengths, flat = _lengths_and_values(value)
                except TypeError as e:
                    raise ValueError(f"Failed to parse {key} as a nested list of numbers!") from e
            else:
                lengths, flat = [], value
            if key not in self._schema:
                self._schema[key] = _infer_dtype(flat)
            for level, each in enumerate(lengths, 1):
                bounds = np.cumsum(np.array(each, dtype=np.int64))
                known = tensors.setdefault(f"dim{level}/bounds", bounds)
                if not np.array_equal(known, bounds):
                    raise ValueError(f"Inconsistent bounds tensors! {known} vs. {bounds}")
            if rows is not None and rows[1] != len(value):
                raise ValueError(
                    f"Inconsistent numbers of rows! {rows[0]} has {rows[1]}, {key} has {len(value)}"
                )
            rows = (key, len(value))
            tensors[f"dim{len(lengths)}/{key}"] = np.array(flat, dtype=self._schema[key])
        return tensors

    @staticmethod
    def _checked_keys(path: Path, keys: Iterable[str]) -> tuple[str, ...]:
        if isinstance(keys, (str, bytes)):
            raise TypeError("`keys` must be an iterable of strings, not a bare str/bytes.")
        requested = list(keys)
        if not requested:
            raise ValueError("`keys` must be non-empty.")
        others = sorted({type(k).__name__ for k in requested if not isinstance(k, str)})
        if others:
            raise TypeError(f"`keys` must contain only strings; got elements of type {others}.")
        reserved = set(requested) & set(_RESERVED)
        if reserved:
            raise ValueError(
                f"`keys` may not contain reserved meta-names {sorted(reserved)}; these refer to internal "
                "ragged-structure tensors, not user-level data."
            )
        stored = {_parts(name)[1] for name in _serrate.JointFile(path).names}
        missing = sorted(set(requested) - stored)
        if missing:
            available = sorted(stored - set(_RESERVED))
            raise KeyError(f"Requested keys {missing} not found in {path}. Available: {available}")
        return tuple(dict.fromkeys(requested))

    # Sources of the data.

    @property
    def _table(self) -> _serrate.RaggedTable | None:
        if self._unmerged is not None:
            self._made, self._unmerged = self._unmerged.flatten(1), None
        # Another thread may set the attribute to None after it is read here, so read it once.
        parts = self._parts
        if parts is not None:
            self._made = _serrate.concat_tables(parts, True)
            self._parts = None
        return self._made

    @_table.setter
    def _table(self, table: _serrate.RaggedTable | None) -> None:
        self._made = table

    @classmethod
    def _of_table(
        cls,
        table: _serrate.RaggedTable | None,
        schema: dict[str, Any] | None = None,
        of_slice: bool = False,
        schema_of: JointNestedRaggedTensorDict | None = None,
    ) -> JointNestedRaggedTensorDict:
        out = cls.__new__(cls)
        out._made = table
        if schema is not None:
            out._schema = schema
        if of_slice:
            out._of_slice = True
        if schema_of is not None:
            out._schema_of = schema_of
        return out

    def _mapped(self) -> _serrate.JointFile:
        if self._file is None:
            self._file = _serrate.JointFile(self._tensors_fp, self._requested)
        return self._file

    def _core(self) -> _serrate.RaggedTable:
        """Returns all tensors as a table."""
        if self._table is None:
            if self._tensors is not None:
                self._table = _serrate.build_stored_table(self._tensors)
            else:
                self._table = self._mapped().table()
        return self._table

    @property
    def tensors(self) -> dict[str, np.ndarray]:
        """All tensors by their stored names, `dim{level}/{key}` and `dim{level}/bounds`."""
        if self._tensors is None:
            if self._tensors_fp is not None:
                stored = self._mapped().table()._stored()
                self._tensors = {name: stored[name] for name in self._mapped().names if name in stored}
            else:
                self._tensors = self._table._stored()
        return self._tensors

    @property
    def _tensor_keys(self) -> set[str]:
        if self._tensors is not None:
            return set(self._tensors)
        if self._tensors_fp is not None:
            return set(self._mapped().names)
        kinds = self._table._kinds()
        bounds = (f"dim{level}/bounds" for level in range(1, self._table.ndim))
        return {f"dim{level}/{key}" for key, level, _ in kinds}.union(bounds)

    @property
    def _subset_keys(self) -> list[str] | None:
        return None if self._requested is None else self._mapped().names

    @contextmanager
    def _tensor_at_key(self, key: str, archive: Any = None):
        if self._requested is not None and key not in self._mapped().names:
            raise KeyError(f"Key {key!r} is not part of the loaded subset {sorted(self._mapped().names)}.")
        yield self.tensors[key]

    @property
    def schema(self) -> dict[str, Any]:
        """The type of each key. Always returns the same dict."""
        if self._schema is None:
            if self._schema_of is not None:
                self._schema, self._schema_of = self._schema_of.schema, None
                return self._schema
            kinds = self._table._kinds()
            if not self._of_slice:
                self._schema = {key: dtype for key, _, dtype in kinds}
                return self._schema
            self._schema = {}
            for level in range(0, max(self._table.ndim, 1)):
                if level > 0:
                    self._schema[f"dim{level}/bounds"] = np.dtype(np.int64)
                for key, at, dtype in kinds:
                    if at == level:
                        self._schema[f"dim{level}/{key}"] = dtype
        elif not self._schema:
            if self._tensors is not None:
                found = {name: values.dtype for name, values in self._tensors.items()}
            elif self._tensors_fp is not None:
                found = {f"dim{level}/{key}": dtype for key, level, dtype in self._mapped().kinds()}
            else:
                found = {f"dim{level}/{key}": dtype for key, level, dtype in self._table._kinds()}
            for name in sorted(found):
                key = _parts(name)[1]
                if key != "bounds":
                    self._schema[key] = found[name]
        return self._schema

    def save(self, fp: str | Path) -> None:
        """Writes the tensors as a safetensors file."""
        if self._tensors is None and self._tensors_fp is not None:
            raise ValueError(f"Already saved to {self._tensors_fp}!")
        _serrate.save_stored(Path(fp), self.tensors)

    # Contents.

    @property
    def max_n_dims(self) -> int:
        """Number of dimensions of the deepest key."""
        if self._unmerged is not None:
            return 1
        if self._tensors is None and self._tensors_fp is None and self._table.ndim > 1:
            return self._table.ndim
        return max(_parts(k)[0] for k in self._tensor_keys) + 1

    @property
    def min_n_dims(self) -> int:
        """Number of dimensions of the shallowest key."""
        return min(_parts(k)[0] for k in self._tensor_keys) + 1

    def keys(self) -> set[str]:
        """Returns the names of all keys."""
        return {_parts(k)[1] for k in self._tensor_keys if not self._is_meta_key(k)}

    @staticmethod
    def _is_meta_key(k: str) -> bool:
        return k.endswith("/bounds") or k.endswith("/mask")

    @staticmethod
    def _get_dim_from_key_str(full_key_str: str) -> int:
        return _parts(full_key_str)[0]

    def _get_dim(self, key: str) -> int:
        for name in self._tensor_keys:
            level, found = _parts(name)
            if found == key:
                return level
        known = "', '".join(sorted(self.keys()))
        raise KeyError(f"Key '{key}' not found in '{known}'")

    def keys_at_dim(self, dim: int) -> set[str]:
        """Returns the names of the keys of one level."""
        parts = (_parts(k) for k in self._tensor_keys if not self._is_meta_key(k))
        return {key for level, key in parts if level == dim}

    def __len__(self) -> int:
        if self._unmerged is not None:
            return self._elements(self._unmerged, 1)
        if (parts := self._parts) is not None:
            return len(parts)
        if self._table is None and self._tensors_fp is not None:
            return len(self._mapped())
        if self._tensors is not None and self._table is None:
            if self.max_n_dims == 1:
                return len(next(iter(self._tensors.values())))
            return len(self._tensors["dim1/bounds"])
        return len(self._table)

    def __eq__(self, other: object) -> bool:
        return self.equals(other, equal_nan=False)

    __hash__ = None

    def equals(self, other: object, equal_nan: bool = False) -> bool:
        """Returns whether names and values are the same. If `equal_nan` is True, NaN equals NaN.

        >>> J = JointNestedRaggedTensorDict({"T": [[float("nan"), 1.0]]})
        >>> J == J, J.equals(J, equal_nan=True)
        (False, True)
        """
        if not isinstance(other, JointNestedRaggedTensorDict):
            return False
        ours, theirs = self.tensors, other.tensors
        return set(ours) == set(theirs) and all(
            np.array_equal(ours[k], theirs[k], equal_nan=equal_nan) for k in ours
        )

    def __repr__(self) -> str:
        if self._tensors is None and self._tensors_fp is not None:
            source = f"tensors_fp={self._tensors_fp!s}"
        else:
            source = f"processed_tensors={self.tensors}"
        return f"JointNestedRaggedTensorDict({source}, schema={self.schema})"

    def __arrow_c_stream__(self, requested_schema: Any = None) -> Any:
        return self._core().__arrow_c_stream__(requested_schema)

    def __getstate__(self) -> dict[str, Any]:
        lazy = self._tensors is None and self._tensors_fp is not None
        return {
            "tensors": None if lazy else self.tensors,
            "path": self._tensors_fp,
            "keys": self._requested,
            "schema": self.schema if self._schema or not lazy else {},
        }

    def __setstate__(self, state: dict[str, Any]) -> None:
        self._tensors = state["tensors"]
        self._tensors_fp = state["path"]
        self._requested = state["keys"]
        self._schema = state["schema"]

    # Operations.

    def __getitem__(self, idx: Any) -> JointNestedRaggedTensorDict:
        """Returns a row, several rows, or elements of a row.

        >>> J = JointNestedRaggedTensorDict({"code": [[[1, 2], [3]], [[4]]]})
        >>> J[0, -1:].tensors["dim1/code"]
        array([3], dtype=uint8)
        """
        # Items of files are read in training loops, so this branch is first and calls little.
        if self._tensors_fp is not None and self._made is None and self._tensors is None:
            file = self._file
            table, gone = (self._mapped() if file is None else file).take(idx)
        elif self._unmerged is not None and isinstance(idx, slice):
            return self._of_table(_serrate.take_merged(self._unmerged, idx), of_slice=True)
        else:
            table, gone = _serrate.take_table(self._core(), idx)
        cls = type(self)
        out = cls.__new__(cls)
        out._made = table
        if gone == 0 and not isinstance(idx, np.ndarray):
            out._of_slice = True
        return out

    def to_dense(self, padding_side: str = "right") -> dict[str, np.ndarray]:
        """Returns padded arrays of all keys that have values, and a mask `dim{level}/mask` per level with keys."""
        if padding_side not in ("left", "right"):
            raise ValueError(f"padding_side must be 'left' or 'right'; got '{padding_side}'")
        if (parts := self._parts) is not None:
            dense = _serrate.dense_stack(parts, padding_side)
            if dense is not None:
                return dense
        return self._core()._to_dense_joint(padding_side)

    def squeeze(self, dim: int) -> JointNestedRaggedTensorDict:
        """Removes the first dimension, which must have one row."""
        if dim != 0:
            raise ValueError(f"Only supports dim = 0 for now; got {dim}")
        return self._of_table(self._core()._without_scalars().squeeze(0))

    def unsqueeze(self, dim: int) -> JointNestedRaggedTensorDict:
        """Inserts a first dimension with one row."""
        if dim != 0:
            raise ValueError(f"Only supports dim = 0 for now; got {dim}")
        return self._of_table(self._core()._without_scalars().unsqueeze(0), schema_of=self)

    def flatten(self, dim: int = -1) -> JointNestedRaggedTensorDict:
        """Merges the innermost dimension into the dimension above.

        A key of the dimension above keeps each value at the first of the elements that replace its element, and has
        zeros at the others.
        """
        innermost = self.max_n_dims - 1
        if (dim + self.max_n_dims if dim < 0 else dim) != innermost:
            raise ValueError(f"Only supports dim = -1 or {innermost} for now; got {dim}")
        if innermost < 1:
            raise KeyError(f"dim{innermost}/bounds")
        table = self._core()._without_scalars()
        if self._elements(table, innermost) == 0 and (above := self.keys_at_dim(innermost - 1)):
            warnings.warn(
                "flatten(): all inner ragged rows are empty, so the flattened length is 0. Values at outer-dim "
                f"key(s) {sorted(above)} will be dropped because there are no positions to broadcast them into.",
                stacklevel=2,
            )
        if innermost > 1:
            return self._of_table(table.flatten(innermost), schema_of=self)
        out = self._of_table(None, schema_of=self)
        out._unmerged = table
        return out

    @staticmethod
    def _elements(table: _serrate.RaggedTable, level: int) -> int:
        return table._axis_len(level)

    @classmethod
    def vstack(cls, tensor_dicts: list) -> JointNestedRaggedTensorDict:
        """Stacks objects along a new first dimension, with one row for each, to form a batch."""
        if len(tensor_dicts) == 1:
            return cls._ours(tensor_dicts[0]).unsqueeze(0)
        return cls._joined(tensor_dicts, True)

    @classmethod
    def concatenate(cls, tensors: list) -> JointNestedRaggedTensorDict:
        """Concatenates the rows of all objects. Their keys and types must be the same."""
        if len(tensors) == 1:
            return tensors[0]
        return cls._joined(tensors, False)

    @classmethod
    def _ours(cls, one: Any) -> JointNestedRaggedTensorDict:
        if hasattr(one, "_core"):
            return one
        return cls(processed_tensors=one.tensors, schema=one.schema)

    @classmethod
    def _joined(cls, given: list, stack: bool) -> JointNestedRaggedTensorDict:
        if len(given) == 0:
            raise ValueError("Can't concatenate an empty list!")
        each = [cls._ours(one) for one in given]
        # Callers can change a schema only after they read it. A schema that was never read follows from the table.
        of_slice = each[0]._of_slice
        untouched = all(
            one._schema is None and one._schema_of is None and one._of_slice == of_slice for one in each
        )
        tables = [one._core() for one in each]
        is_same = _serrate.same_kinds(tables, stack)
        if not (untouched and is_same):
            cls._check_same(each, stack)
        if not (stack and is_same):
            return cls._of_table(_serrate.concat_tables(tables, stack), schema_of=each[0])
        # If the columns of all tables agree, stacking them cannot fail, so it is deferred.
        out = cls._of_table(None, schema_of=each[0])
        out._parts = tables
        return out

    @staticmethod
    def _check_same(each: list, stack: bool) -> None:
        first = each[0]

        def keys(one):
            # A negative level is a scalar: a key whose only dimension an index has removed. A stack omits scalars.
            names = (_parts(k) for k in one._tensor_keys if not one._is_meta_key(k))
            return {key for level, key in names if level >= 0 or not stack}

        for one in each[1:]:
            if keys(one) != keys(first):
                raise ValueError(f"Keys inconsistent! {keys(one)} != {keys(first)}")
            added = 1 if stack else 0
            if one.max_n_dims != first.max_n_dims:
                raise ValueError(
                    f"Max dims inconsistent! {one.max_n_dims + added} != {first.max_n_dims + added}"
                )
            if one.schema != first.schema:
                raise ValueError(f"Schema inconsistent! {one.schema} != {first.schema}")
            for dim in range(first.max_n_dims):
                if one.keys_at_dim(dim) != first.keys_at_dim(dim):
                    raise ValueError(
                        f"Keys inconsistent @ dim {dim + added}! {one.keys_at_dim(dim)} != "
                        f"{first.keys_at_dim(dim)}"
                    )
