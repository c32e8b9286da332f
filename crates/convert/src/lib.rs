//! `teak convert`: tables of a running server become tables of Teak, or of InnoDB again, foreign keys and all.
//!
//! ```text
//! catalog ──> survey ──────────────> plan ──> work ──────────────────────────> server
//! (what the   (sets of tables that   (order)  (lock, sums, ALTERs, comparison)
//!  server has) foreign keys connect;           │        │
//!             trial: empty copies)             journal  watch (progress, Ctrl-C)
//! ```
//!
//! The rules, and what others see meanwhile, are in docs/convert.md. Whatever is killed, no constraint is forgotten:
//! `journal` has those that are dropped, until they were added again.

#![deny(missing_docs, unnameable_types)]
#![forbid(unsafe_code)]

mod catalog;
mod definition;
mod error;
mod journal;
mod json;
mod name;
mod plan;
mod survey;
mod trial;
mod watch;
mod work;

pub use error::ConvertError;
pub use name::Name;

use clap::{Args, ValueEnum};
use journal::Journal;
use name::Asked;
use std::io::Write;
use std::time::Duration;
use survey::{Set, Survey};
use teak_client::{self as client, Connection, Settings};
use teak_console::amounts::{bytes, clock};
use teak_console::{signals, terminal};
use trial::Trial;
use watch::Watch;
use work::{Done, Worker};

/// Options of `teak convert`.
#[derive(Args, Debug)]
pub struct Arguments {
    #[command(flatten)]
    client: client::Arguments,
    /// What to convert: all tables of a database, or one; in backticks if a name has a dot
    #[arg(value_name = "DB[.TABLE]", required = true)]
    tables: Vec<String>,
    /// The engine that they get
    #[arg(long, value_enum, default_value_t = Target::Teak)]
    to: Target,
    /// Only say what would be done: what cannot be converted, the statements in their order, an estimate
    #[arg(long)]
    dry_run: bool,
    /// Convert the tables as well that foreign keys connect with those that are named
    #[arg(long)]
    with_connected: bool,
    /// Leave what cannot be converted as it is, and convert the rest
    #[arg(long)]
    skip: bool,
    /// Hold no lock: others read and write the tables between the statements, foreign keys are missing meanwhile, and
    /// rows are not compared
    #[arg(long)]
    unlocked: bool,
    /// Do not compare the rows before and after
    #[arg(long)]
    no_compare: bool,
    /// Add foreign keys again without looking whether each row has its parent
    #[arg(long)]
    unchecked_keys: bool,
    /// Convert encrypted tables too: they will not be encrypted in Teak
    #[arg(long)]
    decrypt: bool,
    /// Do not write to the binary log
    #[arg(long)]
    skip_log_bin: bool,
    /// Give up a lock that others do not let go for so many seconds; who comes meanwhile waits behind it
    #[arg(long, value_name = "SECONDS", default_value_t = 60)]
    lock_wait_timeout: u32,
    /// No progress and no summary
    #[arg(long, short = 'q')]
    quiet: bool,
    /// What was done, or would be, as a JSON object in the last line; no progress and no summary
    #[arg(long, conflicts_with = "quiet")]
    json: bool,
}

impl Arguments {
    /// Whether people are told how far it is, and in the end what was done.
    fn talks(&self) -> bool {
        !self.quiet && !self.json
    }

    /// Whether the set is held: for the constraints, and so that rows can be compared.
    fn locks(&self, set: &Set) -> bool {
        !self.unlocked && (set.has_keys() || !self.no_compare)
    }

    /// Sets a session so that tables are only copied: nothing in them is judged anew, no other engine is taken, and
    /// what SHOW CREATE TABLE says can be read.
    fn session(&self) -> String {
        format!(
            "SET SESSION sql_mode = 'NO_ENGINE_SUBSTITUTION,NO_AUTO_VALUE_ON_ZERO', sql_quote_show_create = 1, \
             autocommit = 1, foreign_key_checks = {}, unique_checks = 1, check_constraint_checks = 0, \
             max_statement_time = 0, lock_wait_timeout = {}, wait_timeout = 31536000, tx_isolation = 'READ-COMMITTED'",
            u8::from(!self.unchecked_keys),
            self.lock_wait_timeout
        )
    }
}

/// The engine to convert to.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum Target {
    Teak,
    Innodb,
}

impl Target {
    fn engine(self) -> &'static str {
        match self {
            Target::Teak => "Teak",
            Target::Innodb => "InnoDB",
        }
    }

    /// The engine from which constraints are taken.
    fn origin(self) -> &'static str {
        match self {
            Target::Teak => "InnoDB",
            Target::Innodb => "Teak",
        }
    }
}

