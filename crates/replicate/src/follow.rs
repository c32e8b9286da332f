//! Follows one source: connects, goes on behind the position that the target has, and begins anew after what passes.

use crate::apply::{Applier, Care, Received};
use crate::claims::Claims;
use crate::configuration::{SourcePlan, Start, TargetPlan};
use crate::control::{self, Wish};
use crate::copier::{Copier, Next};
use crate::copy_plan;
use crate::copying::Copying;
use crate::dump::{family_of, newest, HEARTBEATS};
use crate::failure::Failure;
use crate::position::Position;
use crate::progress::{Condition, Progress};
use crate::requirements;
use crate::steps;
use crate::tables;
use crate::target::Target;
use crate::{Asked, Beginning, Dump, DumpError, HEARTBEAT};
use std::collections::BTreeSet;
use std::time::{Duration, Instant};
use teak_binlog::{Body, Family, HEADER_BYTES};
use teak_client::{Connection, Error};
use teak_console::{signals, terminal, Status};

/// How often a wait looks whether the program is to end.
const TICK: Duration = Duration::from_millis(200);
/// While workers are at work, and the source sends nothing, it is looked so often whether it does.
const GLANCE: Duration = Duration::from_millis(2);
/// How often the target is asked whether somebody wants something else.
const LOOK: Duration = Duration::from_secs(1);
/// What is tried again and again in vain takes one part of the time, and nothing is tried in so many.
const TRIES_APART: u32 = 4;
/// So many messages are known not to be repeated.
const MOST_TROUBLES: usize = 20;
/// What a source answers that has not what it is asked for.
const NOT_THERE: u16 = 1236;

/// Follows a source.
pub struct Follower<'p> {
    target: &'p TargetPlan,
    source: &'p SourcePlan,
    claims: &'p Claims,
    /// What others are told of it.
    progress: &'p Progress,
    /// So many threads copy.
    workers: usize,
    has_claimed: bool,
    /// It was not asked yet what somebody wants: that a former program was to stop is nothing to this one.
    is_new: bool,
    /// How often somebody had wanted something at the last look.
    asked: Option<u64>,
    care: Care,
    pause: Pause,
    /// The last message, which is not repeated.
    said: String,
    /// What passes and was told since something was applied, or nothing was left to be.
    troubles: BTreeSet<String>,
    /// When this connection has begun to follow.
    began: Option<Instant>,
    /// It has begun to and failed more than once since then.
    is_in_vain: bool,
    /// What is said of a beginning once something has come of it.
    untold: Option<String>,
}

/// What is known of the server that is followed.
struct Known {
    family: Family,
    connection: Connection,
}

