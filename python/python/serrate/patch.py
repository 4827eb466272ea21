"""Runs code that is written for nested_ragged_tensors on this package.

In Python:

    import serrate
    serrate.patch()

and for a command and all processes that it starts:

    python -m serrate.patch MTD_preprocess MEDS_dataset_dir=.. output_dir=..
"""

from __future__ import annotations

import os
import sys
import types

#: Set in processes that are patched while they start.
VARIABLE = "SERRATE_PATCH"


def apply() -> int:
    """Puts our class where upstream's is known; how many names were changed.

    Modules that bound upstream's name when they were imported are found and changed, too. Modules that are
    imported later find ours. Doing it twice changes nothing.
    """
    from .joint import JointNestedRaggedTensorDict as ours
    from .joint import is_ndim_list, pprint_dense

    try:
        import nested_ragged_tensors
        from nested_ragged_tensors import ragged_numpy
    except ImportError:
        _stand_in(ours, is_ndim_list, pprint_dense)
        return 1
    theirs = getattr(ragged_numpy, "_upstream", None) or ragged_numpy.JointNestedRaggedTensorDict
    ragged_numpy._upstream = theirs
    changed = 0
    for module in list(sys.modules.values()):
        if not isinstance(module, types.ModuleType) or module.__name__.startswith("serrate"):
            continue
        for name, value in list(vars(module).items()):
            if value is theirs and name != "_upstream":
                setattr(module, name, ours)
                changed += 1
    nested_ragged_tensors.JointNestedRaggedTensorDict = ours
    return changed


def _stand_in(ours, is_ndim_list, pprint_dense) -> None:
    """Modules of upstream's names where upstream is not installed."""
    package = types.ModuleType("nested_ragged_tensors", "Stood in for by serrate.")
    package.__path__ = []
    module = types.ModuleType("nested_ragged_tensors.ragged_numpy", "Stood in for by serrate.")
    for each in (package, module):
        each.JointNestedRaggedTensorDict = ours
    module.is_ndim_list = is_ndim_list
    module.pprint_dense = pprint_dense
    package.ragged_numpy = module
    sys.modules["nested_ragged_tensors"] = package
    sys.modules["nested_ragged_tensors.ragged_numpy"] = module


def _environment() -> dict[str, str]:
    """That of a process which patches itself, and those it starts, before anything else runs."""
    environment = dict(os.environ)
    startup = os.path.join(os.path.dirname(__file__), "_startup")
    before = environment.get("PYTHONPATH")
    environment["PYTHONPATH"] = startup if not before else startup + os.pathsep + before
    environment[VARIABLE] = "1"
    return environment


def main(arguments: list[str]) -> None:
    """`python -m serrate.patch COMMAND ..`: the command takes the place of this process."""
    if not arguments or arguments[0] in ("-h", "--help"):
        print(__doc__)
        sys.exit(0 if arguments else 2)
    command = arguments[0]
    here = os.path.join(os.path.dirname(sys.executable), command)
    if os.sep not in command and os.access(here, os.X_OK):
        command = here
    try:
        os.execvpe(command, [arguments[0], *arguments[1:]], _environment())
    except FileNotFoundError:
        print(f"there is no command {arguments[0]}", file=sys.stderr)
        sys.exit(127)


class _Callable(types.ModuleType):
    """`serrate.patch` is this module, and called as a function it is `apply`."""

    def __call__(self) -> int:
        return apply()


if __name__ == "__main__":
    main(sys.argv[1:])
else:
    sys.modules[__name__].__class__ = _Callable
