use std::sync::{Mutex, MutexGuard, PoisonError};

/// Locks a mutex, also after a thread has panicked while it held the lock. The caller ensures that
/// the data is valid between any two of its changes.
///
/// ```
/// # use serrate_core as serrate;
/// use std::sync::Mutex;
/// use serrate::internal::lock_mutex;
/// let count = Mutex::new(1);
/// *lock_mutex(&count) += 1;
/// assert_eq!(*lock_mutex(&count), 2);
/// ```
pub fn lock_mutex<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