/// Converts, or says what it would do.
pub fn run(arguments: &Arguments, out: &mut dyn Write) -> Result<(), ConvertError> {
    let mut told = serde_json::Map::new();
    let result = convert(arguments, out, &mut told);
    if arguments.json {
        // Also of what failed: some of it may be done.
        told.insert("ok".into(), result.is_ok().into());
        told.insert("error".into(), result.as_ref().err().map(ToString::to_string).into());
        let written = writeln!(out, "{}", serde_json::Value::Object(told));
        if arguments.dry_run {
            written?;
        }
    }
    result
}

fn convert(
    arguments: &Arguments,
    out: &mut dyn Write,
    told: &mut serde_json::Map<String, serde_json::Value>,
) -> Result<(), ConvertError> {
    let asked: Vec<Asked> = arguments
        .tables
        .iter()
        .map(|text| Asked::parse(text))
        .collect::<Result<_, _>>()
        .map_err(ConvertError::Usage)?;
    // Names and definitions are read as UTF-8; nothing depends on a default database.
    let mut settings = Settings::read(&arguments.client)?;
    settings.character_set = "utf8mb4".into();
    settings.database = None;
    let connect = || -> Result<Connection, ConvertError> {
        let mut connection = settings.connect()?;
        prepare(&mut connection, arguments)?;
        Ok(connection)
    };
    let mut session = connect()?;
    make_sure_of_engine(&mut session, arguments.to)?;
    keep_others_out(&mut session, arguments.lock_wait_timeout)?;
    signals::catch();
    let mut journal = Journal::new(connect()?);
    let recorded = journal.read()?;
    let trial = Trial::begin(connect()?, arguments.to.engine())?;
    if trial.is_none() {
        terminal::message(
            "teak: nothing is tried out before, since this account may not set sql_log_bin: the server may refuse a table later",
        );
    }
    let found = survey::survey(&mut session, trial, &asked, &recorded, arguments)?;
    told.extend(json::found(&found));
    tell(&found, arguments)?;
    if arguments.dry_run {
        told.insert("statements".into(), statements(&found, arguments).into());
        return if arguments.json { refuse(&found, arguments) } else { show(&found, arguments, out) };
    }
    if arguments.talks() {
        // Nobody may read what is only told beside the work.
        let _ = estimate(&found, out);
    }
    let watch = Watch::new(&settings, &mut session, !arguments.talks())?;
    let mut worker = Worker { session, journal, watch, arguments, done: Done::default() };
    let carried_out = carry_out(&found.sets, &mut worker);
    told.extend(json::done(&worker.done, worker.watch.elapsed()));
    carried_out?;
    forget_what_is_there(&mut worker)?;
    worker.journal.remove()?;
    if arguments.talks() {
        let _ = summary(&worker, &found, out);
        let _ = next_upgrade(&worker, arguments.to, out);
    }
    Ok(())
}

fn prepare(connection: &mut Connection, arguments: &Arguments) -> Result<(), ConvertError> {
    if !connection.version().contains("MariaDB") {
        return Err(ConvertError::Usage(format!("the server is not MariaDB: {}", connection.version())));
    }
    connection.execute(arguments.session())?;
    if arguments.skip_log_bin {
        connection.execute("SET SESSION sql_log_bin = 0")?;
    }
    if arguments.to == Target::Teak {
        match connection.execute("SET SESSION teak_foreign_keys = KEEP") {
            // There is no Teak, as is told next.
            Err(error) if error.code() == Some(1193) => {}
            other => drop(other?),
        }
    }
    Ok(())
}

fn make_sure_of_engine(connection: &mut Connection, to: Target) -> Result<(), ConvertError> {
    let engine = to.engine();
    let support = format!("SELECT SUPPORT FROM information_schema.ENGINES WHERE ENGINE = '{engine}'");
    if !matches!(connection.value(support)?.as_deref(), Some("YES" | "DEFAULT")) {
        return Err(ConvertError::Usage(format!("the server has no engine {engine}")));
    }
    match connection.value("SELECT @@enforce_storage_engine")? {
        Some(enforced) if !enforced.eq_ignore_ascii_case(engine) => Err(ConvertError::Usage(format!(
            "the server makes tables of {enforced} only: SET GLOBAL enforce_storage_engine = NULL first"
        ))),
        _ => Ok(()),
    }
}

/// One at a time: what an earlier run began, the server may still be carrying out.
fn keep_others_out(session: &mut Connection, seconds: u32) -> Result<(), ConvertError> {
    match session.value(format!("SELECT GET_LOCK('teak convert', {seconds})"))?.as_deref() {
        Some("1") => Ok(()),
        _ => {
            let other = session.value("SELECT IS_USED_LOCK('teak convert')")?.unwrap_or_default();
            Err(ConvertError::Usage(format!(
                "another teak convert works on this server, or its last statement goes on: connection {other}"
            )))
        }
    }
}

