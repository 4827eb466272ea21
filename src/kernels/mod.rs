//! Operations on ragged arrays: free functions, arrays in, `Result` out.
