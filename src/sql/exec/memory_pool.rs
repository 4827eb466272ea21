//! The memory pool of all sessions, with a share of the memory for each operator that can spill.

use std::cell::Cell;
use std::collections::HashMap;
use std::fmt;
use std::sync::{Arc, LazyLock, Mutex, MutexGuard};

use datafusion::common::resources_datafusion_err;
use datafusion::error::Result;
use datafusion::execution::memory_pool::{
    MemoryConsumer, MemoryLimit, MemoryPool, MemoryReservation,
};
use serrate_core::internal::lock_mutex;

use crate::error::MORE_MEMORY;
use crate::memory::{add_used, memory_limit, memory_used, subtract_used, try_add_used};

/// Maximum number of operators that an error lists: those that hold the most memory.
const MAX_NAMED_OPERATORS: usize = 3;

/// Maximum number of bytes of its share that a sort or an aggregate leaves for its merge while it
/// collects rows.
const MERGE_BYTES: usize = 10 << 20;

/// Maximum number of bytes of its share that an operator gets even if all memory is in use, so that
/// merges, which cannot spill, succeed.
const GUARANTEED_BYTES: usize = 16 << 20;

thread_local! {
    /// The id of the consumer for the rows of a new sort, until the same thread registers the
    /// consumer for the merges of this sort.
    static NEW_SORT: Cell<Option<usize>> = const { Cell::new(None) };
}

/// The memory pool of all sessions. Memory that operators reserve counts towards the memory limit
/// of the process.
///
/// The memory that nothing else uses is divided equally among the operators that can spill: none of
/// them may hold more than its share. Partitions start one after the other, so the first operators
/// may fill the memory before the others reserve any. The first ones spill when they need more
/// memory; until then, the others may exceed the limit, each by a first batch and by
/// [`GUARANTEED_BYTES`] bytes. The success of a query thus depends less on the order in which its
/// operators reserve memory.
///
/// DataFusion's `FairSpillPool` also has shares, but its limit cannot change, and it does not count
/// memory that is held outside of operators. In it, merges of sorts and of sorted partitions have
/// no share and cannot spill, so they fail if the rows of other sorts use up the memory.
/// See <https://github.com/apache/datafusion/issues/24739> and
/// <https://github.com/apache/datafusion/issues/25271>.
#[derive(Debug, Default)]
pub(crate) struct ProcessPool(Mutex<MemoryHolders>);

#[derive(Debug, Default)]
struct MemoryHolders {
    /// The operators that have a share of the memory, by the id of their first consumer.
    sharers: HashMap<usize, MemorySharer>,
    /// The id of the sharer of each consumer that belongs to one, by the id of the consumer.
    sharer_ids: HashMap<usize, usize>,
    /// Number of bytes held by all sharers.
    shared: usize,
    /// The name of each consumer and the bytes that it holds, by the id of the consumer.
    held: HashMap<usize, (String, usize)>,
}

/// An operator that can spill. A sort has two consumers: one for its rows, one for its merges.
#[derive(Debug, Default)]
struct MemorySharer {
    consumers: usize,
    held: usize,
    /// Maximum of `held` since a sort began to collect the rows that it holds now. 0 for other
    /// operators.
    peak: usize,
}

impl MemoryHolders {
    fn add_consumer(&mut self, consumer: &MemoryConsumer) {
        let own_id = consumer.id();
        if !has_share(consumer) {
            return;
        }
        let sharer_id = match is_sort_merge(consumer) {
            true => NEW_SORT.take().unwrap_or(own_id),
            false => own_id,
        };
        if is_sort(consumer) {
            NEW_SORT.set(Some(own_id));
        }
        self.sharer_ids.insert(own_id, sharer_id);
        self.sharers.entry(sharer_id).or_default().consumers += 1;
    }

    fn remove_consumer(&mut self, consumer: &MemoryConsumer) {
        self.held.remove(&consumer.id());
        let Some(sharer_id) = self.sharer_ids.remove(&consumer.id()) else { return };
        if let Some(sharer) = self.sharers.get_mut(&sharer_id) {
            sharer.consumers = sharer.consumers.saturating_sub(1);
            if sharer.consumers == 0 {
                self.sharers.remove(&sharer_id);
            }
        }
    }

