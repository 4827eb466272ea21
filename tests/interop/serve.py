"""Tests `serrate serve` through the ADBC driver of Flight SQL, which Python programs use.

    pip install adbc-driver-flightsql adbc-driver-manager pyarrow
    cargo build --release --features serve
    python tests/interop/serve.py target/release/serrate

Checks the statements and calls of a user, wrong tokens, clients that are killed, and the Python block of
`docs/server.md`. `tests/serve/load.py` runs many clients for some minutes.
"""

import argparse
import os
import re
import signal
import subprocess
import sys
import tempfile
import threading
import time
import urllib.request
from pathlib import Path

import adbc_driver_flightsql.dbapi as flightsql
import adbc_driver_manager
import pyarrow as pa
from adbc_driver_flightsql import DatabaseOptions

ROOT = Path(__file__).resolve().parents[2]
LONG = (
    "SELECT count(*) FROM (SELECT unnest(range(300000)) AS x) a, "
    "(SELECT unnest(range(300000)) AS y) b WHERE (x * y) % 7 = 3"
)


class Server:
    """A process of `serrate serve` with a token."""

    def __init__(self, binary, folder, *arguments):
        self.token = "interop-token"
        token = Path(folder) / "token"
        token.write_text(self.token)
        data = Path(folder) / "data"
        data.mkdir(exist_ok=True)
        command = [binary, "serve", "--listen", "127.0.0.1:0", "--metrics-listen", "127.0.0.1:0"]
        command += ["--token-file", str(token), "--root", ".", *arguments]
        self.process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True, cwd=data)
        self.address = self.process.stdout.readline().split()[-1]
        self.metrics_url = self.process.stdout.readline().split()[-1]

    def connect(self, password=None, **options):
        database = {
            DatabaseOptions.AUTHORIZATION_HEADER.value: f"Bearer {password or self.token}",
            **options,
        }
        return flightsql.connect(f"grpc://{self.address}", db_kwargs=database, autocommit=True)

    def connect_with_password(self, password=None):
        database = {"username": "someone", "password": password or self.token}
        return flightsql.connect(f"grpc://{self.address}", db_kwargs=database, autocommit=True)

    def metric(self, name):
        with urllib.request.urlopen(self.metrics_url, timeout=10) as answer:
            text = answer.read().decode()
        return int(re.search(rf"^serrate_{name} (\d+)$", text, re.M).group(1))

    def wait_for(self, name, value, seconds):
        start = time.monotonic()
        while self.metric(name) != value:
            waited = time.monotonic() - start
            assert waited < seconds, f"{name} is {self.metric(name)} after {waited:.1f} s, not {value}"
            time.sleep(0.02)
        return time.monotonic() - start

    def memory(self):
        """Returns the anonymous memory of the process in MB."""
        status = Path(f"/proc/{self.process.pid}/status").read_text()
        return int(re.search(r"RssAnon:\s+(\d+) kB", status).group(1)) / 1024

    def stop(self):
        self.process.send_signal(signal.SIGTERM)
        code = self.process.wait(timeout=30)
        assert code == 0, f"exit code {code}"


def run(cursor, sql, parameters=None):
    cursor.execute(sql, parameters)
    return cursor.fetch_arrow_table()


def refused(call, kind, *words):
    try:
        call()
    except adbc_driver_manager.Error as error:
        assert error.status_code == kind, (error.status_code, str(error))
        for word in words:
            assert word in str(error), str(error)
        return
    raise AssertionError("nothing was refused")


