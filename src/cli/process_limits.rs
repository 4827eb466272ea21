//! Limits of the process: the files that it may use, and its memory.

use std::path::PathBuf;

use clap::Args;

use super::command_failure::{Failure, Outcome};
use crate::access::{Confinement, confine};
use crate::config::cap_memory;

/// Arguments that all commands have, to limit the files and the memory that the process may use.
#[derive(Args, Debug)]
#[command(next_help_heading = "Limits")]
pub(super) struct LimitArgs {
    /// Refuse everything that writes files; tables in memory may change.
    #[arg(long, global = true)]
    read_only: bool,
    /// Refuse every path outside this folder, and all stores and URLs.
    #[arg(long, value_name = "DIR", global = true)]
    root: Option<PathBuf>,
    /// Maximum memory of the process, such as 4GB, or 50% of the memory of the machine; queries
    /// that need more spill to disk or fail [default: 70%].
    #[arg(long, alias = "memory", value_name = "SIZE", global = true)]
    memory_limit: Option<String>,
}

impl LimitArgs {
    #[cfg(any(feature = "cluster", feature = "serve"))]
    pub(super) fn root_folder(&self) -> Option<&std::path::Path> {
        self.root.as_deref()
    }

    /// Applies these limits to the process. Nothing can lift or raise them afterwards.
    pub(super) fn apply_limits(&self) -> Outcome {
        if let Some(limit) = &self.memory_limit {
            cap_memory(limit)
                .map_err(|e| Failure::from_usage(format!("--memory-limit: {}", e.message())))?;
            return_freed_memory();
        }
        if !self.read_only && self.root.is_none() {
            return Ok(());
        }
        let mut rules = Confinement::default().with_read_only(self.read_only);
        if let Some(root) = &self.root {
            rules = rules.with_root(root);
        }
        confine(&rules).map_err(|e| Failure::from_usage(format!("--root: {e}")))
    }
}

/// Minimum size in bytes of a buffer for which glibc creates a separate memory mapping. When such a
/// buffer is freed, its mapping is removed, so the memory goes back to the system.
#[cfg(all(target_os = "linux", target_env = "gnu"))]
const MMAP_THRESHOLD: libc::c_int = 128 << 10;

/// Makes the allocator return freed buffers to the system at once.
///
/// By default, glibc keeps freed buffers of up to 32 MB for reuse, separately for each thread.
/// Under a limit of 50 MB, a sort of lists took 137 MB because of this. If freed buffers are
/// returned, the sort takes 45 MB and no more time.
fn return_freed_memory() {
    #[cfg(all(target_os = "linux", target_env = "gnu"))]
    // SAFETY: `mallopt` accepts any value, and locks the allocator while it sets a parameter.
    unsafe {
        libc::mallopt(libc::M_MMAP_THRESHOLD, MMAP_THRESHOLD);
        libc::mallopt(libc::M_TRIM_THRESHOLD, MMAP_THRESHOLD);
    }
}
