"""Compares `serrate features` with Polars code and meds-tab: features of labels from MEDS data.

The labels have random subjects, and random times of measurements of these subjects. Each part checks that the
engines compute the same values before it prints a table; `--part dense|sparse|triples|meds-tab|million` selects a part.

* dense: one column per prefix, window and aggregate.
* sparse: features of every code. Serrate writes a row per value, or one sparse matrix; Polars writes a row per code
  that occurs in a window, with one column per aggregate.
* triples: the features of `sparse`, for which Polars writes the same rows as Serrate.
* meds-tab: the aggregates that both have. Three lines of meds-tab 0.2.0 are repaired (`REPAIRS`); without the repairs,
  its values are missing or wrong. `expected` defines its aggregates.
* million: 50,000 codes, two sizes of data in shards of equal size; the table shows the peak memory and the output.

Commands are timed from start to exit; Polars is timed within its process, without its import. CPU is the user and
system time, which other work on the machine changes less than the elapsed time.
"""

import argparse
import json
import shutil
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import NamedTuple

import numpy as np
import polars as pl
from common import machine, table

PREFIXES = ["LAB//", "DIAGNOSIS//", "MEDICATION//", "PROCEDURE//"]
WINDOWS = {"30d": 30, "365d": 365, "all": None}
AGGREGATES = ["count", "sum", "mean", "min", "max", "last", "slope"]
EXACT = {"count", "value_count", "min", "max", "last"}
PATIENTS, LABELS = 250, 2_000
# The time of meds-tab grows with events, windows and aggregates, so it gets less data.
TAB_PATIENTS, TAB_LABELS = 20, 160
# Maps aggregates of meds-tab to the aggregates of Serrate that they are made of.
TAB = {"code/count": "count", "value/count": "value_count", "value/sum": "sum", "value/min": "min", "value/max": "max"}
# Numbers of patients. A shard has ten patients, and each patient has eight labels.
MILLION = {"1x": 50, "4x": 200}
# Each code becomes five codes: 10,003 codes become 50,015.
SITES = 5

# Module, function and wrong line of meds-tab 0.2.0, and the line that replaces it.
REPAIRS = [
    (
        "generate_ts_features",
        "get_long_value_df",
        'pl.col("code").is_in(ts_columns)',  # compares codes with feature names, so no values remain
        'pl.col("code").is_in(list(column_to_int))',
    ),
    (
        "generate_summarized_reps",
        "compute_agg",
        'group_df.select(pl.col("min_index", "max_index"))',  # omits the last measurement of each event
        'group_df.select(pl.col("min_index"), pl.col("max_index") + 1)',
    ),
    (
        "generate_summarized_reps",
        "aggregate_matrix",
        "row.append(agg_matrix.row)",  # writes all minima and maxima to the first row
        "row.append(np.full(len(agg_matrix.data), i, dtype=np.int32))",
    ),
]
REPAIR = f"""
import importlib, inspect
for module, function, wrong, right in {REPAIRS!r}:
    module = importlib.import_module("MEDS_tabular_automl." + module)
    source = inspect.getsource(getattr(module, function))
    assert source.count(wrong) == 1, wrong
    exec(source.replace(wrong, right), vars(module))
from MEDS_tabular_automl.scripts.tabularize_time_series import main
main()
"""


class Run(NamedTuple):
    seconds: float
    cpu: float
    memory: int
    output: str


# The peak memory of a process includes that of its parent before exec, so a small process starts the commands.
LAUNCH = """
import json, os, subprocess, sys, time
start = time.perf_counter()
child = subprocess.Popen(sys.argv[2:])
_, status, usage = os.wait4(child.pid, 0)
took = time.perf_counter() - start
with open(sys.argv[1], "w") as out:
    json.dump([took, usage.ru_utime + usage.ru_stime, usage.ru_maxrss * 1024, status], out)
"""


