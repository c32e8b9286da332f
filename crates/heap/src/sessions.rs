//! Whose statements are followed, and the marks in them.
//!
//! A session's statements that are followed have numbers from 1 on; an object has that of the statement which allocated
//! it. A mark is the number of the statement that set it: what comes behind is what later statements allocated, and
//! the one that asks is not finished, so it is left out.

use std::collections::HashMap;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};

use crate::recorder::thread::ThreadState;

/// Marks that a session keeps; one more takes the place of the oldest.
const MARKS: usize = 1000;
/// Characters of a mark's name, at most, as of other names in the server.
pub const NAME_CHARACTERS: usize = 64;

/// A session whose statements are, or were, followed.
#[derive(Debug, Default, Clone)]
pub struct Session {
    /// Its statement of now.
    pub statement: u32,
    /// Whether its next one is followed.
    pub is_followed: bool,
    marks: HashMap<String, u32>,
}

impl Session {
    /// The statement that set a mark.
    pub fn mark(&self, name: &str) -> Option<u32> {
        self.marks.get(name).copied()
    }

    /// The statement that set the newest mark.
    pub fn newest_mark(&self) -> Option<u32> {
        self.marks.values().copied().max()
    }

    /// Names of the marks, the oldest first.
    pub fn mark_names(&self) -> Vec<&str> {
        let mut names: Vec<_> = self.marks.iter().map(|(name, at)| (*at, name.as_str())).collect();
        names.sort_unstable();
        names.into_iter().map(|(_, name)| name).collect()
    }

    fn set_mark(&mut self, name: &str) {
        if self.marks.len() >= MARKS && !self.marks.contains_key(name) {
            let oldest = self.marks.iter().min_by_key(|(_, at)| **at).map(|(name, _)| name.clone());
            oldest.and_then(|oldest| self.marks.remove(&oldest));
        }
        self.marks.insert(name.to_string(), self.statement);
    }
}

/// All of them, by connection.
#[derive(Default)]
pub struct Sessions {
    known: Mutex<HashMap<u64, Session>>,
    followed: AtomicUsize,
    /// Counts how often all were forgotten, as nobody told of statements any more.
    epoch: AtomicU64,
}

impl Sessions {
    fn known(&self) -> MutexGuard<'_, HashMap<u64, Session>> {
        self.known.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// How many are followed.
    pub fn followed(&self) -> usize {
        self.followed.load(Ordering::SeqCst)
    }

    /// One of them, as it is now.
    pub fn get(&self, connection: u64) -> Option<Session> {
        self.known().get(&connection).cloned()
    }

    /// All, as they are now.
    pub fn all(&self) -> HashMap<u64, Session> {
        self.known().clone()
    }

    /// Follows a session from its next statement on; false: it is followed already.
    pub fn follow(&self, connection: u64) -> bool {
        let mut known = self.known();
        let session = known.entry(connection).or_default();
        let is_new = !std::mem::replace(&mut session.is_followed, true);
        self.followed.fetch_add(usize::from(is_new), Ordering::SeqCst);
        is_new
    }

    /// Does not follow it any more; false: it was not followed. Its marks stay.
    pub fn leave(&self, connection: u64) -> bool {
        let was =
            self.known().get_mut(&connection).is_some_and(|session| std::mem::take(&mut session.is_followed));
        self.followed.fetch_sub(usize::from(was), Ordering::SeqCst);
        was
    }

    /// Marks what the session has allocated up to now.
    pub fn mark(&self, connection: u64, name: &str) {
        if let Some(session) = self.known().get_mut(&connection) {
            session.set_mark(name);
        }
    }

    /// The connection ends: nothing is known of it any more. True: it was followed.
    pub fn forget(&self, connection: u64) -> bool {
        let was = self.leave(connection);
        self.known().remove(&connection);
        was
    }

    /// Forgets the marks of all, as what they speak of is forgotten.
    pub fn forget_marks(&self) {
        self.known().values_mut().for_each(|session| session.marks.clear());
    }

