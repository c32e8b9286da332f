//! `teak replicate pause`, `resume`, `skip` and `stop`: what somebody wants of a source stands in its row of
//! `teak_replicate.position`, and is counted there. Who follows it changes that row with each transaction, under the
//! condition that the count is the one that he knows: so what was asked for holds from the moment that it is committed
//! on, outlives whatever is killed, and needs nobody who listens.

use crate::above;
use crate::configuration::{Configuration, SourcePlan};
use crate::failure::Failure;
use crate::position::{Gtid, Position};
use crate::target::lock_of;
use std::io::Write;
use std::time::{Duration, Instant};
use teak_binlog::{Family, GtidSet, MariaDbGtid, MySqlGtid};
use teak_client::{Connection, Error};
use teak_console::{signals, Status};

/// How long a source that was resumed may take until somebody follows it.
const PATIENCE: Duration = Duration::from_secs(5);
const TICK: Duration = Duration::from_millis(50);
/// No such database, table, or column: nothing was begun, or only by an older build.
const MISSING: [u16; 3] = [1049, 1146, 1054];

/// What somebody wants of a source.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Wish {
    /// That it is followed.
    Follow,
    /// That nothing more is applied for now.
    Pause,
    /// That who follows it ends.
    Stop,
    /// It has ended for that.
    Stopped,
}

impl Wish {
    const ALL: [Wish; 4] = [Wish::Follow, Wish::Pause, Wish::Stop, Wish::Stopped];

    /// As the column has it.
    pub fn name(self) -> &'static str {
        match self {
            Wish::Follow => "follow",
            Wish::Pause => "pause",
            Wish::Stop => "stop",
            Wish::Stopped => "stopped",
        }
    }
}

/// A source's row.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct State {
    /// What was applied.
    pub gtid: String,
    /// What somebody wants.
    pub wanted: Wish,
    /// How often somebody has wanted something.
    pub asked: u64,
}

/// What can be asked for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Asking {
    /// Nothing more.
    Pause,
    /// To go on.
    Resume,
    /// The end.
    Stop,
}

