//! A history that fails makes itself shorter: steps are left out while it fails at the same place, and what is left is
//! printed as a table of sessions and steps. (The idea is that of Pebble's metamorphic tests.)
//!
//! A history asks [`Steps`] before each of its steps. In the whole history all are played, and the state of the random
//! numbers before each is noted; a step that is played again begins with the numbers it had, whatever was left out
//! before it. So steps keep their choices, as far as these do not depend on what is there.

use std::cell::{Cell, RefCell};
use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write;
use std::panic::{catch_unwind, AssertUnwindSafe};
use std::sync::Once;
use std::time::{Duration, Instant};

use super::Random;

/// A step by its place in the history: the life of the engine, if there are several, and the step in it.
pub type Step = (usize, usize);

/// What the steps of one session did in one step is told by so many of its calls.
const CALLS_TOLD: usize = 3;
/// The widest column of the table, in characters.
const WIDEST: usize = 70;

thread_local! {
    /// Where this thread's last panic was.
    static PANIC: RefCell<String> = const { RefCell::new(String::new()) };
    /// Whether its panics are of attempts, and nobody's business.
    static QUIET: Cell<bool> = const { Cell::new(false) };
    static AT: Cell<Step> = const { Cell::new((0, 0)) };
    /// What sessions told by step, while somebody wants to know.
    static TOLD: RefCell<Option<Told>> = const { RefCell::new(None) };
}

/// By step and session.
type Told = BTreeMap<Step, BTreeMap<usize, Vec<String>>>;

/// Notes what a session does in the step that is being played; session 0 is the engine's own column.
pub fn tell(session: usize, what: impl FnOnce() -> String) {
    TOLD.with_borrow_mut(|told| {
        if let Some(told) = told {
            told.entry(AT.get()).or_default().entry(session).or_default().push(what());
        }
    });
}

/// A key as the table shows it.
pub fn shown(key: &[u8]) -> String {
    let text = key.escape_ascii().to_string();
    match text.char_indices().nth(30) {
        Some((end, _)) => format!("{}..", &text[..end]),
        None => text,
    }
}

/// Which steps of a history are played.
#[derive(Default)]
pub struct Steps {
    /// The random numbers before each step of the whole history.
    numbers: BTreeMap<Step, u64>,
    /// Those that may be left out, in their order.
    optional: Vec<Step>,
    /// Those of them that are played; `None`: the history is whole.
    played: Option<BTreeSet<Step>>,
}

impl Steps {
    /// Begins a step that every play has.
    pub fn at(&mut self, step: Step, random: &mut Random) {
        AT.set(step);
        match (&self.played, self.numbers.get(&step)) {
            (None, _) => drop(self.numbers.insert(step, random.0)),
            (Some(_), Some(numbers)) => random.0 = *numbers,
            // The whole history had ended before.
            (Some(_), None) => {}
        }
    }

    /// Begins a step, if it is played.
    pub fn plays(&mut self, step: Step, random: &mut Random) -> bool {
        match &self.played {
            None => self.optional.push(step),
            Some(played) if !played.contains(&step) => return false,
            Some(_) => {}
        }
        self.at(step, random);
        true
    }
}

/// Plays a history; where it panicked, if so.
fn failure(steps: &mut Steps, history: impl FnOnce(&mut Steps)) -> Option<String> {
    static HOOK: Once = Once::new();
    HOOK.call_once(|| {
        let before = std::panic::take_hook();
        std::panic::set_hook(Box::new(move |panic| {
            let place = panic.location().map_or(String::new(), |location| location.to_string());
            PANIC.with_borrow_mut(|last| *last = place);
            if !QUIET.get() {
                before(panic);
            }
        }));
    });
    catch_unwind(AssertUnwindSafe(|| history(steps))).err().map(|_| PANIC.with_borrow(String::clone))
}

/// Plays a whole history. If it fails: what is left of it, as a table, after `patience` of attempts to make it shorter.
pub fn play(history: impl Fn(&mut Steps), patience: Duration) -> Option<String> {
    let mut steps = Steps::default();
    let place = failure(&mut steps, &history)?;
    let (mut left, all) = (steps.optional.clone(), steps.optional.len());
    let mut fails = |left: &[Step]| {
        steps.played = Some(left.iter().copied().collect());
        failure(&mut steps, &history).as_ref() == Some(&place)
    };
    QUIET.set(true);
    shorten(&mut left, &mut fails, Instant::now() + patience);
    TOLD.set(Some(Told::new()));
    let verdict = if fails(&left) { "fails" } else { "failed, and not when it was played again," };
    QUIET.set(false);
    let told = TOLD.take().unwrap_or_default();
    Some(format!("{verdict} at {place}; {} of {all} steps are left:\n{}", left.len(), table(&told)))
}

/// Leaves out what `fails` does not need: halves, then smaller runs of steps, in the end single ones.
fn shorten(left: &mut Vec<Step>, fails: &mut impl FnMut(&[Step]) -> bool, deadline: Instant) {
    let mut size = left.len().div_ceil(2);
    while size > 0 {
        let (mut at, before) = (0, left.len());
        while at < left.len() {
            if Instant::now() > deadline {
                return;
            }
            let end = left.len().min(at + size);
            let fewer = [&left[..at], &left[end..]].concat();
            if fails(&fewer) {
                *left = fewer;
            } else {
                at = end;
            }
        }
        // Single ones until none is too many.
        size = if size == 1 && left.len() < before { 1 } else { size / 2 };
    }
}

/// A line for each step, a column for each session.
fn table(told: &Told) -> String {
    let sessions: BTreeSet<usize> = told.values().flat_map(|cells| cells.keys().copied()).collect();
    let title = |session: &usize| if *session == 0 { "engine".into() } else { format!("session {session}") };
    let mut lines = vec![["step".to_string()].into_iter().chain(sessions.iter().map(title)).collect()];
    for ((life, step), cells) in told {
        let calls =
            sessions.iter().map(|session| cells.get(session).map_or(String::new(), |calls| cell(calls)));
        let place = if *step == usize::MAX { format!("{life}.end") } else { format!("{life}.{step}") };
        lines.push([place].into_iter().chain(calls).collect::<Vec<String>>());
    }
    let width = |column: usize| lines.iter().map(|line| line[column].chars().count()).max().unwrap_or(0);
    let widths: Vec<usize> = (0..=sessions.len()).map(width).collect();
    let mut text = String::new();
    for line in &lines {
        let cells: Vec<String> =
            line.iter().zip(&widths).map(|(cell, width)| format!("{cell:width$}")).collect();
        writeln!(text, "{}", cells.join(" | ").trim_end()).expect("a String takes all");
    }
    text
}

/// The first of a session's calls in a step.
fn cell(calls: &[String]) -> String {
    let mut text = calls[..calls.len().min(CALLS_TOLD)].join("; ");
    if let Some((end, _)) = text.char_indices().nth(WIDEST) {
        text.truncate(end);
    }
    match calls.len().saturating_sub(CALLS_TOLD) {
        0 => text,
        more => format!("{text}; {more} more"),
    }
}
