//! Cursors over one tree of a table: where they are put, which way they go, where they end.
//!
//! The locking half of a read is in `locking.rs`. Invariant: what a cursor last returned stays readable through
//! [`TableCursor::key`] and [`TableCursor::value`] until its next move.

use std::sync::Arc;

use teak_core::{LockMode, Seek, View, WaitPolicy};

use crate::bounds::{Direction, Edge, End, Start};
use crate::outcome::{Result, Stop};
use crate::session::Session;
use crate::vanished::Vanished;
use std::ops::Bound;
use teak_core::server::{Cursor, LockOutcome, Table, Transaction, Tree, Window};

/// What a read sees.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Sight {
    /// The snapshot; nothing is locked.
    Snapshot,
    /// What is committed now; nothing is locked.
    Latest,
    /// What is committed now, locked.
    Locking(LockMode),
}

/// What to do about a row that another transaction has locked.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Busy {
    /// Wait for it.
    Wait,
    /// Fail at once.
    Fail,
    /// Pass it over.
    Skip,
    /// Take it as it was committed last, without a lock, for who looks whether it is wanted at all; see
    /// [`TableCursor::is_unlocked`]. Only in scans of rows, and where `Session::may_pass_locked` says so; else wait.
    AsCommitted,
}

impl Busy {
    /// How the lock is asked for.
    pub(crate) fn policy(self) -> WaitPolicy {
        match self {
            Busy::Wait => WaitPolicy::Wait,
            Busy::Fail | Busy::Skip | Busy::AsCommitted => WaitPolicy::NoWait,
        }
    }
}

/// How a read sees and locks.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Read {
    /// What it sees.
    pub sight: Sight,
    /// What it does about locked rows.
    pub busy: Busy,
    /// Whether it may lock ranges, where the isolation level asks for that.
    pub ranges: bool,
}

impl Read {
    /// A consistent read.
    pub const SNAPSHOT: Read = Read { sight: Sight::Snapshot, busy: Busy::Wait, ranges: true };

    /// A locking read that waits.
    pub const fn locking(mode: LockMode) -> Read {
        Read { sight: Sight::Locking(mode), busy: Busy::Wait, ranges: true }
    }

    /// The view the cursor moves with. Under a row's lock, [`View::Pending`] and [`View::Latest`] are the same: whoever
    /// has an uncommitted version holds the exclusive lock. So one view serves to find candidates and to read them
    /// again.
    pub(crate) fn view(self) -> View {
        match self.sight {
            Sight::Snapshot => View::Snapshot,
            Sight::Latest => View::Latest,
            Sight::Locking(_) => View::Pending,
        }
    }
}

/// Which ranges a scan locks.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Ranges {
    /// None.
    None,
    /// Those it passes.
    AsItGoes,
    /// None any more: all up to its end is locked.
    Done,
}

/// A cursor over one tree of a table.
pub struct TableCursor {
    pub(crate) table: Arc<Table>,
    pub(crate) number: u32,
    pub(crate) unique: bool,
    pub(crate) core: Cursor,
    pub(crate) read: Read,
    pub(crate) direction: Direction,
    /// Where the present scan ends.
    pub(crate) end: Edge,
    /// Where the scan starts. While ranges are locked: everything before it, from the start of the scan on, is locked.
    pub(crate) from: Edge,
    /// What the scan locks besides rows.
    pub(crate) ranges: Ranges,
    /// Entries whose gaps the scan has locked.
    pub(crate) passed: usize,
    /// The end of the range that is being locked.
    pub(crate) reach: Vec<u8>,
    /// Primary key of the row that is fetched for an index's entry.
    pub(crate) named: Vec<u8>,
    /// The length of the keys all of which, up to `from`, the scan has locked at once; 0: none.
    pub(crate) ahead: usize,
    /// Whether what the cursor stands on had gone when its row was locked.
    pub(crate) gone: bool,
    /// What the last read did to the lock of the row it returned.
    pub(crate) locked: LockOutcome,
    /// Whether the last read returned a row that another transaction has locked, as it was committed last.
    pub(crate) unlocked: bool,
    /// The value of that row.
    pub(crate) committed: Vec<u8>,
    /// Of a locking scan over rows whose transaction has a snapshot to keep to.
    pub(crate) vanished: Option<Vanished>,
    /// The scan cannot return anything.
    nothing: bool,
}

impl TableCursor {
    /// A cursor without a position. `unique`: the tree is that of a unique index.
    pub fn new(table: Arc<Table>, number: u32, unique: bool) -> Result<TableCursor> {
        if number as usize >= table.trees() {
            return Err(Stop::Misuse("no such tree"));
        }
        let core = Cursor::new(table.tree(number as usize).clone());
        Ok(TableCursor {
            table,
            number,
            unique,
            core,
            read: Read::SNAPSHOT,
            direction: Direction::Up,
            end: Edge::default(),
            from: Edge::default(),
            ranges: Ranges::None,
            passed: 0,
            reach: Vec::new(),
            named: Vec::new(),
            ahead: 0,
            gone: false,
            locked: LockOutcome::Held,
            unlocked: false,
            committed: Vec::new(),
            vanished: None,
            nothing: true,
        })
    }

