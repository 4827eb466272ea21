#!/usr/bin/env python3
"""Checks that Serrate reads `.nrt` files of Python, and that Python reads `.nrt` files of Serrate.

    python3 -m venv venv && venv/bin/pip install -r tests/interop/requirements.txt
    cargo build --no-default-features --example nrt_roundtrip
    venv/bin/python tests/interop/nrt_interop.py target/debug/examples/nrt_roundtrip

The argument is a command that is run as `COMMAND IN OUT` to convert `.nrt` and `.arrow` files;
`serrate convert --keep-nan` is also possible.
"""

import argparse
import shlex
import subprocess
import sys
import tempfile
from pathlib import Path

import numpy as np
import pyarrow as pa
from nested_ragged_tensors.ragged_numpy import JointNestedRaggedTensorDict
from safetensors import SafetensorError, safe_open
from safetensors.numpy import load_file

DTYPES = [
    "bool", "uint8", "uint16", "uint32", "uint64", "int8", "int16", "int32", "int64",
    "float16", "float32", "float64",
]  # fmt: skip


def random_values(rng, dtype, n):
    dtype = np.dtype(dtype)
    if dtype == bool:
        return rng.integers(0, 2, n).astype(bool)
    if dtype.kind == "f":
        values = rng.normal(size=n).astype(dtype)
        values[rng.random(n) < 0.2] = np.nan
        return values
    info = np.iinfo(dtype)
    return rng.integers(info.min, info.max, n, dtype=dtype, endpoint=True)


def random_tensors(rng):
    """Returns random tensors in the form in which the library stores them, with a column on the innermost dimension."""
    rows, depth = int(rng.integers(0, 9)), int(rng.integers(0, 4))
    tensors, size = {}, rows
    for dim in range(depth + 1):
        if dim > 0:
            lengths = rng.integers(0, 4, size) * (rng.random(size) < 0.8)
            tensors[f"dim{dim}/bounds"] = np.cumsum(lengths, dtype=np.int64)
            size = int(lengths.sum())
        columns = int(rng.integers(dim == depth, 4))
        for i in range(columns):
            dtype = DTYPES[rng.integers(len(DTYPES))]
            tensors[f"dim{dim}/k{dim}{i}é"] = random_values(rng, dtype, size)
    if rng.random() < 0.3:
        tensors["dim0/subject_id"] = random_values(rng, "int64", rows)
    return tensors


def nested(tensors, name):
    """Returns a column as nested lists."""
    values = tensors[name].tolist()
    for dim in range(int(name[3 : name.index("/")]), 0, -1):
        starts = [0, *tensors[f"dim{dim}/bounds"].tolist()]
        values = [values[a:b] for a, b in zip(starts, starts[1:])]
    return values


def same(a, b):
    if isinstance(a, list) and isinstance(b, list):
        return len(a) == len(b) and all(map(same, a, b))
    return a == b or (a != a and b != b)


def check_same_tensors(found, expected, what):
    assert set(found) == set(expected), f"{what}: {sorted(found)} for {sorted(expected)}"
    for name, values in expected.items():
        assert found[name].dtype == values.dtype, f"{what}: {name} is {found[name].dtype}"
        equal = np.array_equal(found[name], values, equal_nan=values.dtype.kind == "f")
        assert equal, f"{what}: {name} differs"


def read_arrow(path):
    with pa.memory_map(str(path)) as source:
        return pa.ipc.open_file(source).read_all()


def from_python(convert, rng, folder):
    """Converts a file of Python to .nrt and to Arrow lists, and back."""
    tensors = random_tensors(rng)
    theirs, ours, arrow, again = (folder / f for f in ("a.nrt", "b.nrt", "c.arrow", "d.nrt"))
    theirs.unlink(missing_ok=True)
    JointNestedRaggedTensorDict(processed_tensors=tensors).save(theirs)

    convert(theirs, ours)
    assert ours.read_bytes() == theirs.read_bytes(), "our file has other bytes"
    check_same_tensors(load_file(ours), tensors, "our file read by safetensors")
    joint = JointNestedRaggedTensorDict(tensors_fp=ours)
    check_same_tensors(joint.tensors, tensors, "our file read by nested_ragged_tensors")
    rows = len(next(v for n, v in tensors.items() if n in ("dim1/bounds",) or n[:5] == "dim0/"))
    if rows > 2:
        whole = JointNestedRaggedTensorDict(processed_tensors=tensors)[1 : rows - 1]
        try:
            lazy = JointNestedRaggedTensorDict(tensors_fp=ours)[1 : rows - 1]
        except SafetensorError as error:
            # The library cannot read an empty slice at the end of a tensor.
            assert "out of bounds" in str(error), error
        else:
            assert lazy.equals(whole, equal_nan=True), "rows of our file differ"

    convert(theirs, arrow)
    table = read_arrow(arrow)
    columns = {n.partition("/")[2]: n for n in tensors if not n.endswith("/bounds")}
    assert set(table.column_names) == set(columns)
    for column, name in columns.items():
        found = table[column].to_pylist()
        assert same(found, nested(tensors, name)), f"{name} differs in Arrow"
    convert(arrow, again)
    assert again.read_bytes() == theirs.read_bytes(), "the file made of Arrow has other bytes"


