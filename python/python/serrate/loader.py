"""`MedsLoader` and `Loader`: epochs of training batches, built in Rust.

Both are iterables of dicts of torch tensors (numpy arrays without torch, or with `output="numpy"`), and
datasets for a DataLoader with `batch_size=None` and any number of workers.

Batches may be changed in place. A later batch reuses the memory once all tensors of the batch are deleted. With
`trust_padding=True` it clears only the values, which is faster for batches that are mostly padding; then padding must
not be changed in place.
"""

from __future__ import annotations

import importlib.util
import itertools
import mmap
import os
import sys
import warnings
from typing import Any, Iterator, Sequence

from . import _serrate
from ._errors import InvalidError
from ._torch import share, torch_module


# The number of bytes in `_Batches._marks`.
_MARKS = 256


def _has_torch() -> bool:
    return "torch" in sys.modules or importlib.util.find_spec("torch") is not None


class _Batches:
    """Base class of both loaders: epochs, the position in an epoch, and DataLoader workers."""

    def __init__(self, output: str | None, pin_memory: bool, nested: bool, options: dict[str, Any]):
        if output not in (None, "torch", "numpy"):
            raise InvalidError(f"output must be 'torch' or 'numpy', not {output!r}")
        self._output = output or ("torch" if _has_torch() else "numpy")
        if (pin_memory or nested) and self._output != "torch":
            raise InvalidError("pin_memory and nested require torch tensors; set output='torch'")
        if nested and options.get("form") != "packed":
            raise InvalidError("nested=True requires packed batches; set form='packed'")
        if self._output == "torch" or "torch" in sys.modules:
            # A DataLoader iterates over instances of this class, and indexes all other datasets.
            torch_module().utils.data.IterableDataset.register(_Batches)
        if pin_memory and not _has_accelerator():
            warnings.warn("pin_memory has no effect, because torch has no accelerator here", stacklevel=3)
        self._pin_memory = pin_memory
        self._nested = nested
        # None means the default, except that it turns position ids off.
        self._options = {k: v for k, v in options.items() if v is not None or k == "position_ids"}
        self._epoch = 0
        self._batch = 0
        self._known_fingerprint: str | None = None
        # Forked processes share these bytes. Byte 0 is set once a copy is sent to a spawned process; byte 1 + i is set
        # once worker i has begun the epoch.
        self._marks = mmap.mmap(-1, _MARKS)
        self._is_worker = False
        self._opened: tuple[int, _serrate.BatchLoader] | None = None
        self._loader()

    def _open(self, options: dict[str, Any]) -> _serrate.BatchLoader:
        raise NotImplementedError

    def _loader(self) -> _serrate.BatchLoader:
        process = os.getpid()
        if self._opened is None or self._opened[0] != process:
            options = dict(self._options)
            if self._opened is not None or _worker_info() is not None:
                # A DataLoader worker builds its batches on one thread, because the other workers run in parallel.
                options.update(threads=1, prefetch=0)
            self._opened = (process, self._open(options))
        return self._opened[1]

    def __getstate__(self) -> dict[str, Any]:
        context = sys.modules.get("multiprocessing.context")
        if context is not None and context.get_spawning_popen() is not None:
            self._marks[0] = 1
        state = dict(self.__dict__)
        state["_opened"] = None
        del state["_marks"]
        return state

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__dict__.update(state)
        self._marks = mmap.mmap(-1, _MARKS)

    # Size and position.

    @property
    def num_items(self) -> int:
        """Number of items of an epoch: rows, labels, or the windows of step sampling."""
        return self._loader().num_items

    def __len__(self) -> int:
        """Number of batches of the epoch that the next iteration begins or continues."""
        return self._loader().num_batches(self._position()[0])

    @property
    def epoch(self) -> int:
        """Number of the epoch that the next iteration begins or continues."""
        return self._position()[0]

    def _position(self) -> tuple[int, int]:
        """Returns the epoch and its batch with which the next iteration begins.

        A caller that takes exactly `len(loader)` batches, as Lightning does, leaves the position behind the last batch
        of an epoch, from where the next epoch begins.
        """
        if self._batch and self._batch >= self._loader().num_batches(self._epoch):
            return self._epoch + 1, 0
        return self._epoch, self._batch

    def set_epoch(self, epoch: int) -> None:
        """Moves to the beginning of an epoch."""
        self._move(int(epoch), 0)

    def _move(self, epoch: int, batch: int) -> None:
        if epoch < 0 or batch < 0:
            raise InvalidError(f"the position is batch {batch} of epoch {epoch}, but both count from 0")
        self._epoch, self._batch = epoch, batch
        self._marks[:] = bytes(_MARKS)

    def _fingerprint(self) -> str:
        """Returns a hash of the options and of the lengths of the data, on which the batches depend."""
        if self._known_fingerprint is None:
            self._known_fingerprint = format(self._loader().fingerprint(0), "016x")
        return self._known_fingerprint

    def state_dict(self) -> dict[str, Any]:
        """Returns the position of the iteration for `load_state_dict`: the epoch, its next batch, and a fingerprint
        of the loader.

        Raises an error while workers of a DataLoader iterate, because their copies of the loader advance, but this
        object stays at the start. Count the batches instead, and resume with
        `load_state_dict({"epoch": epoch, "batch": batches})` before the DataLoader is iterated over.
        """
        if _worker_info() is None and self._marks.find(b"\x01", 0) >= 0:
            raise InvalidError(
                "workers of a DataLoader iterate over copies of this loader, so its own position stays at the start of "
                "the epoch; count the batches, and resume with load_state_dict({'epoch': epoch, 'batch': batches}), "
                "or use num_workers=0"
            )
        epoch, batch = self._position()
        return {"epoch": epoch, "batch": batch, "fingerprint": self._fingerprint()}

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """Moves to a position from `state_dict`. Earlier batches are not built.

        Raises an error if the fingerprint shows that the loader of the state had other options, another seed, rank
        or number of ranks, or data of other lengths. A dict of only `epoch` and `batch` is not checked.
        """
        theirs = state.get("fingerprint")
        if theirs is not None and theirs != self._fingerprint():
            raise InvalidError(
                f"the state has the fingerprint {theirs}, but this loader has {self._fingerprint()}: the loader of the "
                "state had other options, another seed or rank, or other data, so its batches were different; create "
                "the loader as for the state, or pass only 'epoch' and 'batch' to use the position alone"
            )
        self._move(int(state["epoch"]), int(state["batch"]))

    # Batches.

    def __iter__(self) -> Iterator[dict[str, Any]]:
        """Iterates over the rest of the epoch. The next iteration begins the next epoch.

        In a worker of a DataLoader, iterates over the worker's share of the batches, which the DataLoader returns
        in order. Workers that start again in every epoch do not know the number of the epoch, so call
        `set_epoch` before each epoch, as for samplers. Forked workers warn if they repeat an epoch.
        """
        worker = _worker_info()
        if worker is None:
            worker_id, num_workers = 0, 1
            self._marks[:] = bytes(_MARKS)
        else:
            worker_id, num_workers = worker.id, worker.num_workers
            self._mark_worker(worker_id)
        self._epoch, self._batch = epoch, batch = self._position()
        batches_left = self._loader().epoch(epoch, batch + worker_id, num_workers)
        # Takes the batch out of the list when the caller gets it: a batch that this generator held would keep its
        # memory while the next batch is built.
        while batches := [self._convert(arrays) for arrays in itertools.islice(batches_left, 1)]:
            # The batch counts as consumed before the caller has used it.
            self._batch = batches_left.position - 1 + num_workers - worker_id
            yield batches.pop()
        self._epoch, self._batch = epoch + 1, 0

    def _mark_worker(self, worker: int) -> None:
        mark = 1 + worker % (_MARKS - 1)
        # A worker that lives for several epochs continues with the next one.
        if self._marks[mark] and not self._is_worker and self._varies():
            warnings.warn(
                f"new workers begin epoch {self._epoch} again, because they do not know that it was read; call "
                "loader.set_epoch(n) before each epoch",
                stacklevel=3,
            )
        self._marks[mark] = 1
        self._is_worker = True

    def _varies(self) -> bool:
        """Returns whether the batches of two epochs differ."""
        drawn = ("random", "balanced")
        return (
            bool(self._options.get("shuffle"))
            or self._options.get("window") in drawn
            or self._options.get("sampling") in drawn
        )

    def batch_of(self, items: list[int], epoch: int = 0) -> dict[str, Any]:
        """Builds one batch of the items with these indices in source order, for custom samplers."""
        return self._convert(self._loader().batch_of(epoch, list(items)))

    def _convert(self, arrays: dict[str, Any]) -> dict[str, Any]:
        """Returns the batch as the options `output`, `nested` and `pin_memory` say."""
        if self._output == "numpy":
            return arrays
        batch = {name: share(array) for name, array in arrays.items()}
        if self._nested:
            batch = _nest_tensors(batch, self._loader().packed_lengths)
        # Tensors of a worker are sent to another process, whose DataLoader pins them.
        if self._pin_memory and _worker_info() is None and _has_accelerator():
            batch = {name: tensor.pin_memory() for name, tensor in batch.items()}
        return batch