    /// Whether it goes over the rows rather than an index.
    pub(crate) fn is_rows(&self) -> bool {
        self.number == 0
    }

    pub(crate) fn tree(&self) -> &Arc<Tree> {
        self.table.tree(self.number as usize)
    }

    /// The current key.
    pub fn key(&self) -> &[u8] {
        self.core.key()
    }

    /// The current value.
    pub fn value(&self) -> Result<&[u8]> {
        match self.unlocked {
            true => Ok(&self.committed),
            false => Ok(self.core.value()?),
        }
    }

    /// Whether the row last returned is not locked, as another transaction has it, and is as it was committed last. The
    /// next step in the same direction returns the row once more, locked, if it is there then; unless
    /// [`TableCursor::unlock_row`] says that it is not wanted.
    pub fn is_unlocked(&self) -> bool {
        self.unlocked
    }

    /// Lets go of the position and of what it pins.
    pub fn reset(&mut self) {
        self.core.reset();
        self.locked = LockOutcome::Held;
        self.unlocked = false;
        self.vanished = None;
        self.from.set_open();
        self.nothing = true;
    }

    /// Goes to the first entry at `start` within `end`.
    pub fn seek(
        &mut self,
        session: &mut Session,
        start: Start,
        key: &[u8],
        end: End<'_>,
        read: Read,
    ) -> Result<()> {
        self.begin(session, read, start.direction());
        if read.busy == Busy::AsCommitted && self.is_rows() && session.may_pass_locked() {
            self.read.busy = Busy::AsCommitted;
        }
        self.from.set_start(start, key);
        self.end.set_end(end, self.direction);
        self.nothing = self.from.is_nothing() || self.end.is_nothing();
        if self.nothing {
            return Err(Stop::NotFound);
        }
        let found = match read.sight {
            Sight::Locking(mode) => self.first_locked(session, mode)?,
            Sight::Snapshot | Sight::Latest => self.place(session)? && self.inside(),
        };
        found.then_some(()).ok_or(Stop::NotFound)
    }

    /// Starts a read: what holds for it from here on.
    pub(crate) fn begin(&mut self, session: &Session, read: Read, direction: Direction) {
        let ranges = read.ranges
            && matches!(read.sight, Sight::Locking(_))
            && session.locks_ranges()
            // Who skips locked rows asks for no repeatable answer; a queue's readers must not hold up its writers.
            && (read.busy != Busy::Skip || session.is_serializable());
        self.read = read;
        if read.busy == Busy::AsCommitted {
            self.read.busy = Busy::Wait;
        }
        self.direction = direction;
        self.ranges = if ranges { Ranges::AsItGoes } else { Ranges::None };
        self.passed = 0;
        self.ahead = 0;
        self.gone = false;
        self.locked = LockOutcome::Held;
        self.unlocked = false;
        self.vanished = None;
        self.nothing = false;
    }

    /// Goes to the next entry in key order.
    pub fn next(&mut self, session: &mut Session) -> Result<()> {
        self.step(session, Direction::Up)
    }

    /// Goes to the previous entry in key order.
    pub fn prev(&mut self, session: &mut Session) -> Result<()> {
        self.step(session, Direction::Down)
    }

    fn step(&mut self, session: &mut Session, direction: Direction) -> Result<()> {
        let turns = direction != self.direction;
        let again = std::mem::take(&mut self.unlocked) && !turns;
        if self.nothing && !(turns && self.from.is_nothing()) {
            return Err(Stop::End);
        }
        if turns {
            let stands = !self.nothing && self.core.has_item();
            self.turn(direction);
            if !stands {
                return self.come_back(session);
            }
        }
        let found = match self.read.sight {
            Sight::Locking(mode) if again => self.take_again(session, mode)?,
            Sight::Locking(mode) => self.next_locked(session, mode)?,
            Sight::Snapshot | Sight::Latest => self.advance(session)? && self.inside(),
        };
        found.then_some(()).ok_or(Stop::End)
    }

    /// Goes the other way from here: the end no longer counts.
    fn turn(&mut self, direction: Direction) {
        self.direction = direction;
        self.ahead = 0;
        self.vanished = None;
        self.end.set_open();
        if self.ranges != Ranges::None {
            // What was locked so far lies behind; ahead, ranges are locked anew.
            self.from.set_beyond(self.core.key());
            self.ranges = Ranges::AsItGoes;
            self.passed = 0;
        }
    }

