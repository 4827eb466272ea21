"""Compares Serrate with meds-torch-data from MEDS data to training batches, and windows before labels with DuckDB.

Preparation is one command that reads a MEDS folder and writes a folder of normalised tensors; its time and its peak
memory are measured. An epoch builds every batch of the train split once, in the process that uses the batches
(meds-torch-data uses a DataLoader without workers).
"""

import json
import os
import re
import resource
import shutil
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import numpy as np
from common import arguments, machine, seconds, table

BATCH, WINDOW = 256, 512
LABELS = 100_000
TOOL = Path(sys.executable).parent / "MTD_preprocess"


def timed(command, **options):
    """Returns the seconds and the largest resident memory in bytes of a command, including its child processes."""
    start = time.perf_counter()
    child = subprocess.Popen([str(c) for c in command], stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, **options)
    peak = [0]
    error = tempfile.TemporaryFile()
    os.set_blocking(child.stderr.fileno(), False)
    while True:
        pid, status, usage = os.wait4(child.pid, os.WNOHANG)
        error.write(child.stderr.read() or b"")
        peak[0] = max(peak[0], tree_memory(child.pid))
        if pid:
            break
        time.sleep(0.01)
    took = time.perf_counter() - start
    if status:
        error.seek(0)
        raise SystemExit(f"{command[0]} failed:\n{error.read().decode(errors='replace')[-2000:]}")
    return took, max(peak[0], usage.ru_maxrss * 1024)


def tree_memory(root) -> int:
    """Returns the current resident bytes of a process and its child processes."""
    total, todo = 0, [root]
    while todo:
        pid = todo.pop()
        try:
            total += int(Path(f"/proc/{pid}/statm").read_text().split()[1]) * resource.getpagesize()
            for task in Path(f"/proc/{pid}/task").iterdir():
                todo += [int(child) for child in (task / "children").read_text().split()]
        except OSError:
            pass
    return total


def preparation(args, meds, theirs):
    ours = args.work / "cohort-serrate"
    rounds = []
    for _ in range(args.rounds):
        shutil.rmtree(ours, ignore_errors=True)
        command = [args.bin / "serrate", "convert", meds, ours, "--to", "meds-torch-data", "--normalize"]
        rounds.append(timed(command))
    shutil.rmtree(theirs, ignore_errors=True)
    with tempfile.TemporaryDirectory() as folder:
        lib = timed(
            [TOOL, f"MEDS_dataset_dir={meds.resolve()}", f"output_dir={theirs.resolve()}"],
            cwd=folder,
            env={"PATH": f"{TOOL.parent}:/usr/bin:/bin", "HOME": folder},
        )
    best, memory = min(t for t, _ in rounds), max(m for _, m in rounds)
    print("## MEDS to normalised tensors\n")
    table(
        ["tool", "seconds", "peak memory, MB", "times as fast", "memory"],
        [
            ["MTD_preprocess", f"{lib[0]:.2f}", f"{lib[1] / 1e6:.0f}", "1.0", "1"],
            [
                "**serrate convert --to meds-torch-data --normalize**",
                f"{best:.2f}",
                f"{memory / 1e6:.0f}",
                f"{lib[0] / best:.1f}",
                f"1/{lib[1] / memory:.1f}",
            ],
        ],
    )


def their_epoch(cohort, mode):
    import torch
    from meds_torchdata import MEDSPytorchDataset, MEDSTorchDataConfig

    torch.manual_seed(7)
    config = MEDSTorchDataConfig(
        tensorized_cohort_dir=str(cohort),
        max_seq_len=WINDOW,
        seq_sampling_strategy="random",
        static_inclusion_mode="omit",
        batch_mode=mode,
    )
    dataset = MEDSPytorchDataset(config, split="train")
    made = 0
    for batch in dataset.get_dataloader(batch_size=BATCH, shuffle=True, num_workers=0):
        made += sum(v.nbytes for v in (getattr(batch, k) for k in batch.keys()) if torch.is_tensor(v))
    return made