def measured(command) -> Run:
    """Runs a command and returns its elapsed and CPU seconds, its largest resident memory in bytes, and its output."""
    command = [str(c) for c in command]
    with tempfile.NamedTemporaryFile() as result:
        launch = [sys.executable, "-S", "-c", LAUNCH, result.name, *command]
        done = subprocess.run(launch, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, check=True)
        took, cpu, memory, status = json.load(result)
    if status:
        raise SystemExit(f"{' '.join(command)} failed:\n{done.stdout[-3000:]}")
    return Run(took, cpu, memory, done.stdout)


def best(runs) -> Run:
    """Returns the least elapsed time, the least CPU time and the largest memory of several runs."""
    return Run(min(r.seconds for r in runs), min(r.cpu for r in runs), max(r.memory for r in runs), runs[-1].output)


def size(path: Path) -> int:
    return sum(f.stat().st_size for f in path.rglob("*") if f.is_file()) if path.is_dir() else path.stat().st_size


# Data and labels


def make_meds(args, patients, shards=5, sites=0) -> Path:
    """Writes a MEDS folder with `serrate generate`; `sites` splits each code into that many codes with suffixes."""
    plain = args.work / f"features-meds-{patients}-{shards}"
    if not plain.exists():
        command = [args.bin / "serrate", "generate", "--patients", patients, "--seed", 7, "--to", "meds"]
        measured([*command, "--shards", shards, "-o", plain])
    if not sites:
        return plain
    out = args.work / f"{plain.name}x{sites}"
    if out.exists():
        return out
    staged = out.with_suffix(".part")
    shutil.rmtree(staged, ignore_errors=True)
    shutil.copytree(plain / "metadata", staged / "metadata")
    codes = pl.read_parquet(plain / "metadata/codes.parquet")
    each = [codes.with_columns(pl.col("code") + f"//{site}") for site in range(sites)]
    pl.concat(each).write_parquet(staged / "metadata/codes.parquet")
    for shard in sorted(plain.glob("data/**/*.parquet")):
        to = staged / shard.relative_to(plain)
        to.parent.mkdir(parents=True, exist_ok=True)
        rows = pl.read_parquet(shard)
        suffix = pl.format("//{}", pl.int_range(pl.len()) % sites)
        rows.with_columns(pl.col("code") + suffix).write_parquet(to)
    staged.rename(out)
    return out


def make_labels(args, meds, count) -> Path:
    out = args.work / f"{meds.name}-labels.parquet"
    events = pl.scan_parquet(meds / "data/**/*.parquet").select("subject_id", pl.col("time").alias("prediction_time"))
    events = events.drop_nulls().unique().collect().sort("subject_id", "prediction_time")
    labels = events.sample(count, seed=7, shuffle=True)
    labels.with_columns(boolean_value=pl.int_range(pl.len()) % 2 == 0).write_parquet(out)
    return out


def serrate(args, meds, labels, out, *options) -> Run:
    return measured([args.bin / "serrate", "features", meds, "--labels", labels, "-o", out, "--overwrite", *options])


def prefixes():
    return [option for prefix in PREFIXES for option in ("--prefix", prefix)]


# Polars code, in its own process


def aggregates_by_hand():
    value = pl.col("numeric_value").cast(pl.Float64)
    return [
        pl.len().alias("count"),
        value.sum().alias("sum"),
        value.mean().alias("mean"),
        pl.col("numeric_value").min().alias("min"),
        pl.col("numeric_value").max().alias("max"),
        pl.col("numeric_value").drop_nulls().last().alias("last"),
        pl.when(pl.col("x").min() < pl.col("x").max()).then(pl.cov("x", value) / pl.col("x").var()).alias("slope"),
    ]


