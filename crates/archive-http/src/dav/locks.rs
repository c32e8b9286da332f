//! Locks (RFC 4918, 6 and 7): who has one writes, reads are nobody's matter. They are in the memory of the server, and
//! end with it; each ends by itself, too.

use super::place::Place;
use crate::problem::Problem;
use hyper::StatusCode;
use std::hash::{BuildHasher, RandomState};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

/// At a time.
const MOST: usize = 10_000;
/// What one lasts that says nothing, and at most.
const USUAL: Duration = Duration::from_secs(600);
const LONGEST: Duration = Duration::from_secs(86_400);

/// A lock.
#[derive(Debug, Clone)]
pub(crate) struct Lock {
    pub(crate) token: String,
    pub(crate) place: Place,
    /// Whether it is for all that is below, too.
    pub(crate) is_deep: bool,
    pub(crate) is_exclusive: bool,
    /// XML of who has it, as it was given.
    pub(crate) owner: String,
    pub(crate) seconds: u64,
    until: Instant,
}

impl Lock {
    /// Whether it is a lock of that place.
    pub(crate) fn covers(&self, place: &Place) -> bool {
        self.place == *place || (self.is_deep && place.is_in(&self.place))
    }
}

/// What is wanted.
pub(crate) struct Wish {
    pub(crate) place: Place,
    pub(crate) is_deep: bool,
    pub(crate) is_exclusive: bool,
    pub(crate) owner: String,
    pub(crate) lasts: Duration,
}

/// All that there are.
#[derive(Default)]
pub(crate) struct Locks(Mutex<Vec<Lock>>);

impl Locks {
    /// Those that have not ended.
    fn present(&self) -> MutexGuard<'_, Vec<Lock>> {
        let mut all = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let now = Instant::now();
        all.retain(|lock| lock.until > now);
        all
    }

    /// Those of a place.
    pub(crate) fn of(&self, place: &Place) -> Vec<Lock> {
        self.present().iter().filter(|lock| lock.covers(place)).cloned().collect()
    }

    /// Those of a place and of all that is below it, for who asks for many.
    pub(crate) fn in_or_below(&self, place: &Place) -> Vec<Lock> {
        let all = self.present();
        all.iter().filter(|lock| lock.covers(place) || lock.place.is_in(place)).cloned().collect()
    }

    /// A new one, if none is there that it contradicts.
    pub(crate) fn lock(&self, wish: Wish) -> Result<Lock, Problem> {
        let mut all = self.present();
        let contradicts = |lock: &&Lock| {
            let meets = lock.covers(&wish.place) || (wish.is_deep && lock.place.is_in(&wish.place));
            meets && (wish.is_exclusive || lock.is_exclusive)
        };
        if let Some(other) = all.iter().find(contradicts) {
            return Err(locked(other));
        }
        if all.len() >= MOST {
            return Err(Problem::busy(format!("there are {MOST} locks")));
        }
        let seconds = wish.lasts.as_secs();
        let lock = Lock {
            token: token(),
            place: wish.place,
            is_deep: wish.is_deep,
            is_exclusive: wish.is_exclusive,
            owner: wish.owner,
            seconds,
            until: Instant::now() + wish.lasts,
        };
        all.push(lock.clone());
        Ok(lock)
    }

    /// Lets one of a place last longer.
    pub(crate) fn refresh(&self, place: &Place, tokens: &[String], lasts: Duration) -> Option<Lock> {
        let mut all = self.present();
        let lock = all.iter_mut().find(|lock| lock.covers(place) && tokens.contains(&lock.token))?;
        lock.seconds = lasts.as_secs();
        lock.until = Instant::now() + lasts;
        Some(lock.clone())
    }

    /// Whether there was one of that place, which is gone now.
    pub(crate) fn unlock(&self, place: &Place, token: &str) -> bool {
        let mut all = self.present();
        let before = all.len();
        all.retain(|lock| lock.token != token || !lock.covers(place));
        all.len() < before
    }

    /// Those of what is gone, and of all that was below it.
    pub(crate) fn forget(&self, place: &Place) {
        self.present().retain(|lock| !lock.place.is_in(place));
    }

    /// Refuses who changes a place, and if `is_deep` all that is below it, without the tokens of its locks. Of several
    /// shared ones one is enough.
    pub(crate) fn admit(&self, place: &Place, is_deep: bool, tokens: &[String]) -> Result<(), Problem> {
        let all = self.present();
        let has = |lock: &Lock| tokens.contains(&lock.token);
        let mut of_place = all.iter().filter(|lock| lock.covers(place)).peekable();
        if let Some(first) = of_place.peek().copied() {
            if !of_place.any(has) {
                return Err(locked(first));
            }
        }
        let below = |lock: &&Lock| is_deep && lock.place.is_in(place) && !lock.covers(place);
        let of_one = |lock: &Lock| all.iter().any(|other| other.place == lock.place && has(other));
        match all.iter().filter(below).find(|lock| !of_one(lock)) {
            Some(lock) => Err(locked(lock)),
            None => Ok(()),
        }
    }
}