/// Why it could not be done.
#[derive(Debug, thiserror::Error)]
pub enum ControlError {
    /// A source that is not in the configuration.
    #[error("there is no source {name} in the configuration: it has {known}")]
    Unknown {
        /// As it was called.
        name: String,
        /// What there is.
        known: String,
    },
    /// Which source is meant is not clear.
    #[error("there are {0} sources: the name of one is needed")]
    Which(usize),
    /// It has no position.
    #[error("{0}: it was not begun: the target has no position of it")]
    NotBegun(String),
    /// Not the number of a transaction.
    #[error("{0}: no GTID of one transaction")]
    NoGtid(String),
    /// Of the other family.
    #[error("{source_name}: {gtid} is of the other family than its position {position}")]
    OtherFamily {
        /// The source.
        source_name: String,
        /// What was given.
        gtid: String,
        /// What was applied.
        position: String,
    },
    /// It is too late.
    #[error("{source_name}: {gtid} was applied already, it is at {position}")]
    Applied {
        /// The source.
        source_name: String,
        /// What was given.
        gtid: String,
        /// What was applied.
        position: String,
    },
    /// The target.
    #[error("target: {0}")]
    Target(#[from] Error),
    /// The output.
    #[error("cannot write the output: {0}")]
    Output(#[from] std::io::Error),
}

impl ControlError {
    /// The exit status.
    pub fn status(&self) -> Status {
        match self {
            ControlError::Target(error) => error.status(),
            ControlError::Output(_) => Status::InputOutput,
            _ => Status::Usage,
        }
    }
}

/// A source's row; None: it was not begun.
pub fn read(target: &mut Connection, source: &str) -> Result<Option<State>, Error> {
    read_with(target, source, "")
}

/// The same; `lock`: nothing, or `FOR UPDATE`.
fn read_with(target: &mut Connection, source: &str, lock: &str) -> Result<Option<State>, Error> {
    let query =
        format!("SELECT gtid, wanted, asked FROM teak_replicate.position WHERE source = '{source}' {lock}");
    let row = match target.query(query) {
        Err(error) if error.code().is_some_and(|code| MISSING.contains(&code)) => return Ok(None),
        rows => crate::tables::texts(rows?).next(),
    };
    let Some(row) = row else { return Ok(None) };
    let [gtid, wanted, asked] = row.try_into().unwrap_or_default();
    let wanted = Wish::ALL.into_iter().find(|known| known.name() == wanted);
    match (wanted, asked.parse()) {
        (Some(wanted), Ok(asked)) => Ok(Some(State { gtid, wanted, asked })),
        _ => Err(Error::Protocol("what teak_replicate.position has in wanted and asked".into())),
    }
}

/// Asks whether the row of a position is what it was: `lock` keeps it so until the transaction ends. 1: it is.
pub fn as_it_was(source: &str, position: &str, asked: u64, lock: &str) -> String {
    format!(
        "SELECT COUNT(*) FROM teak_replicate.position
        WHERE source = '{source}' AND gtid = '{position}' AND asked = {asked} {lock}"
    )
}

/// Why it is not: somebody has asked for something, or has changed the position.
pub fn moved(connection: &mut Connection, source: &str, position: &str) -> Failure {
    match read(connection, source) {
        Err(error) => Failure::of_target(&error, || "its position".into()),
        Ok(Some(state)) if state.gtid == position => Failure::Asked,
        Ok(_) => Failure::Final(
            format!("somebody has changed the position of {source} in teak_replicate.position"),
            Status::Other,
        ),
    }
}

/// Asks for something of sources, of all if none is named, and says what has become of it.
pub fn ask(
    configuration: &Configuration,
    names: &[String],
    request: Asking,
    out: &mut dyn Write,
) -> Result<(), ControlError> {
    let sources: Vec<&SourcePlan> = match names {
        [] => configuration.sources.iter().collect(),
        names => names.iter().map(|name| named(configuration, name)).collect::<Result<_, _>>()?,
    };
    let mut target = configuration.target.settings.connect()?;
    // The first one that cannot be done does not keep the others from it.
    let mut failed = None;
    let mut asked = Vec::new();
    for source in sources {
        match begin(&mut target, &source.name, request) {
            Ok(state) => asked.push((source, state)),
            Err(error) => failed = failed.or(Some(error)),
        }
    }
    for (source, state) in asked {
        let told = end(&mut target, &source.name, request, &state)?;
        writeln!(out, "{}: {told}", source.name)?;
    }
    failed.map_or(Ok(()), Err)
}

fn named<'c>(configuration: &'c Configuration, name: &str) -> Result<&'c SourcePlan, ControlError> {
    let found = configuration.sources.iter().find(|source| source.name == name);
    found.ok_or_else(|| {
        let known: Vec<&str> = configuration.sources.iter().map(|source| source.name.as_str()).collect();
        ControlError::Unknown { name: name.into(), known: known.join(", ") }
    })
}

fn is_followed(target: &mut Connection, source: &str) -> Result<bool, Error> {
    Ok(target.value(format!("SELECT IS_USED_LOCK({})", lock_of(source)))?.is_some())
}

/// Notes what is wanted; the row as it was.
fn begin(target: &mut Connection, source: &str, request: Asking) -> Result<State, ControlError> {
    let state = read(target, source)?.ok_or_else(|| ControlError::NotBegun(source.into()))?;
    let wanted = match request {
        // Nobody would see it, but the next one who begins.
        Asking::Stop if !is_followed(target, source)? => return Ok(state),
        Asking::Stop => Wish::Stop,
        Asking::Pause => Wish::Pause,
        Asking::Resume => Wish::Follow,
    };
    target.execute("BEGIN")?;
    let counted = count_up(target, source, &format!("wanted = '{}', ", wanted.name()));
    target.execute(if counted.is_ok() { "COMMIT" } else { "ROLLBACK" })?;
    counted?;
    Ok(state)
}

