//! Rounds: who starts them, who waits for them, and what is answered.
//!
//! One thread goes through the parts of a round and notes each as it comes; others read what is noted. So an answer
//! never waits for the server longer than the limit, and has what came until then; each part says whether it is there.

use crate::history::{self, History};
use crate::part::{Found, Missing, Part};
use crate::session::Session;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};
use teak_console::service::Told;
use teak_console::terminal;
use teak_metrics::{Family, Kind};

/// A round that ended so long ago at most is still an answer.
const FRESH: Duration = Duration::from_millis(500);
/// The share of a round's time that the server has.
const OF_SERVER: f64 = 0.8;
/// A round that goes on for so long beyond its time hangs.
const OVERDUE: Duration = Duration::from_secs(2);
/// So long a round that goes on is waited for at the end of the program.
const ENDING: Duration = Duration::from_secs(1);

/// What is known of a round.
struct Round {
    /// Counted from 1; 0 was none.
    number: u64,
    began: Instant,
    ended: Option<Instant>,
    /// What has come, in order.
    parts: Vec<Noted>,
}

/// A part that has come, or is missing.
struct Noted {
    part: Part,
    took: Duration,
    /// Numbers as text; None if it is missing.
    text: Option<Arc<str>>,
}

struct State {
    /// Somebody waits for a round that has not begun.
    is_wanted: bool,
    /// The program ends, and the thread has.
    is_ending: bool,
    has_ended: bool,
    round: Round,
    scrapes: u64,
    connections: u64,
    history: History,
    /// Parts that were missing when they were last asked for, and why.
    missing: Vec<(Part, String)>,
}

impl State {
    fn has(&self, number: u64) -> bool {
        self.round.number > number || self.round.number == number && self.round.ended.is_some()
    }

    /// Whether a server's part has come in the last round.
    fn is_up(&self) -> bool {
        self.round.parts.iter().any(|noted| noted.part.is_of_server() && noted.text.is_some())
    }
}

/// What is shared by the thread that collects and those that answer.
pub struct Collector {
    parts: Vec<Part>,
    timeout: Duration,
    version: String,
    state: Mutex<State>,
    changed: Condvar,
}

impl Collector {
    /// Nothing is known yet.
    pub fn new(parts: Vec<Part>, timeout: Duration, version: &str) -> Collector {
        let round = Round { number: 0, began: Instant::now(), ended: None, parts: Vec::new() };
        let state = State {
            is_wanted: true,
            is_ending: false,
            has_ended: false,
            round,
            scrapes: 0,
            connections: 0,
            history: History::default(),
            missing: Vec::new(),
        };
        let version = version.into();
        Collector { parts, timeout, version, state: Mutex::new(state), changed: Condvar::new() }
    }

    fn state(&self) -> MutexGuard<'_, State> {
        // What is noted is whole, whatever thread has panicked.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Carries out rounds until the end: when somebody asks, and now and then for the history.
    pub fn work(&self, mut session: Session) {
        while let Some(until) = self.begin() {
            let connected = session.connect(until).map_err(|error| error.to_string());
            for &part in &self.parts {
                let began = Instant::now();
                let families = match &connected {
                    Err(why) if part.is_of_server() => Err(Missing::NotConnected(why.clone())),
                    _ => session.collect(part, until),
                };
                self.note(Found { part, took: began.elapsed(), families });
            }
            self.finish(session.connections);
        }
        drop(session);
        self.state().has_ended = true;
        self.changed.notify_all();
    }

    /// Waits until a round is to begin, and until when it may take; None if the program ends.
    fn begin(&self) -> Option<Instant> {
        let due = |state: &State| match state.round.ended {
            Some(ended) => (ended + history::EVERY).saturating_duration_since(Instant::now()),
            None => Duration::ZERO,
        };
        let mut state = self.state();
        while !state.is_ending && !state.is_wanted && !due(&state).is_zero() {
            let wait = due(&state);
            state = self.changed.wait_timeout(state, wait).unwrap_or_else(PoisonError::into_inner).0;
        }
        if state.is_ending {
            return None;
        }
        let (number, began) = (state.round.number + 1, Instant::now());
        state.is_wanted = false;
        state.round = Round { number, began, ended: None, parts: Vec::new() };
        // So that what the server does not say in time is known before the answer, and other parts are in it.
        Some(began + self.timeout.mul_f64(OF_SERVER))
    }

