"""Compares functions on the lists of a row with DuckDB: groups, windows over time, rolling windows, slopes, dates.

Both engines hold the same `ROWS` rows in memory. A row has lists of times, of values, of values with gaps, of codes,
of visits (each a list of codes), and of a few times at which windows end. If DuckDB has no function for lists, it
unnests them and groups the result by row, as its users do. Each query returns one number, and both engines must return
the same one. The floor is the time in which one thread copies as many bytes as the columns and the lists of results
have.
"""

import math
import re
import subprocess

import duckdb
import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from common import arguments, machine, seconds, table

ROWS, MEAN, LOOKS, SEED = 20_000, 300, 20, 7

# Bytes per element of each column. A visit has a time and, on average, `VISIT` codes.
VISIT = 10
WIDTHS = {"t": 8, "day": 8, "x": 8, "gaps": 8, "code": 4, "at": 8, "visits": 4, "seen": 8 / VISIT}


def before(name, values, how, theirs, answer="{}", total="sum(s)", more=""):
    """Returns a query about the 30 days before each of 20 times. DuckDB has no row for a time without values."""
    ours = f"ragged_window({values}, t, at, '{how}', before => INTERVAL '30 days'{more})"
    return (
        f"{name} of 30 days before 20 times", f"sum(ragged_sum({answer.format(ours)}))",
        f"""SELECT {total} FROM (SELECT {theirs} AS s FROM a JOIN e ON a.id = e.id
            AND e.t > a.seen - INTERVAL 30 DAY AND e.t <= a.seen GROUP BY a.id, a.seen)""",
        ("t", "x", "at"), "looks",
    )


def moving(name, how, theirs, more=""):
    """Returns a query about the 30 days up to each time."""
    return (
        f"{name} of 30 days up to each time",
        f"sum(ragged_sum(ragged_window(x, t, t, '{how}', before => INTERVAL '30 days', closed => '[]'{more})))",
        f"""SELECT sum(s) FROM (SELECT {theirs} OVER (PARTITION BY id ORDER BY t
            RANGE BETWEEN INTERVAL 30 DAY PRECEDING AND CURRENT ROW) AS s FROM e)""",
        ("t", "x"), "elements",
    )


def rolling(name, how, theirs, values="x", answer="{}", total="sum(m)"):
    """Returns a query about each value and the six values before it."""
    ours = f"ragged_rolling({values}, 7, '{how}')"
    return (
        f"{name} of 7 values", f"sum(ragged_sum({answer.format(ours)}))",
        f"""SELECT {total} FROM (SELECT CASE WHEN count(*) OVER w = 7 THEN {theirs} OVER w END AS m FROM e
            WINDOW w AS (PARTITION BY id ORDER BY i ROWS 6 PRECEDING))""",
        ("x",), "elements",
    )


def part(name):
    return (
        f"{name} of each time", f"sum(ragged_sum({name}(t)))",
        f"SELECT sum(list_sum(list_transform(t, lambda v: {name}(v)))) FROM r", ("t",), "elements",
    )


