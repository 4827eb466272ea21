"""Runs random statements in DuckDB and compares its answers with Serrate's over the same Parquet files.

    SERRATE_LAWS_EXPORT=DIR SERRATE_LAWS_STATEMENTS=600 cargo test --test laws other_engines
    python tests/interop/duckdb_statements.py DIR

DIR/N/statements.jsonl has statements and Serrate's rows, over the tables DIR/N/*.parquet. Statements
that DuckDB refuses (types that it does not compare, integers of few bits that overflow) are counted.
Needs the packages in requirements.txt.
"""

import collections
import datetime
import decimal
import json
import math
import pathlib
import sys

import duckdb

# Messages of statements that DuckDB refuses.
REFUSED = collections.Counter()


def value(v):
    """A value of DuckDB's as Serrate's test writes it."""
    if isinstance(v, list):
        return [value(x) for x in v]
    if isinstance(v, decimal.Decimal):
        return float(v)
    if isinstance(v, datetime.datetime):
        return (v - datetime.datetime(1970, 1, 1)) // datetime.timedelta(microseconds=1)
    if isinstance(v, datetime.date):
        return value(datetime.datetime(v.year, v.month, v.day))
    return v


def key(v):
    """Equal for equal values; floats to twelve digits, since sums are added up in another order."""
    if isinstance(v, list):
        return "[" + ", ".join(map(key, v)) + "]"
    if isinstance(v, bool) or v is None:
        return str(v)
    if isinstance(v, (int, float)):
        return "nan" if math.isnan(v) else f"{float(v) + 0.0:.12g}"
    return {"NaN": "nan", "inf": "inf", "-inf": "-inf"}.get(v, repr(v))


def rows(of):
    return sorted(" | ".join(map(key, row)) for row in of)


def main(folder):
    same = differences = 0
    for world in sorted(pathlib.Path(folder).iterdir(), key=lambda p: int(p.name)):
        duck = duckdb.connect()
        for table in world.glob("*.parquet"):
            duck.sql(f"CREATE TABLE {table.stem} AS SELECT * FROM '{table}'")
        for line in (world / "statements.jsonl").read_text().splitlines():
            statement = json.loads(line)
            try:
                found = [[value(v) for v in row] for row in duck.sql(statement["sql"]).fetchall()]
            except duckdb.Error as e:
                REFUSED[str(e).split("\n")[0][:90]] += 1
                continue
            ours, theirs = rows(statement["rows"]), rows(found)
            if ours == theirs:
                same += 1
                continue
            differences += 1
            print(f"{world}\n{statement['sql']}")
            for mine in [r for r in ours if r not in theirs][:4]:
                print("  serrate alone:", mine)
            for his in [r for r in theirs if r not in ours][:4]:
                print("  duckdb alone: ", his)
            print(f"  {len(ours)} and {len(theirs)} rows")
    for message, n in REFUSED.most_common(12):
        print(f"refused by DuckDB {n} times: {message}")
    print(f"{same} answers are the same, {differences} are not, {sum(REFUSED.values())} refused")
    sys.exit(1 if differences else 0)


if __name__ == "__main__":
    main(sys.argv[1])
