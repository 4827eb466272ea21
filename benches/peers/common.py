"""Functions that the comparisons share: arguments, their input file, timing, and tables."""

import argparse
import json
import os
import platform
import subprocess
import time
from pathlib import Path

import numpy as np
from safetensors.numpy import load_file, save_file


def arguments():
    parser = argparse.ArgumentParser()
    parser.add_argument("--bin", type=Path, required=True, help="folder of the release build")
    parser.add_argument("--data", type=Path, required=True, help="a file made by `serrate generate`")
    parser.add_argument("--work", type=Path, required=True, help="folder for what is made on the way")
    parser.add_argument("--rounds", type=int, default=5)
    return parser.parse_args()


def training_file(data: Path, work: Path) -> Path:
    """Writes the columns that a model reads: t (f32) per event, code (u16) and value (f32) per measurement."""
    out = work / f"{data.stem}-training.nrt"
    if not out.exists() or out.stat().st_mtime < data.stat().st_mtime:
        tensors = load_file(data)
        save_file(
            {
                "dim1/bounds": tensors["dim1/bounds"],
                "dim1/t": tensors["dim1/time_delta_days"],
                "dim2/bounds": tensors["dim2/bounds"],
                "dim2/code": tensors["dim2/code"],
                "dim2/value": tensors["dim2/numeric_value"],
            },
            out,
        )
    return out


def run_json(*command, target=None):
    """Runs a command and parses the JSON that it prints; `target` is the build folder of commands that run cargo."""
    env = {**os.environ, "CARGO_TARGET_DIR": str(target)} if target else None
    done = subprocess.run([str(c) for c in command], capture_output=True, text=True, env=env)
    if done.returncode:
        raise SystemExit(f"{' '.join(map(str, command))} failed:\n{done.stderr}")
    return json.loads(done.stdout)


def seconds(run):
    """Runs a function and returns its time in seconds and its result."""
    start = time.perf_counter()
    answer = run()
    return time.perf_counter() - start, answer


def bits(arrays) -> int:
    """Returns the sum of all cells, read as unsigned integers; it does not depend on the order of the cells."""
    total = 0
    for array in arrays:
        flat = np.ascontiguousarray(array).reshape(-1)
        total += int(flat.view(f"u{flat.dtype.itemsize}").sum(dtype=np.uint64))
    return total % 2**64


def machine() -> str:
    model = platform.processor() or platform.machine()
    try:
        for line in Path("/proc/cpuinfo").read_text().splitlines():
            if line.startswith("model name"):
                model = line.split(":", 1)[1].strip()
                break
    except OSError:
        pass
    return f"{model}, {os.cpu_count()} cores, Python {platform.python_version()}, numpy {np.__version__}"


def table(head, rows):
    """Prints a Markdown table whose numbers are aligned to the right."""
    print("| " + " | ".join(head) + " |")
    print("|" + "|".join("---" if i == 0 else "---:" for i in range(len(head))) + "|")
    for row in rows:
        print("| " + " | ".join(str(c) for c in row) + " |")
    print(flush=True)