# A query: its name, the expression for Serrate, the statement for DuckDB, the columns that it reads, and the key in
# `floors` of the number of its results of 8 bytes. `e` and `g` have a row per element (`g` has the values with gaps),
# `v` has a row per visit, and `a` has a row per time at which a window ends.
QUESTIONS = [
    ("group by a code, sums", "sum(ragged_sum(ragged_sum(ragged_group(x, code), -1)))",
     "SELECT sum(s) FROM (SELECT sum(x) AS s FROM e GROUP BY id, code)",
     ("x", "code"), "codes of rows"),
    ("counts of a month", "sum(ragged_count(ragged_group_keys(date_trunc('month', t))))",
     "SELECT count(*) FROM (SELECT DISTINCT id, date_trunc('month', t) FROM e)",
     ("t",), "months of rows"),
    ("sum of 30 days before 20 times", "sum(ragged_sum(ragged_window(x, t, at, 'sum', before => INTERVAL '30 days')))",
     """SELECT sum(s) FROM (SELECT sum(e.x) AS s FROM a JOIN e ON a.id = e.id AND e.t > a.seen - INTERVAL 30 DAY
        AND e.t <= a.seen GROUP BY a.id, a.seen)""",
     ("t", "x", "at"), "looks"),
    ("last value before 20 times", "sum(ragged_sum(ragged_asof(x, t, at)))",
     "SELECT sum(e.x) FROM a ASOF JOIN e ON a.id = e.id AND a.seen >= e.t",
     ("t", "x", "at"), "looks"),
    ("positions of 20 times", "sum(ragged_sum(ragged_searchsorted(t, at)))",
     "SELECT sum(i) FROM a ASOF JOIN e ON a.id = e.id AND a.seen > e.t",
     ("t", "at"), "looks"),
    ("mean of 7 values", "sum(ragged_sum(ragged_rolling(x, 7, 'mean')))",
     """SELECT sum(m) FROM (SELECT CASE WHEN count(*) OVER w = 7 THEN avg(x) OVER w END AS m FROM e
        WINDOW w AS (PARTITION BY id ORDER BY i ROWS 6 PRECEDING))""",
     ("x",), "elements"),
    ("median of 7 values", "sum(ragged_sum(ragged_rolling(x, 7, 'median')))",
     """SELECT sum(m) FROM (SELECT CASE WHEN count(*) OVER w = 7 THEN median(x) OVER w END AS m FROM e
        WINDOW w AS (PARTITION BY id ORDER BY i ROWS 6 PRECEDING))""",
     ("x",), "elements"),
    ("0.9 quantile of 101 values", "sum(ragged_sum(ragged_rolling(x, 101, 'quantile', q => 0.9)))",
     """SELECT sum(m) FROM (SELECT CASE WHEN count(*) OVER w = 101 THEN quantile_cont(x, 0.9) OVER w END AS m FROM e
        WINDOW w AS (PARTITION BY id ORDER BY i ROWS 100 PRECEDING))""",
     ("x",), "elements"),
    ("pairs of neighbours", "sum(ragged_lengths(ragged_ngrams(code, 2)))",
     """SELECT count(n) FROM (SELECT lead(code) OVER (PARTITION BY id ORDER BY i) AS n FROM e)""",
     ("code",), "elements"),
    ("slope of values over time", "sum(ragged_regr_slope(x, day))",
     "SELECT sum(s) FROM (SELECT regr_slope(x, day) AS s FROM e GROUP BY id)",
     ("x", "day"), "rows"),
    ("correlation with time", "sum(ragged_corr(x, day))",
     "SELECT sum(s) FROM (SELECT corr(x, day) AS s FROM e GROUP BY id)",
     ("x", "day"), "rows"),
    ("year of each time", "sum(ragged_sum(year(t)))",
     "SELECT sum(list_sum(list_transform(t, lambda v: year(v)))) FROM r",
     ("t",), "elements"),
    ("days between two lists", "sum(ragged_sum(date_diff('day', t, TIMESTAMP '2030-01-01')))",
     "SELECT sum(list_sum(list_transform(t, lambda v: date_diff('day', v, TIMESTAMP '2030-01-01')))) FROM r",
     ("t",), "elements"),
    ("day of each time, text", "sum(ragged_count(strftime(t, '%Y-%m')))",
     "SELECT sum(len(list_transform(t, lambda v: strftime(v, '%Y-%m')))) FROM r",
     ("t",), "elements"),
    before("any", "x > 1", "any", "bool_or(x > 1)", total="count_if(s)"),
    before("not all", "x > -1", "all", "bool_and(x > -1)", answer="ragged_not({})", total="count_if(NOT s)"),
    before("minimum", "x", "min", "min(x)"),
    before("maximum", "x", "max", "max(x)"),
    before("first", "x", "first", "arg_min(x, e.t)"),
    before("last", "x", "last", "arg_max(x, e.t)"),
    before("median", "x", "median", "median(x)"),
    before("0.9 quantile", "x", "quantile", "quantile_cont(x, 0.9)", more=", q => 0.9"),
    ("list of codes before 20 times", "sum(ragged_sum(ragged_asof(visits, seen, at)))",
     "SELECT sum(list_sum(v.codes)) FROM a ASOF JOIN v ON a.id = v.id AND a.seen >= v.seen",
     ("visits", "seen", "at"), "looks"),
    ("sum of 7 values", "sum(ragged_sum(ragged_rolling(x, 7, 'sum')))",
     """SELECT sum(m) FROM (SELECT CASE WHEN count(*) OVER w = 7 THEN sum(x) OVER w END AS m FROM e
        WINDOW w AS (PARTITION BY id ORDER BY i ROWS 6 PRECEDING))""",
     ("x",), "elements"),
    moving("sum", "sum", "sum(x)"),
    moving("mean", "mean", "avg(x)"),
    moving("0.9 quantile", "quantile", "quantile_cont(x, 0.9)", more=", q => 0.9"),
    ("last value, filled forward", "sum(ragged_sum(ragged_ffill(gaps)))",
     """SELECT sum(f) FROM (SELECT last_value(gap IGNORE NULLS) OVER (PARTITION BY id ORDER BY i
        ROWS UNBOUNDED PRECEDING) AS f FROM g)""",
     ("gaps",), "elements"),
    ("age of the last value", "sum(ragged_sum(day - ragged_ffill(day + 0 * gaps)))",
     """SELECT sum(day - f) FROM (SELECT day, last_value(CASE WHEN gap IS NOT NULL THEN day END IGNORE NULLS)
        OVER (PARTITION BY id ORDER BY i ROWS UNBOUNDED PRECEDING) AS f FROM g)""",
     ("gaps", "day"), "elements"),
    ("triples of neighbours", "sum(ragged_lengths(ragged_ngrams(code, 3)))",
     "SELECT count(n) FROM (SELECT lead(code, 2) OVER (PARTITION BY id ORDER BY i) AS n FROM e)",
     ("code",), "elements"),
    ("histogram of codes", "sum(ragged_max(ragged_count(ragged_group(code, code), -1)))",
     "SELECT sum(list_max(map_values(list_histogram(code)))) FROM r",
     ("code",), "codes of rows"),
    ("pivot to eight codes", "sum(ragged_sum(ragged_sum(ragged_group(x, code, [0, 1, 2, 3, 4, 5, 6, 7]), -1)))",
     f"""SELECT sum({" + ".join(f"coalesce(c{i}, 0)" for i in range(8))})
         FROM (SELECT {", ".join(f"sum(x) FILTER (code = {i}) AS c{i}" for i in range(8))} FROM e GROUP BY id)""",
     ("x", "code"), "codes of rows"),
    ("means of all months", """sum(ragged_sum(ragged_mean(ragged_group(x, date_trunc('month', t),
        generate_series(date_trunc('month', ragged_min(t)), date_trunc('month', ragged_max(t)),
        INTERVAL '1 month')), -1)))""",
     """SELECT sum(m) FROM (SELECT avg(e.x) AS m FROM (SELECT id, unnest(generate_series(
        date_trunc('month', list_min(t)), date_trunc('month', list_max(t)), INTERVAL 1 MONTH)) AS month FROM r) AS c
        LEFT JOIN e ON c.id = e.id AND c.month = date_trunc('month', e.t) GROUP BY c.id, c.month)""",
     ("x", "t"), "months of rows"),
    ("intercept over time", "sum(ragged_regr_intercept(x, day))",
     "SELECT sum(s) FROM (SELECT regr_intercept(x, day) AS s FROM e GROUP BY id)",
     ("x", "day"), "rows"),
    ("month that begins each time", "sum(epoch(ragged_max(date_trunc('month', t))))",
     "SELECT sum(epoch(list_max(list_transform(t, lambda v: date_trunc('month', v))))) FROM r",
     ("t",), "elements"),
    ("week of each time, time_bucket", "sum(epoch(ragged_max(time_bucket(INTERVAL '7 days', t))))",
     "SELECT sum(epoch(list_max(list_transform(t, lambda v: time_bucket(INTERVAL 7 DAY, v))))) FROM r",
     ("t",), "elements"),
    ("hours between neighbours", "sum(ragged_sum(date_diff('hour', ragged_shift(t, 1), t)))",
     """SELECT sum(date_diff('hour', b, t)) FROM (SELECT t, lag(t) OVER (PARTITION BY id ORDER BY i) AS b
        FROM e)""",
     ("t",), "elements"),
    ("seconds since 1970", "sum(ragged_sum(epoch(t)))",
     "SELECT sum(list_sum(list_transform(t, lambda v: epoch(v)))) FROM r",
     ("t",), "elements"),
    *(part(name) for name in ("month", "week", "day", "dayofweek")),
    ("group by a code and a month, sums",
     "sum(ragged_sum(ragged_sum(ragged_group(x, ragged_zip('c', code, 'm', date_trunc('month', t))), -1)))",
     "SELECT sum(s) FROM (SELECT sum(x) AS s FROM e GROUP BY id, code, date_trunc('month', t))",
     ("x", "code", "t"), "elements"),
    before("count", "x", "count", "count(x)"),
    before("mean", "x", "mean", "avg(x)"),
    *(rolling(name, how, f"{how}(x)") for name, how in (("minimum", "min"), ("maximum", "max"), ("count", "count"))),
    ("milliseconds since 1970", "sum(ragged_max(epoch_ms(t)))",
     "SELECT sum(list_max(list_transform(t, lambda v: epoch_ms(v)))) FROM r",
     ("t",), "elements"),
    ("last day of the month of each time", "sum(epoch(ragged_max(last_day(t))))",
     "SELECT sum(epoch(list_max(list_transform(t, lambda v: last_day(v))))) FROM r",
     ("t",), "elements"),
    ("whole months up to 2030", "sum(ragged_sum(date_sub('month', t, TIMESTAMP '2030-01-01')))",
     "SELECT sum(list_sum(list_transform(t, lambda v: date_sub('month', v, TIMESTAMP '2030-01-01')))) FROM r",
     ("t",), "elements"),
    ("name of the day of each time", "sum(ragged_count(dayname(t)))",
     "SELECT sum(len(list_transform(t, lambda v: dayname(v)))) FROM r",
     ("t",), "elements"),
    ("name of the month of each time", "sum(ragged_count(monthname(t)))",
     "SELECT sum(len(list_transform(t, lambda v: monthname(v)))) FROM r",
     ("t",), "elements"),
    ("microseconds since 1970", "sum(ragged_max(epoch_us(t)) // 1000000)",
     "SELECT sum(list_max(list_transform(t, lambda v: epoch_us(v))) // 1000000) FROM r",
     ("t",), "elements"),
    *(part(name) for name in ("quarter", "hour", "minute", "second", "dayofyear", "isodow", "isoyear", "decade")),
    *(part(name) for name in ("century", "millennium", "millisecond", "microsecond")),
    ("lists of 30 days before 20 times", "sum(ragged_sum(ragged_window(x, t, at, before => INTERVAL '30 days')))",
     """SELECT sum(list_sum(s)) FROM (SELECT list(e.x) AS s FROM a JOIN e ON a.id = e.id
        AND e.t > a.seen - INTERVAL 30 DAY AND e.t <= a.seen GROUP BY a.id, a.seen)""",
     ("t", "x", "at"), "looks"),
    rolling("any", "any", "bool_or(x > 1)", values="x > 1", total="count_if(m)"),
    rolling("not all", "all", "bool_and(x > -1)", "x > -1", "ragged_not({})", "count_if(NOT m)"),
    rolling("first", "first", "first_value(x)"),
    rolling("last", "last", "last_value(x)"),
    ("nanoseconds since 1970", "sum(ragged_max(epoch_ns(t)) // 1000000000)",
     "SELECT sum(list_max(list_transform(t, lambda v: epoch_ns(v))) // 1000000000) FROM r",
     ("t",), "elements"),
]


