//! How many random schedules are run, and running them on every processor.
//!
//! `REMUDA_SCHEDULES` says how many in all; `cargo xtask simulate` sets it. Without it there are a few hundred.

use std::panic::resume_unwind;
use std::sync::atomic::{AtomicU64, Ordering};

const FEW: u64 = 200;
/// A line is printed after so many.
const PROGRESS: u64 = 500;

/// The part of all schedules that one test runs, by hundredths.
pub fn share(percent: u64) -> u64 {
    let all = std::env::var("REMUDA_SCHEDULES").ok().map_or(FEW, |count| count.parse().expect("a number"));
    all * percent / 100
}

/// Runs the schedules `0..count` and adds up what each counts.
pub fn run_all<const N: usize>(name: &str, count: u64, run: impl Fn(u64) -> [u32; N] + Sync) -> [u32; N] {
    let next = AtomicU64::new(0);
    let worker = || {
        let mut total = [0; N];
        loop {
            let seed = next.fetch_add(1, Ordering::Relaxed);
            if seed >= count {
                return total;
            }
            if seed > 0 && seed.is_multiple_of(PROGRESS) {
                println!("{name}: {seed} of {count} schedules");
            }
            let named = Named { name, seed };
            add(&mut total, run(seed));
            drop(named);
        }
    };
    let threads = std::thread::available_parallelism().map_or(1, usize::from);
    let total = std::thread::scope(|scope| {
        let workers: Vec<_> = (0..threads).map(|_| scope.spawn(worker)).collect();
        workers.into_iter().fold([0; N], |mut sum, worker| {
            add(&mut sum, worker.join().unwrap_or_else(|panic| resume_unwind(panic)));
            sum
        })
    });
    println!("{name}: {count} schedules");
    total
}

/// Says which schedule it was that failed.
struct Named<'a> {
    name: &'a str,
    seed: u64,
}

impl Drop for Named<'_> {
    fn drop(&mut self) {
        if std::thread::panicking() {
            println!("{}: schedule {} failed", self.name, self.seed);
        }
    }
}

fn add<const N: usize>(sum: &mut [u32; N], counts: [u32; N]) {
    sum.iter_mut().zip(counts).for_each(|(sum, count)| *sum += count);
}
