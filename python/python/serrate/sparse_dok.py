"""`DokTensor` and `HashMap` under the names of the library sparse_dok.

>>> import numpy as np
>>> from serrate.sparse_dok import CudaClosedHashmap, SparseDOKTensor
>>> x = SparseDOKTensor(size=(3, 4), indices=np.array([[0, 2], [1, 3]]), values=np.array([1.5, -2.0]))
>>> x[:, 1], x._nnz()
(array([1.5, 0. , 0. ]), 2)
>>> x.to_sparse_coo()
Coo(size=(3, 4), indices=array([[0, 2],
       [1, 3]]), values=array([ 1.5, -2. ]))
>>> len(CudaClosedHashmap(n_buckets=100))
0

Everything is computed in main memory, on the CPU. `x[index]` follows numpy; for indexing axis by axis, as in the last
example of the README of sparse_dok, use `x.get_orthogonal(index)`. `select` and `index_select` return views, and sums
and norms return a `DokTensor`; functions of torch get sparse torch tensors. A map compares whole keys, so it has no
`uuid`.
"""

from __future__ import annotations

from typing import Any, NamedTuple

from ._serrate import DokTensor, HashMap


class Coo(NamedTuple):
    """The entries of a sparse tensor in COO format, sorted by coordinates."""

    size: tuple[int, ...]
    indices: Any
    values: Any


class Csr(NamedTuple):
    """The entries of a sparse matrix in CSR format."""

    size: tuple[int, ...]
    crow_indices: Any
    col_indices: Any
    values: Any


SparseDOKTensor = DokTensor
CudaClosedHashmap = HashMap

__all__ = ["Coo", "Csr", "CudaClosedHashmap", "DokTensor", "HashMap", "SparseDOKTensor"]
