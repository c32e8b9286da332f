//! What the server does for the engine: its error log, KILL, and reports of lock waits.

use teak_core::server::{Sought, TreeName};
use teak_core::LogLevel;

/// A connection as the server knows it: a token that goes back to the server's functions and means nothing here.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Thd(pub usize);

/// Who works for a session, and at what.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Person {
    /// As the server checks privileges.
    pub user: Vec<u8>,
    /// Likewise.
    pub host: Vec<u8>,
    /// The beginning of the statement; nothing between two.
    pub query: Vec<u8>,
}

/// The server. A session's own thread calls, unless it is said otherwise.
///
/// A [`Thd`] that comes along is that of a session which has not been dropped.
pub trait Host: Send + Sync {
    /// Writes to the server's error log. Any thread calls.
    fn log(&self, level: LogLevel, text: &str);

    /// Whether the statement of `thd` was killed.
    fn is_killed(&self, thd: Thd) -> bool;

    /// Tells the server that `waiter` is about to wait; whether it wants to know for whom.
    fn wait_is_reported(&self, waiter: Thd) -> bool;

    /// Tells parallel replication that `waiter` is about to wait for `holder`; whether that is to be rolled back.
    fn report_wait(&self, waiter: Thd, holder: Thd) -> bool;

    /// Sees to it that those are rolled back whom [`Host::report_wait`] said it of. Comes back with calls from another
    /// thread.
    fn reports_made(&self);

    /// Who works for `thd`, and at what. Any thread calls.
    fn person(&self, _thd: Thd) -> Person {
        Person::default()
    }

    /// The keys as people read them. Any thread calls.
    fn key_text(&self, _name: Option<&TreeName>, sought: &Sought) -> String {
        format!("{:?} to {:?}", sought.from, sought.to)
    }

    /// The thread of `thd` has waited for a while, for this: until it wakes up, others may be told so.
    fn wait_lasts(&self, _thd: Thd, _name: Option<&TreeName>, _sought: &Sought) {}

    /// The thread of `thd` is about to sleep.
    fn wait_begin(&self, thd: Thd);

    /// It woke up.
    fn wait_end(&self, thd: Thd);
}
