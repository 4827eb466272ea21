"""Compares the batches and files of meds-torch-data under `serrate.patch` with those on the original class.

With SERRATE_ALL_WORKERS=1, the batches of every mode are also compared in forked and spawned workers; with
SERRATE_MTD_CHECKOUT, the tests of that checkout of meds-torch-data 0.9.0 give the same outcomes under the patch.
"""

import os
import subprocess
import sys
from pathlib import Path
from xml.etree import ElementTree

import numpy as np
import pytest

pytest.importorskip("meds_torchdata")

DATA = Path(__file__).resolve().parents[2] / "tests" / "data"

SCRIPT = """
import itertools, os, sys
import numpy as np
from torch.utils.data import DataLoader
cohort, labels, out = sys.argv[1:4]
from meds_torchdata import MEDSPytorchDataset, MEDSTorchDataConfig

def config(mode, static, side, strategy, labelled):
    return MEDSTorchDataConfig(
        tensorized_cohort_dir=cohort, max_seq_len=20, batch_mode=mode, static_inclusion_mode=static,
        padding_side=side, seq_sampling_strategy=strategy, task_labels_dir=labels if labelled else None,
    )

found = {}
for mode, static, side, strategy, labelled in itertools.product(
    ("SM", "SEM"), ("omit", "include", "prepend"), ("left", "right"), ("to_end", "from_start"), (False, True)
):
    if labelled and strategy != "to_end":
        continue
    data = MEDSPytorchDataset(config(mode, static, side, strategy, labelled), split="train")
    workers = [(0, None)]
    if os.environ.get("SERRATE_ALL_WORKERS") == "1":
        workers += [(2, "fork"), (2, "spawn")]
    elif mode == "SEM" and side == "right" and strategy == "to_end" and not labelled:
        workers += [(2, "fork"), (2, "spawn")] if static == "include" else [(2, "fork")]
    for number, how in workers:
        for at, batch in enumerate(DataLoader(
            data, batch_size=8, collate_fn=data.collate, num_workers=number, multiprocessing_context=how
        )):
            if at > 3:
                break
            for name, tensor in vars(batch).items():
                if hasattr(tensor, "numpy"):
                    found["|".join(map(str, (mode, static, side, strategy, labelled, number, how, at, name)))] = tensor.numpy()
np.savez(out, **found)
import nested_ragged_tensors.ragged_numpy as rn
print(rn.JointNestedRaggedTensorDict.__module__)
"""


def tool_environment(**variables):
    """Returns the environment for tools of meds-torch-data, which find the commands of their steps by PATH."""
    tools = Path(sys.executable).parent
    return {**os.environ, "PATH": f"{tools}{os.pathsep}{os.environ['PATH']}", **variables}


def batches(tmp_path, name, *before):
    script = tmp_path / "script.py"
    script.write_text(
        "def main():\n" + "\n".join("    " + line for line in SCRIPT.strip().splitlines())
        + "\nif __name__ == '__main__':\n    main()\n"
    )
    out = tmp_path / f"{name}.npz"
    folders = [p for p in (DATA / "synthea-meds" / "labels").iterdir() if p.is_dir()]
    labels = folders[0] if folders else DATA / "synthea-meds" / "labels"
    command = [sys.executable, *before, script, DATA / "synthea-meds-torch-data", labels, out]
    done = subprocess.run(list(map(str, command)), capture_output=True, text=True)
    assert done.returncode == 0, done.stderr[-3000:]
    return done.stdout.strip().splitlines()[-1], dict(np.load(out))


def test_batches_equal_those_on_the_original_class(tmp_path):
    which, theirs = batches(tmp_path, "theirs")
    assert which == "nested_ragged_tensors.ragged_numpy"
    which, ours = batches(tmp_path, "ours", "-m", "serrate.patch", sys.executable)
    assert which == "serrate.joint"
    assert ours.keys() == theirs.keys() and len(theirs) > 400
    for name, expected in theirs.items():
        assert ours[name].dtype == expected.dtype and np.array_equal(ours[name], expected, equal_nan=expected.dtype.kind == "f"), name