fn locked(by: &Lock) -> Problem {
    Problem::new(StatusCode::LOCKED, format!("{} is locked", by.place.href(false)))
}

/// Tokens are to differ: what the system gives hash tables does. They are short, as clients, litmus for one, put two of
/// them and two tags into one header.
fn token() -> String {
    format!("urn:x-teak:{:016x}", RandomState::new().hash_one(Instant::now()))
}

/// What the header `Timeout` says.
pub(crate) fn lasts(header: Option<&str>) -> Duration {
    let mut wishes = header.unwrap_or_default().split(',').map(str::trim);
    let first = wishes.find_map(|wish| match wish {
        "Infinite" => Some(LONGEST),
        wish => wish.strip_prefix("Second-")?.parse().ok().map(Duration::from_secs),
    });
    first.unwrap_or(USUAL).clamp(Duration::from_secs(1), LONGEST)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn place(path: &str) -> Place {
        Place::Files(path.into())
    }

    fn lock(locks: &Locks, path: &str, is_deep: bool, is_exclusive: bool) -> Result<String, u16> {
        let (owner, lasts) = (String::new(), USUAL);
        let wish = Wish { place: place(path), is_deep, is_exclusive, owner, lasts };
        locks.lock(wish).map(|lock| lock.token).map_err(|problem| problem.status.as_u16())
    }

    #[test]
    fn locks_keep_out_who_has_no_token() {
        let locks = Locks::default();
        let deep = lock(&locks, "d", true, true).unwrap();
        assert_eq!(lock(&locks, "d/x", false, false), Err(423));
        assert!(lock(&locks, "dx", false, true).is_ok());
        let admit = |path: &str, is_deep, tokens: &[&String]| {
            let tokens: Vec<String> = tokens.iter().map(|token| token.to_string()).collect();
            locks.admit(&place(path), is_deep, &tokens).is_ok()
        };
        assert!(!admit("d/x", false, &[]) && admit("d/x", false, &[&deep]) && admit("e", true, &[]));
        assert!(!admit("", true, &[&deep]) && admit("", false, &[]));
        assert!(!locks.unlock(&place("e"), &deep) && locks.unlock(&place("d/x"), &deep));
        let shared =
            [lock(&locks, "d/x", false, false), lock(&locks, "d/x", false, false)].map(Result::unwrap);
        assert_eq!(lock(&locks, "d", true, true), Err(423));
        assert!(admit("d", false, &[]) && !admit("d", true, &[]) && admit("d", true, &[&shared[1]]));
        locks.forget(&place("d"));
        assert!(admit("d", true, &[]) && locks.of(&place("dx")).len() == 1);
    }

    #[test]
    fn locks_last_as_long_as_was_said_within_bounds() {
        for (header, seconds) in [
            (None, 600),
            (Some("Second-5"), 5),
            (Some("Infinite, Second-4100000000"), 86_400),
            (Some("Extend, Second-0"), 1),
            (Some("Second-99999999999999999999999"), 600),
        ] {
            assert_eq!(lasts(header).as_secs(), seconds, "{header:?}");
        }
        let locks = Locks::default();
        lock(&locks, "a", false, true).unwrap();
        locks.0.lock().unwrap()[0].until = Instant::now();
        assert!(locks.of(&place("a")).is_empty() && lock(&locks, "a", false, true).is_ok());
    }
}