def _nest_tensors(batch: dict[str, Any], lengths: dict[str, str]) -> dict[str, Any]:
    """Converts the flat values of the items to nested tensors. Tensors with one value per item stay unchanged."""
    torch = torch_module()
    # torch computes only with nested tensors that share the tensor of their offsets.
    offsets = {name: batch[name].long() for name in set(lengths.values())}
    out = {}
    for name, tensor in batch.items():
        if name in lengths:
            out[name] = torch.nested.nested_tensor_from_jagged(tensor, offsets[lengths[name]])
        elif not name.endswith(("/cu_seqlens", "/offsets", "/position_ids")):
            out[name] = tensor
    return out


def _has_accelerator() -> bool:
    torch = torch_module()
    accelerator = getattr(torch, "accelerator", torch.cuda)
    return accelerator.is_available()


def _worker_info() -> Any:
    torch = sys.modules.get("torch")
    return torch.utils.data.get_worker_info() if torch is not None else None


class MedsLoader(_Batches):
    """Batches of health records from a MEDS data set or a cohort that meds-torch-data has tensorized.

    >>> cohort = "tests/data/synthea-meds-torch-data"
    >>> loader = serrate.MedsLoader(cohort, split="train", batch_size=8, max_seq_len=16, shuffle=True, output="numpy")
    >>> for epoch in range(2):
    ...     for batch in loader:
    ...         codes, days = batch["code"], batch["time_delta_days"]
    >>> loader.num_items, len(loader), loader.epoch
    (20, 3, 2)
    >>> codes.shape == days.shape and codes.dtype.name
    'int64'

    Options, all keyword arguments:

    * `split`: `"train"`, `"tuning"`, `"held_out"` or another split; all subjects by default
    * `labels`: folder or file of labels, or a table of them (`subject_id`, `prediction_time`, values)
    * `batch_size`, `max_seq_len`; `unit`: `"measurement"` (SM) or `"event"` (SEM)
    * `window`: `"random"`, `"balanced"`, `"start"`, `"end"`, `"step"` (with `stride` or `overlap`)
    * `statics`: `"include"`, `"prepend"`, `"omit"`
    * `measurements_per_event`, `fixed_shape`, `numeric_value`, `time_delta`, `window_counts`
    * `compat`: True for exactly the tensors of meds-torch-data
    * `form`: `"padded"` or `"packed"`; `nested=True` converts packed batches to nested tensors; `position_ids`
    * `padding_side`; `shuffle`, `seed`; `bucket`; `drop_last`; `rank`, `world` for distributed training
    * `threads`, `prefetch`, `limit` (bytes of a batch), `pin_memory`, `output`: `"torch"` or `"numpy"`
    * `trust_padding`: True promises that padding is not changed in place, so that it need not be written again
    """

    def __init__(
        self,
        root: str | os.PathLike,
        *,
        split: str | None = None,
        labels: Any = None,
        batch_size: int = 1,
        max_seq_len: int = 256,
        unit: str = "measurement",
        window: str = "random",
        stride: int | None = None,
        overlap: int | None = None,
        statics: str = "include",
        measurements_per_event: int | None = None,
        fixed_shape: bool = False,
        numeric_value: bool = True,
        time_delta: bool = True,
        window_counts: bool = False,
        compat: bool = False,
        form: str = "padded",
        nested: bool = False,
        position_ids: str | None = None,
        padding_side: str = "right",
        shuffle: bool = False,
        seed: int = 0,
        bucket: int | None = None,
        drop_last: bool = False,
        rank: int = 0,
        world: int = 1,
        threads: int = 1,
        prefetch: int = 0,
        limit: int | None = None,
        trust_padding: bool = False,
        pin_memory: bool = False,
        output: str | None = None,
    ):
        self._root = os.fspath(root)
        options = dict(
            split=split, labels=labels, batch_size=batch_size, max_seq_len=max_seq_len, unit=unit, window=window,
            stride=stride, overlap=overlap, statics=statics, measurements_per_event=measurements_per_event,
            fixed_shape=fixed_shape, numeric_value=numeric_value, time_delta=time_delta, window_counts=window_counts,
            compat=compat, form=form, position_ids=position_ids, padding_side=padding_side, shuffle=shuffle, seed=seed,
            bucket=bucket, drop_last=drop_last, rank=rank, world=world, threads=threads, prefetch=prefetch,
            limit=limit, trust_padding=trust_padding,
        )
        super().__init__(output, pin_memory, nested, options)

    def _open(self, options: dict[str, Any]) -> _serrate.BatchLoader:
        return _serrate.BatchLoader.meds(self._root, options)

    @property
    def unknown_labels(self) -> int:
        """Number of labels that were omitted because their subjects are unknown."""
        return self._loader().unknown_labels

    @property
    def categories(self) -> list[str]:
        """The categories that `categorical_value` refers to by index."""
        return self._loader().categories


