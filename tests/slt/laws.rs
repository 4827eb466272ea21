//! Laws that hold for every function.