def windows_by_hand(meds, labels, key, select):
    """Returns, per window, a lazy table of the aggregates of each label and key. The windows share one join."""
    data = pl.scan_parquet(f"{meds}/data/**/*.parquet").filter(pl.col("time").is_not_null())
    data = select(data)
    targets = pl.scan_parquet(labels).with_row_index("row").select("row", "subject_id", "prediction_time")
    # The aggregate `last` depends on the order of the data.
    known = targets.join(data, on="subject_id", maintain_order="right")
    known = known.filter(pl.col("time") <= pl.col("prediction_time"))
    days = (pl.col("time") - pl.col("prediction_time")).dt.total_microseconds() / 86_400e6
    known = known.with_columns(pl.when(pl.col("numeric_value").is_not_null()).then(days).alias("x"))
    parts = {}
    for name, length in WINDOWS.items():
        window = known
        if length:
            window = known.filter(pl.col("time") > pl.col("prediction_time") - pl.duration(days=length))
        parts[name] = window.group_by("row", key).agg(aggregates_by_hand())
    return parts


def polars_sparse(meds, labels, out, engine):
    """Writes one file per window, with a row per label and code and a column per aggregate."""
    parts = windows_by_hand(meds, labels, "code", lambda data: data.with_columns(pl.col("code").cast(pl.Categorical)))
    pl.collect_all([part.sink_parquet(f"{out}/{name}.parquet", lazy=True) for name, part in parts.items()], engine=engine)


def polars_triples(meds, labels, out, engine):
    """Writes one file like Serrate: row, feature and value, sorted by row and feature."""
    codes = pl.read_parquet(f"{meds}/metadata/codes.parquet").select("code").unique().sort("code").with_row_index("key")
    numbered = lambda data: data.join(codes.lazy(), on="code", maintain_order="left").drop("code")
    parts = []
    for w, part in enumerate(windows_by_hand(meds, labels, "key", numbered).values()):
        # Serrate omits the sum of no values, which is 0 in Polars, so replace it by NULL.
        part = part.with_columns(pl.when(pl.col("mean").is_not_null()).then("sum").alias("sum"))
        for a, aggregate in enumerate(AGGREGATES):
            feature = ((pl.col("key") * len(WINDOWS) + w) * len(AGGREGATES) + a).cast(pl.UInt32)
            value = pl.col(aggregate).cast(pl.Float64)
            parts.append(part.select("row", feature.alias("feature"), value.alias("value")).drop_nulls("value"))
    pl.concat(parts).sort("row", "feature").sink_parquet(f"{out}/values.parquet", engine=engine)


def polars_dense(meds, labels, out, engine):
    """Writes one file with a row per label and a column per prefix, window and aggregate."""
    key = pl.coalesce([pl.when(pl.col("code").str.starts_with(p)).then(pl.lit(f"{p}*")) for p in PREFIXES])
    parts = windows_by_hand(
        meds, labels, "key", lambda data: data.with_columns(key=key).filter(pl.col("key").is_not_null())
    )
    found = pl.collect_all(list(parts.values()), engine=engine)
    wide = pl.read_parquet(labels).with_row_index("row")
    for name, part in zip(parts, found):
        part = part.pivot(on="key", index="row", values=AGGREGATES)
        part = part.rename(
            {f"{a}_{p}*": f"{p}*/{name}/{a}" for a in AGGREGATES for p in PREFIXES if f"{a}_{p}*" in part.columns}
        )
        wide = wide.join(part, on="row", how="left", maintain_order="left")
    zero = [c for c in wide.columns if c.endswith(("/count", "/sum"))]
    wide.with_columns(pl.col(zero).fill_null(0)).write_parquet(f"{out}/dense.parquet")


def by_hand(what, meds, labels, out, engine) -> Run:
    out.mkdir(parents=True, exist_ok=True)
    run = measured([sys.executable, __file__, "--polars", what, meds, labels, out, engine])
    inner = json.loads(run.output.splitlines()[-1])
    return Run(inner["seconds"], inner["cpu"], run.memory, run.output)


