"""Sessions that run SQL statements, and their results."""

from __future__ import annotations

import os
from typing import Any, Callable, Mapping, Sequence

from . import _serrate
from ._progress import starter
from ._torch import share

_default: tuple[int, "Session"] | None = None


class Result:
    """The result of a statement.

    A statement that only reads runs when its result is used. `.arrow()`, `.polars()`, `.pandas()`, `.numpy()`,
    `.torch()`, `.table()` and `len()` run it once and keep its rows. Unless the rows are kept, each use of
    `__arrow_c_stream__` runs it again.

    >>> r = serrate.sql("SELECT range(3) AS i, 'x' AS t")
    >>> r.columns, r.types
    (['i', 't'], ['int64[]', 'text'])
    >>> r.to_dict()
    {'i': [[0, 1, 2]], 't': ['x']}
    """

    __slots__ = ("_inner",)

    def __init__(self, inner: _serrate.Result):
        self._inner = inner

    @property
    def columns(self) -> list[str]:
        """Names of the columns."""
        return self._inner.columns

    @property
    def types(self) -> list[str]:
        """Types of the columns, such as `int64[]` for lists of integers."""
        return self._inner.types

    def __len__(self) -> int:
        return len(self._inner)

    def __arrow_c_stream__(self, requested_schema: Any = None) -> Any:
        return self._inner.__arrow_c_stream__(requested_schema)

    def collect(self) -> "Result":
        """Runs the statement now and keeps its whole result."""
        self._inner.collect()
        return self

    def arrow(self) -> Any:
        """Returns a `pyarrow.Table` over the memory of the result."""
        import pyarrow

        return pyarrow.table(self._inner.collect())

    def reader(self) -> Any:
        """Returns a `pyarrow.RecordBatchReader`, which yields batches while the query runs."""
        import pyarrow

        return pyarrow.RecordBatchReader.from_stream(self._inner)

    def polars(self) -> Any:
        """Returns a `polars.DataFrame`."""
        import polars

        return polars.DataFrame(self._inner.collect())

    def pandas(self) -> Any:
        """Returns a `pandas.DataFrame`."""
        return self.arrow().to_pandas()

    def numpy(self) -> dict[str, Any]:
        """Returns a dict of numpy arrays.

        Flat columns become arrays (masked if they have NULLs, of objects for strings), FixedSizeList columns of
        numbers become arrays with more axes, and other lists become `RaggedArray`s. Numbers and times without NULLs
        are not copied if the batches of the result are parts of one table; other columns, and computed values, are
        copied if the result has several batches (of up to 8,192 rows).

        >>> serrate.sql("SELECT 1 AS a, [1, 2] AS b").numpy()
        {'a': array([1]), 'b': RaggedArray([[1, 2]], shape=(1, None), dtype=int64)}
        """
        return self._inner.numpy()

    def torch(self, padding_side: str = "right") -> dict[str, Any]:
        """Returns a dict of torch tensors: numbers, padded lists, and the masks `dim1/mask`, .. of the lists.

        Columns of values other than numbers are an error: omit them, or encode them as numbers first.
        """
        dense = self._inner.table().to_dense(padding_side=padding_side)
        return {name: share(array) for name, array in dense.items()}

    def table(self) -> _serrate.RaggedTable:
        """Returns a `RaggedTable`. The lists of all columns must have the same lengths."""
        return self._inner.table()

    def to_dict(self) -> dict[str, list]:
        """Returns a dict of Python lists."""
        return self._inner.to_dict()

    def show(self, rows: int = 20) -> None:
        """Prints the first rows."""
        print(self._inner.to_text(rows))

    def __repr__(self) -> str:
        return repr(self._inner)

    def _repr_html_(self) -> str:
        return self._inner._repr_html_()


