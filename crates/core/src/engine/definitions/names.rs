//! Whose turn it is with a table's name.
//!
//! Who opens a table that is not open, or changes what its name stands for, has the name to himself meanwhile; what
//! others do with other names goes on. Why that is enough is in `docs/design/scale.md`.

use crate::sync::{Condvar, Mutex};
use std::collections::HashMap;
use std::sync::Arc;

/// The names that somebody has, each with where others wait for it.
#[derive(Default)]
pub(crate) struct Names(Mutex<HashMap<String, Option<Arc<Condvar>>>>);

/// Names that are taken until this is dropped.
pub(in crate::engine) struct Turn<'a> {
    names: &'a Names,
    held: Vec<String>,
}

impl Names {
    /// Waits until nobody has any of `names`, and takes them. Whoever has names must not ask for more.
    pub(in crate::engine) fn take(&self, names: &[&str]) -> Turn<'_> {
        let mut taken = self.0.lock();
        // All at once, and nothing is held while it waits: no two can wait for each other.
        while let Some(&name) = names.iter().find(|&&name| taken.contains_key(name)) {
            let freed = taken.entry(name.to_string()).or_default().get_or_insert_with(Arc::default).clone();
            freed.wait(&mut taken);
        }
        let held: Vec<String> = names.iter().map(|name| name.to_string()).collect();
        taken.extend(held.iter().map(|name| (name.clone(), None)));
        Turn { names: self, held }
    }
}

impl Drop for Turn<'_> {
    fn drop(&mut self) {
        let mut taken = self.names.0.lock();
        debug_assert!(self.held.iter().all(|name| taken.contains_key(name)), "a name is given back twice");
        for freed in self.held.iter().filter_map(|name| taken.remove(name)).flatten() {
            freed.notify_all();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::atomic::{AtomicU32, Ordering};

    #[test]
    fn a_name_is_had_by_one_at_a_time_and_pairs_in_any_order_do_not_block_each_other() {
        let names = Names::default();
        let all = ["a", "b", "c", "d"];
        let users: [AtomicU32; 4] = Default::default();
        std::thread::scope(|scope| {
            for seed in 0..8usize {
                let (names, users) = (&names, &users);
                scope.spawn(move || {
                    for i in 0..2000 {
                        let (one, other) = ((seed + i) % 4, (seed * i + i / 3) % 4);
                        let turn = names.take(&[all[one], all[other]]);
                        let mine = if one == other { vec![one] } else { vec![one, other] };
                        for &name in &mine {
                            assert_eq!(users[name].fetch_add(1, Ordering::SeqCst), 0);
                        }
                        for &name in &mine {
                            users[name].fetch_sub(1, Ordering::SeqCst);
                        }
                        drop(turn);
                    }
                });
            }
        });
        assert!(names.0.lock().is_empty());
    }
}
