"""Writes `partial.parquet` and `dictionary.arrow` with pyarrow.

`partial.parquet` has two row groups. pyarrow omits the bounds of values over 4,096 bytes, so the second row
group has no bounds for `a` and `b`.

`dictionary.arrow` has a dictionary with NULL among its values, and with a value that no row has.
"""

import pyarrow as pa
import pyarrow.parquet as pq

note = "note " * 1000
schema = pa.schema([("id", pa.int64()), ("a", pa.string()), ("b", pa.binary())])
with pq.ParquetWriter("partial.parquet", schema) as writer:
    writer.write_table(pa.table([[1, 2], ["b", "b"], [b"x", b"y"]], schema=schema))
    writer.write_table(pa.table([[3], [note], [note.encode()]], schema=schema))

keys = pa.array([0, 1, None, 2], pa.int32())
values = pa.DictionaryArray.from_arrays(keys, pa.array(["1", None, "3", "x"]))
table = pa.table({"id": [1, 2, 3, 4], "d": values})
with pa.ipc.new_file("dictionary.arrow", table.schema) as writer:
    writer.write_table(table)
