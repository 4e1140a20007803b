//! The same work for many things, on every core.

use std::num::NonZero;
use std::thread;

/// Below this many things, threads cost more than they give.
const FEW: usize = 32;

/// Calls `work`, which is short, for every item and gives the results in the items' order.
///
/// # Panics
/// When `work` panics.
pub fn in_parallel<T: Sync, R: Send>(items: &[T], work: impl Fn(&T) -> R + Sync) -> Vec<R> {
    if items.len() < FEW { items.iter().map(work).collect() } else { spread(items, work) }
}

/// As [`in_parallel`], for long work: two items are worth two threads.
///
/// # Panics
/// When `work` panics.
pub fn spread<T: Sync, R: Send>(items: &[T], work: impl Fn(&T) -> R + Sync) -> Vec<R> {
    let threads = thread::available_parallelism().map_or(1, NonZero::get);
    if threads < 2 || items.len() < 2 {
        return items.iter().map(work).collect();
    }
    let share = items.len().div_ceil(threads);
    let work = &work;
    thread::scope(|scope| {
        let running: Vec<_> = items
            .chunks(share)
            .map(|chunk| scope.spawn(move || chunk.iter().map(work).collect::<Vec<R>>()))
            .collect();
        let done = running.into_iter().map(|thread| match thread.join() {
            Ok(results) => results,
            Err(panic) => std::panic::resume_unwind(panic),
        });
        done.flatten().collect()
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn results_keep_the_order_of_the_items() {
        for count in [0, 1, FEW - 1, FEW, 1000] {
            let items: Vec<usize> = (0..count).collect();
            let doubled = in_parallel(&items, |n| n * 2);
            assert_eq!(doubled, items.iter().map(|n| n * 2).collect::<Vec<_>>());
        }
    }
}
