"""Runs random statements in DuckDB and in Serrate on the same tables, and compares the results.

    python tests/interop/duckdb_statements.py --serrate target/release/serrate --seed 1 --statements 100000

A world has three random tables, in memory or in one or several Parquet or Arrow files, and a random number of
partitions and size of batches. A statement whose results differ is reduced to a small one and printed with the rows of
its tables (`--report DIR` keeps the tables). EXPLAINED lists differences that are intended. Statements that one of the
two refuses are counted. The second way compares statements and results that `tests/laws` has written:

    SERRATE_LAWS_EXPORT=DIR SERRATE_LAWS_STATEMENTS=600 cargo test --test laws other_engines
    python tests/interop/duckdb_statements.py --answers DIR

Needs the packages in requirements.txt.
"""

import argparse
import collections
import datetime
import decimal
import json
import math
import pathlib
import random
import re
import subprocess
import sys
import tempfile
import threading
import time

import duckdb
import pyarrow as pa
import pyarrow.ipc
import pyarrow.parquet as pq

from duckdb_grammar import Grammar, spelling, table

# Patterns of reduced statements whose results differ on purpose, and the reason.
EXPLAINED = [
    (r"SIMILAR TO", "a dot is itself in patterns of SIMILAR TO, as in the standard; DuckDB takes regular expressions"),
    (r"array_to_string", "a list of NULL alone is an empty text, as in PostgreSQL, and NULL in DuckDB"),
    (r"= ANY\(", "= ANY over a NULL list is NULL here, as in PostgreSQL, and false in DuckDB"),
    (r"levenshtein", "levenshtein counts characters here, as in PostgreSQL, and bytes in DuckDB"),
    (r"list_concat", "list_concat of NULL lists alone is NULL here, and an empty list in DuckDB"),
    (r"% 2\.00", "a decimal % a number with a point is a float here, and a decimal in DuckDB"),
    (r"TRY_CAST\(\(CAST\((.*DECIMAL|r\d+\.n AS VARCHAR)", "text with a point is no integer here, as in PostgreSQL; DuckDB rounds it"),
    (r"DISTINCT.*WHERE (NULL|false)", "DuckDB returns a row of SELECT DISTINCT (query) where WHERE admits none"),
    (r"atan2", "nullif and CASE lose the sign of a zero, which only atan2 shows"),
    (r"covar_pop|regr_|corr\(", "the last digits of covariances differ"),
]

PER_WORLD = 100
TIMEOUT = 30


class Ended(Exception):
    """The process of Serrate ended or was killed."""


class Serrate:
    """A process that runs statements one by one."""

    def __init__(self, binary):
        self.binary, self.made, self.number = binary, [], 0
        self.start()

    def start(self):
        self.errors = tempfile.TemporaryFile()
        self.process = subprocess.Popen(
            [self.binary, "-i", "-f", "arrow"], stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=self.errors
        )
        self.read = 0

    def results(self):
        """Yields the tables of a statement, up to the table that marks its end."""
        out = self.process.stdout
        # The shell prints a greeting before its first result.
        while out.peek(1)[:1] == b"s":
            out.readline()
        last = f"over{self.number}"
        while True:
            if not out.peek(1):
                raise Ended
            found = pa.ipc.open_stream(out).read_all()
            if found.column_names == ["eos"] and found.column(0)[0].as_py() == last:
                return
            yield found

    def run(self, sql):
        """Returns the table of a statement, or its error message."""
        self.number += 1
        self.process.stdin.write(f"{sql};\nSELECT 'over{self.number}' AS eos;\n".encode())
        timer = threading.Timer(TIMEOUT, self.process.kill)
        timer.start()
        try:
            self.process.stdin.flush()
            found = list(self.results())
        except (Ended, OSError, pa.ArrowInvalid) as e:
            ended = self.process.poll() is not None or isinstance(e, Ended)
            # After an error in the middle of a result, the stream is incomplete.
            time.sleep(0.05)
            error = self.error()
            self.end()
            self.start()
            for sql in self.made:
                self.run(sql)
            return error if "error:" in error and not ended else f"the process ended: {e} {error[-300:]}"
        finally:
            timer.cancel()
        error = self.error()
        return found[-1] if found else error

    def error(self):
        self.errors.seek(self.read)
        text = self.errors.read().decode(errors="replace")
        self.read += len(text.encode())
        return text

    def make(self, sql):
        """Runs a statement, and records it for processes that replace this one."""
        self.made.append(sql)
        found = self.run(sql)
        if isinstance(found, str) and "error:" in found:
            raise ValueError(f"{sql}\n{found}")

    def end(self):
        self.process.kill()
        self.process.wait()


