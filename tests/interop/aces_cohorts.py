"""Compares `meds_cohort` and `serrate cohort` with ACES on random MEDS data.

    python3 -m venv venv && venv/bin/pip install -r tests/interop/aces.txt
    cargo build --release
    venv/bin/python tests/interop/aces_cohorts.py target/release/serrate --cases 200
    venv/bin/python tests/interop/aces_cohorts.py target/release/serrate --record   # tests/data/cohorts
    venv/bin/python tests/interop/aces_cohorts.py target/release/serrate --examples ACES --cases 3

The last command takes a clone of https://github.com/justin13601/ACES and compares all rows of the examples of ACES
(sample_configs) on the data of ACES (sample_data/meds_sample) and on random data. The data of ACES lacks the codes of
abnormal_lab and intervention_weaning, so these examples have rows only on random data.

Each case creates one data set and runs every configuration of tests/data/cohorts/configs on it. All rows and all
columns are compared, except for the differences in docs/guide/cohorts.md:

* ACES exchanges the ends of windows that begin a duration before their end. This script sorts the ends.
* ACES returns one row of NULL for a subject with a window to an event that does not occur, if the tree of
  windows has no other branch. This script drops these rows.
"""

import argparse
import datetime
import json
import logging
import pathlib
import random
import shutil
import subprocess
import tempfile

import polars
from aces import config, predicates, query
from omegaconf import OmegaConf

ROOT = pathlib.Path(__file__).parent.parent.parent
DATA = ROOT / "tests/data/cohorts"
CONFIGS = sorted((DATA / "configs").glob("*.yaml"))

SCHEMA = {
    "subject_id": polars.Int64,
    "time": polars.Datetime("us"),
    "code": polars.String,
    "numeric_value": polars.Float32,
    "unit": polars.String,
    "priority": polars.Int64,
    "checked": polars.Boolean,
}
CODES = {
    "ADMISSION//ED": 4,
    "ADMISSION//WARD": 3,
    "DISCHARGE//HOME": 4,
    "DISCHARGE//SNF": 2,
    "DEATH": 1,
    "PROCEDURE_START": 2,
    "PROCEDURE_END": 2,
    "procedure//Invasive Ventilation": 4,
    "LAB//SPO2": 6,
    "LAB//HR": 5,
    "diagnosis//ICD9CM_41071": 1,
    "diagnosis//ICD10CM_I214": 1,
    "VISIT": 2,
}
# The codes that the examples of ACES name differently from the configurations of tests/data/cohorts.
EXAMPLE_CODES = {"LAB//SPO2": "lab_name//O2 saturation pulseoxymetry (%)"}
SATURATIONS = [88.0, 89.9, 90.0, 91.3, 95.5, 98.6, 98.7, 120.0, 120.5, float("nan"), None]


def subject_rows(rng, subject):
    rows = []
    none = [None, None, None]
    if rng.random() < 0.85:
        rows.append([subject, None, rng.choice(["SEX//male", "SEX//female"]), *[None], *none])
    if rng.random() < 0.7:
        rows.append([subject, None, "AGE", float(rng.choice([3, 17, 18, 40, 65, 66])), *none])
    time = datetime.datetime(2020, 1, 1) + datetime.timedelta(hours=rng.randrange(500))
    for _ in range(rng.choice([0, 1, 2, 5, 12, 25, 40])):
        step = rng.choice([1, 2, 6, 6, 12, 18, 24, 24, 48, 72, 24 * 30, 24 * 200])
        time += datetime.timedelta(hours=step)
        for code in rng.choices(list(CODES), CODES.values(), k=rng.choice([1, 1, 2, 2, 3])):
            value = rng.choice(SATURATIONS) if code == "LAB//SPO2" else None
            further = [rng.choice(["ICU", "ER", None]), rng.choice([1, 2, None]), rng.choice([True, False, None])]
            rows.append([subject, time, code, value, *further])
            if code.startswith("procedure//") and rng.random() < 0.8:
                rows.append([subject, time, rng.choice(["PROCEDURE_START", "PROCEDURE_END"]), *none, None])
    return rows


def write_data(rng, folder, shards=("train/0", "train/1", "held_out/0"), least=20, codes={}):
    """Writes random data. `codes` maps codes to the names under which they are written."""
    first = 1
    for shard in shards:
        rows = []
        while sum(row[1] is not None for row in rows) < least:
            rows += subject_rows(rng, first)
            first += 1
        rows = [[subject, time, codes.get(code, code), *further] for subject, time, code, *further in rows]
        path = folder / "data" / f"{shard}.parquet"
        path.parent.mkdir(parents=True, exist_ok=True)
        polars.DataFrame(rows, schema=SCHEMA, orient="row").write_parquet(path)


def in_order(value):
    """Returns a window whose start is not after its end."""
    start, end = value["timestamp_at_start"], value["timestamp_at_end"]
    return {**value, "timestamp_at_start": min(start, end), "timestamp_at_end": max(start, end)}


def aces_rows(path, folder):
    rows = []
    for shard in sorted((folder / "data").rglob("*.parquet")):
        # Load the configuration for each shard, because a query changes its windows.
        task = config.TaskExtractorConfig.load(path)
        data = OmegaConf.create({"standard": "meds", "path": str(shard), "ts_format": None})
        found = query.query(task, predicates.get_predicates_df(task, data))
        for row in found.to_dicts():
            if row["trigger"] is None:
                continue
            rows.append({k: in_order(v) if isinstance(v, dict) else v for k, v in row.items()})
    return sorted(rows, key=lambda row: (row["subject_id"], row["trigger"]))


