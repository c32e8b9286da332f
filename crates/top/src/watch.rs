//! Watches a server, or goes through a recording, on a terminal; or records without one.

use crate::keys::Key;
use crate::live::{Live, Reply, Request, Samples};
use crate::recording::{End, Recorder, Recording};
use crate::sample::{Part, Sample};
use crate::screen::{counted, draw, Around};
use crate::state::{Action, State};
use crate::terminal::Screen;
use crate::wanted::Wanted;
use crate::TopError;
use std::fs::File;
use std::time::{Duration, Instant};
use teak_console::service::{Service, Told};
use teak_console::{signals, terminal};

/// How often it is looked whether the end was asked for.
const TICK: Duration = Duration::from_millis(100);

/// Whether colours are not wanted, as <https://no-color.org> has it.
fn has_colours() -> bool {
    std::env::var_os("NO_COLOR").is_none_or(|value| value.is_empty())
}

/// A server, until somebody ends it.
pub fn server(mut live: Live, mut recorder: Option<Recorder>, interval: Duration) -> Result<(), TopError> {
    let mut screen = Screen::take().map_err(TopError::Terminal)?;
    let (mut state, mut samples) = (State::new(false), Samples::default());
    let (mut due, mut is_new) = (Instant::now(), true);
    while !signals::interrupted() {
        while let Some(reply) = live.take().map_err(|()| TopError::Defect)? {
            is_new = true;
            take(reply, &mut state, &mut samples, &mut recorder, interval);
        }
        if Instant::now() >= due && !live.is_asking && !state.is_paused {
            due = Instant::now() + interval;
            let wanted = match &recorder {
                None => state.wanted(),
                Some(_) => Wanted { with_idle: state.with_idle, ..Wanted::all() },
            };
            live.ask(Request::Sample(wanted));
        }
        if std::mem::take(&mut is_new) {
            let place = if recorder.is_some() { "RECORDING " } else { "" };
            show(&mut screen, &state, &samples, place.into())?;
        }
        let wait = due.saturating_duration_since(Instant::now()).clamp(Duration::from_millis(5), TICK);
        let wait = if live.is_asking { wait.min(Duration::from_millis(20)) } else { wait };
        let Some(key) = next(&mut screen, wait, &mut is_new)? else { continue };
        match state.key(key, &state.table(&samples.moment())) {
            Action::None | Action::Step(_) => {}
            Action::Quit => break,
            Action::Ask => due = Instant::now(),
            Action::Explain(connection) => drop(live.ask(Request::Explain(connection))),
            Action::End(statement) => drop(live.ask(Request::End(statement))),
        }
    }
    Ok(())
}

fn take(
    reply: Reply,
    state: &mut State,
    samples: &mut Samples,
    recorder: &mut Option<Recorder>,
    interval: Duration,
) {
    match reply {
        Reply::Sample(sample) => {
            if let Some(Err(error)) = recorder.as_mut().map(|recorder| recorder.add(&sample)) {
                state.message = format!("not recorded: {error}");
            }
            samples.push(*sample, interval.as_millis() as u64);
        }
        Reply::Plan(connection, Ok(lines)) => {
            state.message.clear();
            state.tell(&format!("Connection {connection}"), lines);
        }
        Reply::Plan(connection, Err(why)) => state.message = format!("no plan of {connection}: {why}"),
        Reply::Ended(statement, Ok(())) => state.message = format!("done: {statement}"),
        Reply::Ended(statement, Err(why)) => state.message = format!("{statement}: {why}"),
    }
}

fn show(screen: &mut Screen, state: &State, samples: &Samples, place: String) -> Result<(), TopError> {
    let moment = samples.moment();
    let table = state.table(&moment);
    let around = Around { moment, place, has_colours: has_colours() };
    screen.draw(|buffer| draw(buffer, &around, &table, state)).map_err(TopError::Terminal)
}

/// The next key, if one comes in this time. Whether there is something new to be shown: also of another size of the
/// window.
fn next(screen: &mut Screen, at_most: Duration, is_new: &mut bool) -> Result<Option<Key>, TopError> {
    match screen.key(at_most) {
        Ok((key, is_resized)) => {
            *is_new |= is_resized || key.is_some();
            Ok(key)
        }
        // The loop looks for it.
        Err(_) if signals::interrupted() => Ok(None),
        Err(error) => Err(TopError::Terminal(error)),
    }
}