def polars_process(what, meds, labels, out, engine):
    start, cpu = time.perf_counter(), time.process_time()
    {"dense": polars_dense, "sparse": polars_sparse, "triples": polars_triples}[what](meds, labels, out, engine)
    print(json.dumps({"seconds": time.perf_counter() - start, "cpu": time.process_time() - cpu}))


# Checks


def check_values(name, aggregate, ours, theirs):
    """Exits if two arrays of values differ, and otherwise returns their largest relative difference."""
    ours, theirs = np.asarray(ours, np.float64), np.asarray(theirs, np.float64)
    if len(ours) != len(theirs):
        raise SystemExit(f"{name}, {aggregate}: {len(ours)} values and {len(theirs)} values")
    if not len(ours):
        return 0.0
    difference = np.abs(ours - theirs) / np.maximum(1.0, np.maximum(np.abs(ours), np.abs(theirs)))
    limit = 0 if aggregate in EXACT else 1e-6 if aggregate == "slope" else 1e-9
    if not difference.max() <= limit:
        at = int(difference.argmax())
        raise SystemExit(f"{name}, {aggregate}: {ours[at]!r} is not {theirs[at]!r}")
    return float(difference.max())


def by_window(folder: Path, names):
    """Yields each window and aggregate of an output of Serrate, with a sorted table of row, code and value."""
    features = pl.read_parquet(folder / "features.parquet").with_columns(pl.col("code").cast(pl.Categorical))
    values = pl.scan_parquet(folder / "values.parquet")
    for window in WINDOWS:
        for aggregate in names:
            those = features.lazy().filter((pl.col("window") == window) & (pl.col("aggregate") == aggregate))
            part = values.join(those.select("feature", "code"), on="feature").select("row", "code", "value").collect()
            yield window, aggregate, part.sort("row", pl.col("code").cast(pl.String))


def check_sparse(ours: Path, theirs: Path):
    cells, worst, held = 0, 0.0, (None, None)
    for window, aggregate, part in by_window(ours, AGGREGATES):
        if held[0] != window:
            held = (window, pl.read_parquet(theirs / f"{window}.parquet").sort("row", pl.col("code").cast(pl.String)))
        # Serrate omits the sum of no values, which is 0 in Polars.
        other = held[1].filter(pl.col("mean").is_not_null()) if aggregate == "sum" else held[1]
        other = other.select("row", "code", aggregate).drop_nulls()
        same = len(part) == len(other) and (part["row"].to_numpy() == other["row"].to_numpy()).all()
        if not (same and (part["code"].cast(pl.String) == other["code"].cast(pl.String)).all()):
            raise SystemExit(f"{window}, {aggregate}: the engines have values of different codes")
        worst = max(worst, check_values(window, aggregate, part["value"], other[aggregate]))
        cells += len(part)
    return cells, worst


def check_matrix(matrix: Path, folder: Path):
    """Checks that the sparse matrix has the values of the folder."""
    from safetensors.numpy import load_file

    tensors, values = load_file(matrix), pl.read_parquet(folder / "values.parquet")
    indices = tensors["indices"]
    assert (indices[0] == values["row"].to_numpy()).all() and (indices[1] == values["feature"].to_numpy()).all()
    assert (tensors["values"] == values["value"].to_numpy()).all()


def check_dense(ours: Path, theirs: Path):
    ours, theirs = pl.read_parquet(ours), pl.read_parquet(theirs)
    columns = [f"{p}*/{w}/{a}" for p in PREFIXES for w in WINDOWS for a in AGGREGATES]
    cells, worst = 0, 0.0
    for column in columns:
        a, b = ours[column], theirs[column] if column in theirs.columns else pl.Series([None] * len(ours))
        if (a.is_null() != b.is_null()).any():
            raise SystemExit(f"{column}: the engines have values for different labels")
        worst = max(worst, check_values(column, column.rsplit("/", 1)[1], a.drop_nulls(), b.drop_nulls()))
        cells += len(a) - a.null_count()
    return len(columns), cells, worst


