"""Kills every writer of Serrate at random moments, with SIGKILL.

After each kill, the target must have either all of its old contents or all of its new contents: the contents of a
file or a folder are compared with those of two runs that were not killed. Temporary leftovers may remain, under names
that begin with `.serrate-`; the next writer to the folder must remove them.

    cargo build --release
    python tests/interop/kills.py --serrate target/release/serrate --kills 200

Needs Python's standard library only. Prints a line per writer: how many kills hit the running writer, how often the
old and the new contents were found, how often a folder had a part of the new files, and how many kills left temporary
files.
"""

import argparse
import hashlib
import os
import random
import shutil
import subprocess
import sys
import tempfile
import time
from collections import Counter
from pathlib import Path

ROWS = 60_000
# The rows depend on the version of a target, so that the old and the new contents differ.
QUERY = (
    "SELECT value AS id, [value, {version}] AS x, value % 97 * {version} AS s "
    f"FROM generate_series(1, {ROWS})"
)


def copy(ending, options=""):
    def args(version):
        query = QUERY.format(version=version)
        return ["-c", f"COPY ({query}) TO 'out/x.{ending}' OPTIONS (overwrite true{options})"]

    return args


def output(ending, *format):
    return lambda version: ["-c", QUERY.format(version=version), *format, "-o", f"out/x.{ending}", "--overwrite"]


def convert(ending):
    return lambda version: ["convert", f"in/{version}.parquet", f"out/x.{ending}", "--overwrite"]


def dok(version):
    if version == 1:
        create = (
            "CREATE EXTERNAL TABLE t (i BIGINT UNSIGNED, v BIGINT) STORED AS DOK "
            "LOCATION 'out/x.safetensors' OPTIONS (shape '100000')"
        )
        rows = f"INSERT INTO t SELECT value, 1 FROM generate_series(0, {ROWS})"
        return ["-c", f"{create}; {rows}"]
    table = "CREATE EXTERNAL TABLE t STORED AS DOK LOCATION 'out/x.safetensors'"
    return ["-c", f"{table}; UPDATE t SET v = 2"]


def nrt(version):
    return ["generate", "--patients", "400", "--seed", str(version), "-o", "out/x.nrt", "--overwrite"]


def meds(version):
    return ["generate", "--patients", "400", "--seed", str(version), "--to", "meds", "-o", "out/x", "--overwrite"]


def batches(version):
    return ["batches", "in/meds", "--batch", "16", "--len", str(64 * version), "-o", "out/x", "--overwrite"]


def report(version):
    return ["report", f"in/{version}.parquet", "-o", "out/x.html", "--overwrite"]


def densify(version):
    return ["densify", f"in/{version}.parquet", "-o", "out/x.safetensors", "--overwrite"]


def tensorize(version):
    return ["convert", f"in/meds-{version}", "out/x", "--to", "meds-torch-data", "--overwrite"]


def features(target):
    def args(version):
        what = ["--prefix", "LAB//1", "--windows", "365d", "--aggregates", "count" if version == 1 else "mean"]
        if target.endswith(".parquet"):
            what += ["--form", "sparse"]
        return ["features", "in/meds", "--labels", "in/labels", *what, "-o", target, "--overwrite"]

    return args


def cohort(target):
    return lambda version: ["cohort", f"in/meds-{version}", "in/task.yaml", "-o", target, "--overwrite"]


def convert_folder(source, to):
    return lambda version: ["convert", f"in/{source}-{version}", "out/x", "--to", to, "--overwrite"]


def generate_folder(version):
    what = ["--patients", "400", "--seed", str(version), "--to", "parquet", "--shards", "4"]
    return ["generate", *what, "-o", "out/x", "--overwrite"]


def copy_batches(version):
    query = QUERY.format(version=version)
    return ["-c", f"COPY ({query}) TO 'out/x' STORED AS BATCHES OPTIONS (batch 4096, overwrite true)"]


def copy_dok(version):
    query = f"SELECT value AS i, value % 97 * {version} + 1 AS v FROM generate_series(0, {ROWS})"
    return ["-c", f"COPY ({query}) TO 'out/x.safetensors' STORED AS DOK OPTIONS (keys 'i', overwrite true)"]


def change_dok(change):
    """Changes a DOK file that holds the keys up to ROWS."""

    def args(version):
        if version == 1:
            return dok(1)
        table = "CREATE EXTERNAL TABLE t STORED AS DOK LOCATION 'out/x.safetensors'"
        return ["-c", f"{table}; {change}"]

    return args


# One file per statement, so that its contents do not depend on the number of partitions.
ONE_FILE = (
    "SET datafusion.execution.target_partitions = 1; "
    "SET datafusion.execution.minimum_parallel_output_files = 1; "
)