    fn change_held(&mut self, consumer: &MemoryConsumer, change: impl Fn(usize) -> usize) {
        let sharer_id = self.sharer_ids.get(&consumer.id()).copied();
        if let Some(sharer) = sharer_id.and_then(|id| self.sharers.get_mut(&id)) {
            sharer.held = change(sharer.held);
            self.shared = change(self.shared);
            if sharer.held == 0 {
                sharer.peak = 0;
            } else if is_sort(consumer) {
                sharer.peak = sharer.peak.max(sharer.held);
            }
        }
        let held = self.held.entry(consumer.id()).or_insert_with(|| (consumer.name().into(), 0));
        held.1 = change(held.1);
    }

    /// Returns the operator of a consumer, or `None` if it has no share.
    fn get_sharer(&self, consumer: &MemoryConsumer) -> Option<&MemorySharer> {
        self.sharers.get(self.sharer_ids.get(&consumer.id())?)
    }

    /// Returns the number of bytes in use that do not belong to a sharer.
    fn compute_unshared(&self) -> usize {
        memory_used().saturating_sub(self.shared)
    }

    /// Returns the maximum number of bytes per sharer. A sixteenth of the limit is left for
    /// operators without a share.
    fn compute_share(&self, limit: usize) -> usize {
        let free = (limit - limit / 16).saturating_sub(self.compute_unshared());
        (free / self.sharers.len().max(1)).max(limit / 16)
    }

    fn name_largest(&self) -> String {
        let mut held: Vec<&(String, usize)> = self.held.values().filter(|(_, n)| *n > 0).collect();
        held.sort_by(|a, b| b.1.cmp(&a.1).then_with(|| a.0.cmp(&b.0)));
        let named =
            held.iter().take(MAX_NAMED_OPERATORS).map(|(name, bytes)| format!("{name} {bytes}"));
        match named.collect::<Vec<_>>().join(", ") {
            none if none.is_empty() => none,
            names => format!(" (most by {names})"),
        }
    }
}

/// Whether a consumer belongs to an operator with a share. `RepartitionExec` can spill, but it has
/// no share, because it usually holds little memory, and spills if no memory is free.
fn has_share(consumer: &MemoryConsumer) -> bool {
    is_sort_merge(consumer) || (consumer.can_spill() && !consumer.name().starts_with("Repartition"))
}

fn is_sort(consumer: &MemoryConsumer) -> bool {
    consumer.name().starts_with("ExternalSorter[")
}

fn is_sort_merge(consumer: &MemoryConsumer) -> bool {
    consumer.name().starts_with("ExternalSorterMerge[")
}

/// Whether a consumer merges sorted partitions. It holds about two batches per partition, and
/// cannot spill. The pool does not count these batches, like other batches on their way between
/// operators. Batches of strings share their buffers with the batches of the sort below, so their
/// size would be counted several times.
fn is_partition_merge(consumer: &MemoryConsumer) -> bool {
    let name = consumer.name();
    name.starts_with("SortPreservingMergeExec[") || name.starts_with("RepartitionExec[Merge ")
}

/// A request of an operator for more memory.
#[derive(Debug)]
struct MemoryRequest {
    /// Number of bytes that the reservation holds already.
    reserved: usize,
    additional: usize,
    /// Number of bytes that the operator holds, or `None` if it has no share of the memory limit;
    /// see `has_share`.
    held: Option<usize>,
    /// Number of bytes in use that do not belong to an operator with a share.
    unshared: usize,
    /// The peak of a sort if the bytes are for its merges, otherwise 0.
    peak: usize,
    can_spill: bool,
    /// Whether the bytes are for the rows of a sort.
    is_sort: bool,
}

impl MemoryRequest {
    fn new(holders: &MemoryHolders, reservation: &MemoryReservation, additional: usize) -> Self {
        let consumer = reservation.consumer();
        let sharer = holders.get_sharer(consumer);
        let peak = sharer.filter(|_| is_sort_merge(consumer)).map_or(0, |sharer| sharer.peak);
        Self {
            reserved: reservation.size(),
            additional,
            held: sharer.map(|sharer| sharer.held),
            unshared: holders.compute_unshared(),
            peak,
            can_spill: consumer.can_spill(),
            is_sort: is_sort(consumer),
        }
    }

    /// Returns the number of bytes that the operator may hold although all memory is in use.
    ///
    /// A sort may hold more than its share if the share was larger when the sort collected its
    /// rows. It must merge these rows to spill them.
    fn compute_guaranteed(&self, share: usize) -> usize {
        let guaranteed = share.min(GUARANTEED_BYTES);
        guaranteed.max(self.peak.saturating_add(guaranteed / 2))
    }

