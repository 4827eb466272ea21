//! Synthetic patients with the shape of a real data set.
