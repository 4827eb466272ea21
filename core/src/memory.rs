//! The memory limit of the process. SQL sessions share it through their memory pools, and operators
//! spill to disk at the limit. For any other large object (a whole file, a look-up table, a sparse
//! tensor), its owner takes a [`MemoryCharge`], which fails if it would exceed the limit.

use std::ops::Deref;
use std::sync::atomic::{AtomicUsize, Ordering};

use crate::error::{Error, Result};

static LIMIT: AtomicUsize = AtomicUsize::new(usize::MAX);
static USED: AtomicUsize = AtomicUsize::new(0);

/// Returns the limit in bytes; `usize::MAX` if there is none.
///
/// ```
/// # use serrate_core as serrate;
/// use serrate::memory::{memory_limit, set_memory_limit};
/// assert_eq!(memory_limit(), usize::MAX);
/// set_memory_limit(1 << 30);
/// assert_eq!(memory_limit(), 1 << 30);
/// ```
pub fn memory_limit() -> usize {
    LIMIT.load(Ordering::Relaxed)
}

/// Sets the limit of the process in bytes.
///
/// Keeps existing charges, even if they exceed the limit.
///
/// ```
/// # use serrate_core as serrate;
/// use serrate::memory::{MemoryCharge, memory_used, set_memory_limit};
/// set_memory_limit(memory_used() + 1000);
/// assert!(MemoryCharge::take("a table", 2000).is_err_and(|e| e.is_memory_limit()));
/// set_memory_limit(usize::MAX);
/// assert!(MemoryCharge::take("a table", 2000).is_ok());
/// ```
pub fn set_memory_limit(bytes: usize) {
    LIMIT.store(bytes, Ordering::Relaxed);
}

/// Returns the number of bytes that are charged to the memory limit.
///
/// ```
/// # use serrate_core as serrate;
/// use serrate::memory::{MemoryCharge, memory_used};
/// let charge = MemoryCharge::take("a look-up table", 100)?;
/// assert!(memory_used() >= 100);
/// # drop(charge);
/// # Ok::<(), serrate::Error>(())
/// ```
pub fn memory_used() -> usize {
    USED.load(Ordering::Relaxed)
}

/// Charges `bytes` to the memory limit, even if they exceed it.
#[doc(hidden)]
pub fn add_used(bytes: usize) {
    USED.fetch_add(bytes, Ordering::Relaxed);
}

/// Charges `bytes` to the memory limit and returns true; if they would exceed it, charges nothing
/// and returns false.
#[doc(hidden)]
pub fn try_add_used(bytes: usize) -> bool {
    let limit = memory_limit();
    let add = |used: usize| used.checked_add(bytes).filter(|sum| *sum <= limit);
    USED.fetch_update(Ordering::Relaxed, Ordering::Relaxed, add).is_ok()
}

/// Subtracts `bytes`, which are no longer in use, from the charged bytes.
#[doc(hidden)]
pub fn subtract_used(bytes: usize) {
    USED.fetch_sub(bytes, Ordering::Relaxed);
}

/// A number of bytes that is charged to the memory limit until this value is dropped.
///
/// ```
/// # use serrate_core as serrate;
/// use serrate::memory::{MemoryCharge, memory_used};
/// let charge = MemoryCharge::take("a look-up table", 100)?;
/// assert!(memory_used() >= 100);
/// # drop(charge);
/// # Ok::<(), serrate::Error>(())
/// ```
#[derive(Debug, Default)]
pub struct MemoryCharge(usize);

impl MemoryCharge {
    /// Charges `bytes`; `what` names the object that needs them in the error message.
    ///
    /// ```
    /// # use serrate_core as serrate;
    /// use serrate::memory::{MemoryCharge, memory_used};
    /// let before = memory_used();
    /// let charge = MemoryCharge::take("a look-up table", 100)?;
    /// assert!(memory_used() >= before + 100);
    /// drop(charge);
    /// # Ok::<(), serrate::Error>(())
    /// ```
    ///
    /// # Errors
    /// If the charge would exceed the limit.
    pub fn take(what: &str, bytes: usize) -> Result<Self> {
        match try_add_used(bytes) {
            true => Ok(Self(bytes)),
            false => Err(Error::MemoryLimit {
                what: what.into(),
                bytes,
                used: memory_used(),
                limit: memory_limit(),
            }),
        }
    }

    /// Returns the number of charged bytes.
    #[doc(hidden)]
    pub fn bytes(&self) -> usize {
        self.0
    }

    /// Charges bytes that are already allocated, even if they exceed the limit.
    #[doc(hidden)]
    pub fn hold_bytes(bytes: usize) -> Self {
        add_used(bytes);
        Self(bytes)
    }

    /// Adds `bytes` to the charge; `what` names the object that needs them in the error message.
    ///
    /// ```
    /// # use serrate_core as serrate;
    /// use serrate::memory::{MemoryCharge, memory_used};
    /// let mut charge = MemoryCharge::take("a table", 100)?;
    /// charge.grow("a table", 50)?;
    /// assert!(memory_used() >= 150);
    /// assert!(charge.grow("a table", usize::MAX).is_err());
    /// # Ok::<(), serrate::Error>(())
    /// ```
    ///
    /// # Errors
    /// If the charge would exceed the limit.
    pub fn grow(&mut self, what: &str, bytes: usize) -> Result<()> {
        let mut more = Self::take(what, bytes)?;
        self.0 += std::mem::take(&mut more.0);
        Ok(())
    }
}

impl Drop for MemoryCharge {
    fn drop(&mut self) {
        subtract_used(self.0);
    }
}

/// A value whose memory is charged to the memory limit until the value is dropped.
#[doc(hidden)]
#[derive(Debug)]
pub struct ChargedValue<T> {
    value: T,
    _charge: MemoryCharge,
}

impl<T> ChargedValue<T> {
    /// Combines a value with the charge for its memory.
    pub fn new(value: T, charge: MemoryCharge) -> Self {
        Self { value, _charge: charge }
    }
}

impl<T> Deref for ChargedValue<T> {
    type Target = T;

    fn deref(&self) -> &T {
        &self.value
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_charge_that_does_not_fit_names_the_limit() {
        let _held = MemoryCharge::hold_bytes(1);
        let error = MemoryCharge::take("the table", usize::MAX).unwrap_err();
        assert!(error.is_memory_limit());
        let said = error.to_string();
        assert!(said.contains("the table") && said.contains("--memory-limit"), "{said}");
    }

    #[test]
    fn what_is_dropped_is_no_longer_charged() {
        let bytes = 1 << 40;
        let mut charge = MemoryCharge::take("x", bytes).unwrap();
        charge.grow("x", bytes).unwrap();
        assert!(memory_used() >= 2 * bytes);
        drop(charge);
        assert!(memory_used() < bytes);
    }
}