    /// Forgets all of them.
    pub fn forget_all(&self) {
        self.epoch.fetch_add(1, Ordering::SeqCst);
        let connections: Vec<u64> = self.known().keys().copied().collect();
        connections.into_iter().for_each(|connection| {
            self.forget(connection);
        });
    }

    /// Whether it was told that this thread works on a statement of the connection.
    pub fn is_told(&self, thread: &ThreadState, connection: u64) -> bool {
        thread.session.get() == connection && thread.epoch.get() == self.epoch.load(Ordering::SeqCst)
    }

    /// A statement begins on this thread. One that is part of another, in a stored routine, belongs to that.
    pub fn begin_statement(&self, thread: &ThreadState, connection: u64, digest: u32) {
        if self.is_told(thread, connection) {
            return;
        }
        thread.end();
        thread.begin(connection, digest);
        thread.epoch.set(self.epoch.load(Ordering::SeqCst));
        if self.followed() == 0 {
            return;
        }
        if let Some(session) = self.known().get_mut(&connection).filter(|session| session.is_followed) {
            session.statement += 1;
            thread.statement.set(session.statement);
            thread.exact.set(true);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_mark_is_the_statement_that_set_it() {
        let sessions = Sessions::default();
        let thread = ThreadState::default();
        assert!(sessions.follow(7));
        assert!(!sessions.follow(7));
        sessions.begin_statement(&thread, 7, 0);
        assert_eq!((thread.exact.get(), thread.statement.get()), (true, 1));
        sessions.mark(7, "a");
        thread.end();
        sessions.begin_statement(&thread, 7, 0);
        sessions.mark(7, "b");
        let session = sessions.get(7).unwrap();
        assert_eq!(
            (session.mark("a"), session.mark("b"), session.newest_mark()),
            (Some(1), Some(2), Some(2))
        );
        assert!(sessions.forget(7));
        assert_eq!(sessions.followed(), 0);
    }

    #[test]
    fn a_statement_within_a_statement_belongs_to_it() {
        let sessions = Sessions::default();
        let thread = ThreadState::default();
        sessions.follow(7);
        sessions.begin_statement(&thread, 7, 8);
        sessions.begin_statement(&thread, 7, 9);
        assert_eq!((thread.statement.get(), thread.digest.get()), (1, 8));
    }

    #[test]
    fn others_are_not_followed() {
        let sessions = Sessions::default();
        let thread = ThreadState::default();
        sessions.follow(7);
        sessions.begin_statement(&thread, 7, 0);
        // Under the thread pool the end of a connection may leave a thread that goes on for another one.
        sessions.begin_statement(&thread, 8, 0);
        assert_eq!((thread.exact.get(), thread.session.get()), (false, 8));
    }

    #[test]
    fn what_was_told_before_all_were_forgotten_does_not_count() {
        let sessions = Sessions::default();
        let thread = ThreadState::default();
        sessions.follow(7);
        sessions.begin_statement(&thread, 7, 8);
        assert!(sessions.is_told(&thread, 7) && !sessions.is_told(&thread, 8));
        sessions.forget_all();
        assert!(!sessions.is_told(&thread, 7));
        sessions.follow(7);
        sessions.begin_statement(&thread, 7, 9);
        assert_eq!((thread.statement.get(), thread.digest.get()), (1, 9));
    }

    #[test]
    fn the_oldest_mark_makes_room() {
        let sessions = Sessions::default();
        let thread = ThreadState::default();
        sessions.follow(7);
        for number in 0..=MARKS {
            sessions.begin_statement(&thread, 7, 0);
            sessions.mark(7, &number.to_string());
            thread.end();
        }
        let session = sessions.get(7).unwrap();
        assert_eq!(session.mark("0"), None);
        assert!(session.mark("1").is_some());
        assert_eq!(session.mark_names().first(), Some(&"1"));
    }
}
