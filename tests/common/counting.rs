//! A global allocator that counts the bytes in use, so that tests can measure and limit the memory
//! of a reader.

use std::alloc::{GlobalAlloc, Layout, System};
use std::sync::atomic::{AtomicUsize, Ordering};

/// The global allocator. It passes calls on to [`System`] and updates the counters below.
struct Counting;

/// Number of bytes that are allocated now.
pub(crate) static LIVE: AtomicUsize = AtomicUsize::new(0);
/// Largest value of [`LIVE`] since a test last reset this counter.
pub(crate) static PEAK: AtomicUsize = AtomicUsize::new(0);
/// Limit of [`LIVE`]. An allocation that exceeds it ends the process, so that its backtrace shows
/// what allocates.
pub(crate) static LIMIT: AtomicUsize = AtomicUsize::new(usize::MAX);

fn count_up(bytes: usize) {
    let live = LIVE.fetch_add(bytes, Ordering::Relaxed) + bytes;
    PEAK.fetch_max(live, Ordering::Relaxed);
    if live > LIMIT.load(Ordering::Relaxed) {
        end_process(bytes, live);
    }
}

/// Aborts the process with a message. It does not panic, because an allocator must not unwind.
#[cold]
fn end_process(bytes: usize, live: usize) -> ! {
    // The message may allocate memory, which must not exceed the limit again.
    let limit = LIMIT.swap(usize::MAX, Ordering::Relaxed);
    eprintln!(
        "memory limit: {bytes} more bytes make {live} bytes in use, but the limit is {limit}"
    );
    std::process::abort()
}

// SAFETY: every call is passed to the system allocator with the same arguments.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        count_up(layout.size());
        // SAFETY: our caller keeps the contract of `alloc`, and `layout` is unchanged.
        unsafe { System.alloc(layout) }
    }

    unsafe fn alloc_zeroed(&self, layout: Layout) -> *mut u8 {
        count_up(layout.size());
        // SAFETY: our caller keeps the contract of `alloc_zeroed`, and `layout` is unchanged.
        unsafe { System.alloc_zeroed(layout) }
    }

    unsafe fn dealloc(&self, at: *mut u8, layout: Layout) {
        LIVE.fetch_sub(layout.size(), Ordering::Relaxed);
        // SAFETY: `at` comes from the system allocator, and our caller keeps the contract of
        // `dealloc`.
        unsafe { System.dealloc(at, layout) }
    }

    unsafe fn realloc(&self, at: *mut u8, layout: Layout, size: usize) -> *mut u8 {
        count_up(size);
        LIVE.fetch_sub(layout.size(), Ordering::Relaxed);
        // SAFETY: `at` comes from the system allocator, and our caller keeps the contract of
        // `realloc`.
        unsafe { System.realloc(at, layout, size) }
    }
}

#[global_allocator]
static ALLOCATOR: Counting = Counting;
