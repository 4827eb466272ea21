"""SQL, tables, tensors and training batches for nested ragged data.

>>> import serrate
>>> visits = {"patient": ["a", "b"], "codes": [[3, 1, 2], [7]]}
>>> serrate.sql("SELECT patient, ragged_sum(codes) AS total FROM visits ORDER BY patient", visits=visits)
patient  total
text     int64
-------  -----
a        6
b        7
"""

from . import awkward, batching_helpers, hettensor, meds, sparse_dok
from ._errors import (
    BadFileError,
    Error,
    ExistsError,
    FileError,
    InvalidError,
    InvalidIndexError,
    NoSuchColumnError,
    NotFoundError,
    OutOfRangeError,
    TooLargeError,
    TooWideError,
    WrongTypeError,
)
from ._serrate import DokTensor, HashMap, HetTensor, RaggedBatch
from ._sql import Result, Session, connect, sql
from ._tables import RaggedArray, RaggedTable, to_nested, to_torch
from .joint import JointNestedRaggedTensorDict, is_ndim_list, pprint_dense
from .loader import Loader, MedsLoader


def patch() -> int:
    """Replaces the class of nested_ragged_tensors with the class of this package in all loaded modules.

    Returns the number of replaced names. See the module `serrate.patch`.
    """
    # This import replaces the attribute `serrate.patch` by the module of this name, which is callable like this
    # function.
    from .patch import apply

    return apply()


__all__ = [
    "BadFileError",
    "DokTensor",
    "Error",
    "ExistsError",
    "FileError",
    "HashMap",
    "HetTensor",
    "InvalidError",
    "InvalidIndexError",
    "JointNestedRaggedTensorDict",
    "Loader",
    "MedsLoader",
    "NoSuchColumnError",
    "NotFoundError",
    "OutOfRangeError",
    "RaggedArray",
    "RaggedBatch",
    "RaggedTable",
    "Result",
    "Session",
    "TooLargeError",
    "TooWideError",
    "WrongTypeError",
    "awkward",
    "batching_helpers",
    "connect",
    "hettensor",
    "is_ndim_list",
    "meds",
    "patch",
    "pprint_dense",
    "sparse_dok",
    "sql",
    "to_nested",
    "to_torch",
]

__version__ = "0.1.0"
