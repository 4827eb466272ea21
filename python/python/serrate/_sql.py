"""SQL: sessions and results."""

from __future__ import annotations

import os
from typing import Any, Callable, Mapping, Sequence

from . import _serrate
from ._progress import starter
from ._torch import share

_default: tuple[int, "Session"] | None = None


class Result:
    """The result of a statement.

    A statement that only reads runs when its result is looked at. `__arrow_c_stream__` streams it anew each
    time; `.arrow()`, `.polars()`, `.pandas()`, `.numpy()`, `.torch()`, `.table()` and `len()` keep it.

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
        """Runs the statement now and keeps all of its result."""
        self._inner.collect()
        return self

    def arrow(self) -> Any:
        """A `pyarrow.Table` over the same memory."""
        import pyarrow

        return pyarrow.table(self._inner.collect())

    def reader(self) -> Any:
        """A `pyarrow.RecordBatchReader`: batch by batch, while the query runs."""
        import pyarrow

        return pyarrow.RecordBatchReader.from_stream(self._inner)

    def polars(self) -> Any:
        """A `polars.DataFrame`."""
        import polars

        return polars.DataFrame(self._inner.collect())

    def pandas(self) -> Any:
        """A `pandas.DataFrame`."""
        return self.arrow().to_pandas()

    def numpy(self) -> dict[str, Any]:
        """A dict of numpy arrays, over the same memory where the result is one batch.

        Flat columns are arrays (masked where there are NULLs, of objects for texts), lists of one length
        arrays of more axes, other lists `RaggedArray`.

        >>> serrate.sql("SELECT 1 AS a, [1, 2] AS b").numpy()
        {'a': array([1]), 'b': RaggedArray([[1, 2]], shape=(1, None), dtype=int64)}
        """
        return self._inner.numpy()

    def torch(self, padding_side: str = "right") -> dict[str, Any]:
        """A dict of torch tensors: numbers as they are, lists padded, with masks `dim1/mask`, ..

        Columns that are no numbers are refused: leave them out, or encode them first.
        """
        dense = self._inner.table().to_dense(padding_side=padding_side)
        return {name: share(array) for name, array in dense.items()}

    def table(self) -> _serrate.RaggedTable:
        """A `RaggedTable`, for results whose columns share their lists."""
        return self._inner.table()

    def to_dict(self) -> dict[str, list]:
        """A dict of Python lists."""
        return self._inner.to_dict()

    def show(self, rows: int = 20) -> None:
        """Prints the first rows."""
        print(self._inner.to_text(rows))

    def __repr__(self) -> str:
        return repr(self._inner)

    def _repr_html_(self) -> str:
        return self._inner._repr_html_()


class Session:
    """A session: settings, registered tables, views. Made by `connect`.

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
        """The result of a statement; see `serrate.sql`."""
        if "params" in tables and params is None and isinstance(tables["params"], (list, tuple, dict)):
            params = tables.pop("params")
        return Result(self._inner.sql(query, params, tables or None))

    def register(self, name: str, table: Any) -> None:
        """Gives a table a name, replacing what had it."""
        self._inner.register(name, table)

    def deregister(self, name: str) -> bool:
        """Takes a name away; whether there was a table of it."""
        return self._inner.deregister(name)

    def register_store(self, url: str, folder: str | os.PathLike) -> None:
        """Gives the files of a folder URLs that begin with `url`.

        >>> session = serrate.connect()
        >>> session.register_store("lake://cohort/", "tests/data/tiny-meds")
        """
        self._inner.register_store(url, os.fspath(folder))

    def tables(self) -> list[str]:
        """Names of tables and views."""
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
    """A session of its own.

    `settings` are those of SET, such as `{"serrate.nrt_nan": "nan"}`; `memory_limit` is as in `"2G"`,
    `threads` the partitions that a query is run in. `stores` are folders by the URLs that their files are to
    have: with `{"lake://cohort/": "/data/cohort"}`, `FROM 'lake://cohort/a.parquet'` reads `/data/cohort/a.parquet`.
    Stores of S3 and the like are not built in.

    A statement that takes longer than a second shows its progress in terminals and notebooks. `progress` is False
    for never, or a function that is called with seconds, rows read, and rows in all (None if that is not known).
    """
    return Session(settings, memory_limit, threads, stores, progress)


def default_session() -> Session:
    """The session of `serrate.sql`, one per process."""
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
    """The result of a statement over files and over the tables that are given by name.

    A table is a `RaggedTable`, a dict of nested lists or arrays, a `Result`, or anything with
    `__arrow_c_stream__`: of pyarrow, polars, pandas, DuckDB. `params` is a list for `$1`, `$2`, .. or a dict
    for `$name`.

    >>> serrate.sql("SELECT x + $1 AS y FROM t", [10], t={"x": [1, 2]}).to_dict()
    {'y': [11, 12]}
    >>> serrate.sql("SELECT x FROM t WHERE x > $least", {"least": 1}, t={"x": [1, 2]}).to_dict()
    {'x': [2]}
    """
    return default_session().sql(query, params, **tables)