# Parts


def report(head, rows, first):
    """Prints a table. A row has a name, a `Run`, and the bytes written; factors are relative to the run `first`."""
    table(
        ["engine", "seconds", "times as fast", "CPU, s", "times less", "peak memory, MB", "written, MB", *head],
        [
            [
                name,
                f"{run.seconds:.2f}",
                f"{first.seconds / run.seconds:.1f}",
                f"{run.cpu:.2f}",
                f"{first.cpu / run.cpu:.1f}",
                f"{run.memory / 1e6:.0f}",
                f"{written / 1e6:.1f}",
                *more,
            ]
            for name, run, written, *more in rows
        ],
    )


def fastest(what, args, meds, labels):
    """Runs both engines of Polars. Returns, per engine, the best run and the folder of its results."""
    runs = {}
    for engine in ("streaming", "in-memory"):
        out = args.work / f"features-polars-{what}-{engine}"
        rounds = range(args.rounds if what == "dense" else min(args.rounds, 2))
        runs[engine] = (best([by_hand(what, meds, labels, out, engine) for _ in rounds]), out)
    return runs


def dense(args):
    meds = make_meds(args, PATIENTS)
    labels = make_labels(args, meds, LABELS)
    theirs = fastest("dense", args, meds, labels)
    out = args.work / "features-dense.parquet"
    ours = best([serrate(args, meds, labels, out, *prefixes()) for _ in range(args.rounds)])
    for _, folder in theirs.values():
        columns, cells, worst = check_dense(out, folder / "dense.parquet")
    first = min((run for run, _ in theirs.values()), key=lambda run: run.cpu)
    rows = [(f"Polars, {engine}", run, size(folder / "dense.parquet")) for engine, (run, folder) in theirs.items()]
    print(f"## Dense: {LABELS:,} labels, {columns} features of {len(PREFIXES)} prefixes, {cells:,} values\n")
    report([], [*rows, ("**Serrate**", ours, size(out))], first)
    print(f"Equal, sums, means and slopes to {worst:.1e}.\n")


def sparse(args):
    meds = make_meds(args, PATIENTS)
    labels = make_labels(args, meds, LABELS)
    theirs = fastest("sparse", args, meds, labels)
    out, matrix = args.work / "features-sparse", args.work / "features-sparse.safetensors"
    folder = best([serrate(args, meds, labels, out) for _ in range(args.rounds)])
    single = best([serrate(args, meds, labels, matrix) for _ in range(args.rounds)])
    check_matrix(matrix, out)
    for _, found in theirs.values():
        cells, worst = check_sparse(out, found)
    first = min((run for run, _ in theirs.values()), key=lambda run: run.cpu)
    features = pl.scan_parquet(out / "features.parquet").select(pl.len()).collect().item()
    rows = [(f"Polars, {engine}", run, size(found)) for engine, (run, found) in theirs.items()]
    rows += [("**Serrate**, Parquet", folder, size(out)), ("**Serrate**, safetensors", single, size(matrix))]
    print(f"## Sparse: {LABELS:,} labels, {features:,} features of every code, {cells:,} values\n")
    report([], rows, first)
    print(f"Equal, sums, means and slopes to {worst:.1e}.\n")


