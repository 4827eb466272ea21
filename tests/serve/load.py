"""Runs many Python clients of `serrate serve` for some minutes. Run by hand.

    pip install adbc-driver-flightsql adbc-driver-manager pyarrow
    cargo build --release --features serve
    python tests/serve/load.py target/release/serrate                 # one minute
    python tests/serve/load.py target/release/serrate --minutes 10    # the load of docs/server.md

    # Two workers behind the server, with a build of the features serve and cluster:
    target/release/serrate worker --listen 127.0.0.1:7100 &
    target/release/serrate worker --listen 127.0.0.1:7101 &
    python tests/serve/load.py target/release/serrate --workers 127.0.0.1:7100,127.0.0.1:7101

Each of 32 clients opens sessions and runs statements of all kinds: point queries, aggregates, joins,
large results, results that are not read to the end, prepared statements, tables, settings, COPY,
ingestion, cancelled queries, wrong SQL. Meanwhile, other clients are killed in the middle of a query.
The script checks every answer, and prints the latencies by kind, the errors, and the memory of the server. It fails if
a statement fails, if the memory grows by more than 10 % in a run of a minute or more, or if the server keeps a query
or a session of a killed client.
"""

import argparse
import os
import random
import subprocess
import sys
import tempfile
import threading
import time
from collections import defaultdict
from pathlib import Path

try:
    import adbc_driver_manager
    import pyarrow as pa

    sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "interop"))
    from serve import LONG, Server, run
except ModuleNotFoundError as missing:
    sys.exit(f"{missing}; run pip install adbc-driver-flightsql adbc-driver-manager pyarrow")