def check_user(server):
    """Checks the statements and calls of a user."""
    status = adbc_driver_manager.AdbcStatusCode
    with server.connect() as connection, connection.cursor() as cursor:
        table = run(cursor, "SELECT 1 AS a, [[1, 2], []] AS b, 'x' AS c, NULL AS d")
        assert table.to_pylist() == [{"a": 1, "b": [[1, 2], []], "c": "x", "d": None}], table
        assert table.schema.field("b").type == pa.list_(pa.list_(pa.int64())), table.schema
        # The statement runs even if the cursor is closed before its result is read.
        cursor.execute("CREATE TABLE visits AS SELECT unnest(range(1000)) AS id")
        with connection.cursor() as other:
            other.execute("CREATE TABLE unread AS SELECT 1 AS x")
        assert run(cursor, "SELECT count(*) AS n FROM unread").column("n").to_pylist() == [1]
        # Statements can have parameters.
        sql = "SELECT count(*) AS n FROM visits WHERE id >= ? AND id < ?"
        assert run(cursor, sql, (10, 30)).column("n").to_pylist() == [20]
        assert run(cursor, "SELECT $1 || '!' AS s, $2 AS f", ("it's", 1.5)).to_pylist() == [
            {"s": "it's!", "f": 1.5}
        ]
        cursor.execute("SELECT ragged_sum(?) AS s", pa.record_batch({"p": pa.array([[1, 2, None]])}))
        assert cursor.fetchall() == [(3,)]
        cursor.executemany("INSERT INTO visits VALUES (?)", [(5000,), (5001,)])
        assert run(cursor, "SELECT count(*) AS n FROM visits").column("n").to_pylist() == [1002]
        schema = cursor.adbc_execute_schema("SELECT id, [id] AS l FROM visits")
        assert schema.field("l").type == pa.list_(pa.int64()), schema
        prepared = cursor.adbc_prepare("SELECT id FROM visits WHERE id = ?")
        assert prepared.field(0).type == pa.int64(), prepared
        # Results can be read as streams.
        cursor.execute("SELECT x, range(x % 50) AS l FROM (SELECT unnest(range(200000)) AS x)")
        reader = cursor.fetch_record_batch()
        assert sum(batch.num_rows for batch in reader) == 200_000
        # Large lists and string views keep their types.
        cursor.execute("SELECT arrow_cast([1, 2], 'LargeList(Int64)') AS l, arrow_cast('a', 'Utf8View') AS v")
        table = cursor.fetch_arrow_table()
        assert table.schema.field("l").type == pa.large_list(pa.int64()), table.schema
        assert table.to_pylist() == [{"l": [1, 2], "v": "a"}], table
        # The client can send a table.
        sent = pa.table({"k": [1, 2, 3], "codes": [[1], [], None]})
        assert cursor.adbc_ingest("sent", sent, mode="create") == 3
        assert cursor.adbc_ingest("sent", sent, mode="append") == 3
        table = run(cursor, "SELECT sum(k) AS s, sum(ragged_sum(codes)) AS c FROM sent")
        assert table.to_pylist() == [{"s": 12, "c": 2}], table
        # Statements can write and read files of the folder.
        cursor.execute("COPY (SELECT id, [id, id] AS l FROM visits) TO 'x.nrt' OPTIONS (overwrite true)")
        assert run(cursor, "SELECT sum(ragged_sum(l)) AS s FROM 'x.nrt' WHERE id < 10").to_pylist() == [{"s": 90}]
        # The client can list schemas, tables and columns.
        objects = connection.adbc_get_objects(depth="all").read_all().to_pylist()
        schemas = objects[0]["catalog_db_schemas"]
        tables = {t["table_name"]: t for s in schemas for t in s["db_schema_tables"]}
        assert {"visits", "unread", "sent"} <= set(tables), tables
        assert [c["column_name"] for c in tables["sent"]["table_columns"]] == ["k", "codes"]
        assert connection.adbc_get_table_schema("sent").field("codes").type == pa.list_(pa.int64())
        assert "TABLE" in connection.adbc_get_table_types()
        assert connection.adbc_get_info()["vendor_name"] == "serrate"
        # Errors have ADBC status codes, and the connection stays usable.
        refused(lambda: run(cursor, "SELECT nothing"), status.INVALID_ARGUMENT, "nothing")
        refused(lambda: run(cursor, "SELECT * FROM missing"), status.NOT_FOUND, "missing")
        for path in ["/etc/passwd", "../token"]:
            for sql in ["FROM '{}'", "FROM read_csv('{}')", "COPY (SELECT 1) TO '{}.csv'", "FROM vocab('{}')"]:
                refused(lambda: run(cursor, sql.format(path)), status.UNAUTHORIZED, "--root")
        refused(lambda: run(cursor, "SET serrate.memory_limit = '1MB'"), status.UNAUTHORIZED, "server")
        assert run(cursor, "SELECT 1 AS a").column("a").to_pylist() == [1]
        # Two connections share nothing.
        with server.connect_with_password() as second, second.cursor() as other:
            refused(lambda: run(other, "SELECT * FROM visits"), status.NOT_FOUND)
            other.execute("SET datafusion.execution.batch_size = 77")
            assert "77" in str(run(other, "SHOW datafusion.execution.batch_size"))
            assert "77" not in str(run(cursor, "SHOW datafusion.execution.batch_size"))
        with server.connect(**{DatabaseOptions.WITH_COOKIE_MIDDLEWARE.value: "true"}) as third:
            with third.cursor() as other:
                other.execute("CREATE TABLE kept AS SELECT 4 AS x")
                assert run(other, "SELECT x FROM kept").column("x").to_pylist() == [4]
    print("a user: ok")