def triples(args):
    meds = make_meds(args, PATIENTS)
    labels = make_labels(args, meds, LABELS)
    found = args.work / "features-polars-triples"
    theirs = by_hand("triples", meds, labels, found, "streaming")
    out = args.work / "features-triples"
    ours = best([serrate(args, meds, labels, out) for _ in range(args.rounds)])
    codes = pl.read_parquet(f"{meds}/metadata/codes.parquet").select("code").unique().sort("code").with_row_index("key")
    names = pl.read_parquet(out / "features.parquet").sort("feature").join(codes, on="code", maintain_order="left")
    each = len(WINDOWS) * len(AGGREGATES)
    number = (names["key"].cast(pl.UInt32) * each + names["feature"] % each).to_numpy()
    a, b = (pl.read_parquet(folder / "values.parquet") for folder in (out, found))
    a = a.with_columns(pl.Series("feature", number[a["feature"].to_numpy()]))
    if len(number) and (np.diff(number.astype(np.int64)) < 0).any():
        a = a.sort("row", "feature")
    assert len(a) == len(b) and (a["row"].to_numpy() == b["row"].to_numpy()).all()
    assert (a["feature"].to_numpy() == b["feature"].to_numpy()).all()
    worst = 0.0
    kinds = a["feature"].to_numpy() % len(AGGREGATES)
    for i, aggregate in enumerate(AGGREGATES):
        worst = max(worst, check_values("triples", aggregate, a["value"].to_numpy()[kinds == i], b["value"].to_numpy()[kinds == i]))
    print(f"## Triples: the same {len(a):,} rows of label, feature and value\n")
    report([], [("Polars, streaming", theirs, size(found)), ("**Serrate**, Parquet", ours, size(out))], theirs)
    print(f"Equal, sums, means and slopes to {worst:.1e}.\n")


def expected(meds, labels):
    """Computes the aggregates of meds-tab from their definition. Yields each window with a table of its values.

    meds-tab aggregates the measurements of an event (subject and time) first, and then the events of a window. Its
    counts are numbers of events with the code, not of measurements. Its minimum and maximum are those of a sparse
    matrix: an event of another code counts as 0, and so does a measurement of another code within an event. Zeros are
    not stored.
    """
    data = pl.scan_parquet(f"{meds}/data/**/*.parquet").filter(pl.col("time").is_not_null())
    value = pl.col("numeric_value")
    events = data.group_by("subject_id", "time").agg(pl.len().alias("size")).sort("subject_id", "time")
    cells = data.group_by("subject_id", "time", "code").agg(
        pl.len().alias("n"), value.count().alias("values"), value.sum().alias("sum"), value.min(), value.max().alias("max")
    ).rename({"numeric_value": "min"}).join(events, on=["subject_id", "time"])
    # A measurement of another code or without a value counts as 0 within its event.
    partial = pl.col("values") < pl.col("size")
    cells = cells.with_columns(
        min=pl.when(partial).then(pl.min_horizontal("min", 0.0)).otherwise("min"),
        max=pl.when(partial).then(pl.max_horizontal("max", 0.0)).otherwise("max"),
    ).with_columns(
        pl.when(pl.col("values") > 0).then("min").alias("min"), pl.when(pl.col("values") > 0).then("max").alias("max")
    )
    targets = pl.scan_parquet(labels).with_row_index("row").select("row", "subject_id", "prediction_time")
    for window, length in WINDOWS.items():
        def inside(table):
            known = targets.join(table, on="subject_id").filter(pl.col("time") <= pl.col("prediction_time"))
            if length:
                known = known.filter(pl.col("time") > pl.col("prediction_time") - pl.duration(days=length))
            return known
        total = inside(events).group_by("row").agg(pl.len().alias("events"))
        found = inside(cells).group_by("row", "code").agg(
            pl.len().alias("code/count"),
            (pl.col("values") > 0).sum().alias("value/count"),
            pl.col("sum").cast(pl.Float64).sum().alias("value/sum"),
            pl.col("min").min().alias("value/min"),
            pl.col("max").max().alias("value/max"),
        ).join(total, on="row")
        absent = pl.col("value/count") < pl.col("events")
        yield window, found.with_columns(
            pl.when(absent).then(pl.min_horizontal("value/min", 0.0)).otherwise("value/min").alias("value/min"),
            pl.when(absent).then(pl.max_horizontal("value/max", 0.0)).otherwise("value/max").alias("value/max"),
        ).collect()