def check_case(command, seed, with_labels):
    """Compares all configurations on one data set. Returns the number of rows of each configuration."""
    rng = random.Random(seed)
    counts = {}
    with tempfile.TemporaryDirectory() as folder:
        folder = pathlib.Path(folder)
        write_data(rng, folder)
        script = "".join(
            f"COPY (SELECT * FROM meds_cohort('{folder}', '{path}') ORDER BY subject_id, trigger)"
            f" TO '{folder}/{path.stem}.parquet';\n"
            for path in CONFIGS
        )
        (folder / "all.sql").write_text(script)
        subprocess.run([command, str(folder / "all.sql")], check=True, stdout=subprocess.DEVNULL)
        for path in CONFIGS:
            want = aces_rows(path, folder)
            found = polars.read_parquet(folder / f"{path.stem}.parquet")
            have = found.to_dicts()
            assert have == want, f"seed {seed}, {path.stem}:\n{first_difference(have, want)}"
            if want:
                assert found.columns == list(want[0]), (found.columns, list(want[0]))
                fields = [f for f in found.columns if f.endswith("_summary")]
                assert all(list(have[0][f]) == list(want[0][f]) for f in fields), path.stem
            counts[path.stem] = len(want)
            if with_labels and "index_timestamp" in found.columns:
                check_labels(command, folder, path, want)
    return counts


def check_examples(command, clone, cases):
    """Compares the examples in a clone of ACES, on its data and on random data with the codes of all examples."""
    paths = sorted((clone / "sample_configs").glob("*.yaml"))
    assert paths, f"{clone} has no sample_configs/*.yaml"
    counts = {path.stem: [] for path in paths}
    for seed in [None, *cases]:
        with tempfile.TemporaryDirectory() as folder:
            folder = pathlib.Path(folder)
            if seed is None:
                shutil.copytree(clone / "sample_data/meds_sample", folder / "data")
            else:
                write_data(random.Random(seed), folder, codes=EXAMPLE_CODES)
            for path in paths:
                want = aces_rows(path, folder)
                out = folder / f"{path.stem}.parquet"
                sql = f"COPY (SELECT * FROM meds_cohort('{folder}', '{path}') ORDER BY subject_id, trigger) TO '{out}'"
                subprocess.run([command, "-c", sql], check=True, stdout=subprocess.DEVNULL)
                have = polars.read_parquet(out).to_dicts()
                assert have == want, f"seed {seed}, {path.stem}:\n{first_difference(have, want)}"
                counts[path.stem].append(len(want))
    for name, (own, *further) in counts.items():
        print(f"{name}: {own} rows are equal on the data of ACES, {sum(further)} on {len(further)} random data sets")


def check_labels(command, folder, path, want):
    """Compares the label files with the labels of the rows, in one file and in a file per shard."""
    expected = [
        {"subject_id": row["subject_id"], "prediction_time": row["index_timestamp"]}
        | ({"boolean_value": row["label"] > 0} if "label" in row else {})
        for row in want
    ]
    order = lambda row: (row["subject_id"], row["prediction_time"], row.get("boolean_value"))
    for out in [folder / f"{path.stem}-labels.parquet", folder / f"{path.stem}-labels"]:
        subprocess.run(
            [command, "cohort", str(folder), str(path), "-o", str(out)],
            check=True,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )
        files = sorted(out.rglob("*.parquet")) if out.is_dir() else [out]
        rows = [row for file in files for row in polars.read_parquet(file).to_dicts()]
        assert sorted(rows, key=order) == sorted(expected, key=order), (path.stem, out)


def first_difference(have, want):
    for a, b in zip(have, want):
        if a != b:
            return f"serrate: {a}\naces:    {b}"
    return f"serrate has {len(have)} rows, aces {len(want)}; the first further one: {(have + want)[min(len(have), len(want))]}"


def record():
    """Writes the data and the expected rows of tests/data/cohorts."""
    write_data(random.Random(20), DATA / "meds", ("train/0", "held_out/0"), 120)
    answers = DATA / "answers"
    answers.mkdir(exist_ok=True)
    as_text = lambda time: time.isoformat()
    for path in CONFIGS:
        rows = aces_rows(path, DATA / "meds")
        text = "".join(json.dumps(row, default=as_text) + "\n" for row in rows)
        (answers / f"{path.stem}.ndjson").write_text(text)
        print(f"{path.stem}: {len(rows)} rows")


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("command")
    parser.add_argument("--cases", type=int, default=200)
    parser.add_argument("--first", type=int, default=0, help="seed of the first case")
    parser.add_argument("--record", action="store_true")
    parser.add_argument("--examples", type=pathlib.Path, help="a clone of ACES")
    args = parser.parse_args()
    logging.disable(logging.ERROR)
    if args.record:
        return record()
    if args.examples:
        return check_examples(args.command, args.examples.resolve(), range(args.first, args.first + args.cases))
    total = {}
    for seed in range(args.first, args.first + args.cases):
        for name, rows in check_case(args.command, seed, seed % 10 == 0).items():
            total.setdefault(name, []).append(rows)
    for name, rows in total.items():
        print(f"{name}: {sum(rows)} rows, {sum(n > 0 for n in rows)} of {len(rows)} data sets with rows")
    print(f"{args.cases} data sets, {len(CONFIGS)} configurations: all rows are equal")


if __name__ == "__main__":
    main()
