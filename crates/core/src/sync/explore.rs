//! Tests under many schedules.

use shuttle::scheduler::{PctScheduler, RandomScheduler, Scheduler};
use shuttle::{Config, FailurePersistence, Runner};

/// Schedules of each kind that a test runs if `TEAK_SCHEDULES` does not say otherwise.
const FEW: usize = 300;
/// Preemptions that a bug needs at most, for the scheduler that bets on few.
const DEPTH: usize = 4;
/// Steps after which a schedule is taken for one that never ends.
const LONGEST: usize = 1_000_000;

fn number(name: &str, otherwise: usize) -> usize {
    std::env::var(name).ok().and_then(|value| value.parse().ok()).unwrap_or(otherwise)
}

/// Runs `test` under so many random schedules, and under as many with few preemptions at random places ("A Randomized
/// Scheduler with Probabilistic Guarantees of Finding Bugs", ASPLOS 2010). One that fails is printed, and so is the
/// seed, which `TEAK_SEED` gives.
pub(crate) fn explore(test: impl Fn() + Send + Sync + Clone + 'static) {
    let (seed, schedules) = (number("TEAK_SEED", 1), number("TEAK_SCHEDULES", FEW));
    println!("TEAK_SEED={seed} TEAK_SCHEDULES={schedules}");
    let random = RandomScheduler::new_from_seed(seed as u64, schedules);
    run(random, test.clone());
    run(PctScheduler::new_from_seed(seed as u64, DEPTH, schedules), test);
}

fn run(scheduler: impl Scheduler + 'static, test: impl Fn() + Send + Sync + 'static) {
    let mut config = Config::new();
    config.stack_size = 1 << 20;
    config.max_steps = shuttle::MaxSteps::FailAfter(LONGEST);
    config.failure_persistence = FailurePersistence::Print;
    config.silence_warnings = true;
    Runner::new(scheduler, config).run(test);
}
