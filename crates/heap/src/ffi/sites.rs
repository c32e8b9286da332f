//! The rows of TEAK_HEAP.

use std::os::raw::{c_int, c_void};

use super::border::{paused, Bytes, Context, OwnThread};
use crate::keepers::keeper;
use crate::sites::{all, call_site, walk_of, Amount};
use crate::symbols::Symbols;

/// A call site, for one statement of one session. Its texts are there during the call that has it.
#[repr(C)]
#[allow(missing_docs)]
pub struct RawSite<'a> {
    pub function: Bytes<'a>,
    pub module: Bytes<'a>,
    /// Empty: not known.
    pub file: Bytes<'a>,
    pub line: u64,
    pub live_objects: u64,
    pub live_bytes: u64,
    /// Whether its session has a mark.
    pub has_mark: u8,
    pub new_objects: u64,
    pub new_bytes: u64,
    /// 0: none.
    pub session: u64,
    /// Empty: no statement.
    pub digest: Bytes<'a>,
    pub statement: Bytes<'a>,
    /// Empty: nothing is known to keep it.
    pub kept_by: Bytes<'a>,
    pub walk: Bytes<'a>,
    /// A frame a line, the innermost first.
    pub stack: Bytes<'a>,
}

/// Gets a site; anything but 0 ends it.
pub type SiteFunction = Option<unsafe extern "C" fn(context: *mut c_void, site: *const RawSite<'_>) -> c_int>;

/// Tells all sites, the largest first. False: one of them was not taken.
#[no_mangle]
pub extern "C" fn teak_heap_sites(thread: OwnThread, each: SiteFunction, context: Context) -> u8 {
    let Some(each) = each else { return 0 };
    paused(thread, 0, |thread| {
        let mut symbols = Symbols::new();
        for site in all(thread) {
            let frames = symbols.stack(&site.stack);
            let place = call_site(&frames);
            let stack: Vec<String> = frames.iter().map(ToString::to_string).collect();
            let (name, stack) = (place.name(), stack.join("\n"));
            let (digest, statement) = match &site.statement {
                Some((hash, text)) => (format!("{hash:016x}"), text.as_str()),
                None => (String::new(), ""),
            };
            let new = site.since_mark.unwrap_or_default();
            let rounded = |amount: Amount| (amount.objects.round() as u64, amount.bytes.round() as u64);
            let row = RawSite {
                function: Bytes::of(name.as_bytes()),
                module: Bytes::of(place.module.as_bytes()),
                file: Bytes::of(place.file.as_deref().unwrap_or("").as_bytes()),
                line: u64::from(place.line.unwrap_or(0)),
                live_objects: rounded(site.live).0,
                live_bytes: rounded(site.live).1,
                has_mark: u8::from(site.since_mark.is_some()),
                new_objects: rounded(new).0,
                new_bytes: rounded(new).1,
                session: site.session,
                digest: Bytes::of(digest.as_bytes()),
                statement: Bytes::of(statement.as_bytes()),
                kept_by: Bytes::of(keeper(&frames).unwrap_or("").as_bytes()),
                walk: Bytes::of(walk_of(&site).as_bytes()),
                stack: Bytes::of(stack.as_bytes()),
            };
            // SAFETY: the shim promised a function that takes the context beside it, and keeps nothing of the site.
            if unsafe { each(context.0, &row) } != 0 {
                return 0;
            }
        }
        1
    })
}
