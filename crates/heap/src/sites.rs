//! Live objects by call site, session and statement, for the table, for leaks and for dumps.

use std::collections::HashMap;

use crate::control;
use crate::keepers::keeper;
use crate::recorder::records::{Record, EXACT, SAMPLED};
use crate::recorder::thread::{ThreadState, INSIDE};
use crate::recorder::walk::Stack;
use crate::recorder::{recorder, Recorder};
use crate::sessions::Session;
use crate::symbols::{Frame, Symbols};

/// Sites that `teak_heap_leaks` tells of one by one.
const TOLD: usize = 100;

/// What one place has allocated for one statement of one session.
#[derive(Debug, Clone, Default)]
pub struct Site {
    /// Return addresses, the innermost first.
    pub stack: Vec<usize>,
    /// Whether they go up to where the thread began.
    pub is_whole: bool,
    /// Of the connection; 0: of no session.
    pub session: u64,
    /// The statement's digest and its text.
    pub statement: Option<(u64, String)>,
    /// Objects, and their bytes; of samples as many as they stand for.
    pub live: Amount,
    /// Of these, what came behind the session's newest mark; `None` if it has none.
    pub since_mark: Option<Amount>,
}

/// Objects and bytes.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct Amount {
    /// How many.
    pub objects: f64,
    /// Their bytes.
    pub bytes: f64,
}

impl Amount {
    fn add(&mut self, record: &Record, weight: f64) {
        self.objects += weight;
        self.bytes += weight * record.bytes as f64;
    }
}

/// What is counted of each object.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Weight {
    /// As many as it stands for.
    Scaled,
    /// It alone.
    Raw,
}

/// As many objects as one that was sampled stands for: each byte is taken with a chance of 1 in `period`.
fn scale(bytes: u64, period: u64) -> f64 {
    if period <= 1 {
        return 1.0;
    }
    1.0 / -(-(bytes.max(1) as f64) / period as f64).exp_m1()
}

/// The sites of those objects that `is_wanted`, the largest first.
pub fn sites(thread: &ThreadState, weight: Weight, is_wanted: impl Fn(&Record) -> bool) -> Vec<Site> {
    let Some(recorder) = recorder() else { return Vec::new() };
    let period = control::running().last_period.unwrap_or(1);
    let marks: HashMap<u64, Option<u32>> = control::sessions()
        .all()
        .iter()
        .map(|(connection, session)| (*connection, session.newest_mark()))
        .collect();
    let mut found: HashMap<(u32, u64, u32), (Amount, Option<Amount>)> = HashMap::new();
    for record in recorder.live(thread).iter().filter(|record| is_wanted(record)) {
        let weight = match weight {
            Weight::Scaled if record.kind & EXACT == 0 => scale(record.bytes, period),
            _ => 1.0,
        };
        let mark = marks.get(&record.session).copied().flatten();
        let (live, since) = found
            .entry((record.stack, record.session, record.digest))
            .or_insert_with(|| (Amount::default(), mark.map(|_| Amount::default())));
        live.add(record, weight);
        if let (Some(since), Some(mark)) = (since, mark) {
            if record.statement > mark {
                since.add(record, weight);
            }
        }
    }
    let mut sites: Vec<Site> = found
        .into_iter()
        .map(|((stack, session, digest), (live, since_mark))| {
            let (stack, is_whole) = frames(recorder, thread, stack);
            let statement = recorder.statements.read(digest);
            Site { stack, is_whole, session, statement, live, since_mark }
        })
        .collect();
    sites.sort_by(|a, b| b.live.bytes.total_cmp(&a.live.bytes).then_with(|| a.stack.cmp(&b.stack)));
    sites
}

fn frames(recorder: &Recorder, thread: &ThreadState, number: u32) -> (Vec<usize>, bool) {
    let mut stack = Stack::new();
    let marked = thread.mark(INSIDE);
    recorder.stacks.read(number, &mut stack);
    drop(marked);
    (stack.frames().to_vec(), stack.is_whole())
}

/// Objects of both kinds.
pub fn all(thread: &ThreadState) -> Vec<Site> {
    sites(thread, Weight::Scaled, |record| record.kind & (EXACT | SAMPLED) != 0)
}

/// Where a stack's objects come from: the innermost function that does not allocate for others. One without a name
/// is called by that of who called it.
pub fn call_site(frames: &[Frame]) -> Frame {
    let at = frames.iter().position(|frame| !frame.is_allocating()).unwrap_or(0);
    let Some(site) = frames.get(at) else { return Frame { module: "?".into(), ..Frame::default() } };
    let caller = frames[at..].iter().find_map(|frame| frame.function.as_ref());
    match (&site.function, caller) {
        (None, Some(caller)) => {
            Frame { function: Some(format!("{} of {caller}", site.name())), ..site.clone() }
        }
        _ => site.clone(),
    }
}