def tab_matrices(meds, labels, out):
    """Yields each window and aggregate of meds-tab, with a table of row, code and value."""
    features = sorted(pl.read_parquet(out / "metadata/codes.parquet")["code"].to_list())
    targets = {"30d": "30d", "365d": "365d", "all": "full"}
    for window, their_window in targets.items():
        for aggregate in TAB:
            kind = "/" + aggregate.split("/")[0]
            codes = pl.Series([f.removesuffix(kind) for f in features if f.endswith(kind)])
            parts = []
            for shard in sorted(labels.glob("*/*.parquet")):
                split, name = shard.parent.name, shard.stem
                values, row, column = np.load(out / "tabularize" / split / name / their_window / f"{aggregate}.npz")["array"]
                rows = pl.read_parquet(shard)["row"]
                parts.append(
                    pl.DataFrame(
                        {
                            "row": rows.gather(row.astype(np.uint32)),
                            "code": codes.gather(column.astype(np.uint32)),
                            "value": values.astype(np.float64),
                        }
                    )
                )
            yield window, aggregate, pl.concat(parts).sort("row", "code")


def compare_tab(meds, labels, split, out, ours: Path):
    """Checks meds-tab against its definition. Returns table rows that compare it with Serrate, and its cell count."""
    definition = dict(expected(meds, labels))
    own = {(w, a): part for w, a, part in by_window(ours, TAB.values())}
    rows, cells = [], 0
    for window, aggregate, part in tab_matrices(meds, split, out):
        wanted = definition[window].select("row", "code", pl.col(aggregate).alias("value").cast(pl.Float64)).drop_nulls()
        wanted = wanted.filter(pl.col("value") != 0).sort("row", "code")
        assert len(part) == len(wanted), (window, aggregate, len(part), len(wanted))
        assert (part["row"] == wanted["row"]).all() and (part["code"] == wanted["code"]).all(), (window, aggregate)
        difference = (part["value"] - wanted["value"]).abs() / wanted["value"].abs().clip(1.0)
        # meds-tab adds in float32.
        assert (difference.max() or 0) <= 1e-4, (window, aggregate, difference.max())
        ours_part = own[window, TAB[aggregate]].with_columns(pl.col("code").cast(pl.String))
        tab = part.with_columns(pl.col("row").cast(ours_part["row"].dtype))
        both = ours_part.join(tab, on=["row", "code"], how="left", suffix="_tab")
        near = (both["value"] - both["value_tab"]).abs() <= 1e-4 * both["value"].abs().clip(1.0)
        equal = int(near.sum())
        zero = int((both["value_tab"].is_null() & (both["value"] == 0)).sum())
        counts = [len(ours_part), len(part), equal, zero]
        rows.append([window, f"{aggregate} / {TAB[aggregate]}", *(f"{n:,}" for n in counts)])
        cells += len(part)
    return rows, cells


