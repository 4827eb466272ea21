"""Runs the Python blocks of the guide, on the files that its SQL blocks and its commands write."""

import os
import re
import shlex
import subprocess
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
BLOCK = re.compile(r"^```(\w+)\n(.*?)^```$", re.MULTILINE | re.DOTALL)


@pytest.fixture(scope="module")
def command() -> str:
    """Returns the path of the program `serrate`: `SERRATE_COMMAND`, or else a debug build of this repository."""
    if given := os.environ.get("SERRATE_COMMAND"):
        return given
    subprocess.run(["cargo", "build", "--quiet", "--bin", "serrate"], cwd=ROOT, check=True)
    return str(Path(os.environ.get("CARGO_TARGET_DIR", ROOT / "target")).resolve() / "debug" / "serrate")


def find_commands(session):
    """Yields the arguments of each `$ serrate ..` of a session; open quotes and backslashes continue a line."""
    lines = iter(session.splitlines())
    for line in lines:
        if line.startswith("$ serrate "):
            text = line.removeprefix("$ serrate ")
            while text.endswith("\\") or text.count('"') % 2:
                text = text + "\n" + next(lines)
            yield shlex.split(text.replace("\\\n", " "))


def run_blocks(page, command, folder):
    """Runs the SQL blocks and the shell sessions of a page in a folder, and returns its Python blocks."""
    scripts = []
    for language, body in BLOCK.findall((ROOT / page).read_text()):
        if language == "sql":
            subprocess.run([command, "-"], input=body, text=True, cwd=folder, check=True, capture_output=True)
        elif language == "console":
            for arguments in find_commands(body):
                subprocess.run([command, *arguments], cwd=folder, check=True, capture_output=True)
        elif language == "python":
            scripts.append(body)
    return scripts


def test_the_script_of_the_first_model_lowers_its_loss(command, tmp_path, monkeypatch, capsys):
    torch = pytest.importorskip("torch")
    for name in ("sql", "tests"):
        (tmp_path / name).symlink_to(ROOT / name)
    (script,) = run_blocks("docs/guide/first-model.md", command, tmp_path)
    monkeypatch.chdir(tmp_path)
    torch.manual_seed(1)
    exec(script, {})
    losses = [float(line.split()[1]) for line in capsys.readouterr().out.splitlines()]
    # The script prints the loss of two batches of the tuning split after each of 20 epochs.
    assert len(losses) == 40
    assert sum(losses[-2:]) < sum(losses[:2])