ROWS = 20_000
SITES = 7
# The possible numbers of rows of a site; there are two because 20,000 is not a multiple of 7.
PER_SITE = (ROWS // SITES, ROWS // SITES + 1)
Status = adbc_driver_manager.AdbcStatusCode


def prepare_files(server):
    with server.connect() as connection, connection.cursor() as cursor:
        cursor.execute(
            f"COPY (SELECT x AS subject_id, x % {SITES} AS site, range(x % 100) AS codes, "
            f"ragged_unsqueeze(range(x % 100), 2) AS deep FROM (SELECT unnest(range({ROWS})) AS x)) "
            "TO 'patients.nrt' OPTIONS (overwrite true)"
        )
        cursor.execute("COPY (SELECT * FROM 'patients.nrt') TO 'patients.parquet' OPTIONS (overwrite true)")


def read_point(cursor, chosen, number):
    subject = chosen.randrange(ROWS)
    rows = run(cursor, f"SELECT codes FROM 'patients.nrt' WHERE subject_id = {subject}")
    assert rows.column("codes").to_pylist() == [list(range(subject % 100))], subject


def read_aggregate(cursor, chosen, number):
    sql = "SELECT site, count(*) AS n, sum(ragged_sum(codes)) AS s FROM 'patients.parquet' GROUP BY site ORDER BY site"
    rows = run(cursor, sql)
    assert sum(rows.column("n").to_pylist()) == ROWS, rows
    assert sum(rows.column("s").to_pylist()) == ROWS // 100 * sum(n * (n - 1) // 2 for n in range(100)), rows


def read_join(cursor, chosen, number):
    sql = "SELECT count(*) AS n FROM 'patients.nrt' a JOIN 'patients.parquet' b USING (subject_id) WHERE a.site = ?"
    rows = run(cursor, sql, (chosen.randrange(SITES),))
    assert rows.column("n").to_pylist()[0] in PER_SITE, rows


def read_large(cursor, chosen, number):
    cursor.execute("SELECT * FROM 'patients.nrt'")
    subjects = [batch.column("subject_id") for batch in cursor.fetch_record_batch()]
    assert pa.chunked_array(subjects).to_pylist() == list(range(ROWS)), "not in source order"


def read_first_batch(cursor, chosen, number):
    cursor.execute("SELECT * FROM 'patients.parquet'")
    next(iter(cursor.fetch_record_batch()))


def run_prepared(cursor, chosen, number):
    sql = "SELECT subject_id, codes FROM 'patients.nrt' WHERE subject_id >= ? AND subject_id < ?"
    for start in (chosen.randrange(ROWS - 500), chosen.randrange(ROWS - 500)):
        rows = run(cursor, sql, (start, start + 500))
        assert sorted(rows.column("subject_id").to_pylist()) == list(range(start, start + 500)), start


def create_table(cursor, chosen, number):
    cursor.execute(f"CREATE OR REPLACE TABLE own AS SELECT {number} AS n")
    cursor.execute(f"INSERT INTO own VALUES ({number + 1})")
    assert run(cursor, "SELECT sum(n) AS s FROM own").column("s").to_pylist() == [2 * number + 1]


def change_setting(cursor, chosen, number):
    cursor.execute(f"SET datafusion.execution.batch_size = {1000 + number}")
    assert str(1000 + number) in str(run(cursor, "SHOW datafusion.execution.batch_size"))


def copy_file(cursor, chosen, number):
    site = chosen.randrange(SITES)
    name = f"own{number}.nrt"
    cursor.execute(f"COPY (SELECT * FROM 'patients.nrt' WHERE site = {site}) TO '{name}' OPTIONS (overwrite true)")
    rows = run(cursor, f"SELECT count(*) AS n, max(site) AS s FROM '{name}'").to_pylist()
    assert rows[0]["n"] in PER_SITE and rows[0]["s"] == site, rows


def send_table(cursor, chosen, number):
    sent = pa.table({"k": list(range(1000)), "codes": [[k] * (k % 5) for k in range(1000)]})
    assert cursor.adbc_ingest("sent", sent, mode="replace") == 1000
    rows = run(cursor, "SELECT sum(ragged_count(codes)) AS n FROM sent")
    assert rows.column("n").to_pylist() == [2000], rows


def cancel_query(cursor, chosen, number):
    ended = threading.Event()

    def cancel():
        # A call has no effect before the server runs the query, so repeat it.
        while not ended.wait(0.1 + chosen.random() / 5):
            cursor.adbc_cancel()

    thread = threading.Thread(target=cancel)
    thread.start()
    try:
        expect_failure(cursor, LONG, Status.CANCELLED)
    finally:
        ended.set()
        thread.join()


def send_nonsense(cursor, chosen, number):
    sql, code = chosen.choice(
        [
            ("SELECT nothing FROM 'patients.nrt'", Status.INVALID_ARGUMENT),
            ("SELEC 1", Status.INVALID_ARGUMENT),
            ("SELECT 'open", Status.INVALID_ARGUMENT),
            ("SELECT * FROM missing", Status.NOT_FOUND),
            ("SELECT * FROM '/etc/passwd'", Status.UNAUTHORIZED),
        ]
    )
    expect_failure(cursor, sql, code)


def expect_failure(cursor, sql, code):
    try:
        cursor.execute(sql)
        cursor.fetchall()
    except adbc_driver_manager.Error as error:
        assert error.status_code == code, (sql, error.status_code, str(error))
        return
    raise AssertionError(f"no error: {sql}")


# The kinds of statements and their shares.
KINDS = [
    (read_point, 30),
    (read_aggregate, 15),
    (read_join, 8),
    (read_large, 6),
    (read_first_batch, 5),
    (run_prepared, 12),
    (create_table, 6),
    (change_setting, 4),
    (copy_file, 4),
    (send_table, 3),
    (cancel_query, 3),
    (send_nonsense, 4),
]


class Load:
    """Runs the clients and holds their measurements."""

    def __init__(self, server, seconds):
        self.server = server
        self.end = time.monotonic() + seconds
        self.lock = threading.Lock()
        self.latencies = defaultdict(list)
        self.faults = []
        self.connections = 0
        self.killed = 0

    def use_server(self, number):
        """Runs one client, which opens sessions of at most 50 statements."""
        chosen = random.Random(number)
        kinds, shares = zip(*KINDS)
        while time.monotonic() < self.end:
            connect = chosen.choice([self.server.connect, self.server.connect_with_password])
            try:
                with connect() as connection:
                    with self.lock:
                        self.connections += 1
                    for _ in range(50):
                        if time.monotonic() >= self.end:
                            break
                        kind = chosen.choices(kinds, shares)[0]
                        start = time.monotonic()
                        with connection.cursor() as cursor:
                            kind(cursor, chosen, number)
                        took = time.monotonic() - start
                        with self.lock:
                            self.latencies[kind.__name__].append(took)
            except BaseException as error:  # noqa: BLE001 - every fault counts
                with self.lock:
                    self.faults.append((number, repr(error)[:500]))

    def kill_clients(self):
        """Starts a client every few seconds, and kills it in the middle of a query."""
        code = f"""
import adbc_driver_flightsql.dbapi as flightsql
connection = flightsql.connect("grpc://{self.server.address}", db_kwargs={{
    "adbc.flight.sql.authorization_header": "Bearer {self.server.token}"}}, autocommit=True)
cursor = connection.cursor()
cursor.execute({LONG!r})
cursor.fetchall()
"""
        while time.monotonic() < self.end - 3:
            client = subprocess.Popen([sys.executable, "-c", code])
            time.sleep(3)
            if client.poll() is None:
                self.killed += 1
            client.kill()
            client.wait()
            time.sleep(2)

    def run_clients(self, clients):
        targets = [lambda number=number: self.use_server(number) for number in range(clients)]
        threads = [threading.Thread(target=target) for target in [*targets, self.kill_clients]]
        samples = []
        start = time.monotonic()
        for thread in threads:
            thread.start()
        while any(thread.is_alive() for thread in threads):
            time.sleep(0.5)
            samples.append((time.monotonic() - start, self.server.memory()))
        for thread in threads:
            thread.join()
        return samples

    def report_latencies(self):
        print(f"{'kind':<18}{'statements':>11}{'median ms':>11}{'95 % ms':>11}{'highest ms':>11}")
        for kind, _ in KINDS:
            times = sorted(1000 * took for took in self.latencies[kind.__name__])
            if times:
                middle, high = times[len(times) // 2], times[len(times) * 95 // 100]
                print(f"{kind.__name__:<18}{len(times):>11}{middle:>11.0f}{high:>11.0f}{times[-1]:>11.0f}")


def average(numbers):
    return sum(numbers) / max(len(numbers), 1)


def check_load(server, clients, seconds):
    prepare_files(server)
    load = Load(server, seconds)
    samples = load.run_clients(clients)
    load.report_latencies()
    total = sum(map(len, load.latencies.values()))
    print(f"{clients} clients, {seconds:.0f} s: {total} statements, {load.connections} connections, {len(load.faults)} errors")
    for number, fault in load.faults[:5]:
        print(f"  client {number}: {fault}")
    # Skip the first fifth, in which caches and the allocator warm up.
    first = average([memory for at, memory in samples if seconds * 0.2 < at <= seconds * 0.4])
    last = average([memory for at, memory in samples if seconds * 0.8 < at <= seconds])
    highest = max(memory for _, memory in samples)
    print(f"memory of the server: {first:.0f} MB in the second fifth, {last:.0f} MB in the last, at most {highest:.0f} MB")
    for metric in ["queries_open", "queries_running", "queries_queued", "sessions"]:
        server.wait_for(metric, 0, 30)
    print(f"{load.killed} killed clients left nothing running")
    assert not load.faults, "statements failed"
    # The allocator changes the memory by a few MB, and a short run does not warm up the server.
    assert seconds < 60 or last < first * 1.1 + 5, "the memory of the server grows"


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("binary")
    parser.add_argument("--minutes", type=float, default=1, help="length of the load")
    parser.add_argument("--clients", type=int, default=32)
    parser.add_argument("--workers", help="workers of the server, as HOST:PORT,..")
    arguments = parser.parse_args()
    options = ["--memory-limit", "1GB", "--queue-timeout", "300", "--max-queries", "8"]
    if arguments.workers:
        options += ["--workers", arguments.workers]
    with tempfile.TemporaryDirectory() as folder:
        server = Server(os.path.abspath(arguments.binary), folder, *options)
        try:
            check_load(server, arguments.clients, arguments.minutes * 60)
            server.stop()
            print("stopped: ok")
        finally:
            server.process.kill()


if __name__ == "__main__":
    main()