/// Counts that somebody wants something: with its commit neither who applies the source nor any of his workers commits
/// anything more before he knows. `set`: what else changes in the row.
fn count_up(target: &mut Connection, source: &str, set: &str) -> Result<(), Error> {
    // Workers have their rows in this order, too.
    target.execute(format!(
        "UPDATE teak_replicate.position SET {set}asked = asked + 1, applied = applied WHERE source = '{source}'"
    ))?;
    above::end_generation(target, source)
}

/// Waits until it is so, and says how it is.
fn end(
    target: &mut Connection,
    source: &str,
    request: Asking,
    before: &State,
) -> Result<String, ControlError> {
    let began = Instant::now();
    match request {
        Asking::Pause => {
            let position = at(target, source)?;
            let noted = format!("SELECT 1 FROM teak_replicate.ddl WHERE source = '{source}'");
            Ok(match (is_followed(target, source)?, target.value(noted)?.is_some()) {
                (false, _) => format!("paused at {position}; nobody follows it now"),
                (true, false) => format!("paused at {position}"),
                (true, true) => {
                    format!("paused behind the statement that follows {position}, which changes definitions and has begun")
                }
            })
        }
        Asking::Resume => {
            while !is_followed(target, source)? {
                if began.elapsed() > PATIENCE || signals::interrupted() {
                    return Ok(format!(
                        "goes on behind {} when somebody follows it: nobody does",
                        before.gtid
                    ));
                }
                std::thread::sleep(TICK);
            }
            Ok(format!("goes on behind {}", before.gtid))
        }
        Asking::Stop => {
            let mut was_followed = false;
            let mut asked = before.asked.saturating_add(1);
            // It ends when what it is doing has ended; an ALTER may take its time.
            while is_followed(target, source)? && !signals::interrupted() {
                was_followed = true;
                std::thread::sleep(TICK);
                let Some(state) = read(target, source)? else { break };
                match state.wanted {
                    Wish::Stop | Wish::Stopped => (),
                    // A program that has just begun takes it for what a former one was to do.
                    _ if state.asked <= asked => {
                        begin(target, source, request)?;
                        asked = state.asked.saturating_add(1);
                    }
                    _ => return Ok("somebody has asked for something else meanwhile".into()),
                }
            }
            let state = at(target, source)?;
            Ok(if was_followed {
                format!("stopped at {state}")
            } else {
                format!("nobody follows it, it is at {state}")
            })
        }
    }
}

fn at(target: &mut Connection, source: &str) -> Result<String, Error> {
    Ok(read(target, source)?.map(|state| state.gtid).unwrap_or_default())
}