def value(v):
    """Returns a value in a form that both engines share: dates as times, times without a zone."""
    if isinstance(v, list):
        return [value(x) for x in v]
    if isinstance(v, dict):
        return [value(x) for x in v.values()]
    if isinstance(v, datetime.datetime):
        return v.replace(tzinfo=None)
    if isinstance(v, datetime.date):
        return datetime.datetime(v.year, v.month, v.day)
    return v


def key(v):
    """Returns equal strings for equal values. Floats have twelve digits, because the order of additions differs."""
    if isinstance(v, list):
        return "[" + ", ".join(map(key, v)) + "]"
    if isinstance(v, bool) or v is None:
        return str(v)
    if isinstance(v, int) and abs(v) > 1 << 52:
        return str(v)
    if isinstance(v, (int, float, decimal.Decimal)):
        return "nan" if math.isnan(v) else f"{float(v) + 0.0:.12g}"
    return {"NaN": "nan", "inf": "inf", "-inf": "-inf"}.get(v, repr(v))


def lines(rows, ordered=False):
    out = [" | ".join(map(key, row)) for row in rows]
    return out if ordered else sorted(out)


def rows(found):
    columns = [[value(v) for v in column.to_pylist()] for column in found.columns]
    return list(zip(*columns))


def message(error):
    """Returns the part of an error message that is the same for errors of one kind."""
    text = error.strip().split("\n")[0]
    if "there is no function" in text or "Invalid function" in text:
        return text[:110]
    return re.sub(r"[0-9]+", "N", re.sub(r"^error: (line \d+: )?|'[^']*'", "", text))[:110]


def duck(tables):
    """Returns a DuckDB connection with the tables, which sorts NULL like Serrate."""
    out = duckdb.connect(config={"threads": 1})
    out.execute("SET default_null_order='nulls_last_on_asc_first_on_desc'")
    for name, rows in tables.items():
        out.register(f"_{name}", rows)
        out.execute(f"CREATE TABLE {name} AS SELECT * FROM _{name}")
    return out


