"""Patches a Python process at startup; see `serrate.patch`."""

import os
import sys


def _next_of_name() -> None:
    """Runs the next `sitecustomize.py` in `sys.path`, which this file hides."""
    here = os.path.dirname(os.path.abspath(__file__))
    for folder in sys.path:
        path = os.path.join(folder or ".", "sitecustomize.py")
        if os.path.abspath(folder or ".") != here and os.path.isfile(path):
            with open(path) as file:
                exec(compile(file.read(), path, "exec"), {"__name__": "sitecustomize", "__file__": path})
            return


_next_of_name()
if os.environ.get("SERRATE_PATCH") == "1":
    import serrate

    serrate.patch()