/// Says what cannot be converted and what will be otherwise; an error if that is not to be left.
fn tell(found: &Survey, arguments: &Arguments) -> Result<(), ConvertError> {
    for (name, reason) in &found.obstacles {
        terminal::message(&format!("{name} cannot be converted: {reason}"));
    }
    for note in &found.notes {
        terminal::message(note);
    }
    match arguments.dry_run {
        true => Ok(()),
        false => refuse(found, arguments),
    }
}

/// An error if something cannot be converted, unless it is to be left.
fn refuse(found: &Survey, arguments: &Arguments) -> Result<(), ConvertError> {
    match found.obstacles.len() {
        0 => Ok(()),
        _ if arguments.skip => Ok(()),
        1 => Err(ConvertError::Refused("1 table cannot be; --skip leaves it as it is".into())),
        count => {
            Err(ConvertError::Refused(format!("{count} tables cannot be; --skip leaves them as they are")))
        }
    }
}

/// The statements that would be carried out, in their order.
fn statements(found: &Survey, arguments: &Arguments) -> Vec<String> {
    let mut statements = vec![arguments.session()];
    for set in &found.sets {
        let locks = arguments.locks(set);
        if locks {
            let tables: Vec<String> =
                set.tables.keys().map(|name| format!("{} WRITE", name.quoted())).collect();
            statements.push(format!("LOCK TABLES {}", tables.join(", ")));
        }
        statements.extend(set.steps.iter().map(|step| step.sql(arguments.to.engine())));
        statements.extend(locks.then(|| "UNLOCK TABLES".into()));
    }
    statements
}

/// What a dry run shows.
fn show(found: &Survey, arguments: &Arguments, out: &mut dyn Write) -> Result<(), ConvertError> {
    for statement in statements(found, arguments) {
        writeln!(out, "{statement};")?;
    }
    if !arguments.quiet {
        estimate(found, out)?;
    }
    refuse(found, arguments)
}

fn estimate(found: &Survey, out: &mut dyn Write) -> Result<(), ConvertError> {
    let tables = found.sets.iter().flat_map(Set::converted).count();
    let size = found.sets.iter().map(Set::bytes).sum::<u64>() as f64;
    let time = match found.rate {
        Some(rate) => {
            let time = clock(Duration::from_secs_f64(size / rate));
            format!(", about {time} by a sample ({}/s)", bytes(rate))
        }
        None => String::new(),
    };
    let already = match found.already {
        0 => String::new(),
        count => format!("; {count} have the engine already"),
    };
    Ok(writeln!(out, "-- {tables} tables, {}{time}{already}", bytes(size))?)
}

fn carry_out(sets: &[Set], worker: &mut Worker<'_>) -> Result<(), ConvertError> {
    worker.watch.progress.tables = sets.iter().flat_map(Set::converted).count();
    worker.watch.progress.bytes = sets.iter().map(Set::bytes).sum();
    let result = sets.iter().try_for_each(|set| worker.convert(set));
    result.map_err(|error| {
        let missing = worker.journal.count();
        ConvertError::Unfinished { error: Box::new(error), missing }
    })
}

/// A run that was ended between the last statement for a constraint and its record left the record.
fn forget_what_is_there(worker: &mut Worker<'_>) -> Result<(), ConvertError> {
    for (child, key) in worker.journal.read()? {
        let is_there = match catalog::find(&mut worker.session, &child)? {
            Some(_) => catalog::definition(&mut worker.session, &child)?.foreign_keys.contains(&key),
            None => false,
        };
        if is_there {
            worker.journal.forget(&child, &[key])?;
        }
    }
    Ok(())
}

/// What applications meet whose next upgrade makes tables of the other engine beside these.
fn next_upgrade(worker: &Worker<'_>, to: Target, out: &mut dyn Write) -> Result<(), ConvertError> {
    if worker.done.keys == 0 {
        return Ok(());
    }
    let (new, old) = (to.engine(), to.origin());
    Ok(writeln!(
        out,
        "-- A new table of {old} with a foreign key to one of these will be refused (error 1005), as an application's \
         upgrade may make one: SET GLOBAL default_storage_engine = {new}, and see to statements that say ENGINE={old}"
    )?)
}

fn summary(worker: &Worker<'_>, found: &Survey, out: &mut dyn Write) -> Result<(), ConvertError> {
    let Done { tables, keys, compared, bytes: size } = &worker.done;
    let left = match found.obstacles.len() {
        0 => String::new(),
        count => format!(", {count} left as they are"),
    };
    Ok(writeln!(
        out,
        "{tables} tables converted ({}, {}), {keys} foreign keys added again, {compared} tables compared{left}",
        bytes(*size as f64),
        clock(worker.watch.elapsed())
    )?)
}
