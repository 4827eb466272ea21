"""Reads and writes object stores with `serrate`: the S3 server of moto and a file server, behind a proxy.

    pip install 'moto[server]' boto3
    cargo build --release --features cloud
    python tests/interop/stores.py target/release/serrate

The servers use loopback. The proxy counts the bytes of each request, and can answer with 503, close connections, and
delay answers. moto checks signatures. The script prints its measurements. `--only bytes` runs one group of checks.
"""

import argparse
import asyncio
import atexit
import functools
import http.server
import json
import os
import re
import shutil
import signal
import socket
import struct
import subprocess
import sys
import tempfile
import threading
import time
import traceback
import urllib.request
from dataclasses import dataclass
from pathlib import Path

import boto3
import botocore.config
import botocore.exceptions

REPOSITORY = Path(__file__).resolve().parents[2]
BUCKET = "hospital"
SLOW_DOWN = b"<Error><Code>SlowDown</Code><Message>Please reduce your request rate.</Message></Error>"
NESTED = "SELECT value AS id, [value, value + 1] AS x, [[value], [value, value * 2]] AS y FROM generate_series(0, {})"
FLAT = "SELECT value AS id, value * 2 AS v FROM generate_series(0, 999)"


@dataclass
class Request:
    method: str
    target: str
    range: str
    sent: int = 0
    """Bytes of the body that the client has sent."""
    status: int = 0
    """0 if there was no answer."""
    received: int = 0
    """Bytes of the body that the client was sent."""

    def is_data(self):
        """Returns whether the request reads bytes of an object."""
        return self.method == "GET" and "list-type" not in self.target and self.status in (200, 206)


@dataclass
class Fault:
    """A fault in the next `left` requests of a method whose target contains a string."""

    kind: str
    left: int = 1_000_000
    method: str = ""
    text: str = ""
    seconds: float = 0

    def applies(self, method, target):
        return self.left > 0 and self.method in ("", method) and self.text in target


