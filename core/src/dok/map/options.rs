use crate::error::{Error, Result};

/// Options of a [`RowMap`](super::RowMap).
///
/// ```
/// # use serrate_core as serrate;
/// use serrate::dok::{MapOptions, RowMap};
/// let options = MapOptions { load_factor: 0.5, seed: Some(7), ..Default::default() };
/// assert_eq!(RowMap::new(options)?.seed(), 7);
/// assert!(RowMap::new(MapOptions { load_factor: 1.5, ..Default::default() }).is_err());
/// # Ok::<(), serrate::Error>(())
/// ```
#[derive(Clone, Debug, PartialEq)]
pub struct MapOptions {
    /// Maximum number of keys per bucket: above 0.001, at most 0.95, default 0.75. A lower number
    /// is faster, but takes more memory.
    pub load_factor: f64,
    /// Factor by which the number of buckets grows; above 1, at most 1024, default 2.
    pub growth: f64,
    /// Initial number of buckets.
    pub n_buckets: usize,
    /// Seed of the hashes; `None` draws a random seed, so that nobody can construct colliding keys.
    /// Results do not depend on the seed. A fixed seed makes the layout of the index table
    /// reproducible.
    pub seed: Option<u64>,
    /// Whether large batches may use rayon's threads. Set this to false if the caller already uses
    /// several threads.
    pub parallel: bool,
}

impl MapOptions {
    /// Default of [`load_factor`](Self::load_factor), the maximum number of keys per bucket.
    pub const DEFAULT_LOAD_FACTOR: f64 = 0.75;
    /// Default of [`growth`](Self::growth), the factor by which the number of buckets grows.
    pub const DEFAULT_GROWTH: f64 = 2.0;
    /// Largest valid [`load_factor`](Self::load_factor).
    pub const MAX_LOAD_FACTOR: f64 = 0.95;

    pub(super) fn check_limits(&self) -> Result<()> {
        if !(self.load_factor > 0.001 && self.load_factor <= Self::MAX_LOAD_FACTOR) {
            return Err(Error::invalid(format!(
                "the load factor is {0}; give a number above 0.001 and at most {1}",
                self.load_factor,
                Self::MAX_LOAD_FACTOR
            )));
        }
        if !(self.growth > 1.0 && self.growth <= 1024.0) {
            return Err(Error::invalid(format!(
                "the growth factor is {}; give a number above 1 and at most 1024",
                self.growth
            )));
        }
        Ok(())
    }
}

impl Default for MapOptions {
    fn default() -> Self {
        Self {
            load_factor: Self::DEFAULT_LOAD_FACTOR,
            growth: Self::DEFAULT_GROWTH,
            n_buckets: 0,
            seed: None,
            parallel: true,
        }
    }
}
