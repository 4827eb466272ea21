"""Shows the progress of statements that take longer than a second, in terminals and notebooks.

Nothing is shown if stderr is neither a terminal nor a notebook, or if SERRATE_PROGRESS=0 is set.
"""

from __future__ import annotations

import os
import sys
from typing import Any, Callable, TextIO


def described(seconds: float, rows: int, total: int | None) -> str:
    """Returns the progress of a statement as one line.

    >>> described(3.21, 1234567, 5000000)
    '3.2 s, 1,234,567 of 5,000,000 rows read (24 %)'
    >>> described(61, 0, None)
    '1:01 min'
    """
    time = f"{seconds:.1f} s" if seconds < 60 else f"{int(seconds) // 60}:{int(seconds) % 60:02} min"
    if rows == 0:
        return time
    if total is None or total < rows:
        return f"{time}, {rows:,} rows read"
    return f"{time}, {rows:,} of {total:,} rows read ({100 * rows // total} %)"


class Terminal:
    """Shows progress in one line of a terminal, which is overwritten, and cleared at the end."""

    def __init__(self, stream: TextIO):
        self._stream = stream

    def update(self, seconds: float, rows: int, total: int | None) -> None:
        self._stream.write(f"\r\x1b[2K{described(seconds, rows, total)}")
        self._stream.flush()

    def close(self) -> None:
        self._stream.write("\r\x1b[2K")
        self._stream.flush()


class Notebook:
    """Shows progress as a line and a bar below a notebook cell. They are removed at the end."""

    def __init__(self, display: Callable[..., Any]):
        self._handle = display({"text/plain": ""}, raw=True, display_id=True)

    def update(self, seconds: float, rows: int, total: int | None) -> None:
        text = described(seconds, rows, total)
        known = rows > 0 and total is not None and total >= rows
        bar = f'<progress value="{rows}" max="{total}"></progress> ' if known else ""
        self._show({"text/plain": text, "text/html": f"{bar}<small>{text}</small>"})

    def close(self) -> None:
        self._show({"text/plain": "", "text/html": ""})

    def _show(self, data: dict[str, str]) -> None:
        if self._handle is not None:
            self._handle.update(data, raw=True)


class Called:
    """Passes progress to a function of the user."""

    def __init__(self, function: Callable[[float, int, int | None], Any]):
        self._function = function

    def update(self, seconds: float, rows: int, total: int | None) -> None:
        self._function(seconds, rows, total)

    def close(self) -> None:
        pass


def shown() -> Any:
    """Returns a display for one statement, or None if there is neither a terminal nor a notebook."""
    if os.environ.get("SERRATE_PROGRESS") == "0":
        return None
    notebook = sys.modules.get("IPython")
    shell = notebook.get_ipython() if notebook is not None else None
    if shell is not None and getattr(shell, "kernel", None) is not None:
        from IPython.display import display

        return Notebook(display)
    if sys.stderr is not None and sys.stderr.isatty():
        return Terminal(sys.stderr)
    return None


def starter(progress: bool | Callable[[float, int, int | None], Any] | None) -> Callable[[], Any] | None:
    """Returns a function that creates the display of a statement; `progress` is the argument of `connect`."""
    if progress is False:
        return None
    if progress is None or progress is True:
        return shown
    if not callable(progress):
        from ._errors import WrongTypeError

        raise WrongTypeError(f"progress is a {type(progress).__name__}; give True, False or a function")
    return lambda: Called(progress)