def random_column(rng, lengths, dtype):
    """Returns a list column of pyarrow in one of its possible layouts, and its nested lists."""
    offsets = np.concatenate([[0], np.cumsum(lengths)])
    total = int(offsets[-1])
    values = random_values(rng, dtype, total)
    mask = (rng.random(total) < 0.2) if np.dtype(dtype).kind == "f" else np.zeros(total, bool)
    expected = np.where(mask, np.nan, values).tolist() if mask.any() else values.tolist()
    expected = [expected[a:b] for a, b in zip(offsets, offsets[1:])]
    # Add values before and after that belong to no list.
    extra = 3 if total else 0
    before, after = (random_values(rng, dtype, extra) for _ in range(2))
    flat = pa.array(np.concatenate([before, values, after]))
    if mask.any():
        pad = np.zeros(extra, bool)
        flat = pa.array(
            np.concatenate([before, values, after]), mask=np.concatenate([pad, mask, pad])
        )
    large = rng.random() < 0.5
    kind, width = (pa.LargeListArray, pa.int64()) if large else (pa.ListArray, pa.int32())
    null_lists = (rng.random(len(lengths)) < 0.3) & (np.asarray(lengths) == 0)
    lists = kind.from_arrays(
        pa.array(offsets + extra, width), flat, mask=pa.array(null_lists) if len(lengths) else None
    )
    return lists, expected


def from_arrow(convert, rng, folder):
    """Converts Arrow lists of all layouts to .nrt, which Python reads."""
    rows = int(rng.integers(0, 9))
    lengths = (rng.integers(0, 5, rows) * (rng.random(rows) < 0.7)).tolist()
    arrays, expected = {}, {}
    for i in range(int(rng.integers(1, 4))):
        dtype = DTYPES[rng.integers(len(DTYPES))]
        arrays[f"c{i}"], expected[f"dim1/c{i}"] = random_column(rng, lengths, dtype)
    ids = rng.integers(-9, 9, rows, dtype=np.int32)
    arrays["subject_id"], expected["dim0/subject_id"] = pa.array(ids), ids.tolist()
    # Keep some values in the slice: pyarrow writes a slice of empty lists with offsets past the values that
    # it writes, and arrow-rs refuses the file.
    skip = int(rng.choice([s for s in range(rows) if sum(lengths[s:])] or [0]))
    batch = pa.RecordBatch.from_pydict(arrays).slice(skip)
    empty = pa.RecordBatch.from_pylist([], schema=batch.schema)

    arrow, ours = folder / "e.arrow", folder / "f.nrt"
    with pa.OSFile(str(arrow), "wb") as sink, pa.ipc.new_file(sink, batch.schema) as writer:
        writer.write_batch(batch)
        writer.write_batch(empty)
    convert(arrow, ours)
    joint = JointNestedRaggedTensorDict(tensors_fp=ours)
    assert joint.tensors["dim0/subject_id"].dtype == np.int64
    for name, lists in expected.items():
        assert same(nested(joint.tensors, name), lists[skip:]), f"{name} differs"
    with safe_open(ours, "numpy") as file:
        assert file.metadata() is None


def main():
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("command", help="the command that converts, run as COMMAND IN OUT")
    parser.add_argument("--cases", type=int, default=100)
    parser.add_argument("--seed", type=int, default=0)
    args = parser.parse_args()
    command = shlex.split(args.command)

    def convert(source, target):
        target.unlink(missing_ok=True)
        done = subprocess.run([*command, source, target], capture_output=True, text=True)
        assert done.returncode == 0, f"{source} to {target}: {done.stderr}"
        assert target.exists(), f"{source} to {target}: nothing was written"

    with tempfile.TemporaryDirectory() as folder:
        for case in range(args.cases):
            for check in (from_python, from_arrow):
                try:
                    check(convert, np.random.default_rng([args.seed, case]), Path(folder))
                except AssertionError as error:
                    sys.exit(f"{check.__name__}, --seed {args.seed}, case {case}: {error}")
    print(f"{args.cases} cases in both directions agree")


if __name__ == "__main__":
    main()
