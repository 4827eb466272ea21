"""`RaggedBatch` and the batched operations of accvlab's batching_helpers, under the same names.

>>> import numpy as np
>>> from serrate.batching_helpers import RaggedBatch, average_over_targets, batched_indexing_access
>>> matches = RaggedBatch(np.array([[2, 0], [1, 0]]), sample_sizes=np.array([2, 1]))
>>> predictions = np.array([[0.25, 0.5, 0.75], [1.0, 2.0, 3.0]])
>>> average_over_targets(batched_indexing_access(predictions, matches))
array([0.5, 2. ])

Everything is computed in main memory, and gradients are not recorded. Filler is zero, or the value that was set; values
written to filler are dropped. An index out of range is an error that names its position. If two entries are written to
the same index, the last one remains.
"""

from ._serrate import (
    RaggedBatch,
    apply_mask_to_tensor,
    average_over_targets,
    batched_bool_indexing,
    batched_bool_indexing_write,
    batched_index_mapping,
    batched_indexing_access,
    batched_indexing_write,
    batched_inverse_indexing_access,
    combine_data,
    get_compact_from_named_tuple,
    get_compact_lists,
    get_indices_from_mask,
    get_mask_from_indices,
    squeeze_except_batch_and_sample,
    sum_over_targets,
)

__all__ = [
    "RaggedBatch",
    "apply_mask_to_tensor",
    "average_over_targets",
    "batched_bool_indexing",
    "batched_bool_indexing_write",
    "batched_index_mapping",
    "batched_indexing_access",
    "batched_indexing_write",
    "batched_inverse_indexing_access",
    "combine_data",
    "get_compact_from_named_tuple",
    "get_compact_lists",
    "get_indices_from_mask",
    "get_mask_from_indices",
    "squeeze_except_batch_and_sample",
    "sum_over_targets",
]
