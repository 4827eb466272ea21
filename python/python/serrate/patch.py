"""Runs code written for nested_ragged_tensors with the classes of this package.

In Python:

    import serrate
    serrate.patch()

For a command and all processes that it starts:

    python -m serrate.patch MTD_preprocess MEDS_dataset_dir=.. output_dir=..
"""

from __future__ import annotations

import os
import sys
import types

#: Environment variable that is set to 1 in processes that patch themselves at startup.
VARIABLE = "SERRATE_PATCH"


def apply() -> int:
    """Replaces upstream's class (in nested_ragged_tensors) with the class of this package.

    Also replaces the names that loaded modules have imported from upstream; modules that are imported later get
    this package's class. In meds-torch-data 0.9.0, `MEDSPytorchDataset.collate` is replaced by a function that makes
    the same tensors. A second call changes nothing. Returns the number of replaced names.
    """
    from ._meds_torch_data import install
    from .joint import JointNestedRaggedTensorDict as ours
    from .joint import is_ndim_list, pprint_dense

    try:
        import nested_ragged_tensors
        from nested_ragged_tensors import ragged_numpy
    except ImportError:
        _stand_in(ours, is_ndim_list, pprint_dense)
        install()
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
    install()
    return changed


def _stand_in(ours, is_ndim_list, pprint_dense) -> None:
    """Adds modules with upstream's names to a process in which upstream is not installed."""
    package = types.ModuleType("nested_ragged_tensors", "Provided by serrate.")
    package.__path__ = []
    module = types.ModuleType("nested_ragged_tensors.ragged_numpy", "Provided by serrate.")
    for each in (package, module):
        each.JointNestedRaggedTensorDict = ours
    module.is_ndim_list = is_ndim_list
    module.pprint_dense = pprint_dense
    package.ragged_numpy = module
    sys.modules["nested_ragged_tensors"] = package
    sys.modules["nested_ragged_tensors.ragged_numpy"] = module


def _environment() -> dict[str, str]:
    """Returns an environment in which a Python process and its child processes patch themselves at startup."""
    environment = dict(os.environ)
    startup = os.path.join(os.path.dirname(__file__), "_startup")
    before = environment.get("PYTHONPATH")
    environment["PYTHONPATH"] = startup if not before else startup + os.pathsep + before
    environment[VARIABLE] = "1"
    return environment


def main(arguments: list[str]) -> None:
    """Runs `python -m serrate.patch COMMAND ..`: replaces this process with the command."""
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
        print(f"the command {arguments[0]} was not found; give the name or the path of a program", file=sys.stderr)
        sys.exit(127)


class _Callable(types.ModuleType):
    """Makes this module callable: `serrate.patch()` calls `apply`."""

    def __call__(self) -> int:
        return apply()


if __name__ == "__main__":
    main(sys.argv[1:])
else:
    sys.modules[__name__].__class__ = _Callable