class World:
    """Three tables, in DuckDB and in Serrate."""

    def __init__(self, seed, engine, folder):
        rnd = random.Random(seed)
        self.tables = {f"t{i}": table(rnd, rnd.choice([0, 1, 8, 12, 15])) for i in range(3)}
        self.duck = duck(self.tables)
        self.engine, engine.made = engine, []
        source, parts = rnd.choice(["memory", "memory", "parquet", "parquet", "arrow"]), rnd.choice([1, 3])
        engine.make(f"SET datafusion.execution.target_partitions = {rnd.choice([1, 2, 4])}")
        engine.make(f"SET datafusion.execution.batch_size = {rnd.choice([1, 3, 8192])}")
        for name, rows in self.tables.items():
            at = pathlib.Path(folder) / name
            at.mkdir(parents=True, exist_ok=True)
            for old in at.iterdir():
                old.unlink()
            n = len(rows)
            for i in range(parts):
                part = rows.slice(n * i // parts, n * (i + 1) // parts - n * i // parts)
                if source == "arrow":
                    with pa.ipc.new_file(at / f"{i}.arrow", part.schema) as file:
                        file.write_table(part, max_chunksize=4)
                else:
                    pq.write_table(part, at / f"{i}.parquet", row_group_size=5)
            engine.make(f"DROP TABLE IF EXISTS {name}")
            if source == "memory":
                engine.make(f"CREATE TABLE {name} AS SELECT * FROM '{at}/'")
            else:
                engine.make(f"CREATE EXTERNAL TABLE {name} STORED AS {source.upper()} LOCATION '{at}/'")
        self.grammar = Grammar(seed, list(self.tables))

    def compare(self, sql, ordered):
        """Runs a statement in both engines. Returns the outcome and its details."""
        try:
            theirs = rows(self.duck.execute(spelling(sql, True)).to_arrow_table())
        except (duckdb.Error, pa.ArrowInvalid, ValueError, OverflowError) as e:
            return "refused by DuckDB", message(str(e))
        found = self.engine.run(spelling(sql, False))
        if isinstance(found, str):
            return ("ended" if "process ended" in found else "refused by Serrate"), message(found)
        ours = rows(found)
        a, b = lines(ours, ordered), lines(theirs, ordered)
        return ("same", None) if a == b else ("different", (a, b))

    def smallest(self, statement, ordered, like=("different", None), tries=250):
        """Returns a reduced statement that still has the outcome `like`."""
        found = True
        while found and tries > 0:
            found = False
            for other in statement.smaller():
                tries -= 1
                if tries <= 0:
                    break
                what, details = self.compare(str(other), ordered)
                if what == like[0] and like[1] in (None, details):
                    statement, found = other, True
                    break
        return statement

    def script(self, sql):
        """Returns SQL comments with the rows of the tables that a statement names."""
        out = []
        for name in self.tables:
            if re.search(rf"\b{name}\b", sql):
                used = [c for c in self.tables[name].column_names if re.search(rf"\b{c}\b", sql)]
                out.append(f"-- {name}({', '.join(used)}):")
                out += [f"--   {row}" for row in self.tables[name].select(used).to_pylist()]
        return "\n".join(out)


def explained(sql):
    """Returns why the difference of a reduced statement is intended, or `None`."""
    return next((reason for pattern, reason in EXPLAINED if re.search(pattern, sql)), None)


def generate(args):
    counts, refused, example = collections.Counter(), collections.Counter(), {}
    done, seed, started, shown = 0, args.seed, time.time(), collections.Counter()
    folder = args.report or tempfile.mkdtemp()
    engine = Serrate(args.serrate)
    while done < args.statements and time.time() - started < args.seconds:
        world = World(seed, engine, folder)
        for _ in range(min(PER_WORLD, args.statements - done)):
            statement, ordered = world.grammar.statement()
            what, details = world.compare(str(statement), ordered)
            done += 1
            if what == "different":
                small = world.smallest(statement, ordered)
                _, (ours, theirs) = world.compare(str(small), ordered)
                reason = explained(str(small))
                what = "explained" if reason else what
                if reason:
                    refused[f"explained: {reason}"] += 1
                else:
                    print(f"-- world {seed}\n{spelling(str(small), False)};\n{spelling(str(small), True)};\n{world.script(str(small))}")
                    print(f"  serrate: {len(ours)} rows {[r for r in ours if r not in theirs][:4] or ours[:6]}")
                    print(f"  duckdb:  {len(theirs)} rows {[r for r in theirs if r not in ours][:4] or theirs[:6]}", flush=True)
                    shown[what] += 1
            elif details:
                refused[f"{what}: {details}"] += 1
                if args.examples and f"{what}: {details}" not in example:
                    small = world.smallest(statement, ordered, (what, details))
                    example[f"{what}: {details}"] = spelling(str(small), "DuckDB" in what)
                if what == "ended":
                    print(f"-- world {seed}: {details}\n{statement}", flush=True)
            counts[what] += 1
        seed += 1
        if seed % 20 == 0:
            print(f"# {done} statements after {time.time() - started:.0f} s: {dict(counts)}", flush=True)
    engine.end()
    for text, n in refused.most_common(60):
        print(f"{n:6} {text}")
        if args.examples and text in example:
            print(f"         {example[text]}")
    print(f"{done} statements in {time.time() - started:.0f} s: {dict(counts)}")
    return counts["different"] + counts["ended"]


def answers(folder):
    """Compares the rows of Serrate that `tests/laws` has written with those of DuckDB."""
    same = differences = 0
    refused = collections.Counter()
    micros = lambda v: [micros(x) for x in v] if isinstance(v, list) else (
        (v - datetime.datetime(1970, 1, 1)) // datetime.timedelta(microseconds=1) if isinstance(v, datetime.datetime) else v
    )
    for world in sorted(pathlib.Path(folder).iterdir(), key=lambda p: int(p.name)):
        engine = duckdb.connect()
        for file in world.glob("*.parquet"):
            engine.sql(f"CREATE TABLE {file.stem} AS SELECT * FROM '{file}'")
        for line in (world / "statements.jsonl").read_text().splitlines():
            statement = json.loads(line)
            try:
                found = [[micros(value(v)) for v in row] for row in engine.sql(statement["sql"]).fetchall()]
            except duckdb.Error as e:
                refused[message(str(e))] += 1
                continue
            ours, theirs = lines(statement["rows"]), lines(found)
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
    for text, n in refused.most_common(12):
        print(f"refused by DuckDB {n} times: {text}")
    print(f"{same} answers are the same, {differences} are not, {sum(refused.values())} refused")
    return differences


def main():
    options = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    options.add_argument("--serrate", help="the command of Serrate")
    options.add_argument("--seed", type=int, default=1)
    options.add_argument("--statements", type=int, default=1000)
    options.add_argument("--seconds", type=float, default=math.inf, help="ends after this time")
    options.add_argument("--report", help="a folder for the Parquet files of the last world")
    options.add_argument("--examples", action="store_true", help="a statement for every kind of refusal")
    options.add_argument("--answers", help="compares a folder that tests/laws wrote")
    args = options.parse_args()
    if bool(args.serrate) == bool(args.answers):
        options.error("one of --serrate and --answers")
    sys.exit(1 if (answers(args.answers) if args.answers else generate(args)) else 0)


if __name__ == "__main__":
    main()