/// Notes that a transaction is to be passed over.
pub fn skip(
    configuration: &Configuration,
    source: Option<&str>,
    gtid: &str,
    out: &mut dyn Write,
) -> Result<(), ControlError> {
    let source = match (source, &configuration.sources[..]) {
        (Some(name), _) => &named(configuration, name)?.name,
        (None, [only]) => &only.name,
        (None, several) => return Err(ControlError::Which(several.len())),
    };
    let gtid = one_gtid(gtid).ok_or_else(|| ControlError::NoGtid(gtid.into()))?;
    let mut target = configuration.target.settings.connect()?;
    target.execute("BEGIN")?;
    let state = read_with(&mut target, source, "FOR UPDATE")?;
    let state = state.ok_or_else(|| ControlError::NotBegun(source.clone()))?;
    let what = || (source.clone(), gtid.to_string(), state.gtid.clone());
    let family = match gtid {
        Gtid::MariaDb(_) => Family::MariaDb,
        Gtid::MySql(_) => Family::MySql,
    };
    let position = match Position::parse(&state.gtid, family) {
        Ok(position) if state.gtid.is_empty() || Position::family_of(&state.gtid) == family => position,
        _ => {
            let (source_name, gtid, position) = what();
            return Err(ControlError::OtherFamily { source_name, gtid, position });
        }
    };
    // Behind what workers commit just now.
    let above = above::read(&mut target, source, "FOR UPDATE")?;
    if position.has(&gtid) || above.done.contains(&gtid.to_string()) {
        let (source_name, gtid, position) = what();
        return Err(ControlError::Applied { source_name, gtid, position });
    }
    let known = format!(
        "SELECT IFNULL(skipped, '') FROM teak_replicate.skip WHERE source = '{source}' AND gtid = '{gtid}'"
    );
    let told = match target.value(known)?.as_deref() {
        Some("") => "is noted to be skipped already".into(),
        Some(when) => format!("was skipped at {when}"),
        None => {
            target.execute(format!(
                "INSERT INTO teak_replicate.skip (source, gtid) VALUES ('{source}', '{gtid}')"
            ))?;
            count_up(&mut target, source, "")?;
            let noted =
                format!("SELECT 1 FROM teak_replicate.ddl WHERE source = '{source}' AND gtid = '{gtid}'");
            let has_begun = target.value(noted)?.is_some();
            let is_followed = is_followed(&mut target, source)?;
            match (has_begun && is_followed, last_before(&position, &gtid)) {
                (true, _) => "has begun, a statement that changes definitions: it is skipped if it does not come to its end".into(),
                (_, Some(last)) => format!(
                    "will be skipped, if it comes: {last} was applied, whose number is higher; numbers fall only without \
                     gtid_strict_mode"
                ),
                (_, None) => "will be skipped".into(),
            }
        }
    };
    target.execute("COMMIT")?;
    Ok(writeln!(out, "{source}: {gtid} {told}")?)
}

/// What was applied of a transaction's domain, if its number is higher.
fn last_before(position: &Position, gtid: &Gtid) -> Option<MariaDbGtid> {
    match (position, gtid) {
        (Position::MariaDb(domains), Gtid::MariaDb(gtid)) => {
            domains.get(&gtid.domain).filter(|last| last.sequence > gtid.sequence).copied()
        }
        _ => None,
    }
}

/// The number of one transaction, of either family.
fn one_gtid(text: &str) -> Option<Gtid> {
    if Position::family_of(text) == Family::MariaDb {
        return text.trim().parse().ok().map(Gtid::MariaDb);
    }
    let set: GtidSet = text.parse().ok()?;
    let [source] = &set.sources[..] else { return None };
    let number: u64 = text.rsplit(':').next()?.trim().parse().ok()?;
    let gtid = MySqlGtid { source: source.source, tag: source.tag.clone(), number };
    let mut alone = GtidSet::default();
    alone.add(&gtid);
    (alone == set).then_some(Gtid::MySql(gtid))
}

#[cfg(test)]
mod tests {
    use super::*;

    const UUID: &str = "5ccc1033-44a8-11ea-bd59-0242ac190003";

    #[test]
    fn one_transaction_is_named_as_the_log_names_it() {
        for (text, wanted) in [
            ("0-1-5", Some("0-1-5".into())),
            (" 7-2-9 ", Some("7-2-9".into())),
            ("0-1-5,7-2-9", None),
            ("0-1", None),
            (&format!("{UUID}:5"), Some(format!("{UUID}:5"))),
            (&format!("{UUID}:tag:5"), Some(format!("{UUID}:tag:5"))),
            (&format!("{UUID}:5-6"), None),
            (&format!("{UUID}:4:6"), None),
            (&format!("{UUID}:5,{UUID}:tag:5"), None),
            ("x:5", None),
        ] {
            assert_eq!(one_gtid(text).map(|gtid| gtid.to_string()), wanted, "{text}");
        }
    }

    #[test]
    fn a_number_below_the_last_one_of_its_domain_is_told() {
        let position = Position::parse("0-1-5,7-2-9", Family::MariaDb).unwrap();
        for (gtid, is_told) in [("0-1-4", true), ("0-1-6", false), ("7-2-8", true), ("3-1-1", false)] {
            let gtid = one_gtid(gtid).unwrap();
            assert_eq!(last_before(&position, &gtid).is_some(), is_told, "{gtid}");
        }
    }
}