    /// From behind the last entry of the direction before, of which the core's cursor has the key, to that entry.
    fn come_back(&mut self, session: &mut Session) -> Result<()> {
        // Without a key it is behind all there can be.
        match std::mem::take(&mut self.nothing) || self.core.key().is_empty() {
            true => self.from.set_open(),
            false => self.from.set_at(self.core.key()),
        }
        let found = match self.read.sight {
            Sight::Locking(mode) => self.first_locked(session, mode)?,
            Sight::Snapshot | Sight::Latest => self.place(session)?,
        };
        found.then_some(()).ok_or(Stop::End)
    }

    /// The entry with exactly this key.
    pub fn get(&mut self, session: &mut Session, key: &[u8], read: Read) -> Result<()> {
        self.begin(session, read, Direction::Up);
        self.end.set_open();
        let found = match read.sight {
            Sight::Locking(mode) => self.get_locked(session, key, mode)?,
            Sight::Snapshot | Sight::Latest => self.core.get(session.txn()?, read.view(), key)?,
        };
        found.then_some(()).ok_or(Stop::NotFound)
    }

    /// What comes next in the scan's direction, to be walked over without further calls; see [`Cursor::window`].
    pub fn window(&mut self, session: &mut Session) -> Result<Option<Window<'_>>> {
        if self.nothing {
            return Ok(None);
        }
        match self.read.sight {
            Sight::Snapshot => {}
            Sight::Locking(mode) => return self.locked_window(session, mode),
            Sight::Latest => return Ok(None),
        }
        let Some(end) = self.end.bound() else { return Ok(None) };
        let found = self.core.window(session.txn()?);
        Ok(match self.direction {
            Direction::Up => found.and_then(|window| window.before(end)),
            Direction::Down => found.and_then(|window| window.behind(end)),
        })
    }

    /// Right after [`TableCursor::seek`] has found something: whether it is sure that the next move finds nothing, as
    /// long as the session itself writes nothing to the table.
    pub fn is_at_last(&self, session: &mut Session) -> Result<bool> {
        match (self.read.sight, self.direction, self.end.bound()) {
            (Sight::Snapshot, Direction::Up, Some(end)) => Ok(self.core.is_last_before(session.txn()?, end)),
            _ => Ok(false),
        }
    }

    /// After [`TableCursor::get`] has found its key in a snapshot: what follows, as [`TableCursor::window`] has it of a
    /// scan.
    pub fn window_behind(&mut self, session: &mut Session) -> Result<Option<Window<'_>>> {
        match self.read.sight {
            Sight::Snapshot => Ok(self.core.window_behind(session.txn()?)),
            Sight::Latest | Sight::Locking(_) => Ok(None),
        }
    }

    /// Somebody has walked over `passed` entries of the window, to entry `at`.
    pub fn arrive(&mut self, at: usize, passed: usize) {
        self.core.arrive(at, passed);
    }

    /// The table that it reads.
    pub fn table(&self) -> &Arc<Table> {
        &self.table
    }

    /// Look-ups of these keys come; see [`Cursor::expect`].
    pub fn expect(&mut self, keys: &[u8]) {
        self.core.expect(keys.to_vec());
    }

    /// Which way it goes.
    pub fn direction(&self) -> Direction {
        self.direction
    }

    /// Whether the current key is before the end of the scan.
    pub(crate) fn inside(&self) -> bool {
        self.end.admits(self.core.key(), self.direction)
    }

    /// Moves to the neighbour in the present direction.
    pub(crate) fn advance(&mut self, session: &mut Session) -> Result<bool> {
        let txn = session.txn()?;
        let found = match self.direction {
            Direction::Up => self.core.next(txn)?,
            Direction::Down => self.core.prev(txn)?,
        };
        if self.core.wants_ahead() {
            if let Some(end) = self.end.bound() {
                self.core.read_ahead(end);
            }
        }
        Ok(found)
    }

    /// Places the cursor on the first candidate from `self.from` on.
    pub(crate) fn place(&mut self, session: &mut Session) -> Result<bool> {
        let Some(from) = self.from.bound() else { return Ok(false) };
        place(&mut self.core, session.txn()?, self.read.view(), self.direction, from)
    }
}

/// Places a cursor on the first key from `from` on.
pub(crate) fn place(
    cursor: &mut Cursor,
    txn: &mut Transaction,
    view: View,
    direction: Direction,
    from: Bound<&[u8]>,
) -> Result<bool> {
    Ok(match (direction, from) {
        (Direction::Up, Bound::Unbounded) => cursor.first(txn, view)?,
        (Direction::Down, Bound::Unbounded) => cursor.last(txn, view)?,
        (Direction::Up, Bound::Included(key)) => cursor.seek(txn, view, Seek::AtOrAfter, key)?,
        (Direction::Up, Bound::Excluded(key)) => cursor.seek(txn, view, Seek::After, key)?,
        (Direction::Down, Bound::Included(key)) => cursor.seek(txn, view, Seek::AtOrBefore, key)?,
        (Direction::Down, Bound::Excluded(key)) => cursor.seek(txn, view, Seek::Before, key)?,
    })
}
