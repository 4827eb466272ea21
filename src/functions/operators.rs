//! Arithmetic, comparison and logic on lists.
