use std::collections::BTreeMap;
use std::sync::{Condvar, Mutex, PoisonError};

use crate::error::{Error, Result};
use crate::locks::lock_mutex;

/// Computes `work(i)` for every `i` below `count` in `jobs` threads, and passes the results to
/// `take` in the order of `i`. At most two results per thread wait, so memory does not depend on
/// `count`. An error stops new work; the error of the smallest `i` is returned.
pub(super) fn run_in_order<T: Send>(
    count: usize,
    jobs: usize,
    work: impl Fn(usize) -> Result<T> + Sync,
    take: impl FnMut(T) -> Result<()> + Send,
) -> Result<()> {
    struct TurnState<T, F> {
        begun: usize,
        taken: usize,
        waiting: BTreeMap<usize, T>,
        failed: Option<(usize, Error)>,
        take: F,
    }
    let jobs = jobs.clamp(1, count.max(1));
    let most = jobs.saturating_mul(2);
    let state =
        Mutex::new(TurnState { begun: 0, taken: 0, waiting: BTreeMap::new(), failed: None, take });
    let turn = Condvar::new();
    let run = || {
        loop {
            let mut now = lock_mutex(&state);
            while now.failed.is_none() && now.begun < count && now.begun - now.taken >= most {
                now = turn.wait(now).unwrap_or_else(PoisonError::into_inner);
            }
            if now.failed.is_some() || now.begun >= count {
                return;
            }
            let number = now.begun;
            now.begun += 1;
            drop(now);
            let result = work(number);
            let mut guard = lock_mutex(&state);
            let now = &mut *guard;
            let failed = match result {
                Err(e) => Some((number, e)),
                Ok(result) => {
                    now.waiting.insert(number, result);
                    let mut failed = None;
                    while let Some(next) = now.waiting.remove(&now.taken) {
                        if let Err(e) = (now.take)(next) {
                            failed = Some((now.taken, e));
                            break;
                        }
                        now.taken += 1;
                    }
                    failed
                }
            };
            if let Some((number, e)) = failed
                && now.failed.as_ref().is_none_or(|(first, _)| number < *first)
            {
                now.failed = Some((number, e));
            }
            drop(guard);
            turn.notify_all();
        }
    };
    std::thread::scope(|scope| {
        for _ in 1..jobs {
            scope.spawn(run);
        }
        run();
    });
    match state.into_inner().unwrap_or_else(PoisonError::into_inner).failed {
        Some((_, e)) => Err(e),
        None => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicUsize, Ordering};

    use super::*;

    #[test]
    fn results_come_in_order_and_few_wait() {
        for jobs in [1, 2, 7] {
            let (mut seen, under_way) = (Vec::new(), AtomicUsize::new(0));
            let highest = AtomicUsize::new(0);
            run_in_order(
                100,
                jobs,
                |i| {
                    let now = under_way.fetch_add(1, Ordering::SeqCst) + 1;
                    highest.fetch_max(now, Ordering::SeqCst);
                    std::thread::sleep(std::time::Duration::from_micros((i as u64 * 37) % 300));
                    Ok(i)
                },
                |i| {
                    under_way.fetch_sub(1, Ordering::SeqCst);
                    seen.push(i);
                    Ok(())
                },
            )
            .unwrap();
            assert_eq!(seen, (0..100).collect::<Vec<_>>());
            assert!(highest.into_inner() <= 2 * jobs, "{jobs}");
        }
        run_in_order(0, 3, |_| Ok(()), |()| Ok(())).unwrap();
    }

    #[test]
    fn the_first_error_ends_it() {
        let begun = AtomicUsize::new(0);
        let work = |i: usize| {
            begun.fetch_add(1, Ordering::SeqCst);
            if i == 3 { Err(Error::invalid("three")) } else { Ok(i) }
        };
        let e = run_in_order(1000, 2, work, |_| Ok(())).unwrap_err();
        assert_eq!(e.to_string(), "three");
        assert!(begun.into_inner() < 20);
        let e =
            run_in_order(5, 2, Ok, |i| if i == 1 { Err(Error::invalid("one")) } else { Ok(()) });
        assert_eq!(e.unwrap_err().to_string(), "one");
    }
}
