//! A message for SIGBUS, the signal of the system for a page of a mapped file that cannot be read.

/// Installs a handler that prints the likely cause of SIGBUS. The signal then ends the process, as
/// it does without the handler.
///
/// The handler does not continue with pages of zeros in place of the lost ones. Views of a map are
/// parts of batches in every operator, where no reader can check whether the map is still whole.
/// Operators use the offsets of lists and strings without a check, because they were checked when
/// the file was read; zeros in their place would lead to reads outside of the buffers.
pub(super) fn install_handler() {
    // Elsewhere, the standard library reports overflows of the stack by its own handler of SIGBUS.
    #[cfg(target_os = "linux")]
    // SAFETY: a `sigaction` of zeros is valid. The handler calls only functions that are safe in
    // handlers of signals.
    unsafe {
        let mut action: libc::sigaction = std::mem::zeroed();
        action.sa_sigaction = print_cause as *const () as libc::sighandler_t;
        // The first signal restores the default action. After the handler returns, the access fails
        // again and ends the process.
        action.sa_flags = libc::SA_RESETHAND | libc::SA_ONSTACK;
        libc::sigaction(libc::SIGBUS, &raw const action, std::ptr::null_mut());
    }
}

#[cfg(target_os = "linux")]
extern "C" fn print_cause(_signal: libc::c_int) {
    const MESSAGE: &[u8] = b"error: a page of a mapped file cannot be read (SIGBUS), because \
        another program has cut the file, or the disk has failed; SET serrate.mmap = false makes \
        this an error of the statement\n";
    // SAFETY: the buffer is static, and `write` is safe in handlers of signals.
    unsafe {
        libc::write(libc::STDERR_FILENO, MESSAGE.as_ptr().cast(), MESSAGE.len());
    }
}
