"""Figures of the package beside nested_ragged_tensors: `python python/benches/figures.py`, with both installed.

Every line is one operation, upstream's time, ours, and how many times ours goes into upstream's; the best of
several rounds each, all in one process, alternating.
"""

import json
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import numpy as np
from nested_ragged_tensors import ragged_numpy as rn

import serrate

THEIRS, OURS = rn.JointNestedRaggedTensorDict, serrate.JointNestedRaggedTensorDict


def best(run, rounds=5):
    times = []
    for _ in range(rounds):
        start = time.perf_counter()
        run()
        times.append(time.perf_counter() - start)
    return min(times)


def line(what, theirs, ours):
    print(json.dumps({"what": what, "upstream_us": round(theirs * 1e6, 1), "ours_us": round(ours * 1e6, 1), "times": round(theirs / ours, 1)}))


def cohort(rows=2000, seed=0):
    """A shard as meds-torch-data writes them: times of events, codes and values of measurements."""
    rng = np.random.default_rng(seed)
    events = rng.integers(20, 400, rows)
    measurements = rng.integers(1, 12, events.sum())
    total = int(measurements.sum())
    return {
        "dim1/bounds": np.cumsum(events),
        "dim1/time_delta_days": rng.random(events.sum(), dtype=np.float32),
        "dim2/bounds": np.cumsum(measurements),
        "dim2/code": rng.integers(1, 5000, total).astype(np.uint16),
        "dim2/numeric_value": rng.random(total, dtype=np.float32),
    }


def main():
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "0.nrt"
        OURS(processed_tensors=cohort()).save(path)
        files = {c: c(tensors_fp=path) for c in (THEIRS, OURS)}
        rows = len(files[OURS])
        rng = np.random.default_rng(1)
        order = [int(i) for i in rng.integers(0, rows, 256)]

        def items(c, window=slice(0, 256)):
            j = files[c]
            return [j[i, window] for i in order]

        for c in (THEIRS, OURS):
            items(c)
        line("item from disk", best(lambda: items(THEIRS)) / 256, best(lambda: items(OURS)) / 256)
        parts = {c: items(c)[:64] for c in (THEIRS, OURS)}
        line(
            "vstack(64) + to_dense",
            best(lambda: THEIRS.vstack(parts[THEIRS]).to_dense(), 3),
            best(lambda: OURS.vstack(parts[OURS]).to_dense(), 20),
        )

        def epoch(c):
            j = files[c]
            for start in range(0, 64 * 8, 64):
                batch = [j[i % rows, 0:256] for i in range(start, start + 64)]
                c.vstack(batch).to_dense()

        line("epoch of 8 batches, 64 x 256", best(lambda: epoch(THEIRS), 2), best(lambda: epoch(OURS), 5))
        flat = {c: items(c)[:64] for c in (THEIRS, OURS)}
        line(
            "flatten of an item",
            best(lambda: [x.flatten() for x in flat[THEIRS]]) / 64,
            best(lambda: [x.flatten() for x in flat[OURS]]) / 64,
        )

    table = serrate.RaggedTable({"x": np.arange(1000)})
    session = serrate.connect(threads=1)
    session.register("t", table)
    for query in ("SELECT 1 AS a", "SELECT x FROM t"):
        session.sql(query).numpy()
        ours = best(lambda: session.sql(query).numpy(), 50)
        print(json.dumps({"what": f"sql: {query}", "ours_us": round(ours * 1e6, 1)}))
    code = "import time, numpy; t = time.perf_counter(); import serrate; print(time.perf_counter() - t)"
    runs = [float(subprocess.run([sys.executable, "-c", code], capture_output=True, text=True).stdout) for _ in range(5)]
    print(json.dumps({"what": "import, numpy loaded", "ours_us": round(min(runs) * 1e6, 1)}))


if __name__ == "__main__":
    main()