def fill(size, batches):
    """Returns the seconds of writing as many bytes to existing buffers, which is the least cost of padding."""
    buffer = np.ones(max(size // max(batches, 1), 1), np.uint8)
    start = time.perf_counter()
    for i in range(batches):
        buffer.fill(i % 2)
    return time.perf_counter() - start


def own_epochs(*command):
    """Returns the measurements of the epochs of one run, whose first epoch allocates memory."""
    done = subprocess.run([str(c) for c in command], capture_output=True, text=True, check=True)
    return [json.loads(line) for line in done.stdout.splitlines()]


def epochs(args, cohort):
    example = [args.bin / "examples" / "meds_epoch", cohort, "--split", "train", "--batch", BATCH]
    example += ["--len", WINDOW, "--window", "random", "--static", "omit", "--seed", 7, "--json", "--epochs", 5, "--no-checksum"]
    rows = []
    for mode, unit in (("SM", "measurement"), ("SEM", "event")):
        lib, size = min(seconds(lambda mode=mode: their_epoch(cohort, mode)) for _ in range(min(args.rounds, 3)))
        rows.append([f"meds-torch-data, {mode}", f"{lib:.4f}", f"{size / 1e9:.3f}", "1.0"])
        for name, extra in (("", []), (", packed", ["--packed"])):
            found = [own_epochs(*example, "--unit", unit, *extra) for _ in range(args.rounds)]
            first = min(run[0]["seconds"] for run in found)
            best = min(epoch["seconds"] for run in found for epoch in run)
            own = found[0][0]["dense_bytes"]
            rows.append([f"Serrate, {mode}{name}, the first epoch of a process", f"{first:.4f}", f"{own / 1e9:.3f}", f"{lib / first:.1f}"])
            rows.append([f"**Serrate, {mode}{name}**, the epochs after it", f"{best:.4f}", f"{own / 1e9:.3f}", f"{lib / best:.1f}"])
            if not extra:
                floor = min(fill(own, found[0][0]["batches"]) for _ in range(args.rounds))
                rows.append([f"numpy: fill as many bytes of reused buffers, {mode}", f"{floor:.4f}", f"{own / 1e9:.3f}", f"{lib / floor:.1f}"])
    print(f"## One epoch of the train split: batches of {BATCH}, random windows of {WINDOW}\n")
    table(["engine", "seconds", "GB made", "times as fast"], rows)


def labels(args, meds):
    """Compares queries for the last 10 events up to each label. Labels have random subjects and measurement times."""
    import duckdb

    folder = args.work / "labels"
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    db = duckdb.connect()
    db.execute("SET enable_progress_bar = false")
    db.execute(f"CREATE TABLE meds AS SELECT subject_id, time, code FROM read_parquet('{meds}/data/**/*.parquet')")
    db.execute(
        f"""CREATE TABLE labels AS
            SELECT subject_id, time AS prediction_time, hash(subject_id, time) % 2 = 0 AS boolean_value
            FROM (SELECT DISTINCT subject_id, time FROM meds WHERE time IS NOT NULL)
            ORDER BY hash(time, subject_id) LIMIT {LABELS}"""
    )
    db.execute(f"COPY labels TO '{folder}/labels.parquet'")
    # An event is a distinct time of a subject, with the list of its codes.
    db.execute(
        """CREATE TABLE events AS
           SELECT subject_id, time, list(code) AS codes FROM meds WHERE time IS NOT NULL GROUP BY ALL"""
    )
    query = """
        SELECT l.subject_id, l.prediction_time, list(e.codes ORDER BY e.time) AS codes
        FROM labels l JOIN LATERAL (
            SELECT time, codes FROM events e
            WHERE e.subject_id = l.subject_id AND e.time <= l.prediction_time
            ORDER BY time DESC LIMIT 10) e ON true
        GROUP BY ALL"""
    theirs, rows = min(seconds(lambda: len(db.sql(query).to_arrow_table())) for _ in range(2))
    ours = []
    for name, source in (("the MEDS files", meds), ("the tensors made of them", args.work / "cohort-serrate")):
        sql = f"""SELECT sum(ragged_count(c)) AS measurements, count(*) AS labels FROM (
            SELECT ragged_tail(code, 10) AS c FROM meds_asof('{source}', '{folder}'))"""
        command = [args.bin / "serrate", "--timing", "--format", "json", "-c", sql]
        best, found = float("inf"), ""
        for _ in range(args.rounds):
            done = subprocess.run([str(c) for c in command], capture_output=True, text=True, check=True)
            best = min(best, float(re.search(r"elapsed_ms=([0-9.]+)", done.stderr)[1]) / 1000)
            found = done.stdout.strip()
        ours.append([f"**Serrate, `meds_asof` over {name}**", f"{best:.3f}", f"{theirs / best:.1f}", found])
    print(f"## {LABELS:,} labels: the last 10 events up to each\n")
    table(
        ["engine", "seconds", "times as fast", "answer"],
        [["DuckDB, tables in memory", f"{theirs:.2f}", "1.0", f"{rows} rows"], *ours],
    )


def main():
    args = arguments()
    meds = args.work / "meds-1250"
    if not meds.exists():
        subprocess.run([args.bin / "serrate", "generate", "--patients", "1250", "--seed", "7", "--to", "meds", "--shards", "5", "-o", meds], check=True)
    print(f"# From MEDS to batches\n\n{machine()}; best of {args.rounds} rounds.\n")
    theirs = args.work / "cohort-mtd"
    preparation(args, meds, theirs)
    epochs(args, theirs)
    labels(args, meds)


if __name__ == "__main__":
    main()
