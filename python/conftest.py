import os
from pathlib import Path

import pytest


@pytest.fixture(autouse=True)
def _names(request, monkeypatch, doctest_namespace, tmp_path):
    """Gives docstring examples the names `serrate` and `folder`, an empty folder, and runs them in the repository."""
    import serrate

    monkeypatch.chdir(Path(__file__).resolve().parents[1])
    if request.node.name.endswith((".to_nested", ".to_torch")):
        pytest.importorskip("torch")
    doctest_namespace["serrate"] = serrate
    doctest_namespace["folder"] = tmp_path


@pytest.fixture(scope="session")
def repository() -> Path:
    return Path(__file__).resolve().parents[1]


@pytest.fixture
def in_child():
    """Returns a function that runs a function in a forked child and returns the `repr` of its result."""

    def run(function, timeout=60):
        read, write = os.pipe()
        child = os.fork()
        if child == 0:
            os.close(read)
            try:
                text = repr(function())
            except BaseException as e:
                text = f"raised {e!r}"
            os.write(write, text.encode())
            os._exit(0)
        os.close(write)
        import select

        ready, _, _ = select.select([read], [], [], timeout)
        if not ready:
            os.kill(child, 9)
        text = os.read(read, 1 << 16).decode() if ready else "hangs"
        os.close(read)
        os.waitpid(child, 0)
        return text

    return run
