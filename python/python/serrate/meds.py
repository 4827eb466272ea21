"""Reads MEDS data sets as tables, and writes tables as MEDS data sets.

>>> from serrate import meds
>>> table = meds.read("tests/data/tiny-meds")
>>> table.axes["subject_id"], table.axes["time"], table.axes["code"]
(0, 1, 2)
"""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

import numpy as np

from . import _serrate
from ._errors import ExistsError, NoSuchColumnError
from ._sql import sql

#: Columns of MEDS data with their SQL types.
_TYPES = {"subject_id": "BIGINT", "time": "TIMESTAMP", "code": "VARCHAR", "numeric_value": "FLOAT"}


def read(root: str | os.PathLike, split: str | None = None, statics: bool = False) -> _serrate.RaggedTable:
    """Reads a MEDS data set as a table of subjects, their events, and the measurements of each event.

    Columns: `subject_id` (axis 0), `time` and `time_delta_days` (axis 1), `code`, `code_id` and
    `numeric_value` (axis 2). If `statics` is True, reads the facts without a time instead: `subject_id`, and
    `static_code`, `static_code_id` and `static_numeric_value` (axis 1). `split` selects the subjects of
    `"train"`, `"tuning"`, `"held_out"` or another split of `metadata/subject_splits.parquet`.

    >>> from serrate import meds
    >>> records = meds.read("tests/data/synthea-meds", split="train")
    >>> len(records), records["code"].ndim
    (20, 3)
    >>> meds.read("tests/data/synthea-meds", statics=True).columns
    ['subject_id', 'static_code', 'static_code_id', 'static_numeric_value']
    """
    if statics:
        names = "subject_id, static_code, static_code_id, static_numeric_value"
    else:
        names = "subject_id, time, time_delta_days, code, code_id, numeric_value"
    of_split = ""
    if split is not None:
        splits = Path(root) / "metadata" / "subject_splits.parquet"
        of_split = f" WHERE subject_id IN (SELECT subject_id FROM {_quoted(splits)} WHERE split = {_quoted(split)})"
    return sql(f"SELECT {names} FROM meds({_quoted(root)}){of_split} ORDER BY subject_id").table()


def write(
    table: _serrate.RaggedTable,
    root: str | os.PathLike,
    statics: _serrate.RaggedTable | None = None,
    split: str = "train",
) -> None:
    """Writes a table with the columns of `read` as a MEDS data set of one shard.

    The table needs `subject_id`, `time` and `code` on the axes 0, 1 and 2; `numeric_value` is optional, and
    other columns are left out. `statics` holds the facts without a time. The folder must not have a data set.

    >>> from serrate import meds
    >>> records, facts = meds.read("tests/data/tiny-meds"), meds.read("tests/data/tiny-meds", statics=True)
    >>> meds.write(records, folder / "copy", statics=facts)
    >>> meds.read(folder / "copy")["code"].to_list() == records["code"].to_list()
    True
    """
    root = Path(root)
    if (root / "data").exists():
        raise ExistsError(f"{root} already has a MEDS data set; choose another folder")
    parts = [_long(table, "", 2)]
    if statics is not None:
        parts.append(_long(statics, "static_", 1))
    tables = {f"part{i}": part for i, part in enumerate(parts)}
    columns = ", ".join(f"CAST({name} AS {kind}) AS {name}" for name, kind in _TYPES.items())
    rows = " UNION ALL ".join(f"SELECT {columns}, position FROM {name}" for name in tables)
    shard = root / "data" / split / "0.parquet"
    shard.parent.mkdir(parents=True, exist_ok=True)
    (root / "metadata").mkdir(exist_ok=True)
    names = ", ".join(_TYPES)
    ordered = f"SELECT {names} FROM ({rows}) ORDER BY subject_id, time NULLS FIRST, position"
    sql(f"COPY ({ordered}) TO {_quoted(shard)} STORED AS PARQUET", **tables)
    codes = root / "metadata" / "codes.parquet"
    of_codes = "CAST(NULL AS VARCHAR) AS description, CAST(NULL AS VARCHAR[]) AS parent_codes"
    sql(f"COPY (SELECT DISTINCT code, {of_codes} FROM {_quoted(shard)} ORDER BY code) TO {_quoted(codes)} STORED AS PARQUET")
    splits = root / "metadata" / "subject_splits.parquet"
    subjects = f"SELECT DISTINCT subject_id, {_quoted(split)} AS split FROM {_quoted(shard)} ORDER BY subject_id"
    sql(f"COPY ({subjects}) TO {_quoted(splits)} STORED AS PARQUET")
    about = {"dataset_name": root.name, "dataset_version": "1", "meds_version": "0.4.1"}
    (root / "metadata" / "dataset.json").write_text(json.dumps(about))


def generate(
    root: str | os.PathLike,
    patients: int,
    *,
    seed: int = 0,
    shards: int | None = None,
    overwrite: bool = False,
) -> None:
    """Writes a MEDS data set of synthetic patients, like `serrate generate --to meds`.

    80, 10 and 10 % of the patients are in the splits `train`, `tuning` and `held_out`.

    >>> from serrate import meds
    >>> meds.generate(folder / "synthetic", 20, seed=7)
    >>> len(meds.read(folder / "synthetic", split="train"))
    16
    """
    _serrate.generate_meds(root, patients, seed, shards, overwrite)


def _long(table: _serrate.RaggedTable, prefix: str, deepest: int) -> dict[str, Any]:
    """Returns the MEDS columns with one row per measurement, and a column with the index of the row."""
    needed = ["subject_id", prefix + "code"] + (["time"] if deepest == 2 else [])
    missing = [name for name in needed if name not in table]
    if missing:
        raise NoSuchColumnError(f"the table has no column {missing[0]}; the columns are {', '.join(table.columns)}")
    number = prefix + "numeric_value"
    flat = table.select(needed + ([number] if number in table else []))
    for axis in range(deepest, 0, -1):
        flat = flat.flatten(axis, fill="repeat")
    rows = len(flat)
    nothing = np.full(rows, np.nan, np.float32)
    never = np.full(rows, "NaT", "M8[us]")
    return {
        "subject_id": flat["subject_id"],
        "time": flat["time"] if deepest == 2 else never,
        "code": flat[prefix + "code"],
        "numeric_value": flat[number] if number in flat else nothing,
        "position": np.arange(rows),
    }


def _quoted(text: Any) -> str:
    return "'" + os.fspath(text).replace("'", "''") + "'"


__all__ = ["generate", "read", "write"]
