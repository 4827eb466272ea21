"""Compares DuckDB, Polars, DataFusion and Serrate by nine queries about patients.

The patients of `serrate generate` have t (list of float32), code (list of lists of uint16) and val (list of lists of
float32, NULL where a number is missing). The queries read memory, one Parquet file, and, only in Serrate, an `.nrt`
file. A query may be written in several ways for an engine; the fastest one counts. The answers must agree, floats to
one part in a million. Each engine uses two threads.

The time in memory is that of executing a prepared plan, and the time of planning is shown beside it; Polars plans while
it runs. The time from files includes planning.
"""

import math
import os
import sys
from pathlib import Path

THREADS = 2
os.environ["POLARS_MAX_THREADS"] = str(THREADS)

import duckdb
import numpy as np
import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq
from common import arguments, machine, run_json, seconds, table
from safetensors.numpy import load_file, save_file

# The relative tolerance for floats. Some engines round the sum of each row before they compute a mean.
TOLERANCE = 1e-6


def files(data: Path, work: Path):
    """Writes the columns as `.nrt` and as Parquet with eight row groups. Returns the files and the constants of queries."""
    nrt, parquet = work / f"{data.stem}-questions.nrt", work / f"{data.stem}-questions.parquet"
    tensors = load_file(data)
    if not nrt.exists() or nrt.stat().st_mtime < data.stat().st_mtime:
        names = {"dim1/bounds": "dim1/bounds", "dim1/t": "dim1/time_delta_days", "dim2/bounds": "dim2/bounds"}
        names |= {"dim2/code": "dim2/code", "dim2/val": "dim2/numeric_value"}
        save_file({new: tensors[old] for new, old in names.items()}, nrt)
    tensors = load_file(nrt)
    events, leaves = (np.concatenate(([0], tensors[f"dim{d}/bounds"])).astype(np.int32) for d in (1, 2))
    code, val = tensors["dim2/code"].astype(np.uint16), tensors["dim2/val"]
    if not parquet.exists() or parquet.stat().st_mtime < nrt.stat().st_mtime:
        one = lambda values: pa.ListArray.from_arrays(pa.array(events), values)
        two = lambda values: one(pa.ListArray.from_arrays(pa.array(leaves), values))
        columns = {
            "t": one(pa.array(tensors["dim1/t"])),
            "code": two(pa.array(code)),
            "val": two(pa.array(val, mask=np.isnan(val))),
        }
        rows = len(events) - 1
        pq.write_table(pa.table(columns), parquet, compression="zstd", row_group_size=max(1, -(-rows // 8)))
    # Choose a code with numbers that is neither most frequent nor rare, and a measurement in the middle of the data.
    counts = np.bincount(code[~np.isnan(val)])
    wanted = int(np.argsort(-counts, kind="stable")[min(20, np.count_nonzero(counts) - 1)])
    p = (len(events) - 1) // 2
    while events[p + 1] == events[p]:
        p += 1
    e = (events[p + 1] - events[p]) // 2
    while leaves[events[p] + e + 1] == leaves[events[p] + e]:
        e -= 1
    return nrt, parquet, wanted, (int(p), int(e), 0)


def duck(code, point, source):
    p, e, m = point
    flat = f"SELECT unnest(flatten(code)) AS c, unnest(flatten(val)) AS v FROM {source}"
    len_ = "list_sum(list_transform({}, lambda c: len(c)))"
    return {
        "total codes": [f"SELECT sum(len(flatten(code))) FROM {source}", f"SELECT sum({len_.format('code')}) FROM {source}",
                        f"SELECT sum(len(c)) FROM (SELECT unnest(code) AS c FROM {source})"],
        "top 5 codes": [f"SELECT c, count(*) AS n FROM (SELECT unnest(flatten(code)) AS c FROM {source}) GROUP BY c ORDER BY n DESC, c LIMIT 5"],
        "patients with a code": [
            f"SELECT count(*) FROM {source} WHERE list_contains(flatten(code), {code}::USMALLINT)",
            f"SELECT count(*) FROM {source} WHERE len(list_filter(code, lambda c: list_contains(c, {code}::USMALLINT))) > 0",
        ],
        "sum of means per event": [
            f"SELECT sum(list_sum(list_transform(val, lambda v: list_avg(v)))) FROM {source}",
            f"SELECT sum(list_avg(v)) FROM (SELECT unnest(val) AS v FROM {source})",
        ],
        "mean value of a code": [f"SELECT avg(v) FROM ({flat}) WHERE c = {code}"],
        "sum of val * 2 + 1": [
            f"SELECT sum(v::DOUBLE * 2 + 1) FROM (SELECT unnest(flatten(val)) AS v FROM {source})",
            f"SELECT sum(list_sum(list_transform(flatten(val), lambda v: v::DOUBLE * 2 + 1))) FROM {source}",
        ],
        "codes in the last 10 events": [
            f"SELECT sum({len_.format('code[-10:]')}) FROM {source}",
            f"SELECT sum(len(flatten(code[-10:]))) FROM {source}",
        ],
        "sum of maxima per patient": [
            f"SELECT sum(list_max(flatten(val))) FROM {source}",
            f"SELECT sum(list_max(list_transform(val, lambda v: list_max(v)))) FROM {source}",
        ],
        "one point": [f"SELECT code[{e + 1}][{m + 1}] FROM {source} LIMIT 1 OFFSET {p}"],
    }


def polars(code, point):
    p, e, m = point
    c, v = pl.col("code"), pl.col("val")
    x = pl.element()
    flat = lambda f: f.select(c.explode().explode(), v.explode().explode())
    return {
        "total codes": [lambda f: f.select(c.explode().list.len().sum()), lambda f: f.select(c.list.eval(x.list.len()).list.sum().sum())],
        "top 5 codes": [
            lambda f: f.select(c.explode().explode()).filter(c.is_not_null()).group_by("code").agg(pl.len().alias("n")).sort(["n", "code"], descending=[True, False]).head(5),
        ],
        "patients with a code": [
            lambda f: f.select(c.list.eval(x.list.contains(pl.lit(code, pl.UInt16))).list.any().sum()),
            lambda f: f.select(c.list.eval(x.explode()).list.contains(pl.lit(code, pl.UInt16)).sum()),
        ],
        "sum of means per event": [lambda f: f.select(v.explode().list.mean().cast(pl.Float64).sum())],
        "mean value of a code": [lambda f: flat(f).filter(c == code).select(v.cast(pl.Float64).mean())],
        "sum of val * 2 + 1": [
            lambda f: f.select((v.explode().explode().cast(pl.Float64) * 2 + 1).sum()),
            lambda f: f.select((v.explode().explode() * 2 + 1).cast(pl.Float64).sum()),
        ],
        "codes in the last 10 events": [lambda f: f.select(c.list.tail(10).explode().list.len().sum())],
        "sum of maxima per patient": [lambda f: f.select(v.list.eval(x.list.max()).list.max().cast(pl.Float64).sum()),
                                      lambda f: f.select(v.list.eval(x.explode()).list.max().cast(pl.Float64).sum())],
        "one point": [lambda f: f.slice(p, 1).select(c.list.get(e).list.get(m))],
    }


def numbers(rows):
    return [math.nan if value is None else float(value) for row in rows for value in row]


def best(rounds, ways, ask):
    """Returns the seconds and the answer of the fastest of several spellings of a query."""
    found = None
    for way in ways:
        try:
            times = [seconds(lambda: ask(way)) for _ in range(rounds)]
        except Exception as e:
            print(f"left out: {way if isinstance(way, str) else 'a way of Polars'}: {str(e).splitlines()[0]}", file=sys.stderr)
            continue
        took = min(t for t, _ in times)
        if found is None or took < found["execution"]:
            found = {"execution": took, "planning": 0.0, "answer": numbers(times[-1][1])}
    return found


def ask_duck(rounds, code, point, parquet, memory):
    con = duckdb.connect()
    con.execute(f"SET threads = {THREADS}")
    source = f"'{parquet}'"
    if memory:
        con.execute(f"CREATE TABLE p AS SELECT * FROM {source}")
        source = "p"
    out = {}
    for name, ways in duck(code, point, source).items():
        def prepared(sql):
            con.execute(f"PREPARE q AS {sql}")
            return con.execute("EXECUTE q").fetchall()

        if not memory:
            out[name] = best(rounds, ways, lambda sql: con.execute(sql).fetchall())
            continue
        # The query is planned before its execution is timed.
        found = None
        for sql in ways:
            try:
                planning = min(seconds(lambda: con.execute(f"PREPARE q AS {sql}"))[0] for _ in range(rounds))
                one = best(rounds, ["EXECUTE q"], lambda q: con.execute(q).fetchall())
            except duckdb.Error as e:
                print(f"left out: {sql}: {str(e).splitlines()[0]}", file=sys.stderr)
                continue
            if one and (found is None or one["execution"] < found["execution"]):
                found = {**one, "planning": planning}
        out[name] = found
    return out


def ask_polars(rounds, code, point, parquet, memory):
    frame = pl.read_parquet(parquet).rechunk() if memory else None
    out = {}
    for name, ways in polars(code, point).items():
        if memory:
            both = [(way, lazy) for way in ways for lazy in (False, True)]
            ask = lambda w: (w[0](frame.lazy()).collect() if w[1] else w[0](frame)).rows()
        else:
            both = [(way, engine) for way in ways for engine in ("in-memory", "streaming")]
            ask = lambda w: w[0](pl.scan_parquet(parquet)).collect(engine=w[1]).rows()
        out[name] = best(rounds, both, ask)
    return out


def agree(name, found, expected, who):
    found, expected = ([math.nan if v is None else v for v in answer] for answer in (found, expected))
    if len(found) != len(expected):
        raise SystemExit(f"{name}: {who} says {found}, Serrate {expected}")
    for a, b in zip(found, expected):
        if not (math.isclose(a, b, rel_tol=TOLERANCE) or (math.isnan(a) and math.isnan(b))):
            raise SystemExit(f"{name}: {who} says {found}, Serrate {expected}")


def geometric(ratios):
    return math.exp(sum(math.log(r) for r in ratios) / len(ratios))


def show(title, ours, peers, total):
    """Prints a table of milliseconds, and of how many times as fast Serrate is as the fastest peer."""
    took = lambda answer: (answer["execution"] + (answer["planning"] if total else 0.0)) * 1e3
    shown = lambda ms: f"{ms:.2f}" if ms >= 0.1 else f"{ms:.3f}"
    rows, ratios = [], []
    for name, own in ours.items():
        theirs = {who: answers[name] for who, answers in peers.items() if answers.get(name)}
        for who, answer in theirs.items():
            agree(name, answer["answer"], own["answer"], who)
        fastest = min(took(a) for a in theirs.values())
        ratios.append(fastest / took(own))
        cells = [shown(took(theirs[who])) if who in theirs else "-" for who in peers]
        rows.append([name, shown(took(own)), f"{own['planning'] * 1e3:.2f}", *cells, f"{ratios[-1]:.1f}"])
    rows.append(["geometric mean", "", "", *["" for _ in peers], f"{geometric(ratios):.1f}"])
    print(f"### {title}\n")
    table(["ms", "**Serrate**", "planning", *peers, "times as fast"], rows)
    return ratios


def main():
    args = arguments()
    nrt, parquet, code, point = files(args.data, args.work)
    command = ["cargo", "bench", "--quiet", "--bench", "questions", "--"]
    options = ["--code", code, "--point", ",".join(map(str, point)), "--rounds", args.rounds, "--threads", THREADS]
    rust = lambda who, place, file: run_json(*command, who, place, file, *options, target=args.bin.parent)
    print(f"## Nine questions about {args.data.stem}\n")
    print(f"{machine()}; DuckDB {duckdb.__version__}, Polars {pl.__version__}; {THREADS} threads; best of {args.rounds}.\n")
    memory = {
        "DuckDB": ask_duck(args.rounds, code, point, parquet, True),
        "Polars": ask_polars(args.rounds, code, point, parquet, True),
        "DataFusion": rust("datafusion", "memory", parquet),
    }
    show("In memory", rust("serrate", "memory", parquet), memory, False)
    stored = {
        "DuckDB": ask_duck(args.rounds, code, point, parquet, False),
        "Polars": ask_polars(args.rounds, code, point, parquet, False),
        "DataFusion": rust("datafusion", "file", parquet),
    }
    show("From Parquet", rust("serrate", "file", parquet), stored, True)
    show("Serrate from .nrt, the others from Parquet", rust("serrate", "file", nrt), stored, True)


if __name__ == "__main__":
    main()
