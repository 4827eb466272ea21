//! Global allocator that counts the bytes in use, to measure the memory that a reader takes and to limit it.

use std::alloc::{GlobalAlloc, Layout, System};
use std::sync::atomic::{AtomicUsize, Ordering};

/// Counts the bytes that are allocated.
struct Counting;

/// Number of bytes in use.
pub(crate) static LIVE: AtomicUsize = AtomicUsize::new(0);
/// Largest value of [`LIVE`] since the caller set it.
pub(crate) static PEAK: AtomicUsize = AtomicUsize::new(0);
/// Largest value of [`LIVE`] that is allowed: the allocation that exceeds it ends the process, so that its
/// backtrace shows what allocates.
pub(crate) static LIMIT: AtomicUsize = AtomicUsize::new(usize::MAX);

fn count_up(bytes: usize) {
    let live = LIVE.fetch_add(bytes, Ordering::Relaxed) + bytes;
    PEAK.fetch_max(live, Ordering::Relaxed);
    if live > LIMIT.load(Ordering::Relaxed) {
        end_process(bytes, live);
    }
}

/// An allocator must not unwind, so this does not panic.
#[cold]
fn end_process(bytes: usize, live: usize) -> ! {
    // The message may allocate.
    let limit = LIMIT.swap(usize::MAX, Ordering::Relaxed);
    eprintln!(
        "memory limit: {bytes} more bytes make {live} bytes in use, at most {limit} are allowed"
    );
    std::process::abort()
}

// SAFETY: every call is passed on to the system allocator unchanged.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        count_up(layout.size());
        // SAFETY: the caller's promise is the same.
        unsafe { System.alloc(layout) }
    }

    unsafe fn alloc_zeroed(&self, layout: Layout) -> *mut u8 {
        count_up(layout.size());
        // SAFETY: the caller's promise is the same.
        unsafe { System.alloc_zeroed(layout) }
    }

    unsafe fn dealloc(&self, at: *mut u8, layout: Layout) {
        LIVE.fetch_sub(layout.size(), Ordering::Relaxed);
        // SAFETY: the caller's promise is the same.
        unsafe { System.dealloc(at, layout) }
    }

    unsafe fn realloc(&self, at: *mut u8, layout: Layout, size: usize) -> *mut u8 {
        count_up(size);
        LIVE.fetch_sub(layout.size(), Ordering::Relaxed);
        // SAFETY: the caller's promise is the same.
        unsafe { System.realloc(at, layout, size) }
    }
}

#[global_allocator]
static ALLOCATOR: Counting = Counting;