    /// Returns the maximum size of the reservation if the operator may hold `most` bytes.
    ///
    /// The first batch of an operator may have an eighth of the limit, because the batch is in
    /// memory already, and no merge follows a single batch. A sort without rows may reserve any
    /// number of bytes for its merges: the setting `sort_spill_reservation_bytes` says how many.
    fn compute_bound(&self, most: usize, limit: usize) -> usize {
        if self.can_spill && self.reserved == 0 {
            return most.max(limit / 8);
        }
        let held = self.held.unwrap_or(self.reserved);
        let other_reservations = held.saturating_sub(self.reserved);
        match (self.can_spill, held) {
            (false, 0) => limit,
            (false, _) => most.saturating_sub(other_reservations),
            (true, _) => {
                let merge = (most / 4).min(MERGE_BYTES);
                most.saturating_sub(other_reservations.max(merge)).max(most / 4)
            }
        }
    }

    fn compute_share_bound(&self, share: usize, limit: usize) -> usize {
        self.compute_bound(share.max(self.compute_guaranteed(share)), limit)
    }

    fn fits_bound(&self, bound: usize) -> bool {
        self.reserved.saturating_add(self.additional) <= bound
    }

    /// Whether the request, which fits the share of the operator, is granted although all memory is
    /// in use. A sort that holds rows can spill them instead. Operators that have no share and
    /// cannot spill, such as hash joins, may together hold a quarter of the limit, which makes the
    /// shares of the others smaller.
    fn is_guaranteed(&self, share: Option<usize>, limit: usize) -> bool {
        match (share, self.held) {
            (Some(share), Some(0)) => self.can_spill || self.fits_bound(share.max(limit / 8)),
            (Some(share), Some(_)) => {
                let bound = self.compute_bound(self.compute_guaranteed(share), limit);
                !self.is_sort && self.fits_bound(bound)
            }
            (Some(_), None) => false,
            (None, _) => self.unshared.saturating_add(self.additional) <= limit / 4,
        }
    }
}

impl ProcessPool {
    pub(crate) fn find_shared_pool() -> Arc<dyn MemoryPool> {
        static POOL: LazyLock<Arc<ProcessPool>> = LazyLock::new(Arc::default);
        Arc::clone(&POOL) as Arc<dyn MemoryPool>
    }

