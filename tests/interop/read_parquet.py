"""Reads files of Serrate with DuckDB, Polars and pyarrow, and compares the results.

    cargo run --no-default-features --features generate,parquet --example write_formats -- DIR
    python tests/interop/read_parquet.py DIR

DIR/table.parquet and DIR/table.arrow have the same generated patients. DIR/table.json has counts of them that Rust
computed. DIR/tensor.parquet and DIR/tensor.arrow have a column of 3 tensors of 2 x 3.
Needs the packages in requirements.txt.
"""

import json
import math
import pathlib
import sys

import duckdb
import polars as pl
import pyarrow as pa
import pyarrow.ipc
import pyarrow.parquet as pq


def nested(path):
    return pq.read_table(path).to_pylist()


def same(a, b, where):
    """Asserts that two values are equal, where NaN equals NaN."""
    if isinstance(a, dict):
        assert a.keys() == b.keys(), where
        for k in a:
            same(a[k], b[k], f"{where}.{k}")
    elif isinstance(a, list):
        assert isinstance(b, list) and len(a) == len(b), where
        for i, (x, y) in enumerate(zip(a, b)):
            same(x, y, f"{where}[{i}]")
    elif isinstance(a, float) and isinstance(b, float) and math.isnan(a) and math.isnan(b):
        pass
    else:
        assert a == b, f"{where}: {a!r} != {b!r}"


def main(folder):
    folder = pathlib.Path(folder)
    parquet, facts = folder / "table.parquet", json.loads((folder / "table.json").read_text())

    arrow = nested(parquet)
    assert len(arrow) == facts["rows"]
    assert sum(len(r["time"]) for r in arrow) == facts["events"]
    assert sum(len(e) for r in arrow for e in r["code"]) == facts["measurements"]
    assert sum(c for r in arrow for e in r["code"] for c in e) == facts["code_sum"]
    values = [v for r in arrow for e in r["numeric_value"] for v in e]
    assert sum(v is None for v in values) == facts["values_null"]
    assert not any(v is not None and math.isnan(v) for v in values), "NaN where NULL belongs"
    print("pyarrow ok:", len(arrow), "rows,", len(values), "leaves")

    metadata = pq.ParquetFile(parquet).metadata
    groups = [metadata.row_group(i) for i in range(metadata.num_row_groups)]
    assert len(groups) > 1
    for group in groups:
        column = group.column(group.num_columns - 1)
        assert column.compression == "ZSTD" and column.has_column_index and column.has_offset_index
    print("  row groups:", [g.num_rows for g in groups])

    same(arrow, pl.read_parquet(parquet).to_dicts(), "polars")
    print("polars ok")

    duck = duckdb.connect()
    result = duck.sql(f"select * from '{parquet}'")
    rows = [dict(zip(result.columns, row)) for row in result.fetchall()]
    same(arrow, rows, "duckdb")
    total = duck.sql(
        f"select sum(list_sum(flatten(code)))::bigint from '{parquet}'"
    ).fetchall()[0][0]
    assert total == facts["code_sum"]
    print("duckdb ok")

    with pa.ipc.open_file(str(folder / "table.arrow")) as reader:
        same(arrow, reader.read_all().to_pylist(), "ipc")
    print("arrow file ok")

    expected = [[[0.0, 1.0, 2.0], [3.0, 4.0, 5.0]], [[6.0, 7.0, 8.0], [9.0, 10.0, 11.0]],
                [[12.0, 13.0, 14.0], [15.0, 16.0, 17.0]]]
    with pa.ipc.open_file(str(folder / "tensor.arrow")) as reader:
        tensors = {"ipc": reader.read_all()}
    tensors["parquet"] = pq.read_table(folder / "tensor.parquet")
    for name, table in tensors.items():
        column = table["t"]
        assert isinstance(column.type, pa.FixedShapeTensorType), (name, column.type)
        assert column.type.shape == [2, 3], name
        assert column.combine_chunks().to_numpy_ndarray().tolist() == expected, name
    print("fixed shape tensors ok")


if __name__ == "__main__":
    main(sys.argv[1])
