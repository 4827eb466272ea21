"""Runs the Python blocks of the documents in order, on the files that the blocks before them write.

Sessions (`>>> ..`) must print what they show. Scripts run if the libraries that they import are installed.
"""

import doctest
import importlib.util
import io
import os
import re
import subprocess
import tempfile
from contextlib import redirect_stdout
from pathlib import Path
from typing import NamedTuple

import pytest

ROOT = Path(__file__).resolve().parents[2]
FENCED = re.compile(r"^```(\w+)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
DOCUMENTS = [*ROOT.glob("*.md"), *ROOT.glob("*/README.md"), *ROOT.glob("docs/**/*.md")]
PAGES = sorted(str(page.relative_to(ROOT)) for page in DOCUMENTS if "```python" in page.read_text())

# Libraries that scripts import, and that the package does not need.
OPTIONAL = {"adbc_driver_flightsql", "lightning", "safetensors", "scipy", "torch"}
# Pages whose SQL blocks write the files that the Python blocks of another page read.
WRITERS = {"docs/formats.md": "docs/sparse.md"}
# The block of this page needs a server, so `tests/interop/serve.py` runs it.
SERVER = "docs/server.md"


class Block(NamedTuple):
    """A fenced code block of a page, with the number of lines before its body."""

    language: str
    body: str
    line: int

    def is_session(self):
        return self.language == "python" and self.body.startswith(">>>")

    def is_script(self):
        return self.language == "python" and not self.is_session()

    def shows_output(self, script):
        """Whether the block shows the output of a script, that is, follows it after one empty line."""
        return self.language == "text" and self.line == script.line + script.body.count("\n") + 3


def read_blocks(page):
    text = (ROOT / page).read_text()
    return [Block(m[1], m[2], text.count("\n", 0, m.start(2))) for m in FENCED.finditer(text)]


def find_missing(scripts):
    """Returns the optional libraries that scripts import and that are not installed."""
    imported = {name for script in scripts for name in re.findall(r"^(?:import|from) (\w+)", script.body, re.MULTILINE)}
    return sorted(name for name in imported & OPTIONAL if importlib.util.find_spec(name) is None)


@pytest.fixture(scope="session")
def command(request) -> Path:
    """Returns the path of the program `serrate`: `SERRATE_COMMAND`, or else a debug build of this repository."""
    if given := os.environ.get("SERRATE_COMMAND"):
        return request.config.invocation_params.dir / given
    subprocess.run(["cargo", "build", "--quiet", "--bin", "serrate"], cwd=ROOT, check=True)
    return ROOT / os.environ.get("CARGO_TARGET_DIR", "target") / "debug" / "serrate"


@pytest.fixture
def clone(tmp_path, monkeypatch):
    """Makes a folder with links to `sql` and `tests` the current folder, so that blocks run in it as in a clone."""
    for name in ("sql", "tests"):
        (tmp_path / name).symlink_to(ROOT / name)
    monkeypatch.chdir(tmp_path)
    # The sessions create temporary folders.
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    return tmp_path


def find_commands(session):
    """Yields the commands of a `console` block; open quotes and backslashes continue a line."""
    lines = iter(session.splitlines())
    for line in lines:
        if line.startswith("$ "):
            command = line.removeprefix("$ ")
            while command.endswith("\\") or command.count('"') % 2:
                command += "\n" + next(lines)
            yield command


def run_commands(block):
    """Runs the statements or the commands of a block; blocks in other languages have none."""
    if block.language == "sql":
        arguments, text = ["serrate", "-"], block.body
    elif block.language in ("console", "sh"):
        script = block.body if block.language == "sh" else "\n".join(find_commands(block.body))
        arguments, text = ["sh", "-ec", script], ""
    else:
        return
    done = subprocess.run(arguments, input=text, text=True, capture_output=True)
    assert done.returncode == 0, f"{block.body}\n{done.stderr}"


def run_session(session, page, names):
    parsed = doctest.DocTestParser().get_doctest(session.body, {}, page, page, session.line)
    parsed.globs = names
    runner = doctest.DocTestRunner(verbose=False, optionflags=doctest.NORMALIZE_WHITESPACE | doctest.ELLIPSIS)
    report = []
    failed, tried = runner.run(parsed, out=report.append, clear_globs=False)
    assert tried > 0 and failed == 0, "".join(report)


def run_script(script, page, names):
    """Runs a script, and returns what it prints."""
    # The lines before the script give its lines the numbers that they have in the page.
    code = compile("\n" * script.line + script.body, page, "exec")
    printed = io.StringIO()
    with redirect_stdout(printed):
        exec(code, names)
    return printed.getvalue()


def check_losses(names, printed):
    losses = [float(line.split()[1]) for line in printed.splitlines()]
    # The script prints the loss of two batches of the tuning split after each of 20 epochs.
    assert len(losses) == 40
    assert sum(losses[-2:]) < sum(losses[:2])


def check_matrix(names, printed):
    m = names["m"]
    assert (m.shape, m.nnz, m.toarray()[5, 6]) == ((428, 428), 1, 3)


def assert_equal(batches, others):
    import torch

    assert len(batches) == len(others)
    for a, b in zip(batches, others):
        assert a.keys() == b.keys()
        for name in a:
            assert a[name].dtype == b[name].dtype and torch.equal(a[name], b[name]), name


def check_batches(names, printed):
    """Compares the class and the function of the page, which read batches of a folder and of a pipe."""
    import torch

    Batches, stream = names["Batches"], names["stream"]

    def load(folder, workers=0, **options):
        # Workers that are not forked would import the class from a module.
        context = "fork" if workers else None
        batches = Batches(folder, **options)
        return list(torch.utils.data.DataLoader(batches, batch_size=None, num_workers=workers, multiprocessing_context=context))

    def get_key(batch):
        return batch["subject_id"].tolist(), batch["code"].tolist()

    # The commands of the page have written these folders.
    assert sum(len(batch["subject_id"]) for batch in load("train")) == 20
    assert all(batch["boolean_value"].dtype == torch.bool for batch in load("task"))

    batches = ["serrate", "batches", "tests/data/synthea-meds-torch-data"]
    arguments = [*batches, "--batch", "5", "--len", "16", "--shuffle", "--seed", "7", "--epochs", "2"]
    subprocess.run([*arguments, "-o", "epochs"], check=True, capture_output=True)
    alone = load("epochs")
    assert len(alone) == len(Batches("epochs")) == 12
    for epoch in range(2):
        subjects = torch.cat([batch["subject_id"] for batch in load("epochs", epoch=epoch)]).tolist()
        assert len(subjects) == len(set(subjects)) == 28
    # Workers of a DataLoader share the batches, so each batch occurs once.
    assert sorted(map(get_key, load("epochs", workers=2))) == sorted(map(get_key, alone))
    assert_equal(list(stream(*arguments)), alone)
    # A process whose stream is not read to its end stops.
    assert_equal([next(stream(*arguments))], alone[:1])
    with pytest.raises(subprocess.CalledProcessError):
        list(stream("serrate", "batches", "nowhere", "--batch", "5", "--len", "16"))

    # COPY writes the rows of a query as the same batches.
    labels = "tests/data/synthea-meds/labels"
    subprocess.run([*batches, "--labels", labels, "--batch", "100", "--len", "32", "-o", "labelled"], check=True, capture_output=True)
    query = (
        "COPY (SELECT subject_id, boolean_value, ragged_tail(time_delta_days, 16) AS days, ragged_tail(code_id, 16) AS code "
        f"FROM meds_asof('{batches[-1]}', '{labels}')) TO 'query' STORED AS BATCHES (batch 100, len 16)"
    )
    subprocess.run(["serrate", "-c", query], check=True, capture_output=True)
    labelled, rows = load("labelled"), load("query")
    assert sum(len(batch["subject_id"]) for batch in labelled) == 1715
    for a, b in zip(rows, labelled, strict=True):
        assert torch.equal(a["subject_id"], b["subject_id"]) and torch.equal(a["boolean_value"], b["boolean_value"])
        assert a["days"].shape == a["dim1/mask"].shape and a["code"].shape == a["dim2/mask"].shape


# Further checks of the names that the blocks of a page define, and of what its scripts print.
CHECKS = {
    "docs/formats.md": check_matrix,
    "docs/guide/first-model.md": check_losses,
    "docs/training.md": check_batches,
}


def test_documents_with_python_are_found():
    assert {"python/README.md", "docs/guide/from-python.md", *CHECKS} <= set(PAGES)


@pytest.mark.parametrize("page", PAGES)
def test_python_blocks_run_and_print_what_the_page_shows(page, request, clone, monkeypatch):
    blocks = read_blocks(page)
    last = max(i for i, block in enumerate(blocks) if block.language == "python")
    # The block after a script may have its output.
    blocks = blocks[: last + 2]
    scripts = [block for block in blocks if block.is_script()]
    missing = ["a server"] if page == SERVER else find_missing(scripts)
    # The commands of other pages install and build the package.
    runs_commands = page.startswith("docs/") and scripts and not missing
    if runs_commands:
        (clone / "bin").mkdir()
        (clone / "bin" / "serrate").symlink_to(request.getfixturevalue("command"))
        monkeypatch.setenv("PATH", f"{clone / 'bin'}{os.pathsep}{os.environ['PATH']}")
        for block in read_blocks(WRITERS[page]) if page in WRITERS else []:
            run_commands(block)
    if importlib.util.find_spec("torch"):
        importlib.import_module("torch").manual_seed(1)
    names, printed = {"__name__": "page"}, ""
    for block, after in zip(blocks, [*blocks[1:], None]):
        if block.is_session():
            run_session(block, page, names)
        elif block.is_script() and not missing:
            output = run_script(block, page, names)
            if after and after.shows_output(block):
                assert output == after.body
            printed += output
        elif runs_commands:
            run_commands(block)
    if missing:
        pytest.skip(f"a script of the page needs {', '.join(missing)}")
    if page in CHECKS:
        CHECKS[page](names, printed)