impl<'p> Follower<'p> {
    /// Of a source that was not begun in this run of the program.
    pub fn new(
        target: &'p TargetPlan,
        source: &'p SourcePlan,
        claims: &'p Claims,
        progress: &'p Progress,
        workers: usize,
    ) -> Follower<'p> {
        let (care, pause, said) = (Care::Usual, Pause::default(), String::new());
        Follower {
            target,
            source,
            claims,
            progress,
            workers,
            has_claimed: false,
            is_new: true,
            asked: None,
            care,
            pause,
            said,
            troubles: BTreeSet::new(),
            began: None,
            is_in_vain: false,
            untold: None,
        }
    }

    /// Follows it until a signal comes, or somebody wants it to end; an error is one that does not pass.
    pub fn follow(&mut self) -> Result<(), (String, Status)> {
        loop {
            self.began = None;
            match self.connection() {
                _ if signals::interrupted() => return Ok(()),
                Ok(()) => return Ok(()),
                Err(Failure::Passing(why)) => {
                    self.progress.becomes(Condition::Waiting);
                    self.progress.failures.add(1);
                    let at_least = self.meets(format!("{why}; trying again"));
                    self.pause.wait(at_least);
                }
                // What failed is rolled back, and comes again, one by one.
                Err(Failure::Unclear(why)) if self.care == Care::Usual => {
                    self.say_once(&format!("{why}; looking which transaction it is"));
                    self.care = Care::Each;
                }
                Err(Failure::Unclear(why)) => return Err((why, Status::Server)),
                Err(Failure::Final(why, status)) => return Err((why, status)),
                Err(Failure::Asked) => (),
            }
        }
    }

    /// Waits until somebody wants a source that has stopped to be followed. False: a signal came, or `goes_on` says
    /// that nothing else is followed either.
    pub fn is_wanted_again(&mut self, goes_on: &dyn Fn() -> bool) -> bool {
        let mut connection = None;
        while goes_on() && !signals::interrupted() {
            std::thread::sleep(TICK);
            connection = connection.or_else(|| self.target.settings.connect().ok());
            let Some(target) = &mut connection else { continue };
            match control::read(target, &self.source.name) {
                Err(_) => connection = None,
                Ok(None) => (),
                Ok(Some(state)) => {
                    let is_new = *self.asked.get_or_insert(state.asked) != state.asked;
                    if is_new && matches!(state.wanted, Wish::Follow | Wish::Pause) {
                        (self.care, self.pause, self.said) = (Care::Usual, Pause::default(), String::new());
                        return true;
                    }
                }
            }
        }
        false
    }

    /// Does what somebody wants of the source. False: it is to end.
    fn obey(&mut self, target: &mut Target<'_>) -> Result<bool, Failure> {
        let is_new = std::mem::replace(&mut self.is_new, false);
        while !signals::interrupted() {
            let (wanted, asked) = target.wanted();
            self.asked = Some(asked);
            match wanted {
                Wish::Follow => return Ok(true),
                Wish::Stop | Wish::Stopped if is_new => target.becomes(Wish::Follow)?,
                Wish::Stop => {
                    target.becomes(Wish::Stopped)?;
                    self.say_once("ends, as was asked for");
                    return Ok(false);
                }
                Wish::Stopped => return Ok(false),
                Wish::Pause => {
                    self.progress.becomes(Condition::Paused);
                    self.say_once(&format!("pauses at {}", target.position().unwrap_or_default()));
                    std::thread::sleep(TICK);
                    target.read_state()?;
                }
            }
        }
        Ok(false)
    }

    fn say_once(&mut self, text: &str) {
        if self.said != text {
            terminal::message(&format!("{}: {text}", self.source.name));
            self.said = text.into();
        }
    }

    /// Says what passes, but not again and again where nothing comes of it; how long to wait at least.
    fn meets(&mut self, trouble: String) -> Duration {
        self.is_in_vain |= self.began.is_some() && !self.troubles.is_empty();
        if !(self.troubles.contains(&trouble) && self.troubles.contains(&self.said)) {
            self.say_once(&trouble);
        }
        if self.troubles.len() >= MOST_TROUBLES {
            self.troubles.clear();
        }
        self.troubles.insert(trouble);
        self.untold = None;
        // A full disk takes much until it says so, each time.
        let tried = self.began.filter(|_| self.is_in_vain).map(|began| began.elapsed());
        TRIES_APART * tried.unwrap_or_default()
    }

    /// Says that it follows; if it has in vain, only when something has come of it.
    fn begins(&mut self, text: String) {
        self.began = Some(Instant::now());
        match self.is_in_vain {
            true => self.untold = Some(text),
            false => self.say_once(&text),
        }
    }

    /// Something was applied, or nothing is left to be.
    fn goes_on(&mut self) {
        self.troubles.clear();
        self.is_in_vain = false;
        if let Some(text) = self.untold.take() {
            self.say_once(&text);
        }
    }

    /// From connecting to the next trouble, or to the end of the program.
    fn connection(&mut self) -> Result<(), Failure> {
        let mut target = Target::connect(self.target, self.source, self.claims)?;
        if !self.obey(&mut target)? {
            return Ok(());
        }
        target.take_over(self.source.workers)?;
        if target.wanted().0 != Wish::Follow {
            return Err(Failure::Asked);
        }
        let mut known = self.ask()?;
        target.begin_from(&mut known.connection)?;
        let text = match target.position() {
            Some(text) => text.to_string(),
            None if self.source.start == Start::Copy => {
                let text = copy_plan::define(
                    &mut target,
                    &mut known.connection,
                    self.source,
                    self.target.engine.as_deref(),
                )?;
                target.begin_at(&text)?;
                text
            }
            None => {
                let text = self.start(&mut known)?;
                target.begin_at(&text)?;
                text
            }
        };
        let position = Position::parse(&text, known.family)
            .map_err(|problem| Failure::Final(format!("the position {text}: {problem}"), Status::Usage))?;
        let beginning = match &position {
            Position::MariaDb(_) => Beginning::MariaDb(position.to_string()),
            Position::MySql(set) => Beginning::MySql(set.to_bytes()),
        };
        let mut dump = self.dump(beginning)?;
        self.progress.becomes(Condition::Following);
        self.progress.connections.add(1);
        self.begins(format!("follows from {position} on"));
        let copying = Copying::read(&mut target)?;
        let mut applier =
            Applier::new((self.source, self.target), self.progress, target, position, self.care, copying);
        self.note_progress(&applier);
        let copier = match applier.copying().is_done() {
            true => None,
            false => Some(Copier::begin(self.workers, self.target, &mut known.connection, &mut applier)?),
        };
        self.receive(&mut dump, &mut applier, &mut known.connection, copier)
    }

    fn receive(
        &mut self,
        dump: &mut Dump,
        applier: &mut Applier<'_>,
        other: &mut Connection,
        mut copier: Option<Copier>,
    ) -> Result<(), Failure> {
        let silence = self.silence();
        let mut heard = Instant::now();
        let mut looked = Instant::now();
        while !signals::interrupted() {
            let of_source = |error| Failure::of_source(&error);
            if looked.elapsed() > LOOK {
                applier.must_go_on()?;
                looked = Instant::now();
            }
            if let Some(copy) = &mut copier {
                let is_idle = !dump.connection().wait(Duration::ZERO).map_err(of_source)?;
                match copy.step(applier, other, is_idle)? {
                    Next::Log => (),
                    Next::Again => {
                        self.note_progress(applier);
                        heard = Instant::now();
                        continue;
                    }
                    Next::Done => {
                        self.say_once("all tables are copied");
                        copier.take().into_iter().for_each(Copier::end);
                    }
                }
            }
            if !dump.connection().wait(Duration::ZERO).map_err(of_source)? {
                applier.nothing_waits()?;
                self.note_progress(applier);
                if applier.waits_for_workers(GLANCE)? {
                    continue;
                }
                if !dump.connection().wait(TICK).map_err(of_source)? {
                    self.progress.has(applier.is_between());
                    if heard.elapsed() > silence {
                        return Err(self.is_silent(dump, "not even a heartbeat"));
                    }
                    continue;
                }
            }
            let (sent, log) = match dump.receive() {
                Ok(Some(sent)) => sent,
                Ok(None) => return Err(Failure::Passing("source: it ends the connection".into())),
                Err(DumpError::Server(error)) if error.is_silence() => {
                    return Err(self.is_silent(dump, "in the midst of an event"))
                }
                Err(error) => {
                    let Some(next) = self.log_behind(&error, dump.file(), applier, other)? else {
                        return Err(behind_what_has_begun(applier, self.not_there(error, other)));
                    };
                    *dump = self.dump(Beginning::File(next))?;
                    continue;
                }
            };
            self.progress.bytes.add(sent.bytes.len() as u64);
            if !matches!(sent.event.body, Body::Heartbeat(_)) {
                self.progress.has(false);
            }
            let headers = log.decoder.format().map_or(HEADER_BYTES, |format| format.header_bytes);
            let checksum = if sent.event.checksum.is_some() { 4 } else { 0 };
            let body = sent.bytes.get(headers..sent.bytes.len().saturating_sub(checksum)).unwrap_or_default();
            let event = Received { event: &sent.event, body, file: &sent.file, end: sent.end };
            if let Some(copy) = copier.as_mut().filter(|_| steps::defines(&sent.event)) {
                copy.make_way(applier)?;
            }
            let sent = applier.sent(&event, &mut log.decoder);
            sent.map_err(|failure| behind_what_has_begun(applier, failure))?;
            self.note_progress(applier);
            // The source has nothing more.
            if matches!(event.event.body, Body::Heartbeat(_)) && applier.is_between() && copier.is_none() {
                self.goes_on();
            }
            heard = Instant::now();
        }
        applier.end_in_order()
    }

    /// What could not be applied at once was, one by one: others can go at once again, with the next connection.
    fn note_progress(&mut self, applier: &Applier<'_>) {
        self.progress.tables_to_copy.set(applier.copying().tables() as u64);
        self.progress.done_above.set(applier.done_above() as u64);
        if applier.committed() > 0 {
            self.pause.reset();
            self.care = Care::Usual;
            self.goes_on();
        }
    }

    /// What the source is.
    fn ask(&mut self) -> Result<Known, Failure> {
        let settings = &self.source.settings;
        let mut connection = settings.connect().map_err(|error| Failure::of_source(&error))?;
        let family = family_of(&mut connection).map_err(|error| Failure::of_source(&error))?;
        let wrong = requirements::of_source(&mut connection, family, self.source);
        let wrong = wrong.map_err(|error| Failure::of_source(&error))?;
        if !wrong.is_empty() {
            return Err(Failure::Final(format!("source: {}", wrong.join("; ")), Status::Usage));
        }
        if !self.has_claimed {
            self.claim(&mut connection)?;
        }
        Ok(Known { family, connection })
    }

    /// Sees to it that no table is one in the target with a table of another source, as far as tables are there and the
    /// account sees them; of the others that is looked at with their first rows.
    fn claim(&mut self, connection: &mut Connection) -> Result<(), Failure> {
        let (source, routes, claims) = (&self.source.name, &self.source.routes, self.claims);
        let follows =
            |database: &str, table: &str| routes.follows_table(database.as_bytes(), table.as_bytes());
        let tables = tables::all(connection, &follows).map_err(|error| Failure::of_source(&error))?;
        tables.keys().try_for_each(|there| {
            let part = routes.part(&there.0, &there.1);
            claims.claim(source, there, &routes.names_of(&there.0, &there.1), part)
        })?;
        self.has_claimed = true;
        Ok(())
    }

    /// Where to begin the first time.
    fn start(&self, known: &mut Known) -> Result<String, Failure> {
        let connection = &mut known.connection;
        let place = match (&self.source.start, known.family) {
            (Start::Gtid(text), family) if Position::family_of(text) == family => return Ok(text.clone()),
            (Start::Gtid(text), _) => {
                let why = format!("start: the source is of the other family than {text}");
                return Err(Failure::Final(why, Status::Usage));
            }
            (Start::Now | Start::Copy, family) => newest(connection, family),
            (Start::File { file, position }, Family::MariaDb) => {
                let file = teak_sql::quoting::literal(file.as_bytes());
                connection.value(format!("SELECT BINLOG_GTID_POS({file}, {position})"))
            }
            (Start::File { .. }, Family::MySql) => {
                let why = "start: a file and a position of MySQL is not built yet: give a set of GTIDs";
                return Err(Failure::Final(why.into(), Status::Usage));
            }
        };
        place.map_err(|error| Failure::of_source(&error))?.ok_or_else(|| {
            let why = format!("start: the source has no such place in its log: {:?}", self.source.start);
            Failure::Final(why, Status::Usage)
        })
    }

    /// A source of which nothing comes for so long, not even that it has nothing, is gone.
    fn silence(&self) -> Duration {
        self.source.settings.patience.unwrap_or(HEARTBEAT * HEARTBEATS)
    }

    /// Why a connection is given up on which nothing of the log comes.
    fn is_silent(&self, dump: &Dump, what: &str) -> Failure {
        let (seconds, last) = (self.silence().as_secs(), dump.place());
        Failure::Passing(format!(
            "source: nothing comes from it for {seconds} s, {what}; what came last ends at {last}"
        ))
    }

    /// Asks the source for its log.
    fn dump(&self, beginning: Beginning) -> Result<Dump, Failure> {
        let asked = Asked { beginning, follow: true, server_id: self.source.server_id };
        let mut dump = Dump::begin(&self.source.settings, &asked)?;
        dump.connection().set_read_timeout(self.silence()).map_err(|error| Failure::of_source(&error))?;
        Ok(dump)
    }

    /// A server that is killed may have written a part of an event. Its recovery goes by what is whole, but leaves the
    /// part where it is, and nobody is sent what is behind it. If such an end is the error: the log to go on with; it
    /// begins behind all that was whole, which the target has.
    fn log_behind(
        &mut self,
        error: &DumpError,
        file: &str,
        applier: &mut Applier<'_>,
        other: &mut Connection,
    ) -> Result<Option<String>, Failure> {
        let is_cut = |message: &str| message.contains("truncated in the middle of event");
        match error {
            DumpError::Server(Error::Server { code: NOT_THERE, message, .. }) if is_cut(message) => (),
            _ => return Ok(None),
        }
        let Some(next) = next_file(file) else { return Ok(None) };
        let behind = format!("SELECT BINLOG_GTID_POS({}, 4)", teak_sql::quoting::literal(next.as_bytes()));
        let behind = other.value(behind).map_err(|error| Failure::of_source(&error))?;
        let Some(behind) = behind else { return Ok(None) };
        if !applier.log_ends(&behind)? {
            return Ok(None);
        }
        self.say_once(&format!("{file} ends within an event, as the source died: goes on with {next}"));
        Ok(Some(next))
    }

    /// A source whose log does not reach back so far is asked where it begins.
    fn not_there(&self, error: DumpError, other: &mut Connection) -> Failure {
        let DumpError::Server(asked) = &error else { return error.into() };
        if asked.code() != Some(NOT_THERE) {
            return error.into();
        }
        let first = other.query("SHOW BINARY LOGS").ok().and_then(|rows| rows.into_iter().next());
        let first = first.and_then(|row| row.into_iter().next()).flatten().unwrap_or_default();
        let file = teak_sql::quoting::literal(&first);
        let behind = [format!("SELECT BINLOG_GTID_POS({file}, 4)"), "SELECT @@GLOBAL.gtid_purged".into()];
        let behind = behind.iter().find_map(|query| other.value(query).ok().flatten()).unwrap_or_default();
        let file = String::from_utf8_lossy(&first);
        let oldest = format!("the oldest log there is, {file}, has what comes behind '{behind}'");
        Failure::Final(
            format!(
                "source: {asked}; {oldest}: if that is too late, the tables must be loaded anew, \
                 for instance with start = \"copy\", without them in the target and without the row of {} in \
                 teak_replicate.position",
                self.source.name
            ),
            Status::Server,
        )
    }
}

