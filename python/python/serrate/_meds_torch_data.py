"""A faster `collate` for meds-torch-data 0.9.0, which `serrate.patch()` installs.

The original pads first, and then replaces NaN in the padded tensors, which are mostly padding. This function makes
the same tensors in one pass over the values. It calls the original for everything that it does not know: other
versions of the method, subclasses that override a part of the class, and samples of another form.
"""

from __future__ import annotations

import functools
import sys
from typing import Any

from . import _serrate
from .joint import JointNestedRaggedTensorDict

#: The module whose class is changed.
MODULE = "meds_torchdata.pytorch_dataset"
#: The version and the SHA-256 of the source of the method that the function replaces.
_VERSION = "0.9.0"
_SOURCE = "a150b3d452e35e124fb44b08f448a7ed306df708d0ac04adeced5ea646f2391f"
#: Names that every class has, and names that a subclass may define without a change to `collate`.
_HARMLESS = frozenset(
    "__module__ __qualname__ __doc__ __dict__ __weakref__ __annotations__ __annotate__ __annotate_func__ "
    "__annotations_cache__ __firstlineno__ __static_attributes__ __init__ __orig_bases__ __parameters__".split()
)
_HOOKS = frozenset(["__getattr__", "__getattribute__"])


def install() -> None:
    """Replaces `collate` in the loaded module, or as soon as the module is imported."""
    module = sys.modules.get(MODULE)
    if module is not None:
        replace_collate(module)
    elif not any(isinstance(finder, _Finder) for finder in sys.meta_path):
        sys.meta_path.insert(0, _Finder())


def replace_collate(module: Any) -> None:
    """Replaces `collate` of the class in the module, unless the method is not the known one."""
    cls = getattr(module, "MEDSPytorchDataset", None)
    original = vars(cls).get("collate") if isinstance(cls, type) else None
    if original is None or not _is_known(original):
        return

    @functools.wraps(original)
    def collate(self: Any, batch: list[dict]) -> Any:
        out = _collate(module, cls, self, batch)
        return original(self, batch) if out is None else out

    cls.collate = collate


def _is_known(method: Any) -> bool:
    # These imports take longer than the rest of `serrate.patch()`, and most processes need none of them.
    import hashlib
    import inspect
    from importlib import metadata

    # The replacement seems to have the source of the original, so check for it first.
    if not inspect.isfunction(method) or hasattr(method, "__wrapped__"):
        return False
    try:
        source = inspect.getsource(method)
        version = metadata.version("meds-torch-data")
    except (OSError, TypeError, metadata.PackageNotFoundError):
        return False
    return version == _VERSION and hashlib.sha256(source.encode()).hexdigest() == _SOURCE


@functools.lru_cache(maxsize=256)
def _is_plain(cls: type, base: type) -> bool:
    """Returns whether `cls` is `base`, or a subclass that overrides nothing of it except `__init__`."""
    if base not in cls.__mro__:
        return False
    known = (vars(base).keys() | _HOOKS) - _HARMLESS
    above = cls.__mro__[: cls.__mro__.index(base)]
    return all(known.isdisjoint(vars(each)) for each in above)


def _collate(module: Any, cls: type, self: Any, batch: Any) -> Any:
    """Returns the batch that the original would return, or None if the original must be called."""
    if not _is_plain(type(self), cls) or type(batch) is not list or len(batch) < 2:
        return None
    config, modes, statics = self.config, module.BatchMode, module.StaticInclusionMode
    mode, static = config.batch_mode, config.static_inclusion_mode
    if (
        type(config) is not module.MEDSTorchDataConfig
        or module.JointNestedRaggedTensorDict is not JointNestedRaggedTensorDict
        or config.padding_side not in ("left", "right")
        or mode not in (modes.SEM, modes.SM)
        or static not in (statics.OMIT, statics.INCLUDE, statics.PREPEND)
    ):
        return None
    for item in batch:
        if type(item) is not dict or type(item.get("dynamic")) is not JointNestedRaggedTensorDict:
            return None
    torch, is_events = module.torch, mode == modes.SEM
    # `vstack` keeps the tables if their columns agree. The original makes the same call, so it raises the same errors.
    parts = JointNestedRaggedTensorDict.vstack([item["dynamic"] for item in batch])._parts
    if parts is None:
        return None
    with_time, with_value = bool(config.include_time_delta), bool(config.include_numeric_value)
    dense = _serrate.collate_stack(parts, str(config.padding_side), is_events, with_time, with_value)
    if dense is None:
        return None
    out = {name: torch.as_tensor(values) for name, values in dense.items()}

    if static == statics.INCLUDE:
        facts = JointNestedRaggedTensorDict(
            {name: [item[name] for item in batch] for name in ("static_code", "static_numeric_value")}
        ).to_dense()
        values = torch.as_tensor(facts["static_numeric_value"])
        out["static_code"] = torch.as_tensor(facts["static_code"]).long()
        out["static_numeric_value"] = torch.nan_to_num(values, nan=0).float()
        out["static_numeric_value_mask"] = ~torch.isnan(values)
    elif static == statics.PREPEND:
        before = [item["n_static_seq_els"] for item in batch]
        if is_events:
            mask = torch.zeros_like(out["event_mask"])
            mask[:, 0] = True
        else:
            mask = torch.arange(out["code"].shape[1]).unsqueeze(0) < torch.as_tensor(before).unsqueeze(1)
            mask = mask.to(device=out["code"].device, dtype=torch.bool)
        out["static_mask"] = mask

    if self.has_task_labels:
        out[self.LABEL_COL] = torch.Tensor([item[self.LABEL_COL] for item in batch]).bool()
    if config.include_subject_window_counts_in_batch:
        counts = [item.get("n_subject_windows", 1) for item in batch]
        out["n_subject_windows"] = torch.as_tensor(counts, dtype=torch.long)
    return module.MEDSTorchBatch(**out)


class _Finder:
    """An import hook: finds the module with the other finders, and replaces `collate` after the import."""

    def find_spec(self, name: str, path: Any, target: Any = None) -> Any:
        if name != MODULE:
            return None
        for finder in sys.meta_path:
            find = None if finder is self else getattr(finder, "find_spec", None)
            spec = find(name, path, target) if find is not None else None
            if spec is not None:
                if hasattr(spec.loader, "exec_module"):
                    spec.loader = _Loader(spec.loader)
                return spec
        return None


class _Loader:
    """Loads the module with its own loader, and then replaces `collate`."""

    def __init__(self, inner: Any):
        self._inner = inner

    def __getattr__(self, name: str) -> Any:
        return getattr(self._inner, name)

    def create_module(self, spec: Any) -> Any:
        return self._inner.create_module(spec)

    def exec_module(self, module: Any) -> None:
        # The module keeps its own loader, so only the replaced `collate` differs after the import.
        module.__loader__ = module.__spec__.loader = self._inner
        self._inner.exec_module(module)
        replace_collate(module)