def add_file(ending):
    """Returns a COPY that adds a file to a folder. Version 2 adds a second file to that of version 1."""

    def args(version):
        query = QUERY.format(version=version).replace("[value", "value AS y, [value")
        if ending == "csv":
            query = query.replace(f"[value, {version}] AS x, ", "")
        return ["-c", f"{ONE_FILE}COPY ({query}) TO 'out/x/' STORED AS {ending}"]

    return args


def insert_file(ending):
    def args(version):
        if version == 1:
            return add_file("csv")(1) if ending == "csv" else ["-c", copy_plain(1, ending)]
        options = " OPTIONS (has_header true)" if ending == "csv" else ""
        table = f"CREATE EXTERNAL TABLE t STORED AS {ending.upper()} LOCATION 'out/x/'{options}"
        return ["-c", f"{ONE_FILE}{table}; INSERT INTO t SELECT value, value, 7 FROM generate_series(1, {ROWS})"]

    return args


def copy_plain(version, ending, options=""):
    query = f"SELECT value AS id, value % 5 AS k, {version} AS v FROM generate_series(1, {ROWS})"
    return f"{ONE_FILE}COPY ({query}) TO 'out/x/' STORED AS {ending}{options}"


def copy_partitions(version):
    return ["-c", copy_plain(version, "parquet", " PARTITIONED BY (k)")]


# Writers that add files with random names to a folder, one by one. The files are compared without their names, and a
# killed writer may leave only some of the new files.
ADDING = {
    "COPY to a folder, csv": add_file("csv"),
    "COPY to a folder, json": add_file("json"),
    "COPY to a folder, arrow": add_file("arrow"),
    "COPY to a folder, parquet": add_file("parquet"),
    "COPY PARTITIONED BY": copy_partitions,
    "INSERT into a folder": insert_file("csv"),
    "INSERT into a folder, parquet": insert_file("parquet"),
}

# Writers that replace several files of a folder. If they are killed while they move the files into place, the next
# writer to the folder, or the next reader of a MEDS folder, moves the rest.
MOVING = {
    "generate --to meds": meds,
    "generate to a folder": generate_folder,
    "convert files to .nrt": convert_folder("parts", "nrt"),
    "convert MEDS to .nrt": convert_folder("meds", "nrt"),
    "convert MEDS to .parquet": convert_folder("meds", "parquet"),
    "convert MEDS to one .nrt": lambda version: ["convert", f"in/meds-{version}", "out/x.nrt", "--overwrite"],
    "features to a folder": features("out/x/"),
    "features .safetensors": features("out/x.safetensors"),
    "cohort to a folder": cohort("out/x/"),
}


WRITERS = {
    "COPY .parquet": copy("parquet"),
    "COPY .arrow": copy("arrow"),
    "COPY .csv": copy("csv"),
    "COPY .json": copy("json"),
    "COPY .ndjson": copy("ndjson"),
    "COPY .nrt": copy("nrt"),
    "COPY .safetensors": copy("safetensors"),
    "-o .csv": output("csv"),
    "-o .ndjson": output("ndjson"),
    "convert .nrt": convert("nrt"),
    "convert .arrow": convert("arrow"),
    "convert .json": convert("json"),
    "convert .ndjson": convert("ndjson"),
    "convert .parquet": convert("parquet"),
    "convert to meds-torch-data": tensorize,
    "densify": densify,
    "convert .safetensors": convert("safetensors"),
    "features .parquet": features("out/x.parquet"),
    "cohort .parquet": cohort("out/x.parquet"),
    "-o .json": output("json"),
    "-o .arrow": output("arrow"),
    "-o .md": output("md", "-f", "markdown"),
    "COPY STORED AS BATCHES": copy_batches,
    "COPY STORED AS DOK": copy_dok,
    "UPDATE of a DOK file": dok,
    "INSERT into a DOK file": change_dok(f"INSERT INTO t SELECT value, 3 FROM generate_series({ROWS + 1}, 99999)"),
    "DELETE from a DOK file": change_dok("DELETE FROM t WHERE i % 2 = 0"),
    "generate .nrt": nrt,
    "batches": batches,
    "report": report,
    **MOVING,
    **ADDING,
}

# A task that labels each DIAGNOSIS//300 of a MEDS folder by whether another one follows within a year.
TASK = """
predicates:
  diagnosis:
    code: DIAGNOSIS//300
trigger: diagnosis
windows:
  input:
    start: null
    end: trigger
    start_inclusive: true
    end_inclusive: true
    index_timestamp: end
  target:
    start: trigger
    end: start + 365 days
    start_inclusive: false
    end_inclusive: true
    label: diagnosis
"""


