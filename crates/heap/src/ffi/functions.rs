//! The functions of SQL.

use super::border::{paused, put, Bytes, Out, OwnThread, RawBuffer};
use super::hooks::functions;
use crate::recorder::thread::ThreadState;
use crate::sessions::NAME_CHARACTERS;
use crate::{control, dump, sites};

/// How a call ended.
#[repr(u32)]
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Status {
    /// As it should.
    Ok = 0,
    /// The text says why not.
    Failed = 1,
}

fn answer(
    thread: OwnThread,
    text: Out<'_, RawBuffer>,
    body: impl FnOnce(&ThreadState) -> Result<String, String>,
) -> Status {
    let result = paused(thread, Err("an internal error, of which the error log has more".to_string()), body);
    let status = if result.is_ok() { Status::Ok } else { Status::Failed };
    put(text, RawBuffer::of(result.unwrap_or_else(|error| error)));
    status
}

/// Samples all threads, every `period` bytes in the mean; 0: as often as it is by itself. The text is the period.
#[no_mangle]
pub extern "C" fn teak_heap_start(thread: OwnThread, period: u64, text: Out<'_, RawBuffer>) -> Status {
    answer(thread, text, |thread| {
        let period = if period == 0 { control::DEFAULT_PERIOD } else { period };
        control::start(thread, functions()?, period).map(|period| period.to_string())
    })
}

/// Ends that; the text is 1 if it ran.
#[no_mangle]
pub extern "C" fn teak_heap_stop(thread: OwnThread, text: Out<'_, RawBuffer>) -> Status {
    answer(thread, text, |_| Ok(u8::from(control::stop(functions()?)).to_string()))
}

/// Follows the statements of a session behind this one.
#[no_mangle]
pub extern "C" fn teak_heap_follow(thread: OwnThread, connection: u64, text: Out<'_, RawBuffer>) -> Status {
    answer(thread, text, |thread| control::follow(thread, functions()?, connection).map(|()| "1".to_string()))
}

/// Ends that, with this one.
#[no_mangle]
pub extern "C" fn teak_heap_leave(thread: OwnThread, connection: u64, text: Out<'_, RawBuffer>) -> Status {
    answer(thread, text, |thread| {
        control::leave(thread, functions()?, connection);
        Ok("0".to_string())
    })
}

/// Marks what a session has allocated up to this statement, and follows it.
#[no_mangle]
pub extern "C" fn teak_heap_mark(
    thread: OwnThread,
    connection: u64,
    name: Bytes<'_>,
    text: Out<'_, RawBuffer>,
) -> Status {
    answer(thread, text, |thread| {
        let name = name.text();
        if name.chars().count() > NAME_CHARACTERS {
            return Err(format!("the name of a mark has at most {NAME_CHARACTERS} characters"));
        }
        control::follow(thread, functions()?, connection)?;
        control::sessions().mark(connection, &name);
        Ok("1".to_string())
    })
}

/// What it has allocated since and not freed, as JSON.
#[no_mangle]
pub extern "C" fn teak_heap_leaks(
    thread: OwnThread,
    connection: u64,
    name: Bytes<'_>,
    text: Out<'_, RawBuffer>,
) -> Status {
    answer(thread, text, |thread| sites::leaks(thread, connection, &name.text()))
}

/// Writes a profile; the text is its path.
#[no_mangle]
pub extern "C" fn teak_heap_dump(
    thread: OwnThread,
    directory: Bytes<'_>,
    name: Bytes<'_>,
    text: Out<'_, RawBuffer>,
) -> Status {
    answer(thread, text, |thread| dump::dump(thread, &directory.text(), &name.text()))
}