/// What a session has allocated since a mark and not freed, as JSON.
///
/// # Errors
/// It has no such mark.
pub fn leaks(thread: &ThreadState, connection: u64, name: &str) -> Result<String, String> {
    let session = control::sessions().get(connection).unwrap_or_default();
    let mark = session.mark(name).ok_or_else(|| no_mark(&session, name))?;
    // The statement that asks has memory that it will free.
    let now = if thread.exact.get() { thread.statement.get() } else { u32::MAX };
    let found = sites(thread, Weight::Raw, |record| {
        record.session == connection
            && record.kind & EXACT != 0
            && record.statement > mark
            && record.statement < now
    });
    let lost = recorder().map_or(0, |recorder| recorder.records.lost());
    Ok(as_json(&found, lost))
}

fn no_mark(session: &Session, name: &str) -> String {
    let marks = session.mark_names();
    let known = match marks.as_slice() {
        [] => "it has none; teak_heap_mark() sets one".to_string(),
        names => format!("it has {}", names[names.len().saturating_sub(5)..].join(", ")),
    };
    format!("this session has no mark '{name}': {known}")
}

/// Those that nothing is known to keep come first, and are what is counted.
fn as_json(sites: &[Site], lost: u64) -> String {
    let mut symbols = Symbols::new();
    let (mut leaked, mut kept) = (Vec::new(), Vec::new());
    for site in sites {
        let frames = symbols.stack(&site.stack);
        let keeper = keeper(&frames);
        let list = if keeper.is_none() { &mut leaked } else { &mut kept };
        list.push((site, frames, keeper));
    }
    let sum = |list: &[(&Site, Vec<Frame>, Option<&str>)]| {
        let (objects, bytes) = list.iter().fold((0.0, 0.0), |(objects, bytes), (site, ..)| {
            (objects + site.live.objects, bytes + site.live.bytes)
        });
        format!("\"objects\": {objects}, \"bytes\": {bytes}")
    };
    let (leaks, keeps) = (sum(&leaked), sum(&kept));
    leaked.append(&mut kept);
    let told: Vec<String> =
        leaked.iter().take(TOLD).map(|(site, frames, keeper)| site_as_json(site, frames, *keeper)).collect();
    format!("{{{leaks}, \"kept\": {{{keeps}}}, \"lost\": {lost}, \"sites\": [{}]}}", told.join(", "))
}

fn site_as_json(site: &Site, frames: &[Frame], keeper: Option<&str>) -> String {
    let place = call_site(frames);
    let stack: Vec<_> = frames.iter().map(|frame| quoted(&frame.to_string())).collect();
    let or_null = |text: Option<&str>| text.map_or("null".to_string(), quoted);
    format!(
        "{{\"objects\": {}, \"bytes\": {}, \"function\": {}, \"module\": {}, \"kept_by\": {}, \"statement\": {}, \
         \"walk\": {}, \"stack\": [{}]}}",
        site.live.objects,
        site.live.bytes,
        quoted(&place.name()),
        quoted(place.module_name()),
        or_null(keeper),
        or_null(site.statement.as_ref().map(|(_, text)| text.as_str())),
        quoted(walk_of(site)),
        stack.join(", "),
    )
}

/// Whether the stack goes up to where the thread began, in a word.
pub fn walk_of(site: &Site) -> &'static str {
    if site.is_whole {
        "WHOLE"
    } else {
        "CUT"
    }
}

/// A text of JSON.
fn quoted(text: &str) -> String {
    let mut quoted = String::from('"');
    for letter in text.chars() {
        match letter {
            '"' | '\\' => quoted.extend(['\\', letter]),
            control if control < ' ' => quoted.push_str(&format!("\\u{:04x}", u32::from(control))),
            other => quoted.push(other),
        }
    }
    quoted.push('"');
    quoted
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_sample_stands_for_others_of_its_size() {
        assert!((scale(1000, 1_000_000) - 1000.5).abs() < 0.1);
        assert!((scale(100_000_000, 1_000) - 1.0).abs() < 1e-9);
        assert_eq!(scale(5, 1), 1.0);
    }

    #[test]
    fn a_call_site_has_a_name_where_there_is_one() {
        let frame = |name: Option<&str>| {
            let function = name.map(str::to_string);
            Frame { function, module: "/x/server".into(), offset: 16, ..Frame::default() }
        };
        let stack = [frame(Some("my_malloc")), frame(None), frame(None), frame(Some("open_it"))];
        assert_eq!(call_site(&stack).name(), "server+0x10 of open_it");
        assert_eq!(call_site(&stack[3..]).name(), "open_it");
        assert_eq!(call_site(&stack[..1]).name(), "my_malloc");
        assert_eq!(call_site(&[]).name(), "?+0x0");
    }

    #[test]
    fn text_of_json_has_no_quotes_of_its_own() {
        assert_eq!(quoted("a\"b\\c\n"), "\"a\\\"b\\\\c\\u000a\"");
    }

    #[test]
    fn leaks_of_nothing_are_told() {
        assert_eq!(as_json(&[], 0), "{\"objects\": 0, \"bytes\": 0, \"kept\": {\"objects\": 0, \"bytes\": 0}, \"lost\": 0, \"sites\": []}");
    }
}