def make_rows(path):
    rng = np.random.default_rng(SEED)
    lengths = rng.integers(MEAN // 3, MEAN * 5 // 3, ROWS)
    bounds = np.concatenate(([0], np.cumsum(lengths))).astype(np.int32)
    days = rng.exponential(3.0, bounds[-1])
    starts = np.repeat(np.cumsum(days)[bounds[:-1]] - days[bounds[:-1]], lengths)
    days = np.cumsum(days) - starts
    values = rng.normal(size=bounds[-1])
    codes = rng.integers(0, 40, bounds[-1]).astype(np.int32)
    missing = rng.random(bounds[-1]) < 0.3
    visits = np.concatenate([np.arange(a, b, VISIT) for a, b in zip(bounds, bounds[1:])])
    per_row = np.concatenate(([0], np.cumsum((lengths + VISIT - 1) // VISIT))).astype(np.int32)
    looks = np.sort(rng.uniform(0, MEAN * 3.0, (ROWS, LOOKS)), axis=1).reshape(-1)

    def lists(values, bounds):
        return pa.ListArray.from_arrays(pa.array(bounds), pa.array(values))

    of_visits = lists(codes, np.append(visits, bounds[-1]).astype(np.int32))

    def times(days):
        return pa.array((1_577_836_800_000_000 + days * 86_400e6).astype(np.int64)).cast(pa.timestamp("us"))

    columns = {
        "id": pa.array(np.arange(ROWS)),
        "t": lists(times(days), bounds),
        "day": lists(days, bounds),
        "x": lists(values, bounds),
        "code": lists(codes, bounds),
        "gaps": lists(pa.array(values, mask=missing), bounds),
        "visits": lists(of_visits, per_row),
        "seen": lists(times(days[visits]), per_row),
        "at": lists(times(looks), np.arange(0, ROWS * LOOKS + 1, LOOKS, dtype=np.int32)),
    }
    pq.write_table(pa.table(columns), path, compression="lz4")
    return int(bounds[-1])


def serrate(binary, path, rounds):
    """Returns the time and the answer of each query. One process runs all; the first run of a query is not counted."""
    lines = [f"CREATE TABLE r AS SELECT * FROM '{path}';"]
    for _, ours, *_ in QUESTIONS:
        lines += [f"SELECT {ours} AS answer FROM r;"] * (rounds + 1)
    done = subprocess.run(
        [binary, "--timing", "--format", "csv"], input="\n".join(lines), capture_output=True, text=True, check=False
    )
    if done.returncode:
        raise SystemExit(done.stderr)
    answers = [float(line) for line in done.stdout.split("\n") if re.fullmatch(r"-?[\d.]+(e-?\d+)?", line)]
    spent = [float(ms) / 1e3 for ms in re.findall(r"elapsed_ms=([\d.]+)", done.stderr)][-len(answers) :]
    each = rounds + 1
    found = []
    for i in range(len(QUESTIONS)):
        found.append((min(spent[i * each + 1 : (i + 1) * each]), answers[i * each]))
    return found


def by_duckdb(path, rounds):
    db = duckdb.connect()
    db.sql(f"CREATE TABLE r AS SELECT * FROM '{path}'")
    views = (
        "CREATE VIEW g AS SELECT id, unnest(day) AS day, unnest(gaps) AS gap,"
        " unnest(range(1, len(day) + 1)) AS i FROM r",
        "CREATE VIEW v AS SELECT id, unnest(seen) AS seen, unnest(visits) AS codes FROM r",
        "CREATE VIEW a AS SELECT id, unnest(\"at\") AS seen FROM r",
    )
    for view in views:
        db.sql(view)
    found = []
    for _, _, theirs, *_ in QUESTIONS:
        # DuckDB unnests all lists of a view, so the view has only the lists that the query reads.
        used = [c for c in ("t", "day", "x", "code") if re.search(rf"\b{c}\b", theirs)]
        lists = [f"unnest({c}) AS {c}" for c in used]
        if re.search(r"\bi\b", theirs):
            lists.append("unnest(range(1, len(x) + 1)) AS i")
        db.sql(f"CREATE OR REPLACE VIEW e AS SELECT {', '.join(['id', *lists])} FROM r")
        runs = [seconds(lambda: db.sql(theirs).fetchall()) for _ in range(rounds)]
        found.append((min(spent for spent, _ in runs), float(runs[0][1][0][0])))
    return found


def floors(path):
    """Returns the seconds in which one thread copies the bytes of each query."""
    db = duckdb.connect()
    counts = dict(zip(
        ("rows", "elements", "looks", "codes of rows", "months of rows"),
        db.sql(
            "SELECT count(*), sum(len(t)), sum(len(\"at\")), sum(len(list_distinct(code))),"
            f" sum(len(list_distinct(list_transform(t, lambda v: date_trunc('month', v))))) FROM '{path}'"
        ).fetchall()[0],
    ))
    read, written = np.ones(1 << 25), np.ones(1 << 25)
    copied = min(seconds(lambda: np.copyto(written, read))[0] for _ in range(9))
    per_byte = copied / (read.nbytes + written.nbytes)
    found = []
    for *_, columns, results in QUESTIONS:
        moved = sum(WIDTHS[c] * int(counts["looks" if c == "at" else "elements"]) for c in columns)
        found.append((moved + 8 * int(counts[results])) * per_byte)
    return found


def main():
    args = arguments()
    path = args.work / "within.parquet"
    leaves = make_rows(path)
    ours = serrate(args.bin / "serrate", path, args.rounds)
    theirs = by_duckdb(path, min(args.rounds, 3))
    rows = []
    for (name, *_), (mine, answer), (other, expected), floor in zip(QUESTIONS, ours, theirs, floors(path)):
        if not math.isclose(answer, expected, rel_tol=1e-6, abs_tol=1e-3):
            raise SystemExit(f"{name}: {answer} by Serrate, {expected} by DuckDB")
        rows.append([name, f"{mine * 1e3:.0f}", f"{floor * 1e3:.1f}", f"{other * 1e3:.0f}", f"{other / mine:.1f}"])
    print(f"{machine()}, DuckDB {duckdb.__version__}")
    print(f"{ROWS:,} rows, {leaves:,} elements; the least of {args.rounds} and {min(args.rounds, 3)} runs\n")
    table(["within each row", "Serrate, ms", "floor, ms", "DuckDB, ms", "times as fast"], rows)


if __name__ == "__main__":
    main()