class Proxy:
    """Forwards requests to a server on loopback, and records them. It runs on its own thread."""

    def __init__(self, port):
        self.upstream = port
        self.requests, self.faults = [], []
        self.loop = asyncio.new_event_loop()
        started = threading.Event()

        def work():
            asyncio.set_event_loop(self.loop)
            server = self.loop.run_until_complete(asyncio.start_server(self.serve, "127.0.0.1", 0, limit=1 << 20))
            self.port = server.sockets[0].getsockname()[1]
            started.set()
            self.loop.run_forever()

        threading.Thread(target=work, daemon=True).start()
        started.wait()
        self.url = f"http://127.0.0.1:{self.port}"

    def fail(self, kind, left=1_000_000, method="", text="", seconds=0):
        self.faults.append(Fault(kind, left, method, text, seconds))

    def take(self):
        """Returns the requests since the last call, and removes the faults."""
        self.faults = []
        taken, self.requests = self.requests, []
        return taken

    async def serve(self, reader, writer):
        try:
            while await self.answer(reader, writer):
                pass
        except (ConnectionError, asyncio.IncompleteReadError):
            pass
        finally:
            writer.close()

    async def answer(self, reader, writer):
        """Answers one request; returns whether the connection stays open."""
        head = (await reader.readuntil(b"\r\n\r\n")).decode("latin-1")
        first, *lines = head.strip().split("\r\n")
        method, target, _ = first.split(" ")
        headers = {name.lower(): value.strip() for name, value in (line.split(":", 1) for line in lines)}
        request = Request(method, target, headers.get("range", ""))
        self.requests.append(request)
        fault = next((fault for fault in self.faults if fault.applies(method, target)), Fault("none"))
        fault.left -= 1
        length = int(headers.get("content-length", 0))
        if fault.kind == "cut request":
            request.sent = len(await reader.readexactly(length // 2))
            return False
        body = await reader.readexactly(length)
        request.sent = len(body)
        if fault.kind == "drop":
            return False
        if fault.kind == "delay":
            await asyncio.sleep(fault.seconds)
        if fault.kind == "refuse":
            status, kept, answer = 503, ["Content-Type: application/xml"], SLOW_DOWN
        else:
            status, kept, answer = await self.forward(first, lines, method, body)
        size = next((line for line in kept if line.lower().startswith("content-length:")), None)
        if method != "HEAD" or size is None:
            kept = [line for line in kept if line != size] + [f"Content-Length: {len(answer)}"]
        writer.write("\r\n".join([f"HTTP/1.1 {status} Status", *kept, "\r\n"]).encode("latin-1"))
        if fault.kind == "cut":
            answer = answer[: len(answer) // 2]
        if method != "HEAD":
            writer.write(answer)
            request.received = len(answer)
        request.status = status
        await writer.drain()
        return fault.kind != "cut"

    async def forward(self, first, lines, method, body):
        reader, writer = await asyncio.open_connection("127.0.0.1", self.upstream, limit=1 << 20)
        try:
            lines = [line for line in lines if not line.lower().startswith("connection:")]
            writer.write("\r\n".join([first, *lines, "Connection: close", "\r\n"]).encode("latin-1") + body)
            head = (await reader.readuntil(b"\r\n\r\n")).decode("latin-1").strip().split("\r\n")
            answer = await reader.read(-1) if method != "HEAD" else b""
        finally:
            writer.close()
        if any(re.match("transfer-encoding: *chunked", line, re.I) for line in head):
            answer = join_chunks(answer)
        dropped = ("transfer-encoding:", "connection:")
        return int(head[0].split()[1]), [line for line in head[1:] if not line.lower().startswith(dropped)], answer


def join_chunks(answer):
    joined, at = b"", 0
    while True:
        end = answer.index(b"\r\n", at)
        size = int(answer[at:end], 16)
        if size == 0:
            return joined
        joined += answer[end + 2 : end + 2 + size]
        at = end + 2 + size + 2


class RangeHandler(http.server.SimpleHTTPRequestHandler):
    """Serves files, and ranges of files for requests with `Range: bytes=3-7`."""

    protocol_version = "HTTP/1.1"

    def log_message(self, *_):
        pass

    def do_GET(self):
        path = Path(self.translate_path(self.path))
        asked = re.fullmatch(r"bytes=(\d*)-(\d*)", self.headers.get("Range", ""))
        if not asked or not path.is_file():
            super().do_GET()
            return
        data = path.read_bytes()
        first, last = asked.groups()
        start = int(first) if first else max(0, len(data) - int(last))
        end = min(int(last) + 1, len(data)) if first and last else len(data)
        if start >= len(data):
            self.send_error(416)
            return
        self.send_response(206)
        self.send_header("Content-Range", f"bytes {start}-{end - 1}/{len(data)}")
        self.send_header("Content-Length", str(end - start))
        self.send_header("ETag", f'"{len(data)}-{path.stat().st_mtime_ns}"')
        self.send_header("Last-Modified", self.date_time_string(path.stat().st_mtime))
        self.end_headers()
        self.wfile.write(data[start:end])


class WholeHandler(http.server.SimpleHTTPRequestHandler):
    """Serves only whole files, like the server of the Python library."""

    def log_message(self, *_):
        pass


def start_files(handler, folder):
    serve = functools.partial(handler, directory=str(folder))
    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), serve)
    server.daemon_threads = True
    threading.Thread(target=server.serve_forever, daemon=True).start()
    return server.server_address[1]


def wait_for(condition, seconds):
    start = time.monotonic()
    while not condition():
        assert time.monotonic() - start < seconds, "waited too long"
        time.sleep(0.02)


class Moto:
    """An S3 server with a bucket, a user that may access it, and a user that may not."""

    def __init__(self, log, seconds):
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            self.port = free.getsockname()[1]
        self.url = f"http://127.0.0.1:{self.port}"
        command = [sys.executable, "-m", "moto.server", "-H", "127.0.0.1", "-p", str(self.port)]
        self.process = subprocess.Popen(command, stdout=log, stderr=log)
        atexit.register(self.process.kill)
        wait_for(self.is_open, seconds)
        iam = self.client("iam", "any", "any")
        keys = {}
        for user, actions in [("reader", ["s3:*"]), ("stranger", ["ec2:*"])]:
            iam.create_user(UserName=user)
            rules = [{"Effect": "Allow", "Action": actions, "Resource": "*"}]
            policy = json.dumps({"Version": "2012-10-17", "Statement": rules})
            iam.put_user_policy(UserName=user, PolicyName="p", PolicyDocument=policy)
            key = iam.create_access_key(UserName=user)["AccessKey"]
            keys[user] = (key["AccessKeyId"], key["SecretAccessKey"])
        self.keys, self.stranger = keys["reader"], keys["stranger"]
        # After this request, moto checks signatures and permissions.
        plain = {"Content-Type": "text/plain"}
        reset = urllib.request.Request(f"{self.url}/moto-api/reset-auth", b"0", plain)
        urllib.request.urlopen(reset, timeout=10).close()
        self.s3 = self.client("s3", *self.keys)
        self.s3.create_bucket(Bucket=BUCKET)

    def is_open(self):
        assert self.process.poll() is None, "moto did not start"
        with socket.socket() as connection:
            return connection.connect_ex(("127.0.0.1", self.port)) == 0

    def client(self, service, key, secret):
        config = botocore.config.Config(s3={"addressing_style": "path"}, retries={"max_attempts": 1})
        return boto3.client(
            service,
            endpoint_url=self.url,
            region_name="us-east-1",
            aws_access_key_id=key,
            aws_secret_access_key=secret,
            config=config,
        )

    def put_folder(self, folder, prefix):
        for path in sorted(Path(folder).rglob("*")):
            if path.is_file():
                name = f"{prefix}/{path.relative_to(folder)}"
                self.s3.put_object(Bucket=BUCKET, Key=name, Body=path.read_bytes())

    def size(self, name):
        """Returns the size of an object, or `None` if there is none."""
        try:
            return self.s3.head_object(Bucket=BUCKET, Key=name)["ContentLength"]
        except botocore.exceptions.ClientError as error:
            assert error.response["Error"]["Code"] == "404", error
            return None

    def names(self, prefix):
        found = self.s3.list_objects_v2(Bucket=BUCKET, Prefix=prefix)
        return [entry["Key"] for entry in found.get("Contents", [])]

    def uploads(self):
        return self.s3.list_multipart_uploads(Bucket=BUCKET).get("Uploads", [])

    def abort_uploads(self):
        for upload in self.uploads():
            self.s3.abort_multipart_upload(Bucket=BUCKET, Key=upload["Key"], UploadId=upload["UploadId"])


@dataclass
class Said:
    code: int
    out: str
    err: str
    seconds: float


class Place:
    """The servers, a local folder with the same files as the bucket, and the command."""

    def __init__(self, binary, root, patience):
        self.binary, self.root, self.patience = binary, Path(root), patience
        self.local, self.temporary = self.root / "local", self.root / "tmp"
        for folder in (self.local, self.temporary, self.root / "home", self.root / "cwd"):
            folder.mkdir()
        self.log = open(self.root / "moto.log", "wb")
        self.moto = Moto(self.log, 60 * patience)
        self.proxy = Proxy(self.moto.port)
        self.said = []
        self.write_files()
        self.moto.put_folder(self.local, "d")

    def environment(self, **changes):
        key, secret = self.moto.keys
        names = {
            "PATH": os.environ["PATH"],
            "HOME": str(self.root / "home"),
            "TMPDIR": str(self.temporary),
            "AWS_ACCESS_KEY_ID": key,
            "AWS_SECRET_ACCESS_KEY": secret,
            "AWS_REGION": "us-east-1",
            "AWS_ENDPOINT": self.proxy.url,
            "AWS_ALLOW_HTTP": "true",
            **changes,
        }
        return {name: value for name, value in names.items() if value is not None}

    def start(self, *arguments, **changes):
        return subprocess.Popen(
            [self.binary, *arguments],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            cwd=self.root / "cwd",
            env=self.environment(**changes),
        )

    def finish(self, process, seconds=300):
        start = time.monotonic()
        out, err = process.communicate(timeout=seconds * self.patience)
        said = Said(process.returncode, out, err, time.monotonic() - start)
        self.said.append(said)
        return said

    def sql(self, sql, *arguments, **changes):
        return self.finish(self.start(*arguments, "-f", "csv", "-c", sql, **changes))

    def rows(self, sql, *arguments, **changes):
        said = self.sql(sql, *arguments, **changes)
        assert said.code == 0, f"{sql}\n{said.err}"
        return said.out

    def refused(self, sql, *words, arguments=(), **changes):
        """Runs a statement that must fail with a message that contains the words."""
        said = self.sql(sql, *arguments, **changes)
        assert said.code == 1, f"{sql}\n{said.out}"
        for word in words:
            assert word in said.err, f"{sql}\n{word}\n{said.err}"
        # The message must not have the answer of the server, signatures, or the address of the store.
        for word in ["<Error", "<?xml", "X-Amz", "panicked", self.proxy.url]:
            assert word not in said.err, f"{sql}\n{said.err}"
        return said

    def write_files(self):
        local = self.local
        for folder in ["t", "shards", "hive/k=1", "hive/k=2", "small"]:
            (local / folder).mkdir(parents=True)
        files = {f"t/t.{ending}": NESTED.format(999) for ending in ["nrt", "parquet", "json", "ndjson", "arrow"]}
        files["t/t.csv"] = FLAT
        files |= {f"shards/{n}.nrt": f"SELECT {n} AS n, [{n}] AS x" for n in (1, 2, 10)}
        files |= {f"hive/k={k}/x.parquet": f"SELECT {k * 10} AS v" for k in (1, 2)}
        files["small/a b+%.nrt"] = "SELECT 7 AS id"
        # `check_bytes` reads this file.
        files["large.nrt"] = NESTED.format(199_999)
        copies = [f"COPY ({query}) TO '{local}/{name}'" for name, query in files.items()]
        groups = "OPTIONS (max_row_group_size 10000)"
        copies.append(f"COPY ({NESTED.format(199_999)}) TO '{local}/large.parquet' {groups}")
        self.rows("; ".join(copies))
        shutil.copytree(REPOSITORY / "tests/data/synthea-meds", local / "meds")
        shutil.copy(REPOSITORY / "tests/data/cohorts/emergency.yaml", local / "emergency.yaml")
        (local / "predicates.yaml").write_text("predicates:\n  outpatient:\n    code: VISIT_START//OUTPATIENT\n")

    def stop(self):
        self.moto.process.terminate()
        self.moto.process.wait(timeout=30)
        self.log.close()


# Statements for every part of SQL that takes a path. ROOT is replaced by a local folder, and then by a URL.
PLACES = {
    "FROM a file": [
        f"SELECT count(*), sum(id), sum(ragged_sum(x)) FROM 'ROOT/t/t.{ending}'"
        for ending in ["nrt", "parquet", "json", "ndjson", "arrow"]
    ]
    + ["SELECT count(*), sum(id), sum(v) FROM 'ROOT/t/t.csv'", "SELECT id FROM 'ROOT/small/a b+%.nrt'"],
    "FROM a folder": ["SELECT n, x FROM 'ROOT/shards/'", "SELECT k, v FROM 'ROOT/hive/' ORDER BY k"],
    "FROM a pattern": [
        "SELECT n, x FROM 'ROOT/shards/*.nrt'",
        "SELECT n FROM 'ROOT/shards/1*.nrt'",
        "SELECT count(*) FROM 'ROOT/t/*.parquet'",
        "SELECT sum(v) FROM 'ROOT/hive/**/*.parquet'",
    ],
    "read_*": [
        f"SELECT count(*), sum(id) FROM read_{ending}('ROOT/t/t.{ending}')"
        for ending in ["nrt", "parquet", "csv", "json", "ndjson", "arrow"]
    ]
    + [
        "SELECT count(*) FROM read_csv('ROOT/t/t.csv', header => false)",
        "SELECT n FROM read_nrt(['ROOT/shards/1.nrt', 'ROOT/shards/10.nrt'])",
    ],
    "EXTERNAL TABLE": [
        f"CREATE EXTERNAL TABLE {ending} STORED AS {ending.upper()} LOCATION 'ROOT/t/t.{ending}'; "
        f"SELECT count(*), sum(id) FROM {ending}; DESCRIBE {ending}"
        for ending in ["nrt", "parquet", "csv", "json", "arrow"]
    ]
    + ["CREATE EXTERNAL TABLE e STORED AS NRT LOCATION 'ROOT/shards/'; SELECT n FROM e WHERE n > 1"],
    "tables from queries": [
        "CREATE VIEW w AS SELECT id FROM 'ROOT/t/t.nrt'; SELECT sum(id) FROM w",
        "CREATE TABLE u AS SELECT id FROM 'ROOT/t/t.parquet'; SELECT sum(id) FROM u",
        "SELECT count(*) FROM 'ROOT/t/t.nrt' a JOIN 'ROOT/t/t.parquet' b ON a.id = b.id",
        "SELECT count(*) FROM ragged_explode('ROOT/t/t.nrt')",
        "SELECT count(*) FROM ragged_nest('ROOT/t/t.csv', 'v')",
        "SELECT * FROM ragged_axes('ROOT/t/t.nrt')",
        "SELECT column_name, min, max FROM summarize('ROOT/t/t.parquet')",
    ],
    "meds()": ["SELECT count(*), sum(ragged_count(code)) FROM meds('ROOT/meds')"],
    "meds_asof() and labels": [
        "SELECT count(*), sum(ragged_count(code)) FROM meds_asof('ROOT/meds', 'ROOT/meds/labels')",
        "SELECT count(*) FROM meds_asof('ROOT/meds', "
        "'ROOT/meds/labels/emergency_within_a_year/train/0.parquet')",
    ],
    "meds_cohort()": [
        "SELECT count(*), sum(label) FROM meds_cohort('ROOT/meds', 'ROOT/emergency.yaml')",
        "SELECT count(*), sum(label) FROM meds_cohort('ROOT/meds', 'ROOT/emergency.yaml', "
        "predicates => 'ROOT/predicates.yaml')",
    ],
    "meds_features()": [
        "SELECT * FROM meds_features('ROOT/meds', 'ROOT/meds/labels', prefixes => ['VISIT_START//'], "
        "windows => ['all'], aggregates => ['count'], vocabulary => 'ROOT/meds/metadata/codes.parquet') "
        "ORDER BY row LIMIT 5",
    ],
    "vocabularies": [
        "SELECT count(*), min(code) FROM vocab('ROOT/meds')",
        "SELECT count(*), min(code) FROM vocab('ROOT/meds/metadata/codes.parquet')",
        "SELECT ragged_decode(ragged_encode([code], 'ROOT/meds'), 'ROOT/meds') AS c FROM vocab('ROOT/meds') "
        "ORDER BY token LIMIT 3",
    ],
    "look-ups": [
        "SELECT ragged_lookup([['VISIT_START//OUTPATIENT']], 'ROOT/meds', 'code', 'code/n_subjects') AS n",
        "SELECT ragged_lookup([3, 4], 'ROOT/t/t.parquet', 'id', 'id') AS v",
        "SELECT ragged_lookup([3, 4], 'ROOT/t/t.nrt', 'id', 'id') AS v",
        "SELECT ragged_lookup([3, 4], 'ROOT/t/t.csv', 'id', 'v') AS v",
    ],
}


def check_places(place):
    for name, statements in PLACES.items():
        sql = "; ".join(statements)
        local = place.rows(sql.replace("ROOT", str(place.local)))
        stored = place.rows(sql.replace("ROOT", f"s3://{BUCKET}/d"))
        assert local == stored, f"{sql}\n{local}\n{stored}"
        print(f"  {name}: {len(statements)} statements")
    place.proxy.take()
    # Check other environment variables, and options of statements.
    place.rows(f"FROM 's3://{BUCKET}/d/shards/1.nrt'", AWS_ENDPOINT=None, AWS_ENDPOINT_URL=place.proxy.url)
    create = f"CREATE EXTERNAL TABLE e STORED AS NRT LOCATION 's3://{BUCKET}/d/shards/' {options(place)}"
    given = dict.fromkeys(["AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY", "AWS_REGION", "AWS_ENDPOINT"])
    said = place.rows(f"{create}; SELECT sum(n) FROM e; SELECT n FROM 's3://{BUCKET}/d/shards/10.nrt'", **given)
    assert said.split() == ["sum(n)", "13", "n", "10"], said
    place.refused(f"SELECT * FROM 's3://{BUCKET}/d/shards/1.nrt'", "--root", arguments=("--root", "."))
    for command in [("inspect",), ("check",), ("report", "-o", "r.html"), ("convert",)]:
        paths = [f"s3://{BUCKET}/d/t/t.nrt"] + (["x.parquet"] if command[0] == "convert" else [])
        said = place.finish(place.start(command[0], *paths, *command[1:]))
        assert said.code in (1, 2) and "panicked" not in said.err, said.err
    print(f"  commands other than SQL: {said.err.strip()}")


def options(place, key=None, secret=None, more=""):
    known = place.moto.keys
    return (
        f"OPTIONS ('aws.access_key_id' '{key or known[0]}', 'aws.secret_access_key' '{secret or known[1]}', "
        f"'aws.region' 'us-east-1', 'aws.endpoint' '{place.proxy.url}', 'aws.allow_http' 'true'{more})"
    )


def check_bytes(place):
    """Checks that a point query on .nrt reads only the header, the bounds and the values of its rows."""
    proxy, path = place.proxy, place.local / "large.nrt"
    header = 8 + struct.unpack("<Q", path.read_bytes()[:8])[0]
    # The size of the header is unknown before it is read, so the first request asks for this many bytes.
    first = max(16 << 10, header)
    print(f"  large.nrt: {path.stat().st_size:,} bytes, header {header}, first request {first:,}")
    row = 123_456
    # A statement, its answer, the bytes of bounds, and the bytes of values.
    for select, answer, bounds, values in [
        (f"id FROM T WHERE _row = {row}", f"{row}", 0, 8),
        (f"ragged_sum(x) AS s FROM T WHERE _row = {row}", f"{2 * row + 1}", 16, 16),
        (f"ragged_sum(y) AS s FROM T WHERE _row = {row}", f"{4 * row}", 16 + 24, 24),
        (f"ragged_count(x) AS n FROM T WHERE _row BETWEEN {row} AND {row + 9}", " ".join("2" * 10), 88, 0),
        (f"sum(id) AS s FROM T WHERE _row IN (5, {row})", f"{row + 5}", 0, 16),
    ]:
        proxy.take()
        sql = f"SELECT {select}".replace("FROM T", f"FROM 's3://{BUCKET}/d/large.nrt'")
        said = place.rows(sql)
        assert " ".join(said.split()[1:]) == answer, f"{sql}\n{said}"
        requests = proxy.take()
        data = [request for request in requests if request.is_data()]
        received = sum(request.received for request in data)
        others = [request.method for request in requests if not request.is_data()]
        print(
            f"  {select.replace('FROM T ', '')}: {received:,} bytes in {len(data)} requests "
            f"(and {', '.join(others) or 'none'} without data), allowed {first + bounds + values:,}"
        )
        assert received <= first + bounds + values, [vars(request) for request in data]
    proxy.take()
    size = (place.local / "large.parquet").stat().st_size
    place.rows(f"SELECT x FROM 's3://{BUCKET}/d/large.parquet' WHERE id = {row}")
    received = sum(request.received for request in proxy.take() if request.is_data())
    print(f"  large.parquet: {size:,} bytes, WHERE id = {row}: {received:,}")
    assert received < size / 4
    place.rows(f"SELECT count(*) FROM 's3://{BUCKET}/d/large.parquet'")
    received = sum(request.received for request in proxy.take() if request.is_data())
    print(f"  large.parquet: count(*): {received:,}")
    # A process copies the objects of a MEDS folder once, and again only if they change.
    sql = f"SELECT count(*) FROM meds('s3://{BUCKET}/d/meds')"
    place.rows(sql)
    once = sum(request.received for request in proxy.take() if request.is_data())
    place.rows(f"{sql}; {sql}; {sql}")
    thrice = sum(request.received for request in proxy.take() if request.is_data())
    assert once == thrice, (once, thrice)
    print(f"  meds(): {once:,} bytes of {sum(p.stat().st_size for p in (place.local / 'meds').rglob('*')):,}")


def check_copy(place):
    """Checks that COPY writes whole objects in all formats, and large objects in parts."""
    proxy, moto = place.proxy, place.moto
    for name, query, more in [
        ("nrt", NESTED.format(999), ""),
        ("parquet", NESTED.format(999), ""),
        ("json", NESTED.format(999), ""),
        ("ndjson", NESTED.format(999), ""),
        ("arrow", NESTED.format(999), ""),
        ("csv", FLAT, ""),
        ("safetensors", FLAT, ""),
        ("dok.safetensors", "SELECT 1 AS i, 2 AS j, 0.5 AS v", "STORED AS DOK OPTIONS (shape '3, 3')"),
    ]:
        file = place.root / f"copied.{name}"
        file.unlink(missing_ok=True)
        copy = f"COPY ({query}) TO 'TARGET' {more}"
        place.rows(copy.replace("TARGET", str(file)))
        place.rows(copy.replace("TARGET", f"s3://{BUCKET}/out/c.{name}"))
        stored = moto.s3.get_object(Bucket=BUCKET, Key=f"out/c.{name}")["Body"].read()
        assert stored == file.read_bytes(), name
        place.refused(copy.replace("TARGET", f"s3://{BUCKET}/out/c.{name}"), "already exists")
        overwrite = more.replace(")", ", overwrite true)") if more else "OPTIONS (overwrite true)"
        place.rows(f"COPY ({query}) TO 's3://{BUCKET}/out/c.{name}' {overwrite}")
    place.rows(f"COPY (SELECT 1 AS k, 2 AS v) TO 's3://{BUCKET}/out/parts/' STORED AS PARQUET PARTITIONED BY (k)")
    assert place.rows(f"SELECT k, v FROM 's3://{BUCKET}/out/parts/'").split() == ["k,v", "1,2"]
    place.refused(f"COPY (SELECT 1 AS a) TO 's3://{BUCKET}/out/r.csv'", "--read-only", arguments=("--read-only",))
    failing = f"COPY (SELECT 10 / (value - 900000) AS q FROM generate_series(1, 1000000)) TO 's3://{BUCKET}/out/f"
    for ending in ["csv", "nrt", "parquet"]:
        place.refused(f"{failing}.{ending}'", "by zero")
        assert moto.size(f"out/f.{ending}") is None
    proxy.take()
    # A large object is uploaded in parts, and is visible only after the last request.
    for ending in ["nrt", "parquet", "csv"]:
        rows = "SELECT value AS id, sin(value) AS y FROM generate_series(1, 1100000)"
        target = f"s3://{BUCKET}/out/large.{ending}"
        place.rows(f"COPY ({rows}) TO '{target}'")
        requests = proxy.take()
        parts = [request.sent for request in requests if "partNumber" in request.target]
        size = moto.size(f"out/large.{ending}")
        assert sum(parts) == size and len(parts) == -(-size // (8 << 20)) > 1, (parts, size)
        assert not any(r.method == "PUT" and "partNumber" not in r.target for r in requests)
        said = place.rows(f"SELECT count(*), sum(id) FROM '{target}'").split()[1]
        assert said == "1100000,605000550000", said
        proxy.take()
        print(f"  COPY .{ending}: {size:,} bytes in {len(parts)} parts")
    assert not moto.uploads()
    check_killed(place)


def check_killed(place):
    """Checks that a killed COPY leaves the old object, or no object."""
    proxy, moto = place.proxy, place.moto
    rows = "SELECT value AS id, value * VERSION AS y FROM generate_series(1, 1100000)"
    new, old = f"s3://{BUCKET}/out/killed.nrt", f"s3://{BUCKET}/out/large.nrt"
    before = moto.s3.head_object(Bucket=BUCKET, Key="out/large.nrt")["ETag"]
    for kind, number in [("SIGKILL", signal.SIGKILL), ("SIGINT", signal.SIGINT), ("SIGTERM", signal.SIGTERM)]:
        for target, when in [(new, "parts"), (old, "parts"), (new, "end"), (new, "query")]:
            proxy.take()
            if when == "parts":
                proxy.fail("delay", method="PUT", text="partNumber=2", seconds=20 * place.patience)
            else:
                proxy.fail("delay", method="POST", text="uploadId=", seconds=20 * place.patience)
            query = rows.replace("VERSION", "3")
            if when == "query":
                query = "SELECT value AS id FROM generate_series(1, 300000000)"
            process = place.start("-c", f"COPY ({query}) TO '{target}' OPTIONS (overwrite true)")
            if when == "query":
                time.sleep(1)
                assert process.poll() is None
            else:
                text = "partNumber=2" if when == "parts" else "uploadId="
                method = "PUT" if when == "parts" else "POST"
                sent = lambda: any(r.method == method and text in r.target for r in proxy.requests)
                wait_for(sent, 60 * place.patience)
                assert len(moto.uploads()) == 1
            assert moto.size("out/killed.nrt") is None
            process.send_signal(number)
            said = place.finish(process, 30)
            assert said.seconds < 3 * place.patience, said.seconds
            time.sleep(0.2)
            proxy.take()
            assert moto.size("out/killed.nrt") is None
            assert moto.s3.head_object(Bucket=BUCKET, Key="out/large.nrt")["ETag"] == before
            left = [path for path in place.temporary.rglob("*") if path.is_file() and path.stat().st_size]
            print(
                f"  {kind} of COPY, {when}, to {'an old' if target == old else 'a new'} object: "
                f"exit code {said.code} after {said.seconds:.2f} s, "
                f"{len(moto.uploads())} open upload(s), {len(left)} temporary file(s)"
            )
            if number != signal.SIGKILL:
                assert not moto.uploads()
                assert said.code == (130 if number == signal.SIGINT else 143), said
                assert not left, left
            moto.abort_uploads()
    # The next process removes temporary files of killed processes.
    place.rows(f"COPY ({rows.replace('VERSION', '3')}) TO '{new}'")
    left = [path for path in place.temporary.rglob("*") if path.is_file() and path.stat().st_size]
    assert not left, left
    assert moto.size("out/killed.nrt") is not None and not moto.uploads()
    moto.s3.delete_object(Bucket=BUCKET, Key="out/killed.nrt")
    proxy.take()


# One statement for each way of reading and writing.
WAYS = {
    "FROM .nrt": "SELECT count(*) FROM 's3://BUCKET/d/t/t.nrt'",
    "FROM .parquet": "SELECT sum(id) FROM 's3://BUCKET/d/t/t.parquet'",
    "FROM .csv": "SELECT sum(v) FROM 's3://BUCKET/d/t/t.csv'",
    "FROM .json": "SELECT sum(id) FROM 's3://BUCKET/d/t/t.json'",
    "FROM .ndjson": "SELECT sum(id) FROM 's3://BUCKET/d/t/t.ndjson'",
    "FROM .arrow": "SELECT sum(id) FROM 's3://BUCKET/d/t/t.arrow'",
    "FROM a folder": "SELECT sum(n) FROM 's3://BUCKET/d/shards/'",
    "EXTERNAL TABLE": "CREATE EXTERNAL TABLE e STORED AS NRT LOCATION 's3://BUCKET/d/shards/'; SELECT sum(n) FROM e",
    "meds()": "SELECT count(*) FROM meds('s3://BUCKET/d/meds')",
    "meds_asof()": "SELECT count(*) FROM meds_asof('s3://BUCKET/d/meds', 's3://BUCKET/d/meds/labels')",
    "vocab()": "SELECT count(*) FROM vocab('s3://BUCKET/d/meds')",
    "ragged_lookup": "SELECT ragged_lookup([3], 's3://BUCKET/d/t/t.parquet', 'id', 'id') AS v",
    "COPY": "COPY (SELECT 1 AS id) TO 's3://BUCKET/out/w.nrt' OPTIONS (overwrite true)",
    "COPY to a folder": "COPY (SELECT 1 AS id) TO 's3://BUCKET/out/w/' STORED AS PARQUET",
}


def check_credentials(place):
    """Checks the errors of wrong keys, missing buckets and missing objects, in each way of reading and writing."""
    key, secret = place.moto.keys
    stranger = dict(zip(["AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY"], place.moto.stranger))
    texts = {}
    for name, sql in WAYS.items():
        here = sql.replace("BUCKET", BUCKET)
        for why, changes in [
            ("an unknown key", {"AWS_ACCESS_KEY_ID": "AKIAUNKNOWN"}),
            ("a wrong secret", {"AWS_SECRET_ACCESS_KEY": secret[:-4] + "0000"}),
            ("no permission", stranger),
        ]:
            said = place.refused(here, f"s3://{BUCKET}", "refuses access", "AWS_ACCESS_KEY_ID", **changes)
            texts[why] = said.err.strip()
        said = place.refused(sql.replace("BUCKET", "nowhere"), "s3://nowhere", "the bucket does not exist")
        texts["a missing bucket"] = said.err.strip()
        if "COPY" not in name:
            missing = re.sub("/d/[a-z]+", "/d/missing", here)
            texts["a missing object"] = place.refused(missing, "s3://" + BUCKET, "missing").err.strip()
    for why, text in texts.items():
        print(f"  {why}, {len(WAYS)} ways: {text}")
    said = place.refused(
        f"SELECT 1 FROM 's3://{BUCKET}/d/t/t.nrt'",
        "no credentials were found",
        AWS_ACCESS_KEY_ID=None,
        AWS_SECRET_ACCESS_KEY=None,
    )
    print(f"  no credentials, {said.seconds:.1f} s: {said.err.strip()}")
    read = f"SELECT 1 FROM 's3://{BUCKET}/d/t/t.nrt'"
    said = place.refused(read, "check the endpoint", AWS_ENDPOINT="http://127.0.0.1:9")
    print(f"  no server, {said.seconds:.1f} s: {said.err.strip()}")
    place.proxy.take()


def check_faults(place):
    """Checks that a few refused requests and broken connections are retried, and that lasting ones are clear errors."""
    proxy = place.proxy
    for kind in ["refuse", "drop", "cut"]:
        longest = 0
        for name, sql in WAYS.items():
            sql = sql.replace("BUCKET", BUCKET)
            if kind == "cut" and name.startswith("COPY"):
                continue
            expected = place.rows(sql)
            proxy.take()
            proxy.fail(kind, left=2)
            start = time.monotonic()
            assert place.rows(sql) == expected, name
            longest = max(longest, time.monotonic() - start)
            assert all(fault.left <= 0 for fault in proxy.faults), f"{name}: no request failed"
            proxy.take()
        print(f"  {kind} twice: overcome in at most {longest:.1f} s")
        longest = 0
        for name, sql in WAYS.items():
            sql = sql.replace("BUCKET", BUCKET)
            if kind == "cut" and name.startswith("COPY"):
                continue
            proxy.take()
            proxy.fail(kind)
            words = ["too many (503", "run the statement again later"] if kind == "refuse" else ["check the endpoint"]
            said = place.refused(sql, f"s3://{BUCKET}", *words)
            longest = max(longest, said.seconds)
        print(f"  {kind} always: an error within {longest:.1f} s: {said.err.strip()}")
        proxy.take()
    # Check faults of uploads in parts.
    rows = "SELECT value AS id, value * 7 AS y FROM generate_series(1, 1100000)"
    copy = f"COPY ({rows}) TO 's3://{BUCKET}/out/faults.nrt' OPTIONS (overwrite true)"
    for kind in ["refuse", "drop", "cut request"]:
        for text in ["partNumber=1", "uploadId="]:
            proxy.fail(kind, left=2, text=text)
            place.rows(copy)
            said = place.rows(f"SELECT sum(y) FROM 's3://{BUCKET}/out/faults.nrt'").split()[1]
            assert said == "4235003850000", said
            proxy.take()
        place.moto.s3.delete_object(Bucket=BUCKET, Key="out/faults.nrt")
        # The last of three parts is shorter than the others.
        for number in (2, 3):
            proxy.fail(kind, method="PUT", text=f"partNumber={number}")
            said = place.refused(copy, f"s3://{BUCKET}")
            assert place.moto.size("out/faults.nrt") is None and not place.moto.uploads(), number
            proxy.take()
        print(f"  {kind} of a part, always: {said.seconds:.1f} s, no object, no open upload: {said.err.strip()}")
    # Check slow answers.
    read = "SELECT sum(n) FROM e"
    create = f"CREATE EXTERNAL TABLE e STORED AS NRT LOCATION 's3://{BUCKET}/d/shards/' "
    proxy.fail("delay", seconds=0.3)
    place.rows(f"{create}; {read}")
    proxy.take()
    proxy.fail("delay", seconds=3)
    limited = options(place, more=", 'aws.timeout' '1 second'")
    said = place.refused(f"{create} {limited}; {read}", f"s3://{BUCKET}")
    print(f"  answers after 3 s, a limit of 1 s: {said.seconds:.1f} s: {said.err.strip()}")
    proxy.take()
    for name in ["FROM .nrt", "meds()", "vocab()", "ragged_lookup", "COPY"]:
        proxy.fail("delay", seconds=20 * place.patience)
        process = place.start("-c", WAYS[name].replace("BUCKET", BUCKET))
        wait_for(lambda: proxy.requests, 60 * place.patience)
        process.send_signal(signal.SIGINT)
        said = place.finish(process, 60)
        print(f"  Ctrl-C during {name}: exit code {said.code} after {said.seconds:.1f} s")
        assert said.code == 130 and said.seconds < 2 * place.patience, said
        proxy.take()


def check_secrets(place):
    """Checks that no plan, setting, error, log or file has a secret of OPTIONS or of the environment."""
    proxy = place.proxy
    given, token = "GIVEN-SECRET-abcdefgh", "GIVEN-TOKEN-12345678"
    more = f", 'aws.session_token' '{token}'"
    table = f"CREATE EXTERNAL TABLE e STORED AS NRT LOCATION 's3://{BUCKET}/d/shards/' "
    good = table + options(place)
    copy = f"COPY (SELECT 1 AS id) TO 's3://{BUCKET}/out/s.nrt' " + options(place).replace(")", ", overwrite true)")
    bad = table + options(place, secret=given, more=more)
    noisy = {"RUST_LOG": "trace", "RUST_BACKTRACE": "full"}
    shows = ["SHOW ALL", "SELECT * FROM information_schema.df_settings", "SELECT * FROM information_schema.tables"]
    shows += ["SELECT * FROM information_schema.views", "SHOW CREATE TABLE e", "SHOW TABLES", "DESCRIBE e"]
    shows += [f"EXPLAIN {how} SELECT * FROM e WHERE n > 1" for how in ["", "VERBOSE", "ANALYZE", "ANALYZE VERBOSE"]]
    shows += ["EXPLAIN FORMAT TREE SELECT * FROM e", "CREATE VIEW w AS SELECT * FROM e; SHOW CREATE TABLE w"]
    shows += [copy, f"EXPLAIN {copy}", f"EXPLAIN VERBOSE {copy}"]
    passed = len(shows)
    for first in [good, table]:
        said = place.sql("; ".join([first, *shows]), "--timing", **noisy)
        assert said.code == 0 and "s3://" in said.out, said.err
    # Check errors of statements with options, some of which cannot be parsed.
    wrong = [
        bad,
        bad.replace("hospital", "nowhere"),
        bad.replace("aws.region", "aws.rejion"),
        bad.replace("aws.secret_access_key", "secret_access_key"),
        bad.replace("aws.session_token", "AWS_SESSION_TOKEN"),
        bad.replace("aws.region", "gcp.region"),
        bad.replace("STORED", "STORE"),
        bad.replace("'aws.region'", "'aws.region' oops"),
        bad.replace(", 'aws.region'", "; 'aws.region'"),
        bad.replace("'aws.secret_access_key' ", "'aws.secret_access_key', "),
        bad.replace("'aws.secret_access_key' ", "'aws.secret_access_key' = "),
        bad.replace("'aws.secret_access_key' ", "\n'aws.secret_access_key'\n"),
        bad.replace("'aws.secret_access_key' ", "\n'aws.secret_access_key'\n oops "),
        bad.replace(f"'{given}'", f"\n'{given}' oops"),
        bad.replace(f"'{given}'", f"\n'{given}' 'oops'"),
        bad.replace(f"'{given}'", given),
        bad.replace(f"'{given}'", given.replace("-", "")),
        bad.replace(f"'{given}'", f"'{given}"),
        bad.replace(f"'{given}',", f"'{given}'"),
        bad.replace(f"'{token}')", f"'{token}'"),
        bad.replace(f"'{token}')", f"\n'{token}'"),
        bad.replace("'true'", "'maybe'"),
        bad.replace(proxy.url, "no url"),
        bad.replace(proxy.url, f"http://user:{given}@127.0.0.1:9"),
        bad + "; SELECT nothing",
        f"SET aws.secret_access_key = '{given}'",
        f"SELECT * FROM 's3://user:{given}@{BUCKET}/d/shards/'",
        f"SELECT * FROM meds('s3://user:{given}@{BUCKET}/d/meds')",
        f"SELECT ragged_lookup([3], 's3://user:{given}@{BUCKET}/d/t/t.csv', 'id', 'v') AS v",
        f"SELECT * FROM read_parquet('s3://user:{given}@{BUCKET}/d/t/t.parquet')",
        f"CREATE EXTERNAL TABLE e STORED AS NRT LOCATION 's3://user:{given}@{BUCKET}/d/shards/'",
        f"SELECT * FROM 's3://{BUCKET}/d/shards/1.nrt?X-Amz-Signature={given}'",
        f"SELECT count(*) FROM vocab('s3://{BUCKET}/d/meds?X-Amz-Signature={given}')",
        copy.replace(place.moto.keys[1], given),
        f"COPY (SELECT 1 AS id) TO 's3://user:{given}@{BUCKET}/out/s.nrt'",
    ]
    leaks = []
    for sql in wrong:
        said = place.sql(sql, **noisy)
        assert said.code == 1, f"{sql}\n{said.out}"
        shown = (said.out + said.err).replace("-", "")
        if any(text.replace("-", "") in shown for text in (given, token, place.moto.keys[1])):
            leaks.append(f"{sql}\n{said.err}")
        passed += 1
    assert not leaks, "secrets are shown:\n" + "\n".join(leaks)
    for kind in ["refuse", "drop"]:
        proxy.fail(kind)
        place.sql(f"SELECT 1 FROM 's3://{BUCKET}/d/shards/1.nrt'", **noisy)
        proxy.take()
    # Check the output of all groups of checks so far, and all remaining files.
    secrets = [place.moto.keys[1], place.moto.stranger[1], given, token]
    for said in place.said:
        for secret in secrets:
            assert secret not in said.out + said.err, f"{said.out}\n{said.err}"
    for path in [*(place.root / "home").rglob("*"), *place.temporary.rglob("*"), *(place.root / "cwd").rglob("*")]:
        if path.is_file():
            assert not any(secret.encode() in path.read_bytes() for secret in secrets), path
    print(f"  {passed} statements, and the output of all {len(place.said)} runs so far: no secret")


def check_http(place):
    """Checks files of a web server with range requests, and of one that serves only whole files."""
    proxy = Proxy(start_files(RangeHandler, place.local))
    whole = Proxy(start_files(WholeHandler, place.local))
    statements = [*PLACES["FROM a file"], *PLACES["read_*"], *PLACES["EXTERNAL TABLE"][:5]]
    sql = "; ".join([*statements, *PLACES["look-ups"][1:], PLACES["vocabularies"][1]])
    local = place.rows(sql.replace("ROOT", str(place.local)))
    served = place.rows(sql.replace("ROOT", proxy.url))
    assert local == served, f"{sql}\n{local}\n{served}"
    proxy.take()
    row = 123_456
    said = place.rows(f"SELECT id, ragged_sum(x) AS s FROM '{proxy.url}/large.nrt' WHERE _row = {row}")
    assert said.split()[1] == f"{row},{2 * row + 1}", said
    data = [request for request in proxy.take() if request.is_data()]
    received = sum(request.received for request in data)
    assert received <= (16 << 10) + 8 + 16 + 16, [vars(request) for request in data]
    print(f"  point query on large.nrt: {received:,} bytes in {len(data)} requests")

    def refused(sql, *words):
        said = place.sql(sql)
        assert said.code == 1, f"{sql}\n{said.out}"
        for word in words:
            assert word in said.err, f"{sql}\n{word}\n{said.err}"
        print(f"  {said.seconds:.1f} s: {said.err.strip()}")

    read = "SELECT count(*) FROM '{}/t/t.nrt'"
    refused(read.format(proxy.url).replace("t.nrt", "none.nrt"))
    refused(f"SELECT count(*) FROM '{proxy.url}/shards/'", "lists no folders")
    refused(f"SELECT count(*) FROM '{proxy.url}/shards/*.nrt'", "lists no folders")
    refused(f"SELECT count(*) FROM meds('{proxy.url}/meds')")
    refused(f"COPY (SELECT 1 AS id) TO '{proxy.url}/out.nrt'")
    for fault in ["refuse", "drop", "cut"]:
        for left in [2, 1_000_000]:
            proxy.take()
            proxy.fail(fault, left=left, method="GET" if fault == "cut" else "")
            if left == 2:
                assert place.rows(read.format(proxy.url)).split()[1] == "1000"
            else:
                refused(read.format(proxy.url), proxy.url)
    proxy.take()
    print("  a server without ranges:")
    refused(read.format(whole.url))
    for ending in ["csv", "ndjson"]:
        said = place.sql(f"SELECT sum(id) FROM '{whole.url}/t/t.{ending}'")
        print(f"  .{ending}: {(said.out.split() or [said.err.strip()])[-1]}")


CHECKS = {
    "places": check_places,
    "bytes": check_bytes,
    "copy": check_copy,
    "credentials": check_credentials,
    "faults": check_faults,
    "http": check_http,
    "secrets": check_secrets,
}


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("binary")
    parser.add_argument("--only", choices=CHECKS, nargs="+", default=list(CHECKS))
    parser.add_argument("--patience", type=float, default=1, help="factor of all limits of time, for a busy machine")
    arguments = parser.parse_args()
    failed = []
    with tempfile.TemporaryDirectory(prefix="serrate-stores-") as root:
        place = Place(os.path.abspath(arguments.binary), root, arguments.patience)
        try:
            for name in arguments.only:
                start = time.monotonic()
                print(f"{name}:", flush=True)
                try:
                    CHECKS[name](place)
                except Exception:
                    traceback.print_exc()
                    failed.append(name)
                place.proxy.take()
                answer = "FAILED" if name in failed else "ok"
                print(f"{name}: {answer}, {time.monotonic() - start:.0f} s", flush=True)
        finally:
            place.stop()
    if failed:
        sys.exit(f"failed: {', '.join(failed)}")


if __name__ == "__main__":
    main()
