import inspect
import itertools
import json
import pickle
import signal
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pytest

import serrate
from serrate import Loader, MedsLoader

DATA = Path(__file__).resolve().parents[2] / "tests" / "data"
COHORT = DATA / "synthea-meds-torch-data"
MEDS = DATA / "synthea-meds"


def equal(a, b):
    assert len(a) == len(b)
    for x, y in zip(a, b):
        assert x.keys() == y.keys()
        for k in x:
            assert np.array_equal(np.asarray(x[k]), np.asarray(y[k])), k


def lists(batches):
    """Returns copies of batches, because a loader reuses the memory of deleted batches."""
    return [{k: np.asarray(v if isinstance(v, np.ndarray) else v.numpy()).copy() for k, v in b.items()} for b in batches]


@pytest.mark.parametrize("path", sorted((COHORT / "reference-batches").glob("*")), ids=lambda p: p.stem)
def test_batches_of_meds_torch_data(path):
    safe_open = pytest.importorskip("safetensors").safe_open
    with safe_open(path, "np") as f:
        about, expected = f.metadata(), {k: f.get_tensor(k) for k in f.keys()}
    config = json.loads(about["config"])
    loader = MedsLoader(
        COHORT,
        split=about["split"],
        labels=MEDS / "labels" / about["labels"] if about["labels"] else None,
        compat=True,
        max_seq_len=config["max_seq_len"],
        window=config["seq_sampling_strategy"],
        unit=config["batch_mode"],
        statics=config["static_inclusion_mode"],
        padding_side=config["padding_side"],
        output="numpy",
    )
    found = loader.batch_of(json.loads(about["items"]))
    if config["static_inclusion_mode"] == "prepend" and "static_mask" not in expected:
        # Some reference files lack the tensor, although collated batches have it.
        del found["static_mask"]
    assert found.keys() == expected.keys()
    for k, v in expected.items():
        assert found[k].dtype == v.dtype and found[k].shape == v.shape, k
        assert np.allclose(found[k], v, rtol=1e-5, equal_nan=True), k


@pytest.mark.parametrize("unit", ["measurement", "event"])
def test_padding_may_be_changed_in_place(unit):
    options = dict(split="train", batch_size=4, max_seq_len=32, unit=unit, output="numpy", window="start")
    expected = lists(MedsLoader(COHORT, **options))
    loader = MedsLoader(COHORT, **options)
    for _ in range(3):
        found = []
        for batch in loader:
            found += lists([batch])
            for tensor in batch.values():
                tensor.fill(1)
        equal(found, expected)


def test_trusted_padding_gives_the_same_batches():
    options = dict(split="train", batch_size=4, max_seq_len=32, output="numpy", window="start")
    expected = lists(MedsLoader(COHORT, **options))
    loader = MedsLoader(COHORT, trust_padding=True, **options)
    for _ in range(3):
        equal(lists(loader), expected)