class Place:
    def __init__(self, serrate, root):
        self.serrate, self.root = os.path.abspath(serrate), Path(root)
        (self.root / "in").mkdir()
        for version in (1, 2):
            query = QUERY.format(version=version)
            self.run(["-c", f"COPY ({query}) TO 'in/{version}.parquet'"])
            seed = ["--seed", str(version)]
            self.run(["generate", "--patients", "200", *seed, "--to", "meds", "-o", f"in/meds-{version}"])
        self.run(["generate", "--patients", "200", "--to", "meds", "-o", "in/meds"])
        for version in (1, 2):
            for part in range(4):
                query = QUERY.format(version=version + 2 * part)
                self.run(["-c", f"COPY ({query}) TO 'in/parts-{version}/{part}.parquet'"])
        (self.root / "in/task.yaml").write_text(TASK)
        self.run(["cohort", "in/meds", "in/task.yaml", "-o", "in/labels"])

    def start(self, args):
        quiet = {"stdin": subprocess.DEVNULL, "stdout": subprocess.DEVNULL, "stderr": subprocess.PIPE}
        return subprocess.Popen([self.serrate, *args], cwd=self.root, **quiet)

    def run(self, args):
        process = self.start(args)
        _, said = process.communicate()
        if process.returncode != 0:
            sys.exit(f"{args}: exit code {process.returncode}\n{said.decode()}")

    def fresh(self, args):
        shutil.rmtree(self.root / "out", ignore_errors=True)
        (self.root / "out").mkdir()
        self.run(args)

    def is_completed(self, args, new):
        """Returns whether the next reader or writer completes a replacement of files that was interrupted."""
        if args is meds:
            self.run(["-c", "SELECT count(*) FROM meds('out/x')"])
        else:
            folder = "out/x" if (self.root / "out/x").is_dir() else "out"
            self.run(["-c", "SELECT 1 AS one", "-o", f"{folder}/probe.csv"])
            (self.root / folder / "probe.csv").unlink()
        return self.contents()[0] == new

    def contents(self, named=True):
        """Returns digests of all files of the target except temporary leftovers, and the paths of the leftovers.

        If not `named`, the digests are those of the contents, whatever the names of the files.
        """
        parts, leftovers = [], []
        out = self.root / "out"
        for path in sorted(out.rglob("*")):
            names = path.relative_to(out).parts
            if any(name.startswith(".serrate-") for name in names):
                leftovers.append(path)
            elif path.is_file():
                name = str(names) if named else ""
                parts.append(name + hashlib.sha256(path.read_bytes()).hexdigest())
        if not named:
            parts.sort()
        return parts, leftovers


def is_between(old, found, new):
    """Returns whether `found` has all files of `old`, and of the others only files of `new`."""
    counts = [Counter(parts) for parts in (old, found, new)]
    return counts[0] <= counts[1] <= counts[2]


def kill_writer(place, args, kills, rng):
    named = args not in ADDING.values()
    place.fresh(args(1))
    old, _ = place.contents(named)
    start = time.monotonic()
    place.run(args(2))
    length = time.monotonic() - start
    new, _ = place.contents(named)
    if old == new:
        sys.exit(f"{args(2)}: both versions have the same contents")
    place.fresh(args(1))
    place.run(args(2))
    if place.contents(named)[0] != new:
        sys.exit(f"{args(2)}: two runs wrote different contents")
    place.fresh(args(1))
    counts = {"killed": 0, "old": 0, "new": 0, "part": 0, "left": 0}
    while counts["killed"] < kills:
        process = place.start(args(2))
        time.sleep(rng.uniform(0, length * 1.1))
        process.kill()
        process.communicate()
        if process.returncode >= 0:
            # The writer finished before the kill.
            length *= 0.97
            place.fresh(args(1))
            continue
        counts["killed"] += 1
        found, leftovers = place.contents(named)
        counts["left"] += bool(leftovers)
        if found == old:
            counts["old"] += 1
        elif found == new:
            counts["new"] += 1
            place.fresh(args(1))
        elif not named and is_between(old, found, new):
            counts["part"] += 1
            place.fresh(args(1))
        elif args in MOVING.values() and place.is_completed(args, new):
            counts["new"] += 1
            place.fresh(args(1))
        else:
            sys.exit(f"{args(2)}: after a kill, the target is neither the old nor the new one: {place.root}")
    place.run(args(2))
    found, leftovers = place.contents(named)
    if found != new or leftovers:
        sys.exit(f"{args(2)}: the next writer left {leftovers}")
    return counts


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--serrate", required=True)
    parser.add_argument("--kills", type=int, default=200, help="kills of each running writer")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--only", help="a part of the names of the writers to kill")
    options = parser.parse_args()
    rng = random.Random(options.seed)
    root = tempfile.mkdtemp(prefix="serrate-kills-")
    place = Place(options.serrate, root)
    print(f"{'writer':<29} {'killed':>6} {'old':>6} {'new':>6} {'part':>6} {'leftovers':>9}")
    for name, args in WRITERS.items():
        if options.only and options.only not in name:
            continue
        counts = kill_writer(place, args, options.kills, rng)
        *found, left = counts.values()
        print(f"{name:<29} " + " ".join(f"{count:>6}" for count in found) + f" {left:>9}", flush=True)
    shutil.rmtree(root)


if __name__ == "__main__":
    main()