COLLATE = """
import sys
import numpy as np, torch, serrate
if sys.argv[2] == "before":
    serrate.patch()
import meds_torchdata
from meds_torchdata import MEDSPytorchDataset, MEDSTorchDataConfig, pytorch_dataset
if sys.argv[2] == "after":
    assert serrate.patch() > 0
from serrate import _meds_torch_data as fast
original = MEDSPytorchDataset.collate.__wrapped__
serrate.patch()
assert MEDSPytorchDataset.collate.__wrapped__ is original and not hasattr(original, "__wrapped__")
assert type(pytorch_dataset.__spec__.loader).__name__ == "SourceFileLoader"

def dataset(cls=MEDSPytorchDataset, **options):
    options = {"max_seq_len": 20, "seq_sampling_strategy": "to_end", "static_inclusion_mode": "omit", **options}
    return cls(MEDSTorchDataConfig(tensorized_cohort_dir=sys.argv[1], **options), split="train")

def compared(data, samples, is_fast):
    outcomes = []
    for collate in (original, type(data).collate):
        try:
            outcomes.append(vars(collate(data, samples)))
        except Exception as e:
            outcomes.append((type(e), str(e)))
    theirs, ours = outcomes
    if isinstance(theirs, tuple):
        assert ours == theirs
        return theirs
    assert is_fast == (fast._collate(pytorch_dataset, MEDSPytorchDataset, data, samples) is not None)
    assert ours.keys() == theirs.keys()
    for name, tensor in theirs.items():
        if not isinstance(tensor, torch.Tensor):
            assert ours[name] is tensor is None, name
            continue
        assert ours[name].dtype == tensor.dtype and ours[name].shape == tensor.shape, name
        bits = [t.contiguous().view(torch.uint8) for t in (ours[name], tensor)]
        assert torch.equal(*bits), name

for mode in ("SM", "SEM"):
    for static in ("omit", "include", "prepend"):
        for side in ("left", "right"):
            for value in (True, False):
                for time in (True, False) if mode == "SM" else (True,):
                    data = dataset(
                        batch_mode=mode, static_inclusion_mode=static, padding_side=side,
                        include_numeric_value=value, include_time_delta=time,
                        include_subject_window_counts_in_batch=value,
                    )
                    samples = [data[i] for i in range(8)]
                    compared(data, samples, True)
                    assert compared(data, samples[:1], False) is None

data = dataset(batch_mode="SEM")
samples = [data[i] for i in range(4)]
# These samples have values that are not finite.
J = serrate.JointNestedRaggedTensorDict
inf, nan = float("inf"), float("nan")
raw = {"time_delta_days": [nan, inf], "code": [[1, 2], [3]], "numeric_value": [[inf, nan], [-inf]]}
types = {"time_delta_days": np.float32, "code": np.uint16, "numeric_value": np.float32}

def sample(**changed):
    return {"dynamic": J({**raw, **changed}, schema=dict(types))}

compared(data, [sample(), sample(numeric_value=[[-0.0, -1e38], [1e-40]], time_delta_days=[-inf, -0.0])], True)
for dtype, is_fast in ((np.int8, True), (np.int64, True), (np.uint32, True), (np.uint64, False), (np.float32, False)):
    types["code"] = dtype
    compared(data, [sample(), sample(code=[[4, 5], [6]])], is_fast)
types.update(code=np.uint16, numeric_value=np.float64)
compared(data, [sample(), sample()], False)
# These samples are wrong or have another form, and these classes differ.
assert compared(data, [samples[0], {}], False)[0] is KeyError
assert compared(data, [samples[0], {"dynamic": J({"code": [[1], [2]]})}], None)[0] is ValueError
assert compared(data, [], False)[0] is ValueError
compared(data, tuple(samples), False)
assert compared(dataset(batch_mode="SEM", include_time_delta=False), samples, True) is None

class Same(MEDSPytorchDataset):
    def more(self):
        return 1

class Labelled(MEDSPytorchDataset):
    LABEL_COL = "other"

class Own(MEDSPytorchDataset):
    def collate(self, batch):
        return super().collate(batch[:2])

compared(dataset(Same), samples_sm := [dataset()[i] for i in range(3)], True)
compared(dataset(Labelled), samples_sm, False)
assert dataset(Own).collate(samples_sm).code.shape[0] == 2
assert fast._collate(pytorch_dataset, MEDSPytorchDataset, dataset(Own), samples_sm) is None

# Unknown versions keep their method.
MEDSPytorchDataset.collate = original
fast._VERSION = "0.9.1"
serrate.patch()
assert MEDSPytorchDataset.collate is original
fast._VERSION, fast._SOURCE = "0.9.0", "another"
serrate.patch()
assert MEDSPytorchDataset.collate is original
"""