def meds_tab(args):
    tool = args.work / "venv-features/bin"
    meds = make_meds(args, TAB_PATIENTS)
    labels = make_labels(args, meds, TAB_LABELS)
    targets = pl.read_parquet(labels).with_row_index("row")
    split = args.work / "features-tab-labels"
    out = args.work / "features-tab"
    for folder in (split, out):
        shutil.rmtree(folder, ignore_errors=True)
    # meds-tab reads the labels of each shard from a file with the name of the shard.
    for shard in sorted((meds / "data").glob("*/*.parquet")):
        to = split / shard.relative_to(meds / "data")
        to.parent.mkdir(parents=True, exist_ok=True)
        own = targets.join(pl.read_parquet(shard, columns=["subject_id"]).unique(), on="subject_id", how="semi")
        own.sort("subject_id", "prediction_time").write_parquet(to)
    common = [f"input_dir={(meds / 'data').resolve()}", f"output_dir={out.resolve()}"]
    rest = [
        *common,
        f"input_label_dir={split.resolve()}",
        "tabularization.min_code_inclusion_count=0",
        "tabularization.window_sizes=[30d,365d,full]",
    ]
    steps = [
        [tool / "meds-tab-describe", *common],
        [tool / "meds-tab-tabularize-static", *rest, "tabularization.aggs=[static/present]"],
        [tool / "python", "-c", REPAIR, *rest, f"tabularization.aggs=[{','.join(TAB)}]"],
    ]
    runs = [measured(step) for step in steps]
    theirs = Run(sum(r.seconds for r in runs), sum(r.cpu for r in runs), max(r.memory for r in runs), "")
    ours_out = args.work / "features-tab-ours"
    aggregates = ",".join(TAB.values())
    ours = best([serrate(args, meds, labels, ours_out, "--aggregates", aggregates) for _ in range(args.rounds)])

    rows, cells = compare_tab(meds, labels, split, out, ours_out)
    features = pl.scan_parquet(ours_out / "features.parquet").select(pl.len()).collect().item()
    count = pl.scan_parquet(meds / "data/**/*.parquet").select(pl.len()).collect().item()
    print(f"## meds-tab: {TAB_PATIENTS} patients, {count:,} measurements, {TAB_LABELS:,} labels, {features:,} features\n")
    written = size(out / "tabularize")
    report([], [("meds-tab 0.2.0, repaired", theirs, written), ("**Serrate**, Parquet", ours, size(ours_out))], theirs)
    print(f"meds-tab: {cells:,} values, all as its definition says. Its values next to those of Serrate:\n")
    table(["window", "aggregate (meds-tab / Serrate)", "cells of Serrate", "cells of meds-tab", "equal", "0 in Serrate, absent in meds-tab"], rows)


def million(args):
    rows = []
    for name, patients in MILLION.items():
        meds = make_meds(args, patients, patients // 10, SITES)
        labels = make_labels(args, meds, patients * 8)
        count = pl.scan_parquet(meds / "data/**/*.parquet").select(pl.len()).collect().item()
        shards = list(meds.glob("data/**/*.parquet"))
        for form, out in (("Parquet", args.work / "features-million"), ("safetensors", args.work / "features-million.safetensors")):
            run = best([serrate(args, meds, labels, out) for _ in range(min(args.rounds, 2))])
            names = out / "features.parquet" if out.is_dir() else out.with_suffix(".features.parquet")
            features = pl.scan_parquet(names).select(pl.len()).collect().item()
            values = run.output.split("wrote ", 1)[1].split(" values", 1)[0]
            rows.append(
                [
                    f"{form}, {name}",
                    f"{count / 1e6:.1f} M",
                    f"{len(shards)}",
                    f"{patients * 8:,}",
                    f"{features:,}",
                    values,
                    f"{run.seconds:.2f}",
                    f"{run.cpu:.2f}",
                    f"{run.memory / 1e6:.0f}",
                    f"{size(out) / 1e6:.0f}",
                ]
            )
    print("## A million features\n")
    head = ["output", "measurements", "shards", "labels", "features", "values", "seconds", "CPU, s", "peak memory, MB", "written, MB"]
    table(head, rows)


PARTS = {"dense": dense, "sparse": sparse, "triples": triples, "meds-tab": meds_tab, "million": million}


def main():
    if sys.argv[1:2] == ["--polars"]:
        return polars_process(*sys.argv[2:])
    parser = argparse.ArgumentParser()
    parser.add_argument("--bin", type=Path, required=True, help="folder of the release build")
    parser.add_argument("--data", type=Path, help="not read; all comparisons get it")
    parser.add_argument("--work", type=Path, required=True, help="folder for what is made on the way")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--part", choices=PARTS, action="append", help="only this part; may be given more than once")
    args = parser.parse_args()
    print(f"# Features of labels\n\n{machine()}, Polars {pl.__version__}; best of {args.rounds} rounds, Polars of sparse features of 2, of triples and meds-tab of 1.\n")
    for part in args.part or PARTS:
        PARTS[part](args)


if __name__ == "__main__":
    main()
