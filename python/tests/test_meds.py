import signal
import subprocess
import sys
import time

import numpy as np
import pytest

import serrate
from serrate import meds

ROOT = "tests/data/synthea-meds"


@pytest.fixture(autouse=True)
def _here(repository, monkeypatch):
    monkeypatch.chdir(repository)


def test_read_equals_the_meds_table_function():
    table = meds.read(ROOT)
    expected = serrate.sql(f"SELECT subject_id, numeric_value, code FROM meds('{ROOT}') ORDER BY subject_id").to_dict()
    assert table["subject_id"].to_list() == expected["subject_id"]
    assert table["code"].to_list() == expected["code"]
    train = meds.read(ROOT, split="train")
    assert 0 < len(train) < len(table)
    assert set(train["subject_id"].to_list()) < set(table["subject_id"].to_list())
    assert len(meds.read(ROOT, split="nowhere")) == 0
    with pytest.raises(FileNotFoundError):
        meds.read("tests/data/nothing")


def test_written_records_are_read_again(tmp_path):
    table, facts = meds.read(ROOT), meds.read(ROOT, statics=True)
    meds.write(table, tmp_path / "copy", statics=facts)
    again, facts_again = meds.read(tmp_path / "copy"), meds.read(tmp_path / "copy", statics=True)
    for name in ("subject_id", "time", "code"):
        assert again[name].to_list() == table[name].to_list(), name
    assert facts_again["static_code"].to_list() == facts["static_code"].to_list()
    known = serrate.sql("SELECT ragged_sum(numeric_value) AS s FROM t", t=table).to_dict()
    assert serrate.sql("SELECT ragged_sum(numeric_value) AS s FROM t", t=again).to_dict() == known
    assert len(meds.read(tmp_path / "copy", split="train")) == len(table)
    batch = next(iter(serrate.MedsLoader(tmp_path / "copy", batch_size=4, max_seq_len=8, output="numpy")))
    assert batch["code"].shape == (4, 8)
    with pytest.raises(FileExistsError):
        meds.write(table, tmp_path / "copy")
    with pytest.raises(KeyError, match="code"):
        meds.write(table.select(["subject_id", "time"]), tmp_path / "other")


def test_tables_without_a_data_set_can_be_written(tmp_path):
    table = serrate.RaggedTable(
        {
            "subject_id": [7, 3],
            "time": [np.array(["2020-01-01", "2021-01-01"], "M8[us]").tolist(), [np.datetime64("2019-05-05").item()]],
            "code": [[["A", "B"], ["A"]], [["C"]]],
        }
    )
    meds.write(table, tmp_path / "new", split="held_out")
    again = meds.read(tmp_path / "new", split="held_out")
    assert again["subject_id"].to_list() == [3, 7]
    assert again["code"].to_list() == [[["C"]], [["A", "B"], ["A"]]]


def test_generated_records_do_not_depend_on_shards(tmp_path):
    meds.generate(tmp_path / "a", 20, seed=3, shards=2)
    meds.generate(tmp_path / "b", 20, seed=3)
    a, b = meds.read(tmp_path / "a"), meds.read(tmp_path / "b")
    assert len(a) == 20 and a.equals(b, equal_nan=True)
    with pytest.raises(FileExistsError):
        meds.generate(tmp_path / "a", 20)
    meds.generate(tmp_path / "a", 5, overwrite=True)


def test_ctrl_c_stops_generate(tmp_path):
    code = f"""
import signal
from serrate import meds
# A shell that runs the tests in the background lets them ignore the signal.
signal.signal(signal.SIGINT, signal.default_int_handler)
print("go", flush=True)
try:
    meds.generate({str(tmp_path / "a")!r}, 10**7)
except KeyboardInterrupt:
    print("stopped")
meds.generate({str(tmp_path / "b")!r}, 5)
"""
    child = subprocess.Popen([sys.executable, "-c", code], stdout=subprocess.PIPE, text=True)
    assert child.stdout.readline() == "go\n"
    time.sleep(1)
    child.send_signal(signal.SIGINT)
    out, _ = child.communicate(timeout=60)
    assert out == "stopped\n"
    assert not list((tmp_path / "a").glob("**/*.parquet")) and (tmp_path / "b" / "data").is_dir()