def test_an_epoch_can_be_repeated():
    loader = MedsLoader(COHORT, split="train", batch_size=4, max_seq_len=32, shuffle=True, seed=1, output="numpy")
    assert len(loader) == -(-loader.num_items // 4)
    first = lists(loader)
    assert len(first) == len(loader) and loader.epoch == 1
    second = lists(loader)
    assert any(not np.array_equal(a["code"], b["code"]) for a, b in zip(first, second))
    loader.set_epoch(0)
    equal(lists(loader), first)


@pytest.mark.parametrize("threads, prefetch", [(1, 0), (2, 2)])
def test_a_state_resumes_the_sequence_of_batches(threads, prefetch):
    options = dict(batch_size=2, max_seq_len=16, shuffle=True, seed=3, threads=threads, prefetch=prefetch, output="numpy")
    loader = MedsLoader(COHORT, split="train", **options)
    every = lists(loader) + lists(loader)
    loader.set_epoch(0)
    per_epoch = len(loader)
    for at in (0, 1, per_epoch - 1, per_epoch, per_epoch + 2):
        loader.set_epoch(0)
        taken = []
        while len(taken) < at:
            for batch in loader:
                taken.append({k: np.array(v) for k, v in batch.items()})
                if len(taken) == at:
                    break
        state = loader.state_dict()
        again = MedsLoader(COHORT, split="train", **options)
        again.load_state_dict(pickle.loads(pickle.dumps(state)))
        rest = lists(again)
        if again.epoch < 2:
            rest += lists(again)
        equal(taken + rest, every)


def test_states_of_other_options_are_refused():
    options = dict(split="train", batch_size=2, max_seq_len=16, shuffle=True, seed=3, output="numpy")
    state = MedsLoader(COHORT, **options).state_dict()
    assert json.loads(json.dumps(state)) == state
    # These options do not change batches.
    MedsLoader(COHORT, **options, threads=2, prefetch=2, limit=1 << 30).load_state_dict(state)
    for other in (dict(seed=4), dict(batch_size=3), dict(shuffle=False), dict(split=None), dict(rank=1, world=2)):
        loader = MedsLoader(COHORT, **{**options, **other})
        with pytest.raises(serrate.InvalidError, match="fingerprint"):
            loader.load_state_dict({**state, "epoch": 5})
        assert loader.epoch == 0
        loader.load_state_dict({"epoch": 5, "batch": 1})
        assert loader.epoch == 5


@pytest.mark.parametrize("how", ["fork", "spawn"])
def test_states_are_refused_after_workers_have_read(how):
    data = pytest.importorskip("torch.utils.data")
    loader = MedsLoader(COHORT, split="train", batch_size=2, max_seq_len=16, shuffle=True)
    every = lists(loader) + lists(loader)
    per_epoch = len(loader)
    loader.set_epoch(0)
    assert loader.state_dict()["batch"] == 0
    workers = dict(batch_size=None, num_workers=2, multiprocessing_context=how)
    taken = lists(itertools.islice(data.DataLoader(loader, **workers), 3))
    with pytest.raises(serrate.InvalidError, match="workers"):
        loader.state_dict()
    loader.load_state_dict({"epoch": 0, "batch": 3})
    assert loader.state_dict()["batch"] == 3
    taken += lists(data.DataLoader(loader, **workers))
    loader.set_epoch(1)
    taken += lists(data.DataLoader(loader, **workers))
    equal(taken, every)
    assert per_epoch > 3
    loader.set_epoch(0)
    next(iter(loader))
    assert loader.state_dict()["batch"] == 1


def test_workers_warn_about_a_repeated_epoch():
    pytest.importorskip("torch")
    code = f"""
import serrate, sys
from torch.utils.data import DataLoader
loader = serrate.MedsLoader({str(COHORT)!r}, split="train", batch_size=4, max_seq_len=16, window=sys.argv[1])
batches = DataLoader(loader, batch_size=None, num_workers=1, multiprocessing_context="fork")
for epoch in range(2):
    if sys.argv[2] == "set":
        loader.set_epoch(epoch)
    for batch in batches:
        pass
"""
    for window, mode, warns in [("random", "", True), ("random", "set", False), ("end", "", False)]:
        done = subprocess.run([sys.executable, "-c", code, window, mode], capture_output=True, text=True)
        assert done.returncode == 0 and ("begin epoch 0 again" in done.stderr) == warns, (window, mode, done.stderr)


def test_batches_that_are_kept_are_not_overwritten():
    loader = Loader(serrate.RaggedTable({"x": [[i] * 1000 for i in range(8)]}), batch_size=1, output="numpy")
    kept = list(loader)
    assert [int(b["x"][0, 0]) for b in kept] == list(range(8))
    assert all(b["x"].flags.writeable for b in kept)


def test_a_loop_over_batches_needs_the_memory_of_two():
    table = serrate.RaggedTable({"x": [[i] * 1000 for i in range(8)]})
    loader = Loader(table, batch_size=1, output="numpy")
    places = {b["x"].__array_interface__["data"][0] for _ in range(4) for b in loader}
    assert len(places) == 2
    # If a batch is deleted before the next one is built, the next one reuses its memory.
    batches = iter(Loader(table, batch_size=1, output="numpy"))
    places = set()
    for _ in range(8):
        batch = next(batches)
        places.add(batch["x"].__array_interface__["data"][0])
        del batch
    assert len(places) == 1


def test_ranks_share_the_batches_of_an_epoch():
    whole = MedsLoader(COHORT, split="train", batch_size=2, max_seq_len=16, output="numpy")
    parts = [
        MedsLoader(COHORT, split="train", batch_size=2, max_seq_len=16, rank=r, world=3, output="numpy")
        for r in range(3)
    ]
    each = [lists(p) for p in parts]
    joined = [each[i % 3][i // 3] for i in range(len(whole))]
    equal(joined, lists(whole))


@pytest.mark.parametrize("workers, how", [(0, None), (2, "fork"), (3, "fork"), (2, "spawn")])
def test_workers_give_the_same_batches(workers, how):
    data = pytest.importorskip("torch.utils.data")
    loader = MedsLoader(COHORT, split="train", batch_size=2, max_seq_len=16, shuffle=True, threads=2, prefetch=2)
    expected = lists(loader)
    loader.set_epoch(0)
    workers_of = dict(num_workers=workers, multiprocessing_context=how) if workers else {}
    equal(lists(data.DataLoader(loader, batch_size=None, **workers_of)), expected)


def test_batches_are_torch_tensors_by_default():
    torch = pytest.importorskip("torch")
    batch = next(iter(MedsLoader(COHORT, split="train", batch_size=2, max_seq_len=16)))
    assert isinstance(batch["code"], torch.Tensor) and batch["code"].dtype == torch.int64
    packed = MedsLoader(COHORT, split="train", batch_size=2, max_seq_len=16, form="packed", nested=True)
    batch = next(iter(packed))
    assert batch["code"].is_nested and batch["code"].layout == torch.jagged
    plain = next(iter(MedsLoader(COHORT, split="train", batch_size=2, max_seq_len=16, window="start", form="packed")))
    again = next(
        iter(MedsLoader(COHORT, split="train", batch_size=2, max_seq_len=16, window="start", form="packed", nested=True))
    )
    assert torch.equal(again["code"].values(), plain["code"])
    assert torch.equal(again["code"].offsets(), plain["dim1/cu_seqlens"].long())


def test_nested_tensors_have_the_lists_of_their_axis():
    torch = pytest.importorskip("torch")
    # All axes have two elements in total, which is also the number of rows.
    table = serrate.RaggedTable({"a": [7, 8], "b": [[1, 2], []], "c": [[[], [3, 4]], []], "d": [[5, 6], []]})
    batch = next(iter(Loader(table, batch_size=2, form="packed", nested=True)))
    assert not batch["a"].is_nested and batch["a"].tolist() == [7, 8]
    lists = {name: [row.tolist() for row in batch[name].unbind()] for name in "bcd"}
    assert lists == {"b": [[1, 2], []], "c": [[3, 4], []], "d": [[5, 6], []]}
    assert (batch["b"] + batch["d"]).values().tolist() == [6, 8]
    one = next(iter(Loader(serrate.RaggedTable({"a": [7], "b": [[]]}), form="packed", nested=True)))
    assert one["b"].is_nested and [row.tolist() for row in one["b"].unbind()] == [[]]
    records = MedsLoader(COHORT, split="train", batch_size=2, max_seq_len=16, form="packed", nested=True)
    batch = next(iter(records))
    assert torch.equal(batch["code"].offsets(), batch["numeric_value"].offsets())
    total = batch["numeric_value"] * batch["numeric_value_mask"] + batch["code"]
    assert total.is_nested and batch["static_code"].is_nested and not batch["subject_id"].is_nested


def test_labels_can_be_a_table():
    table = {
        "subject_id": [8, 999_999],
        "prediction_time": np.array(["2015-01-01", "2015-01-01"], "M8[us]"),
        "boolean_value": [True, False],
    }
    loader = MedsLoader(MEDS, labels=table, batch_size=4, max_seq_len=8, output="numpy")
    assert loader.num_items == 1 and loader.unknown_labels == 1
    assert next(iter(loader))["boolean_value"].tolist() == [True]
    # NaN is a missing label.
    del table["boolean_value"]
    table["integer_value"] = np.array([3.0, np.nan])
    loader = MedsLoader(MEDS, labels=table, batch_size=4, max_seq_len=8, output="numpy")
    assert next(iter(loader))["integer_value"].tolist() == [3]


@pytest.mark.parametrize(
    "changed, text",
    [
        (dict(subject_id=[8.5]), "a value would be rounded"),
        (dict(subject_id=["x"]), '"subject_id" of the labels has the type'),
        (dict(prediction_time=np.array(["2015-01-01T00:00:00.000000001"], "M8[ns]")), "would be rounded"),
        (dict(prediction_time=["soon"]), '"prediction_time" of the labels'),
        (dict(boolean_value=["maybe"]), '"boolean_value" of the labels'),
    ],
)
def test_labels_that_would_change_are_refused(changed, text):
    table = {"subject_id": [8], "prediction_time": np.array(["2015-01-01"], "M8[us]"), "boolean_value": [True]}
    with pytest.raises(serrate.InvalidError, match=text):
        MedsLoader(MEDS, labels={**table, **changed}, output="numpy")
    same = {"subject_id": [8.0], "prediction_time": np.array(["2015-01-01"], "M8[ns]"), "boolean_value": [1]}
    assert MedsLoader(MEDS, labels=same, output="numpy").num_items == 1


def test_positions_count_from_zero():
    loader = Loader(serrate.RaggedTable({"a": [1, 2]}), output="numpy")
    for move in (lambda: loader.set_epoch(-1), lambda: loader.load_state_dict({"epoch": 0, "batch": -1})):
        with pytest.raises(serrate.InvalidError, match="both count from 0"):
            move()
    assert loader.epoch == 0


def test_options_are_checked():
    for options, error in [
        (dict(nothing=1), TypeError),
        (dict(batch_size="x"), TypeError),
        (dict(batch_size=0), ValueError),
        (dict(unit="code"), ValueError),
        (dict(split="nowhere"), ValueError),
        (dict(output="jax"), ValueError),
        (dict(nested=True, output="torch"), ValueError),
    ]:
        with pytest.raises(error):
            MedsLoader(COHORT, **options)
    with pytest.raises(FileNotFoundError):
        MedsLoader(COHORT / "nothing")


def test_loaders_read_tables_and_files(tmp_path):
    rows = {"id": [1, 2, 3], "code": [[1, 2, 3], [4], [5, 6]]}
    table = serrate.RaggedTable(rows)
    table.write(tmp_path / "a.nrt")
    options = dict(batch_size=2, columns=["code"], window=2, sampling="end", fill=-1, tokens_as_i64=True, output="numpy")
    for source in (table, [table], tmp_path / "a.nrt", [tmp_path / "a.nrt"]):
        batches = lists(Loader(source, **options))
        assert [b["code"].tolist() for b in batches] == [[[2, 3], [4, -1]], [[5, 6]]]
    loader = Loader(tmp_path / "a.nrt", batch_size=1, window=2, sampling="step", output="numpy")
    assert loader.num_items == 4
    with pytest.raises(ValueError):
        Loader(table, window=2, sampling="sideways")


def test_sizes_pad_and_cut_lists():
    table = serrate.RaggedTable({"code": [[1, 2, 3, 4], [5]]})
    for size, expected in [
        (None, [[1, 2, 3, 4], [5, 0, 0, 0]]),
        (2, [[1, 2], [5, 0]]),
        (5, [[1, 2, 3, 4, 0], [5, 0, 0, 0, 0]]),
        (("at_most", 2), [[1, 2], [5, 0]]),
        (("at_most", 5), [[1, 2, 3, 4], [5, 0, 0, 0]]),
    ]:
        (batch,) = Loader(table, batch_size=2, sizes=[size], output="numpy")
        assert batch["code"].tolist() == expected
        assert table.to_dense(sizes=[size])["code"].tolist() == expected
    for sizes in (3, ["3"], [("at_least", 3)]):
        with pytest.raises(serrate.WrongTypeError, match="size"):
            Loader(table, sizes=sizes)
        with pytest.raises(serrate.WrongTypeError, match="size"):
            table.to_dense(sizes=sizes)


def test_options_are_parameters():
    for kind, names in [(MedsLoader, ("split", "window", "labels")), (Loader, ("sampling", "sizes", "fill"))]:
        parameters = inspect.signature(kind).parameters
        assert set(names) < set(parameters)
        assert all(p.kind is p.KEYWORD_ONLY for p in list(parameters.values())[1:])
    table = serrate.RaggedTable({"code": [[1, 2], [3]]})
    packed = dict(form="packed", output="numpy")
    assert any("position_ids" in name for name in next(iter(Loader(table, **packed))))
    assert not any("position_ids" in name for name in next(iter(Loader(table, **packed, position_ids=None))))


def test_a_forked_process_reads_the_same_batches(in_child):
    loader = MedsLoader(COHORT, split="train", batch_size=2, max_seq_len=16, threads=2, prefetch=2, output="numpy")
    expected = [b["code"].sum() for b in lists(loader)]
    loader.set_epoch(0)
    assert in_child(lambda: [int(b["code"].sum()) for b in loader]) == repr([int(s) for s in expected])


def test_ctrl_c_stops_an_epoch():
    code = f"""
import serrate, signal
# A shell that runs the tests in the background lets them ignore the signal.
signal.signal(signal.SIGINT, signal.default_int_handler)
loader = serrate.MedsLoader({str(COHORT)!r}, split="train", batch_size=1, max_seq_len=64, threads=2, prefetch=2, output="numpy")
made = 0
print("go", flush=True)
try:
    while True:
        for batch in loader:
            made += 1
except KeyboardInterrupt:
    print("stopped", made > 0, loader.state_dict()["epoch"] > 0)
    print(sum(1 for batch in loader) <= len(loader))
"""
    child = subprocess.Popen([sys.executable, "-c", code], stdout=subprocess.PIPE, text=True)
    assert child.stdout.readline() == "go\n"
    time.sleep(1)
    child.send_signal(signal.SIGINT)
    out, _ = child.communicate(timeout=60)
    assert out == "stopped True True\nTrue\n"


def test_memory_is_pinned_if_there_is_an_accelerator():
    torch = pytest.importorskip("torch")
    options = dict(split="train", batch_size=2, max_seq_len=16, pin_memory=True)
    if torch.cuda.is_available():
        assert all(t.is_pinned() for t in next(iter(MedsLoader(COHORT, **options))).values())
    else:
        with pytest.warns(UserWarning, match="no accelerator"):
            loader = MedsLoader(COHORT, **options)
        assert not any(t.is_pinned() for t in next(iter(loader)).values())
    with pytest.raises(ValueError):
        MedsLoader(COHORT, output="numpy", **options)


def test_the_data_module_of_the_readme(tmp_path):
    lightning, torch = pytest.importorskip("lightning"), pytest.importorskip("torch")
    page = (Path(__file__).resolve().parents[1] / "README.md").read_text()
    (block,) = [b.split("```")[0] for b in page.split("```python\n")[1:] if "LightningDataModule" in b]
    names = {"serrate": serrate}
    exec(block, names)

    class Model(lightning.LightningModule):
        def __init__(self):
            super().__init__()
            self.codes = torch.nn.Embedding(500, 4)
            self.seen = []

        def training_step(self, batch, number):
            self.seen.append(int(batch["code"].sum()))
            return self.codes(batch["code"]).square().mean()

        def configure_optimizers(self):
            return torch.optim.SGD(self.parameters(), lr=0.1)

    quiet = dict(logger=False, enable_progress_bar=False, enable_model_summary=False, enable_checkpointing=False)
    loader = MedsLoader(COHORT, split="train", batch_size=256, max_seq_len=512, shuffle=True)
    expected = [int(b["code"].sum()) for _ in range(3) for b in loader]
    for reload in (0, 1):
        model = Model()
        trainer = lightning.Trainer(
            max_epochs=3, accelerator="cpu", devices=1, default_root_dir=tmp_path,
            reload_dataloaders_every_n_epochs=reload, **quiet,
        )
        trainer.fit(model, names["Records"](COHORT))
        assert model.seen == expected, reload


def test_an_epoch_need_not_be_exhausted():
    """Lightning takes `len(loader)` batches and does not request one more."""
    loader = MedsLoader(COHORT, split="train", batch_size=4, max_seq_len=16, shuffle=True, output="numpy")
    found = []
    for epoch in range(3):
        assert loader.epoch == epoch
        batches = iter(loader)
        found.append([int(next(batches)["code"].sum()) for _ in range(len(loader))])
        batches.close()
        state = loader.state_dict()
        assert (state["epoch"], state["batch"]) == (epoch + 1, 0)
    whole = MedsLoader(COHORT, split="train", batch_size=4, max_seq_len=16, shuffle=True, output="numpy")
    assert found == [[int(batch["code"].sum()) for batch in whole] for _ in range(3)]


def test_the_training_script_resumes(tmp_path):
    pytest.importorskip("torch")
    script = Path(__file__).resolve().parents[1] / "examples" / "train.py"

    def losses(name, *options):
        command = [sys.executable, script, MEDS, "--batch", 4, "--len", 16, "--log", tmp_path / f"{name}.csv"]
        command += ["--checkpoint", tmp_path / f"{name}.pt", *options]
        done = subprocess.run(list(map(str, command)), capture_output=True, text=True)
        assert done.returncode == 0, done.stderr
        lines = (tmp_path / f"{name}.csv").read_text().splitlines()[1:]
        return [line.split(",")[:4] for line in lines]

    whole = losses("whole", "--steps", 14)
    first = losses("part", "--steps", 7)
    rest = losses("part", "--steps", 14, "--resume")
    assert 0 < int(first[-1][2]) and rest[0][1] == first[-1][1], "not in the middle of an epoch"
    assert first + rest == whole