/// What does not pass, in the log, stops the source when all before it is applied: one by one, if several
/// transactions were begun together.
fn behind_what_has_begun(applier: &mut Applier<'_>, failure: Failure) -> Failure {
    match failure {
        // Not what somebody has done to the position.
        Failure::Final(why, status) if status != Status::Other && applier.has_begun() => {
            applier.end_in_order().err().unwrap_or(Failure::Unclear(why))
        }
        other => other,
    }
}

/// The name of the log behind one.
fn next_file(file: &str) -> Option<String> {
    let (name, number) = file.rsplit_once('.')?;
    let number: u64 = number.parse().ok()?;
    Some(format!("{name}.{:06}", number.checked_add(1)?))
}

/// Waits a little before something is tried again, longer each time; a signal ends the wait.
#[derive(Debug, Default)]
struct Pause {
    times: u32,
}

impl Pause {
    const SHORTEST: Duration = Duration::from_millis(100);
    const LONGEST: Duration = Duration::from_secs(2);
    const LONGEST_OF_ALL: Duration = Duration::from_secs(30);
    const TICK: Duration = Duration::from_millis(100);

    /// How long the next wait is.
    fn next(&mut self) -> Duration {
        let pause = Pause::SHORTEST.saturating_mul(1 << self.times.min(10)).min(Pause::LONGEST);
        self.times += 1;
        pause
    }

    /// Waits, for so long at least as far as that is not too long.
    fn wait(&mut self, at_least: Duration) {
        let mut left = self.next().max(at_least.min(Pause::LONGEST_OF_ALL));
        while !left.is_zero() && !signals::interrupted() {
            let tick = left.min(Pause::TICK);
            std::thread::sleep(tick);
            left -= tick;
        }
    }

    /// Something went well.
    fn reset(&mut self) {
        self.times = 0;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn logs_are_counted() {
        for (file, next) in
            [("b.000009", "b.000010"), ("a.b.999999", "a.b.1000000"), ("b.1000000", "b.1000001")]
        {
            assert_eq!(next_file(file).as_deref(), Some(next));
        }
        assert_eq!((next_file("b"), next_file("b.c"), next_file("")), (None, None, None));
    }

    #[test]
    fn pauses_grow_to_two_seconds_and_begin_anew() {
        let mut pause = Pause::default();
        let all: Vec<u128> = (0..40).map(|_| pause.next().as_millis()).collect();
        assert_eq!(all[..4], [100, 200, 400, 800]);
        assert_eq!((all[4], all[5], all[39]), (1600, 2000, 2000));
        pause.reset();
        assert_eq!(pause.next().as_millis(), 100);
    }
}
