use std::collections::HashMap;
use std::fmt;
use std::sync::{Arc, LazyLock, Mutex, MutexGuard, PoisonError};

use datafusion::common::resources_datafusion_err;
use datafusion::error::Result;
use datafusion::execution::memory_pool::{
    MemoryConsumer, MemoryLimit, MemoryPool, MemoryReservation,
};

use crate::error::MORE_MEMORY;
use crate::memory::{add_used, memory_limit, memory_used, subtract_used, try_add_used};

/// Maximum number of operators that an error lists: those that hold the most memory.
const NAMED: usize = 3;

/// The memory pool of all sessions. Memory that operators reserve counts towards the memory limit
/// of the process.
///
/// The memory that nothing else uses is divided equally among the operators that can spill: none of
/// them may hold more than its share. DataFusion's `FairSpillPool` has the same rule, but its limit
/// cannot change, and it does not count memory that is held outside of operators.
#[derive(Debug, Default)]
pub(crate) struct ProcessPool(Mutex<MemoryHolders>);

#[derive(Debug, Default)]
struct MemoryHolders {
    spillers: usize,
    /// Number of bytes held by the operators that can spill.
    spillable: usize,
    /// The name of each operator and the bytes that it holds, by the id of the operator.
    held: HashMap<usize, (String, usize)>,
}

impl MemoryHolders {
    fn change_held(&mut self, consumer: &MemoryConsumer, change: impl Fn(usize) -> usize) {
        if consumer.can_spill() {
            self.spillable = change(self.spillable);
        }
        let held = self.held.entry(consumer.id()).or_insert_with(|| (consumer.name().into(), 0));
        held.1 = change(held.1);
    }

    fn name_largest(&self) -> String {
        let mut held: Vec<&(String, usize)> = self.held.values().filter(|(_, n)| *n > 0).collect();
        held.sort_by(|a, b| b.1.cmp(&a.1).then_with(|| a.0.cmp(&b.0)));
        let named = held.iter().take(NAMED).map(|(name, bytes)| format!("{name} {bytes}"));
        match named.collect::<Vec<_>>().join(", ") {
            none if none.is_empty() => none,
            names => format!(" (most by {names})"),
        }
    }
}

impl ProcessPool {
    pub(crate) fn find_shared_pool() -> Arc<dyn MemoryPool> {
        static POOL: LazyLock<Arc<ProcessPool>> = LazyLock::new(Arc::default);
        Arc::clone(&POOL) as Arc<dyn MemoryPool>
    }

    fn lock_holders(&self) -> MutexGuard<'_, MemoryHolders> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl fmt::Display for ProcessPool {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "process(used: {}, limit: {})", memory_used(), memory_limit())
    }
}

impl MemoryPool for ProcessPool {
    fn name(&self) -> &str {
        "process"
    }

    fn register(&self, consumer: &MemoryConsumer) {
        if consumer.can_spill() {
            self.lock_holders().spillers += 1;
        }
    }

    fn unregister(&self, consumer: &MemoryConsumer) {
        let mut holders = self.lock_holders();
        if consumer.can_spill() {
            holders.spillers = holders.spillers.saturating_sub(1);
        }
        holders.held.remove(&consumer.id());
    }

    fn grow(&self, reservation: &MemoryReservation, additional: usize) {
        add_used(additional);
        self.lock_holders().change_held(reservation.consumer(), |n| n.saturating_add(additional));
    }

    fn shrink(&self, reservation: &MemoryReservation, shrink: usize) {
        subtract_used(shrink);
        self.lock_holders().change_held(reservation.consumer(), |n| n.saturating_sub(shrink));
    }

    fn try_grow(&self, reservation: &MemoryReservation, additional: usize) -> Result<()> {
        let consumer = reservation.consumer();
        let mut holders = self.lock_holders();
        let limit = memory_limit();
        let share = consumer.can_spill().then(|| {
            let others = memory_used().saturating_sub(holders.spillable);
            limit.saturating_sub(others) / holders.spillers.max(1)
        });
        let needed = reservation.size().saturating_add(additional);
        let exceeded = share.filter(|share| needed > *share);
        if exceeded.is_none() && try_add_used(additional) {
            holders.change_held(consumer, |n| n.saturating_add(additional));
            return Ok(());
        }
        let bound = exceeded.map_or_else(String::new, |share| {
            format!(", and this operator may hold at most {share} bytes")
        });
        Err(resources_datafusion_err!(
            "{} needs {additional} more bytes, but {} of the memory limit of {limit} bytes are in use{}{bound}; {MORE_MEMORY}",
            consumer.name(),
            memory_used(),
            holders.name_largest()
        ))
    }

    fn reserved(&self) -> usize {
        memory_used()
    }

    fn memory_limit(&self) -> MemoryLimit {
        match memory_limit() {
            usize::MAX => MemoryLimit::Infinite,
            limit => MemoryLimit::Finite(limit),
        }
    }
}