    fn note(&self, Found { part, took, families }: Found) {
        let text = |families: &Vec<Family>| families.iter().map(Family::to_string).collect::<String>().into();
        let text = families.as_ref().ok().map(text);
        let why = families.as_ref().err().map(Missing::to_string);
        let mut state = self.state();
        let before = state.missing.iter().position(|(other, _)| *other == part);
        let before = before.map(|at| state.missing.swap_remove(at).1);
        // Once, and not at each round.
        let news = match (&before, &why) {
            (before, Some(why)) if before.as_ref() != Some(why) => Some(format!("is missing: {why}")),
            (Some(_), None) => Some("is there again".into()),
            _ => None,
        };
        if let Some(why) = why {
            state.missing.push((part, why));
        }
        for family in families.iter().flatten() {
            state.history.see(family);
        }
        state.round.parts.push(Noted { part, took, text });
        self.changed.notify_all();
        drop(state);
        if let Some(news) = news {
            terminal::message(&format!("teak: exporter: {} {news}", part.name()));
        }
    }

    fn finish(&self, connections: u64) {
        let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
        let mut state = self.state();
        state.round.ended = Some(Instant::now());
        state.connections = connections;
        let is_up = state.is_up();
        state.history.round(now.as_secs(), is_up);
        self.changed.notify_all();
    }

    /// All numbers, at the latest when a round's time is over.
    pub fn scrape(&self) -> String {
        let mut state = self.state();
        state.scrapes += 1;
        let now = Instant::now();
        let (wanted, until) = match state.round.ended {
            Some(ended) if now.duration_since(ended) < FRESH => (state.round.number, now),
            Some(_) => {
                state.is_wanted = true;
                self.changed.notify_all();
                (state.round.number + 1, now + self.timeout)
            }
            None => (state.round.number.max(1), state.round.began + self.timeout),
        };
        let left = until.saturating_duration_since(now);
        let waited = self.changed.wait_timeout_while(state, left, |state| !state.has(wanted));
        let state = waited.unwrap_or_else(PoisonError::into_inner).0;
        let parts = self.parts_of(&state, wanted, Instant::now());
        let mut text: String = self.about(&state, parts).iter().map(Family::to_string).collect();
        let found: Vec<Arc<str>> = parts.iter().filter_map(|noted| noted.text.clone()).collect();
        drop(state);
        for part in found {
            text += &part;
        }
        text
    }

