//! Locks by name, which say who follows a source: a server gives one up only when what its connection began has ended.

use teak_client::{Connection, Error};

/// How long the connection of a former program may take to end.
const LOCK_SECONDS: u32 = 5;

/// The name of the lock that says that a source is followed, as a statement has it.
pub fn lock_of(source: &str) -> String {
    format!("'teak_replicate/{source}'")
}

/// The name of the lock that a worker of it has, counted from 0.
pub fn lock_of_worker(source: &str, worker: usize) -> String {
    format!("'teak_worker_{worker}/{source}'")
}

/// What a connection is at that has waited for a statement, or its data, or for somebody who takes its answer.
const WAITS: &str = "(COMMAND = 'Sleep' OR STATE IN ('Reading from net', 'Writing to net'))";

/// Takes a lock by name, if need be from a connection that holds it and has waited for somebody for so long. False:
/// somebody else has it.
pub fn take_lock(connection: &mut Connection, lock: &str, gone_seconds: u64) -> Result<bool, Error> {
    if take_free_lock(connection, lock)? {
        return Ok(true);
    }
    let is_gone = format!("{WAITS} AND TIME >= {gone_seconds}");
    Ok(end_holder(connection, lock, &is_gone)? && take_free_lock(connection, lock)?)
}

/// Takes a lock by name from who has it and waits for somebody; what he carries out is waited for, for a while.
pub fn take_over_lock(connection: &mut Connection, lock: &str) -> Result<bool, Error> {
    end_holder(connection, lock, WAITS)?;
    take_free_lock(connection, lock)
}

/// Takes a lock by name if nobody has it, at least soon.
pub fn take_free_lock(connection: &mut Connection, lock: &str) -> Result<bool, Error> {
    let taken = connection.value(format!("SELECT GET_LOCK({lock}, {LOCK_SECONDS})"))?;
    Ok(taken.as_deref() == Some("1"))
}

/// Ends the connection that holds a lock, if it is as is said. Whether it was.
fn end_holder(connection: &mut Connection, lock: &str, condition: &str) -> Result<bool, Error> {
    let holder = format!(
        "SELECT ID FROM information_schema.PROCESSLIST WHERE ID = IS_USED_LOCK({lock}) AND ({condition})"
    );
    let Some(holder) = connection.value(holder)? else { return Ok(false) };
    match connection.execute(format!("KILL {holder}")) {
        // Of another account it may not.
        Err(Error::Server { .. }) => Ok(false),
        killed => killed.map(|_| true),
    }
}
