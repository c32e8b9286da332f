//! No panic leaves this library: each is logged with its backtrace, turns the engine read-only, and becomes
//! `TEAK_INTERNAL`.
//!
//! The panic hook is that of the Rust runtime linked into `ha_teak.so`, whose symbols are hidden: it sees Teak's panics
//! only, whichever thread they are in.

use std::any::Any;
use std::backtrace::Backtrace;
use std::cell::RefCell;
use std::os::raw::c_char;
use std::panic::{catch_unwind, set_hook, AssertUnwindSafe, PanicHookInfo};
use std::sync::{Mutex, Once, PoisonError};

use teak_core::LogLevel;

use super::border::Room;
use super::callbacks::Callbacks;
use super::status::Status;
use teak_rows::engine::EngineHandle;
use teak_rows::host::Host;
use teak_rows::outcome::Result;

static HOOK: Once = Once::new();
static ERROR_LOG: Mutex<Option<Callbacks>> = Mutex::new(None);

thread_local! {
    static LAST_ERROR: RefCell<String> = const { RefCell::new(String::new()) };
}

/// Panics are logged through `callbacks` from now on.
pub fn install(callbacks: Callbacks) {
    *ERROR_LOG.lock().unwrap_or_else(PoisonError::into_inner) = Some(callbacks);
    HOOK.call_once(|| set_hook(Box::new(log_panic)));
}

fn text_of(payload: &(dyn Any + Send)) -> &str {
    match (payload.downcast_ref::<&str>(), payload.downcast_ref::<String>()) {
        (Some(text), _) => text,
        (_, Some(text)) => text,
        _ => "no message",
    }
}

fn log_panic(info: &PanicHookInfo<'_>) {
    let thread = std::thread::current();
    let place = info.location().map(ToString::to_string).unwrap_or_default();
    let text = format!(
        "panic in thread '{}' at {place}: {}; the engine turns read-only, please report this\n{}",
        thread.name().unwrap_or("(server)"),
        text_of(info.payload()),
        Backtrace::force_capture(),
    );
    let log = *ERROR_LOG.lock().unwrap_or_else(PoisonError::into_inner);
    match log {
        Some(callbacks) => callbacks.log(LogLevel::Error, &text),
        None => eprintln!("Teak: {text}"),
    }
}

/// Leaves a text for `teak_last_error`.
pub fn remember(text: &dyn std::fmt::Display) {
    use std::fmt::Write;
    LAST_ERROR.with_borrow_mut(|last| {
        last.clear();
        // Writing to a String does not fail; a Display that says otherwise leaves what it wrote.
        let _ = write!(last, "{text}");
    });
}

/// Runs `body`; whatever happens comes back as a status.
pub fn run(engine: Option<&EngineHandle>, body: impl FnOnce() -> Result<()>) -> Status {
    match catch_unwind(AssertUnwindSafe(body)) {
        Ok(Ok(())) => Status::Ok,
        Ok(Err(stop)) => {
            if stop.has_text() {
                remember(&stop);
            }
            Status::of(&stop)
        }
        Err(payload) => {
            panicked(engine, payload.as_ref());
            Status::Internal
        }
    }
}

/// Runs `body`, which cannot fail; `otherwise` is the answer after a panic.
pub fn value<T>(engine: Option<&EngineHandle>, otherwise: T, body: impl FnOnce() -> T) -> T {
    catch_unwind(AssertUnwindSafe(body)).unwrap_or_else(|payload| {
        panicked(engine, payload.as_ref());
        otherwise
    })
}

fn panicked(engine: Option<&EngineHandle>, payload: &(dyn Any + Send)) {
    let text = text_of(payload).to_string();
    remember(&format_args!("internal error: {text}"));
    if let Some(engine) = engine {
        // Even this must not unwind. If it does, the hook has logged it, and there is nothing else left to do.
        let _ = catch_unwind(AssertUnwindSafe(|| engine.panicked(&format!("an internal error: {text}"))));
    }
}

/// What `teak_last_error` says from here on is about what comes now; nothing, if that leaves no text.
#[no_mangle]
pub extern "C" fn teak_forget_error() {
    value(None, (), || LAST_ERROR.with_borrow_mut(String::clear));
}

/// Copies the text of this thread's last error, zero-terminated and cut to the room; returns its whole length.
#[no_mangle]
pub extern "C" fn teak_last_error(room: Room<'_, c_char>) -> usize {
    value(None, 0, || {
        LAST_ERROR.with_borrow(|last| {
            let places = room.places();
            let copied = cut(last, places.len().saturating_sub(1));
            for (place, byte) in places.iter_mut().zip(last.bytes().take(copied).chain([0])) {
                place.write(byte as c_char);
            }
            last.len()
        })
    })
}

/// The longest prefix of whole characters within `at` bytes.
fn cut(text: &str, at: usize) -> usize {
    (0..=at.min(text.len())).rev().find(|i| text.is_char_boundary(*i)).unwrap_or(0)
}
