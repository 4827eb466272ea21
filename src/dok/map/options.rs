//! [`MapOptions`].

use crate::error::{Error, Result};

/// How a [`HashMap`](super::HashMap) is laid out.
///
/// ```
/// use serrate::dok::{HashMap, MapOptions};
/// let options = MapOptions { load_factor: 0.5, seed: Some(7), ..Default::default() };
/// assert_eq!(HashMap::new(options)?.seed(), 7);
/// assert!(HashMap::new(MapOptions { load_factor: 1.5, ..Default::default() }).is_err());
/// # Ok::<(), serrate::Error>(())
/// ```
#[derive(Clone, Debug, PartialEq)]
pub struct MapOptions {
    /// Most keys per bucket, above 0 and at most 0.95: 0.75 unless set. Lower is faster and larger.
    pub load_factor: f64,
    /// How many times as many buckets there are once the load is reached, above 1: 2 unless set.
    pub growth: f64,
    /// Buckets to begin with.
    pub n_buckets: usize,
    /// Seed of the hashes: random when `None`, so that keys cannot be made to meet. Runs repeat
    /// whatever it is; a fixed one also makes the layout of the table repeat.
    pub seed: Option<u64>,
    /// Whether large batches may be divided among the threads of rayon's pool. Off where the caller
    /// runs in parallel already.
    pub parallel: bool,
}

impl MapOptions {
    /// Load unless set.
    pub const DEFAULT_LOAD_FACTOR: f64 = 0.75;
    /// Growth unless set.
    pub const DEFAULT_GROWTH: f64 = 2.0;
    /// The fullest table there may be.
    pub const MAX_LOAD_FACTOR: f64 = 0.95;

    pub(super) fn check(&self) -> Result<()> {
        if !(self.load_factor > 0.001 && self.load_factor <= Self::MAX_LOAD_FACTOR) {
            return Err(Error::invalid(format!(
                "a load factor of {}; it is above 0.001 and at most {}",
                self.load_factor,
                Self::MAX_LOAD_FACTOR
            )));
        }
        if !(self.growth > 1.0 && self.growth <= 1024.0) {
            return Err(Error::invalid(format!(
                "a growth of {}; it is above 1 and at most 1024",
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