    fn lock_holders(&self) -> MutexGuard<'_, MemoryHolders> {
        lock_mutex(&self.0)
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
        self.lock_holders().add_consumer(consumer);
    }

    fn unregister(&self, consumer: &MemoryConsumer) {
        self.lock_holders().remove_consumer(consumer);
    }

    fn grow(&self, reservation: &MemoryReservation, additional: usize) {
        if is_partition_merge(reservation.consumer()) {
            return;
        }
        add_used(additional);
        self.lock_holders().change_held(reservation.consumer(), |n| n.saturating_add(additional));
    }

    fn shrink(&self, reservation: &MemoryReservation, shrink: usize) {
        if is_partition_merge(reservation.consumer()) {
            return;
        }
        subtract_used(shrink);
        self.lock_holders().change_held(reservation.consumer(), |n| n.saturating_sub(shrink));
    }

    fn try_grow(&self, reservation: &MemoryReservation, additional: usize) -> Result<()> {
        let consumer = reservation.consumer();
        if is_partition_merge(consumer) {
            return Ok(());
        }
        let mut holders = self.lock_holders();
        let limit = memory_limit();
        let request = MemoryRequest::new(&holders, reservation, additional);
        let has_bound = request.can_spill || request.held.is_some();
        let share = has_bound.then(|| holders.compute_share(limit));
        let bound = share.map(|share| request.compute_share_bound(share, limit));
        let exceeded = bound.filter(|bound| !request.fits_bound(*bound));
        let mut is_granted = exceeded.is_none() && try_add_used(additional);
        if !is_granted && exceeded.is_none() && request.is_guaranteed(share, limit) {
            add_used(additional);
            is_granted = true;
        }
        if is_granted {
            holders.change_held(consumer, |n| n.saturating_add(additional));
            return Ok(());
        }
        let bound = exceeded.map_or_else(String::new, |bound| {
            format!(", and this operator may hold at most {bound} bytes")
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

#[cfg(test)]
mod tests {
    use datafusion::execution::runtime_env::RuntimeEnv;
    use datafusion::prelude::{SessionConfig, SessionContext};

    use super::*;

    const MIB: usize = 1 << 20;

    /// A request of the merges of a sort.
    fn new_merge_request(additional: usize, held: usize, peak: usize) -> MemoryRequest {
        let (held, can_spill, is_sort) = (Some(held), false, false);
        MemoryRequest { reserved: 0, additional, held, unshared: 0, peak, can_spill, is_sort }
    }

    #[test]
    fn rows_of_a_sort_leave_a_part_of_the_share_for_merges() {
        let (share, limit) = (20 * MIB, 100 * MIB);
        let reserved = 10 * MIB;
        let rows = |additional| MemoryRequest {
            reserved,
            additional,
            held: Some(reserved),
            unshared: 0,
            peak: 0,
            can_spill: true,
            is_sort: true,
        };
        let bound = rows(0).compute_share_bound(share, limit);
        assert_eq!(bound, 15 * MIB);
        assert!(rows(5 * MIB).fits_bound(bound) && !rows(5 * MIB + 1).fits_bound(bound));
        let merge = new_merge_request(5 * MIB, 15 * MIB, 0);
        assert!(merge.fits_bound(merge.compute_share_bound(share, limit)));
        // Rows can spill if all memory is in use; merges cannot.
        assert!(!rows(1).is_guaranteed(Some(share), limit));
        assert!(new_merge_request(MIB, 15 * MIB, 0).is_guaranteed(Some(share), limit));
    }

    #[test]
    fn a_first_batch_may_exceed_the_share() {
        let first = new_merge_request(12 * MIB, 0, 0);
        let limit = 100 * MIB;
        assert!(first.fits_bound(first.compute_share_bound(2 * MIB, limit)));
        assert!(first.is_guaranteed(Some(2 * MIB), limit));
        let second = new_merge_request(12 * MIB, 1, 0);
        assert!(!second.fits_bound(second.compute_share_bound(2 * MIB, limit)));
    }

    #[test]
    fn a_sort_without_rows_may_reserve_memory_for_merges_that_is_free() {
        let reservation = new_merge_request(20 * MIB, 0, 0);
        let limit = 100 * MIB;
        assert!(reservation.fits_bound(reservation.compute_share_bound(2 * MIB, limit)));
        assert!(!reservation.is_guaranteed(Some(2 * MIB), limit));
    }

    #[test]
    fn rows_fit_beside_a_large_reservation_for_merges() {
        let (share, limit) = (2 * MIB, 24 * MIB);
        let rows = |reserved, additional| MemoryRequest {
            reserved,
            additional,
            held: Some(4 * MIB + reserved),
            unshared: 0,
            peak: 0,
            can_spill: true,
            is_sort: true,
        };
        let first = rows(0, MIB);
        assert!(first.fits_bound(first.compute_share_bound(share, limit)));
        let second = rows(MIB / 4, MIB / 4);
        assert!(second.fits_bound(second.compute_share_bound(share, limit)));
        let third = rows(MIB / 2, 1);
        assert!(!third.fits_bound(third.compute_share_bound(share, limit)));
    }

    #[test]
    fn rows_of_a_larger_share_can_be_merged() {
        let (share, limit) = (2 * MIB, 100 * MIB);
        let merge = new_merge_request(MIB, 60 * MIB, 60 * MIB);
        assert!(merge.fits_bound(merge.compute_share_bound(share, limit)));
        assert!(merge.is_guaranteed(Some(share), limit));
        let merge = new_merge_request(2 * MIB, 60 * MIB, 60 * MIB);
        assert!(!merge.fits_bound(merge.compute_share_bound(share, limit)));
    }

    /// The pool knows the operators of DataFusion by the names of their consumers.
    #[tokio::test]
    async fn a_sort_of_datafusion_has_one_share_for_its_rows_and_merges() {
        let pool = Arc::new(ProcessPool::default());
        let memory_pool = Arc::clone(&pool) as Arc<dyn MemoryPool>;
        let runtime = RuntimeEnv { memory_pool, ..RuntimeEnv::default() };
        let config = SessionConfig::new().with_target_partitions(1);
        let ctx = SessionContext::new_with_config_rt(config, Arc::new(runtime));
        let sql = "SELECT x FROM (VALUES (2), (1)) AS t(x) ORDER BY x";
        let rows = ctx.sql(sql).await.unwrap().execute_stream().await.unwrap();
        let count = || {
            let holders = pool.lock_holders();
            (holders.sharers.len(), holders.sharer_ids.len())
        };
        assert_eq!(count(), (1, 2));
        drop(rows);
        assert_eq!(count(), (0, 0));
    }
}
