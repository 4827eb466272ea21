"""Compares queries over `.nrt` files in one process and with 1, 2 and 4 workers on this machine.

    cargo build --release --features cluster
    python benches/peers/workers.py --bin target/release --work target/peers --patients 10000 100000

All processes share the cores of one machine, so this measures the cost of workers and the bytes that they send, not how
much faster several machines are. CPU times are shown for the session and for all workers. The memory of workers is
sampled during a query, without mapped files. The bytes shipped are those that the loopback interface received during
the query. Every query runs in its own session; the time is the best of three rounds. Answers must equal those of the
session without workers.
"""

import argparse
import os
import re
import resource
import subprocess
import threading
import time
from pathlib import Path

from common import machine, table

# The number of seconds between samples of the memory of workers.
SAMPLE = 0.05
TICKS = os.sysconf("SC_CLK_TCK")
QUESTIONS = {
    "total codes": "SELECT sum(ragged_count(code)) FROM p",
    "mean of a code": "SELECT sum(ragged_sum(v)) / sum(ragged_count(v)) FROM (SELECT ragged_filter(numeric_value, code == 20) AS v FROM p)",
    "sum of maxima": "SELECT sum(ragged_max(numeric_value)) FROM p",
    "top 5 codes": "SELECT c, count(*) AS n FROM (SELECT unnest(ragged_flatten(code)) AS c FROM p) GROUP BY c ORDER BY n DESC, c LIMIT 5",
    "patients by length": "SELECT ragged_count(time_delta_days) AS n, count(*), sum(ragged_count(code)) FROM p GROUP BY n ORDER BY n LIMIT 5",
    "self join": "SELECT count(*), sum(ragged_count(a.code)) FROM p a JOIN p b ON a.subject_id = b.subject_id + 1",
    "longest patients": "SELECT subject_id, ragged_count(code) AS n FROM p ORDER BY n DESC, subject_id LIMIT 10",
    "rows of a tenth": "COPY (SELECT subject_id, code FROM p WHERE subject_id % 10 = 3 ORDER BY subject_id) TO '{out}' OPTIONS (overwrite true)",
}


class Worker:
    def __init__(self, binary):
        command = [binary, "worker", "--listen", "127.0.0.1:0"]
        self.process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)
        self.address = self.process.stdout.readline().split()[-1]

    def cpu(self):
        fields = Path(f"/proc/{self.process.pid}/stat").read_text().rsplit(") ", 1)[1].split()
        return (int(fields[11]) + int(fields[12])) / TICKS

    def memory(self):
        """Returns the resident memory without mapped files, in MB."""
        status = Path(f"/proc/{self.process.pid}/status").read_text()
        return int(re.search(r"RssAnon:\s+(\d+) kB", status).group(1)) / 1024

    def stop(self):
        self.process.terminate()
        self.process.wait()


class PeakMemory:
    """Samples the memory of workers while a `with` block runs. `peak` is the highest memory of a worker, in MB."""

    def __init__(self, workers):
        self.workers, self.peak = workers, 0
        self.done = threading.Event()
        self.thread = threading.Thread(target=self.sample, daemon=True)

    def sample(self):
        while True:
            self.peak = max([self.peak, *(worker.memory() for worker in self.workers)])
            if self.done.wait(SAMPLE):
                return

    def __enter__(self):
        self.thread.start()
        return self

    def __exit__(self, *_):
        self.done.set()
        self.thread.join()


def read_loopback():
    line = next(l for l in Path("/proc/net/dev").read_text().splitlines() if l.strip().startswith("lo:"))
    return int(line.split()[1])


def ask(binary, workers, view, sql):
    command = [str(binary), "--format", "csv"]
    if workers:
        command += ["--workers", ",".join(worker.address for worker in workers)]
    command += ["-c", view + sql]
    cpu, bytes_before, start = sum(w.cpu() for w in workers), read_loopback(), time.perf_counter()
    with PeakMemory(workers) as memory:
        process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        out, err = process.stdout.read(), process.stderr.read()
        _, status, usage = os.wait4(process.pid, 0)
        took = time.perf_counter() - start
    if status:
        raise SystemExit(f"{' '.join(command)} failed:\n{err}")
    return {
        "seconds": took,
        "cpu": usage.ru_utime + usage.ru_stime,
        "workers_cpu": sum(w.cpu() for w in workers) - cpu,
        "shipped": (read_loopback() - bytes_before) / 1e6,
        "session": usage.ru_maxrss / 1024,
        "worker": memory.peak,
        "answer": out,
        "note": err.strip(),
    }


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--bin", type=Path, required=True, help="folder of the release build with the feature cluster")
    parser.add_argument("--work", type=Path, required=True, help="folder for data")
    parser.add_argument("--patients", type=int, nargs="+", default=[10_000, 100_000])
    parser.add_argument("--workers", type=int, nargs="+", default=[1, 2, 4])
    parser.add_argument("--rounds", type=int, default=3)
    args = parser.parse_args()
    binary = args.bin / "serrate"
    args.work.mkdir(parents=True, exist_ok=True)
    print(f"{machine()}; best of {args.rounds} rounds.\n")
    for patients in args.patients:
        path = args.work / f"patients-{patients}.nrt"
        if not path.exists():
            subprocess.run([binary, "generate", "--patients", str(patients), "--seed", "7", "-o", path], check=True)
        view = f"CREATE VIEW p AS SELECT * FROM '{path}'; "
        print(f"### {patients:,} patients, {path.stat().st_size / 1e6:,.0f} MB\n")
        rows, expected = [], {}
        for count in [0, *args.workers]:
            workers = [Worker(binary) for _ in range(count)]
            for name, sql in QUESTIONS.items():
                out = args.work / f"workers-{count}.nrt"
                runs = [ask(binary, workers, view, sql.format(out=out)) for _ in range(args.rounds)]
                answer = out.read_bytes() if "{out}" in sql else runs[0]["answer"]
                if expected.setdefault(name, answer) != answer:
                    raise SystemExit(f"{name}: {count} workers give another answer")
                best = min(runs, key=lambda run: run["seconds"])
                rows.append(
                    [
                        name,
                        str(count),
                        f"{best['seconds']:.2f}",
                        f"{best['cpu']:.2f}",
                        f"{best['workers_cpu']:.2f}",
                        f"{best['shipped']:.1f}",
                        f"{max(run['session'] for run in runs):,.0f}",
                        f"{max(run['worker'] for run in runs):,.0f}",
                        "here" if best["note"] else "",
                    ]
                )
            for worker in workers:
                worker.stop()
        order = list(QUESTIONS)
        rows.sort(key=lambda row: (order.index(row[0]), int(row[1])))
        table(["question", "workers", "seconds", "session CPU s", "workers CPU s", "shipped MB", "session MB, mapped file included", "worker MB", "ran"], rows)


if __name__ == "__main__":
    main()