/// A recording, of which the sample of this number and the one before it are shown.
struct Replay {
    recording: Recording<File>,
    at: usize,
}

impl Replay {
    fn samples(&mut self) -> Samples {
        let mut samples = Samples::default();
        for number in self.at.saturating_sub(1)..=self.at {
            samples.push(of(&mut self.recording, number), 0);
        }
        samples
    }
}

/// One that is damaged says so where it would be.
pub fn of(recording: &mut Recording<File>, number: usize) -> Sample {
    recording.sample(number).unwrap_or_else(|error| {
        let mut sample = Sample::default();
        sample.missing.insert(Part::Server, error.to_string());
        sample
    })
}

/// What is to be said of the end of a recording.
pub fn end_of(end: End) -> Option<String> {
    match end {
        End::Whole => None,
        End::Torn { at } => Some(format!(
            "the recording ends within a sample, at byte {at}: its writer was ended, or goes on"
        )),
        End::Damaged { at } => {
            Some(format!("the recording is damaged at byte {at}; what is behind it cannot be read"))
        }
        End::TooMany => Some("the recording has more samples than are shown".into()),
    }
}

/// A recording, whose last sample is of this number, until somebody ends it.
pub fn recording(recording: Recording<File>, last: usize, interval: Duration) -> Result<(), TopError> {
    let end = end_of(recording.end());
    let mut replay = Replay { recording, at: 0 };
    let mut screen = Screen::take().map_err(TopError::Terminal)?;
    let mut state = State::new(true);
    state.is_paused = true;
    state.message = end.clone().unwrap_or_default();
    let (mut samples, mut due, mut is_new) = (replay.samples(), Instant::now() + interval, true);
    while !signals::interrupted() {
        if !state.is_paused && Instant::now() >= due {
            due = Instant::now() + interval;
            state.is_paused = replay.at == last;
            replay.at = (replay.at + 1).min(last);
            (samples, is_new) = (replay.samples(), true);
        }
        if std::mem::take(&mut is_new) {
            show(&mut screen, &state, &samples, format!("{}/{} ", replay.at + 1, last + 1))?;
        }
        let Some(key) = next(&mut screen, TICK, &mut is_new)? else { continue };
        match state.key(key, &state.table(&samples.moment())) {
            Action::Quit => break,
            Action::Step(by) => {
                replay.at = replay.at.saturating_add_signed(by).min(last);
                samples = replay.samples();
                state.message = match (replay.at == last, replay.at) {
                    (true, _) => end.clone().unwrap_or("this is the last sample".into()),
                    (false, 0) => "this is the first sample".into(),
                    _ => String::new(),
                };
            }
            Action::None | Action::Ask | Action::Explain(_) | Action::End(_) => {}
        }
    }
    Ok(())
}

/// Without a terminal: samples are recorded until a signal comes. What is missing is told once.
pub fn daemon(mut live: Live, mut recorder: Recorder, interval: Duration) -> Result<(), TopError> {
    let mut service = Service::of_environment();
    let (mut due, mut count, mut problem) = (Instant::now(), 0, String::new());
    loop {
        let is_ending = signals::interrupted();
        while let Some(reply) = live.take().map_err(|()| TopError::Defect)? {
            let Reply::Sample(sample) = reply else { continue };
            let now = match recorder.add(&sample) {
                Ok(()) => {
                    count += 1;
                    sample.missing.get(&Part::Server).cloned().unwrap_or_default()
                }
                Err(error) => format!("not recorded: {error}"),
            };
            if now != problem {
                terminal::message(&format!(
                    "teak: top: {}",
                    if now.is_empty() { "all is there again" } else { &now }
                ));
                problem = now;
            }
        }
        let status = format!(
            "{} recorded{}{problem}",
            counted(count, "sample"),
            if problem.is_empty() { "" } else { "; " }
        );
        if let Some(service) = &mut service {
            service.tell(Told { is_ready: count > 0, status }, Instant::now());
        }
        if is_ending {
            return Ok(());
        }
        if Instant::now() >= due && !live.is_asking {
            due = Instant::now() + interval;
            live.ask(Request::Sample(Wanted::all()));
        }
        std::thread::sleep(TICK.min(interval));
    }
}