def check_tokens(server):
    status = adbc_driver_manager.AdbcStatusCode
    for connect in [server.connect, server.connect_with_password]:
        def use():
            with connect("wrong") as connection, connection.cursor() as cursor:
                run(cursor, "SELECT 1")
        refused(use, status.UNAUTHENTICATED)
    print("wrong tokens: ok")


def check_cancel(server):
    """Checks that adbc_cancel from another thread stops the query at the server within 5 seconds."""
    with server.connect() as connection, connection.cursor() as cursor:
        failed = []

        def work():
            try:
                cursor.execute(LONG)
                cursor.fetchall()
            except adbc_driver_manager.Error as error:
                failed.append(error)

        thread = threading.Thread(target=work)
        thread.start()
        server.wait_for("queries_running", 1, 10)
        cursor.adbc_cancel()
        took = server.wait_for("queries_open", 0, 5)
        thread.join(timeout=10)
        assert failed and not thread.is_alive(), failed
    print(f"cancel: ok, {took:.2f} s")


def check_killed(binary, server):
    """Checks that the server ends the queries and sessions of clients that are killed."""
    code = f"""
import adbc_driver_flightsql.dbapi as flightsql
connection = flightsql.connect("grpc://{server.address}", db_kwargs={{
    "adbc.flight.sql.authorization_header": "Bearer {server.token}"}}, autocommit=True)
cursor = connection.cursor()
cursor.execute({LONG!r})
cursor.fetchall()
"""
    before = server.metric("sessions")
    clients = [subprocess.Popen([sys.executable, "-c", code]) for _ in range(4)]
    start = time.monotonic()
    while server.metric("queries_open") < 4:
        assert time.monotonic() - start < 60, "the clients do not start"
        time.sleep(0.05)
    for client in clients:
        client.kill()
        client.wait()
    took = server.wait_for("queries_open", 0, 5)
    server.wait_for("queries_running", 0, 5)
    server.wait_for("queries_queued", 0, 5)
    server.wait_for("sessions", before, 5)
    print(f"killed clients: ok, {took:.2f} s")


def check_page(binary):
    """Runs the Python block of docs/server.md, with the address of a server of its tables."""
    page = (ROOT / "docs" / "server.md").read_text()
    (block,) = re.findall(r"^```python\n(.*?)^```$", page, re.MULTILINE | re.DOTALL)
    with tempfile.TemporaryDirectory() as folder:
        visits = "SELECT x AS subject_id, x % 3 AS site, [x, 1] AS codes FROM (SELECT unnest(range(300)) AS x)"
        copy = f"COPY ({visits}) TO '{folder}/data/visits.nrt'"
        (Path(folder) / "data").mkdir()
        subprocess.run([binary, "-c", copy], check=True, stdout=subprocess.DEVNULL)
        server = Server(binary, folder, "--table", "visits=visits.nrt")
        # The block reads the file with the token.
        here = os.getcwd()
        os.chdir(folder)
        names = {}
        try:
            exec(block.replace("127.0.0.1:8815", server.address), names)
            server.stop()
        finally:
            os.chdir(here)
            server.process.kill()
        assert names["table"].num_rows == 3 and names["batch"].num_columns == 3, names
    print("docs/server.md: ok")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("binary")
    arguments = parser.parse_args()
    binary = os.path.abspath(arguments.binary)
    with tempfile.TemporaryDirectory() as folder:
        server = Server(binary, folder, "--memory-limit", "1GB", "--queue-timeout", "300")
        try:
            check_user(server)
            check_tokens(server)
            check_cancel(server)
            check_killed(binary, server)
            server.stop()
            print("stopped: ok")
        finally:
            server.process.kill()
    check_page(binary)


if __name__ == "__main__":
    main()