class Session:
    """A session: settings, registered tables and views. `connect` creates one.

    >>> session = serrate.connect(memory_limit="1G")
    >>> session.register("t", {"x": [1, 2, 3]})
    >>> session.sql("SELECT sum(x) AS s FROM t").to_dict()
    {'s': [6]}
    >>> session.tables()
    ['t']
    """

    def __init__(
        self,
        settings: Mapping[str, Any] | None = None,
        memory_limit: str | None = None,
        threads: int | None = None,
        stores: Mapping[str, str | os.PathLike] | None = None,
        progress: bool | Callable[[float, int, int | None], Any] | None = None,
    ):
        chosen = {name: _setting(value) for name, value in (settings or {}).items()}
        if memory_limit is not None:
            chosen["datafusion.runtime.memory_limit"] = str(memory_limit)
        self._inner = _serrate.Session(chosen, threads, starter(progress))
        for url, folder in (stores or {}).items():
            self.register_store(url, folder)

    def sql(
        self,
        query: str,
        params: Sequence[Any] | Mapping[str, Any] | None = None,
        /,
        **tables: Any,
    ) -> Result:
        """Returns the result of a statement; see `serrate.sql`."""
        if "params" in tables and params is None and isinstance(tables["params"], (list, tuple, dict)):
            params = tables.pop("params")
        return Result(self._inner.sql(query, params, tables or None))

    def register(self, name: str, table: Any) -> None:
        """Registers a table under a name. Replaces any table of this name.

        SQL reads names without quotes in lower case, so a name with capitals is also registered in lower case,
        unless another table has that name.
        """
        self._inner.register(name, table)

    def deregister(self, name: str) -> bool:
        """Removes the table of this name. Returns whether there was one."""
        return self._inner.deregister(name)

    def register_store(self, url: str, folder: str | os.PathLike) -> None:
        """Makes the files of a folder available under URLs that begin with `url`.

        >>> session = serrate.connect()
        >>> session.register_store("lake://cohort/", "tests/data/tiny-meds")
        """
        self._inner.register_store(url, os.fspath(folder))

    def tables(self) -> list[str]:
        """Returns the names of the tables and views."""
        return self._inner.tables()


def _setting(value: Any) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)


def connect(
    settings: Mapping[str, Any] | None = None,
    *,
    memory_limit: str | None = None,
    threads: int | None = None,
    stores: Mapping[str, str | os.PathLike] | None = None,
    progress: bool | Callable[[float, int, int | None], Any] | None = None,
) -> Session:
    """Creates a session.

    `settings` are the settings of SET, such as `{"serrate.nrt_nan": "nan"}`. `memory_limit` is a size such as
    `"2G"` or `"50%"`, which limits all sessions of the process together. `threads` is the number of partitions in
    which a query runs. `stores` maps URLs to folders: with
    `{"lake://cohort/": "/data/cohort"}`, `FROM 'lake://cohort/a.parquet'` reads `/data/cohort/a.parquet`. Object
    stores such as S3 are not built in.

    A statement that takes longer than a second shows its progress in terminals and notebooks. `progress` is False
    to show none, or a function that is called with the seconds, the rows read, and the total rows (None if
    unknown).

    >>> session = serrate.connect(memory_limit="1G", threads=1, stores={"lake://tiny/": "tests/data/tiny-meds"})
    >>> session.register("visits", {"patient": ["a", "b"], "codes": [[3, 1], [7]]})
    >>> session.sql("SELECT patient, ragged_max(codes) AS top FROM visits ORDER BY top").to_dict()
    {'patient': ['a', 'b'], 'top': [3, 7]}
    """
    return Session(settings, memory_limit, threads, stores, progress)


def default_session() -> Session:
    """Returns the session of `serrate.sql`. Each process has its own."""
    global _default
    process = os.getpid()
    if _default is None or _default[0] != process:
        _default = (process, Session())
    return _default[1]


def sql(
    query: str,
    params: Sequence[Any] | Mapping[str, Any] | None = None,
    /,
    **tables: Any,
) -> Result:
    """Returns the result of a statement over files and over the tables in the keyword arguments.

    A table is a `RaggedTable`, a dict of nested lists or arrays, a `Result`, or any object with
    `__arrow_c_stream__` (pyarrow, polars, pandas, DuckDB). `params` is a list for `$1`, `$2`, .. or a dict
    for `$name`.

    >>> serrate.sql("SELECT x + $1 AS y FROM t", [10], t={"x": [1, 2]}).to_dict()
    {'y': [11, 12]}
    >>> serrate.sql("SELECT x FROM t WHERE x > $least", {"least": 1}, t={"x": [1, 2]}).to_dict()
    {'x': [2]}
    """
    return default_session().sql(query, params, **tables)

