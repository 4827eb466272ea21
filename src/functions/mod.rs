//! SQL functions: coerce, dispatch to a kernel, document.