@pytest.mark.parametrize("when", ["before", "after"])
def test_the_patched_collate_equals_the_original(tmp_path, when):
    script = tmp_path / "collate.py"
    script.write_text(COLLATE)
    command = [sys.executable, script, DATA / "synthea-meds-torch-data", when]
    done = subprocess.run(list(map(str, command)), capture_output=True, text=True)
    assert done.returncode == 0, done.stderr[-3000:]


def test_preprocessing_writes_the_same_files(tmp_path):
    safe_open = pytest.importorskip("safetensors").safe_open
    polars = pytest.importorskip("polars")
    tool = Path(sys.executable).parent / "MTD_preprocess"
    outputs = []
    for name, before in (("theirs", []), ("ours", [sys.executable, "-m", "serrate.patch"])):
        out = tmp_path / name
        command = [*before, tool, f"MEDS_dataset_dir={DATA / 'synthea-meds'}", f"output_dir={out}"]
        done = subprocess.run(list(map(str, command)), capture_output=True, text=True, cwd=tmp_path, env=tool_environment())
        assert done.returncode == 0, done.stderr[-3000:]
        outputs.append({p.relative_to(out): p for p in out.rglob("*") if p.suffix in (".nrt", ".parquet")})
    theirs, ours = outputs
    assert ours.keys() == theirs.keys() and sum(p.suffix == ".nrt" for p in ours) >= 4
    for name, path in theirs.items():
        if name.suffix == ".parquet":
            ours_read, theirs_read = polars.read_parquet(ours[name]), polars.read_parquet(path)
            if name.name == "codes.parquet":
                # Polars groups by code on several threads, in any order.
                ours_read, theirs_read = ours_read.sort("code"), theirs_read.sort("code")
            assert ours_read.equals(theirs_read), name
            continue
        with safe_open(path, "np") as a, safe_open(ours[name], "np") as b:
            assert set(a.keys()) == set(b.keys())
            for key in a.keys():
                x, y = a.get_tensor(key), b.get_tensor(key)
                assert x.dtype == y.dtype and np.array_equal(x, y, equal_nan=x.dtype.kind == "f"), (name, key)


def run_their_tests(report, *before):
    """Runs the tests of the checkout. Returns the names of all tests, the names of the failed ones, and the output."""
    root = Path(os.environ["SERRATE_MTD_CHECKOUT"])
    # The sources of the checkout come before the installed package, so its docstrings are tested.
    environment = tool_environment(PYTHONPATH=os.pathsep.join(filter(None, [str(root / "src"), os.environ.get("PYTHONPATH")])))
    environment.pop("SERRATE_PATCH", None)
    command = [*before, sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", f"--junitxml={report}"]
    done = subprocess.run([*command, "src", "tests"], cwd=root, env=environment, capture_output=True, text=True)
    # Code 1 means that tests failed; codes above it mean that pytest could not run them.
    assert done.returncode in (0, 1), done.stdout[-5000:] + done.stderr[-5000:]
    cases = list(ElementTree.parse(report).iter("testcase"))
    name = lambda case: f"{case.get('classname')}::{case.get('name')}"
    failed = {name(c) for c in cases if c.find("failure") is not None or c.find("error") is not None}
    return {name(c) for c in cases}, failed, done.stdout


@pytest.mark.skipif("SERRATE_MTD_CHECKOUT" not in os.environ, reason="SERRATE_MTD_CHECKOUT names no checkout")
def test_the_tests_of_a_checkout_give_the_same_outcomes(tmp_path):
    """The same tests fail with and without the patch: some fail with some versions of other libraries."""
    plain, failed_before, _ = run_their_tests(tmp_path / "plain.xml")
    patched, failed, output = run_their_tests(tmp_path / "patched.xml", sys.executable, "-m", "serrate.patch")
    assert patched == plain and len(plain) > 2 * len(failed_before)
    assert failed == failed_before, output[-5000:]
