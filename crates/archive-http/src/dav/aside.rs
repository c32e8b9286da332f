//! Files that macOS puts beside others, `._*` and `.DS_Store`: they are taken, so that it goes on, and kept in memory
//! as long as there is room for them. The archive has none of them.

use super::facts::Facts;
use super::place::Place;
use crate::conditions::tag;
use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use teak_archive::Digest;

/// All of them, and one, in bytes.
const MOST: usize = 16 << 20;
pub(super) const MOST_OF_ONE: usize = 4 << 20;
/// What one takes besides its bytes.
const OVERHEAD: usize = 1 << 10;

/// A file.
#[derive(Clone)]
pub(super) struct Beside {
    pub(super) bytes: Arc<[u8]>,
    /// When it was put, in microseconds since 1970.
    since: i64,
}

impl Beside {
    pub(super) fn tag(&self) -> String {
        tag(Digest::of(&self.bytes))
    }

    pub(super) fn facts(&self) -> Facts {
        Facts {
            size: self.bytes.len() as u64,
            tag: Some(self.tag()),
            created: Some(self.since),
            modified: Some(self.since),
            ..Facts::default()
        }
    }
}

/// All of them, by their addresses.
#[derive(Default)]
pub(super) struct Aside(Mutex<BTreeMap<String, Beside>>);

/// Whether the place is one of such a file.
pub(super) fn is_aside(place: &Place) -> bool {
    let is_in_tree = place.in_tree().is_some_and(|(_, path)| !path.is_empty());
    is_in_tree && (place.name().starts_with("._") || place.name() == ".DS_Store")
}

impl Aside {
    fn all(&self) -> MutexGuard<'_, BTreeMap<String, Beside>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(super) fn get(&self, place: &Place) -> Option<Beside> {
        match is_aside(place) {
            true => self.all().get(&place.href(false)).cloned(),
            false => None,
        }
    }

    /// Takes one, for which the oldest make room; whether there was one.
    pub(super) fn put(&self, place: &Place, bytes: Vec<u8>, now: i64) -> bool {
        let mut all = self.all();
        let replaced = all.insert(place.href(false), Beside { bytes: bytes.into(), since: now }).is_some();
        let size = |all: &BTreeMap<String, Beside>| {
            all.iter().map(|(href, one)| OVERHEAD + href.len() + one.bytes.len()).sum::<usize>()
        };
        while size(&all) > MOST {
            let oldest = all.iter().min_by_key(|(_, one)| one.since).map(|(href, _)| href.clone());
            oldest.and_then(|href| all.remove(&href));
        }
        replaced
    }

    /// Forgets what is at a place, or below it; whether there was something.
    pub(super) fn remove(&self, place: &Place) -> bool {
        let mut all = self.all();
        let (before, below) = (all.len(), place.href(true));
        all.remove(&place.href(false));
        all.retain(|href, _| !href.starts_with(&below));
        all.len() < before
    }

    /// What is at a place, or below it, is at another.
    pub(super) fn transfer(&self, from: &Place, to: &Place, stays: bool) {
        let mut all = self.all();
        let (own, below) = (from.href(false), from.href(true));
        let concerned: Vec<String> =
            all.keys().filter(|href| **href == own || href.starts_with(&below)).cloned().collect();
        for href in concerned {
            let one = if stays { all.get(&href).cloned() } else { all.remove(&href) };
            let moved = format!("{}{}", to.href(false), &href[own.len()..]);
            all.extend(one.map(|one| (moved, one)));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_oldest_make_room_and_all_of_a_directory_go_with_it() {
        let aside = Aside::default();
        let place = |path: &str| Place::Files(path.into());
        assert!(is_aside(&place("a/._b")) && is_aside(&place(".DS_Store")) && !is_aside(&place("._b/c")));
        assert!(!is_aside(&Place::View("._v".into(), String::new())));
        assert!(!aside.put(&place("d/._a"), vec![1], 1) && aside.put(&place("d/._a"), vec![2], 2));
        aside.transfer(&place("d"), &place("e"), true);
        aside.transfer(&place("d/._a"), &place("d/._b"), false);
        let has = |path: &str| aside.get(&place(path)).is_some();
        assert!(has("e/._a") && has("d/._b") && !has("d/._a"));
        assert!(aside.remove(&place("d")) && !has("d/._b") && !aside.remove(&place("d")));
        for number in 0..8 {
            aside.put(&place(&format!("._{number}")), vec![0; MOST_OF_ONE], 10 + number);
        }
        assert!(has("._7") && has("._6") && !has("._0") && !has("e/._a"));
    }
}
