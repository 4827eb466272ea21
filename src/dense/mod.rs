//! Dense tensors: a dtype, a shape and a buffer; padded batches.