    /// What is known `now` by a round of this number. What an earlier one has found is not how things are, nor is what
    /// came long ago of one that hangs.
    fn parts_of<'s>(&self, state: &'s State, wanted: u64, now: Instant) -> &'s [Noted] {
        let Round { number, began, ended, parts } = &state.round;
        let hangs = ended.is_none() && now.saturating_duration_since(*began) > self.timeout + OVERDUE;
        if *number >= wanted && !hangs {
            parts
        } else {
            &[]
        }
    }

    /// What is said of the answer itself.
    fn about(&self, state: &State, parts: &[Noted]) -> Vec<Family> {
        let is_there = |part: Part| parts.iter().any(|noted| noted.part == part && noted.text.is_some());
        let is = |yes: bool| f64::from(u8::from(yes));
        let is_up = self.parts.iter().any(|&part| part.is_of_server() && is_there(part));
        let all = self.parts.iter().all(|&part| is_there(part));
        let mut there =
            Family::new("teak_exporter_part_success", Kind::Gauge, "Whether this answer has the part");
        let mut took =
            Family::new("teak_exporter_part_seconds", Kind::Gauge, "How long the part took, if it has come");
        for &part in &self.parts {
            there.add(&[("part", part.name())], is(is_there(part)));
        }
        for noted in parts {
            took.add(&[("part", noted.part.name())], noted.took.as_secs_f64());
        }
        let gauge = |name, help, value| Family::of(name, Kind::Gauge, help, value);
        let counter = |name, help, value: u64| Family::of(name, Kind::Counter, help, value as f64);
        let mut build = Family::new("teak_exporter_build_info", Kind::Gauge, "The exporter's version");
        build.add(&[("version", &self.version)], 1.0);
        vec![
            gauge("mysql_up", "Whether the server has answered", is(is_up)),
            gauge("teak_up", "Whether the engine has answered", is(is_there(Part::Engine))),
            gauge("teak_exporter_last_scrape_error", "Whether a part of this answer is missing", is(!all)),
            there,
            took,
            counter("teak_exporter_scrapes_total", "Answers to who asked for metrics", state.scrapes),
            counter("teak_exporter_rounds_total", "How often the server was asked", state.round.number),
            counter(
                "teak_exporter_connections_total",
                "Connections that were made for it",
                state.connections,
            ),
            build,
        ]
    }

    /// A line: the exporter works, and how the server was when it was last asked.
    pub fn health(&self) -> String {
        format!("ok: {}\n", self.told().status)
    }

    /// The last hour, as JSON.
    pub fn history(&self) -> String {
        self.state().history.json()
    }

    /// For whoever started the program.
    pub fn told(&self) -> Told {
        let state = self.state();
        let status = match (&state.missing.as_slice(), state.round.number) {
            // What a round that goes on has not found yet is not missing.
            (_, 0 | 1) if state.round.ended.is_none() => "the server was not asked yet".to_string(),
            ([], _) => "the server answers".into(),
            (missing, _)
                if missing.iter().filter(|(part, _)| part.is_of_server()).count() == self.of_server() =>
            {
                format!("the server does not answer: {}", missing[0].1)
            }
            (missing, _) => {
                let names: Vec<&str> = missing.iter().map(|(part, _)| part.name()).collect();
                format!("the server answers, but for {}", names.join(", "))
            }
        };
        Told { is_ready: true, status }
    }

    fn of_server(&self) -> usize {
        self.parts.iter().filter(|part| part.is_of_server()).count()
    }

    /// Has the thread end, which says good-bye to the server, and waits for it if that does not take long.
    pub fn end(&self) {
        let mut state = self.state();
        state.is_ending = true;
        self.changed.notify_all();
        drop(self.changed.wait_timeout_while(state, ENDING, |state| !state.has_ended));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const PARTS: [Part; 2] = [Part::ServerStatus, Part::Engine];

    fn collector(timeout: Duration) -> Collector {
        Collector::new(PARTS.to_vec(), timeout, "1")
    }

    fn found(part: Part, families: Result<Vec<Family>, Missing>) -> Found {
        Found { part, took: Duration::from_millis(2), families }
    }

    fn one(name: &str) -> Result<Vec<Family>, Missing> {
        Ok(vec![Family::of(name, Kind::Gauge, "x", 1.0)])
    }

    fn has(text: &str, lines: &[&str]) {
        for wanted in lines {
            assert!(text.lines().any(|line| line == *wanted), "{wanted} is missing: {text}");
        }
    }

    #[test]
    fn what_has_come_is_answered_and_what_has_not_is_marked() {
        let collector = collector(Duration::from_millis(1));
        let missing = [
            "mysql_up 0",
            "teak_up 0",
            "teak_exporter_last_scrape_error 1",
            "teak_exporter_part_success{part=\"server_status\"} 0",
        ];
        // Nobody collects.
        has(&collector.scrape(), &missing);
        assert!(collector.begin().is_some());
        has(&collector.scrape(), &missing);
        collector.note(found(Part::ServerStatus, one("a")));
        let part = ["mysql_up 1", "teak_up 0", "a 1", "teak_exporter_last_scrape_error 1"];
        has(&collector.scrape(), &part);
        collector.note(found(Part::Engine, Err(Missing::NoEngine)));
        collector.finish(1);
        has(&collector.scrape(), &part);
        assert!(collector.health().contains("but for engine"), "{}", collector.health());
        // A round of which nothing has come is not answered with what the one before has found.
        collector.state().is_wanted = true;
        assert!(collector.begin().is_some());
        let text = collector.scrape();
        has(&text, &missing);
        assert!(!text.contains("a 1"), "{text}");
        for part in PARTS {
            collector.note(found(part, one(part.name())));
        }
        collector.finish(1);
        has(
            &collector.scrape(),
            &["mysql_up 1", "teak_up 1", "engine 1", "teak_exporter_last_scrape_error 0"],
        );
        has(&collector.scrape(), &["teak_exporter_scrapes_total 7", "teak_exporter_rounds_total 2"]);
    }

    #[test]
    fn what_came_of_a_round_that_hangs_is_not_told_for_ever() {
        let collector = collector(Duration::from_millis(1));
        assert!(collector.begin().is_some());
        collector.note(found(Part::ServerStatus, one("a")));
        let (state, now) = (collector.state(), Instant::now());
        assert_eq!(collector.parts_of(&state, 1, now).len(), 1);
        assert_eq!(collector.parts_of(&state, 1, now + 2 * OVERDUE).len(), 0);
        assert_eq!(collector.parts_of(&state, 2, now).len(), 0);
    }

    #[test]
    fn a_hundred_who_ask_at_once_have_one_round() {
        let collector = &collector(Duration::from_secs(60));
        std::thread::scope(|scope| {
            let asking: Vec<_> = (0..100).map(|_| scope.spawn(|| collector.scrape())).collect();
            while collector.state().scrapes < 100 {
                std::thread::yield_now();
            }
            assert!(collector.begin().is_some());
            for part in PARTS {
                collector.note(found(part, one(part.name())));
            }
            collector.finish(1);
            for answer in asking {
                has(&answer.join().unwrap(), &["teak_exporter_rounds_total 1", "mysql_up 1"]);
            }
        });
    }
}
