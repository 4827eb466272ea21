"""Writes duckdb.parquet next to this file, with DuckDB 2.0."""

from pathlib import Path

import duckdb

ROWS = """
SELECT * FROM (VALUES
    (1, UUID '550e8400-e29b-41d4-a716-446655440000', INTERVAL '1 month 2 days 03:00:00.5'),
    (2, UUID 'ffffffff-ffff-ffff-ffff-ffffffffffff', INTERVAL '50 days'),
    (3, NULL, NULL),
    (4, UUID '00000000-0000-0000-0000-00000000000a', INTERVAL '14 months')) v(id, u, i)
"""

COLUMNS = "id, u, i, [u, NULL] AS l, {'u': u, 'i': i} AS s, map {'k': i} AS m"

path = Path(__file__).with_name("duckdb.parquet")
duckdb.sql(f"COPY (SELECT {COLUMNS} FROM ({ROWS}) ORDER BY id) TO '{path}' (FORMAT parquet)")