class Loader(_Batches):
    """Batches of rows of `.nrt` files or of tables.

    >>> table = serrate.RaggedTable({"code": [[1, 2, 3], [4], [5, 6]]})
    >>> for batch in serrate.Loader(table, batch_size=2, output="numpy"):
    ...     print(batch["code"].tolist())
    [[1, 2, 3], [4, 0, 0]]
    [[5, 6]]

    Options, all keyword arguments: `batch_size`; `window` (elements of axis 1) with `sampling` `"start"`, `"end"`,
    `"random"`, `"balanced"` or `"step"` (and `stride`); `columns`; `masks` (axes); `validity`; `sizes` (for each axis
    after the rows, None for the longest list of the batch, a number, or `("at_most", number)`); `padding_side`;
    `fill` (a value, or a dict by column); `tokens_as_i64`; and `form`, `nested`, `position_ids`, `shuffle`, `seed`,
    `bucket`, `drop_last`, `rank`, `world`, `threads`, `prefetch`, `limit`, `trust_padding`, `pin_memory`, `output` as
    for `MedsLoader`.
    """

    def __init__(
        self,
        source: Any,
        *,
        batch_size: int = 1,
        window: int | None = None,
        sampling: str | None = None,
        stride: int | None = None,
        columns: Sequence[str] | None = None,
        masks: Sequence[int] | None = None,
        validity: bool = True,
        sizes: Sequence[int | tuple[str, int] | None] | None = None,
        padding_side: str = "right",
        fill: Any = None,
        tokens_as_i64: bool = False,
        form: str = "padded",
        nested: bool = False,
        position_ids: str | None = "int32",
        shuffle: bool = False,
        seed: int = 0,
        bucket: int | None = None,
        drop_last: bool = False,
        rank: int = 0,
        world: int = 1,
        threads: int = 1,
        prefetch: int = 0,
        limit: int | None = None,
        trust_padding: bool = False,
        pin_memory: bool = False,
        output: str | None = None,
    ):
        self._source = source
        options = dict(
            batch_size=batch_size, window=window, sampling=sampling, stride=stride, columns=columns, masks=masks,
            validity=validity, sizes=sizes, padding_side=padding_side, fill=fill, tokens_as_i64=tokens_as_i64,
            form=form, position_ids=position_ids, shuffle=shuffle, seed=seed, bucket=bucket, drop_last=drop_last,
            rank=rank, world=world, threads=threads, prefetch=prefetch, limit=limit, trust_padding=trust_padding,
        )
        super().__init__(output, pin_memory, nested, options)

    def _open(self, options: dict[str, Any]) -> _serrate.BatchLoader:
        return _serrate.BatchLoader.plain(self._source, options)

