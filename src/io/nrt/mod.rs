//! `.nrt` files of Python's nested_ragged_tensors.
