//! Applies the steps of a log in the target: transactions with their rows, statements that change definitions.
//! `definitions.rs` has these, `documents.rs` types that only MySQL has, `apart.rs` what workers do, `copied.rs` what
//! has to do with tables that are being copied, `conflicts.rs` what becomes of rows that do not fit.

mod apart;
mod conflicts;
mod copied;
mod definitions;
mod documents;
mod routed;

use crate::configuration::{SourcePlan, TargetPlan};
use crate::copying::{Copying, Part, TableName};
use crate::crew::{Crew, JOINED};
use crate::events::{Gathered, TooLong};
use crate::failure::Failure;
use crate::position::{Gtid, Position};
use crate::prepared::{self, TouchedTables};
use crate::progress::Progress;
use crate::sides::LogPlace;
use crate::status::has_all;
use crate::steps::{Step, Steps};
use crate::target::{Fit, Place, Target};
use crate::touched::Keys;
use apart::{Gathering, Tending};
use conflicts::OneRow;
use std::collections::BTreeMap;
use teak_binlog::{Body, Change, Decoder, Event, Limits, Rows, HEADER_BYTES};
use teak_console::{terminal, Status};

/// What a server says of a BINLOG statement that fails for a reason that is no row.
const UNKNOWN: u16 = 1105;
/// And where it says more.
const ELSEWHERE: &str =
    "it says why in its error log only; a usual reason are columns of another type than at the source";

/// Whether rows are sent one by one, to name the one that cannot be applied.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Care {
    /// Many at once, and transactions joined.
    Usual,
    /// One by one.
    Each,
}

/// An event, and where it is.
pub struct Received<'e, 'a> {
    /// What it says.
    pub event: &'e Event<'a>,
    /// Its body's bytes, without header and checksum.
    pub body: &'e [u8],
    /// The file it is in.
    pub file: &'e str,
    /// Where the next event begins that can be begun with.
    pub end: u64,
}

/// Applies one source's log.
pub struct Applier<'p> {
    source: &'p SourcePlan,
    /// What workers connect to.
    plan: &'p TargetPlan,
    progress: &'p Progress,
    target: Target<'p>,
    /// With what is not committed yet.
    position: Position,
    steps: Steps,
    gathered: Gathered,
    /// Of tables whose rows do not come as they are, by the numbers that they have in the statement.
    fits: BTreeMap<u64, Fit>,
    care: Care,
    /// The transaction that is open at the source.
    gtid: Option<Gtid>,
    /// Somebody wants it passed over.
    is_skipped: bool,
    /// It is done already, by a worker of a former program.
    is_above: bool,
    /// It is of the target itself.
    is_own: bool,
    /// The number of the server whose log it is.
    source_id: u32,
    /// What it does, if a worker is to do it.
    gathering: Option<Gathering>,
    crew: Option<Crew>,
    keys: Keys,
    /// Tables of the target that it has defined.
    defined: Vec<TableName>,
    /// The XA transaction that it prepares, and how many of its statements were kept.
    prepared: Option<(String, u32)>,
    /// The tables that this touches, while some are not whole.
    touched: TouchedTables,
    /// Transactions of the source that are whole and not committed here.
    joined: u32,
    /// Where the last of them ends.
    last: Option<Place>,
    /// The statement that was noted is of one of them.
    ends_intent: bool,
    committed: u64,
    /// Of the transaction that is open, rows that did not fit.
    conflicts: u64,
    /// Transactions since the last such row, or since the beginning.
    since_conflict: u64,
    /// Tables of which not all rows are there.
    copying: Copying,
    /// REFERENCES behind a column makes a foreign key at the source.
    has_inline_references: bool,
    /// All before it in the log was applied.
    place: Option<LogPlace>,
    /// The end of the last transaction.
    ended: Option<LogPlace>,
}

impl<'p> Applier<'p> {
    /// From a position on, which the target has.
    pub fn new(
        (source, plan): (&'p SourcePlan, &'p TargetPlan),
        progress: &'p Progress,
        target: Target<'p>,
        position: Position,
        care: Care,
        copying: Copying,
    ) -> Applier<'p> {
        let gathered = Gathered::new(target.longest_packet());
        Applier {
            source,
            plan,
            progress,
            target,
            position,
            steps: Steps::default(),
            gathered,
            fits: BTreeMap::new(),
            care,
            gtid: None,
            is_skipped: false,
            is_above: false,
            is_own: false,
            source_id: 0,
            gathering: None,
            crew: None,
            keys: Keys::default(),
            defined: Vec::new(),
            prepared: None,
            touched: TouchedTables::new(),
            joined: 0,
            last: None,
            ends_intent: false,
            committed: 0,
            conflicts: 0,
            since_conflict: 0,
            copying,
            has_inline_references: false,
            place: None,
            ended: None,
        }
    }

    /// How many transactions were committed.
    pub fn committed(&self) -> u64 {
        self.committed
    }

    /// Applies an event of the source's log, as it was sent.
    pub fn sent(&mut self, sent: &Received<'_, '_>, decoder: &mut Decoder) -> Result<(), Failure> {
        let Body::TransactionPayload(payload) = &sent.event.body else {
            self.event(sent)?;
            if self.gtid.is_none() && !sent.file.is_empty() {
                self.place = Some((sent.file.to_string(), sent.end));
            }
            return Ok(());
        };
        let log = |error: &dyn std::fmt::Display| Failure::Final(format!("source: {error}"), Status::Damage);
        let mut events = payload.events(&Limits::default()).map_err(|problem| log(&problem))?;
        while let Some(bytes) = events.next_event().map_err(|problem| log(&problem))? {
            let position = sent.event.place.position;
            let event = decoder.decode_in_payload(position, bytes).map_err(|error| log(&error))?;
            let body = bytes.get(HEADER_BYTES..).unwrap_or_default();
            self.event(&Received { event: &event, body, file: sent.file, end: sent.end })?;
        }
        Ok(())
    }

    /// Transactions of the source that are whole may be not applied yet.
    pub fn has_begun(&self) -> bool {
        self.joined > 0 || self.crew.as_ref().is_some_and(|crew| !crew.has_nothing())
    }

    /// Nothing more has come: what was joined is committed, unless a transaction is open at the source.
    pub fn nothing_waits(&mut self) -> Result<(), Failure> {
        self.tend(Tending::AllCame)?;
        self.note_idle()?;
        match self.gtid {
            None => self.commit(),
            Some(_) => Ok(()),
        }
    }

    /// Fails if somebody wants something else than that this goes on.
    pub fn must_go_on(&mut self) -> Result<(), Failure> {
        self.target.must_go_on()
    }

    /// An event of a transaction that is passed over.
    fn skipped(&mut self, sent: &Received<'_, '_>) -> Result<(), Failure> {
        match self.steps.of_skipped(sent.event) {
            Step::Nothing => return Ok(()),
            // What was kept of it is of no use any more.
            Step::Completed { xid, .. } => self.target.give_up(&xid)?,
            _ => (),
        }
        if self.is_above {
            self.target.is_not_above(&self.gtid());
        } else if self.is_skipped {
            self.target.has_skipped(&self.gtid())?;
            self.progress.skipped.add(1);
        }
        self.end(sent)
    }

    /// Nothing of the transaction that is open is applied.
    fn is_passed_over(&self) -> bool {
        self.is_skipped || self.is_above || self.is_own
    }

    fn event(&mut self, sent: &Received<'_, '_>) -> Result<(), Failure> {
        if let Body::FormatDescription(format) = &sent.event.body {
            self.has_inline_references = crate::of_mysql::has_inline_references(format);
            self.source_id = sent.event.header.server_id;
            // No transaction goes on in the next file.
            self.has_no_end()?;
        }
        let begins = matches!(sent.event.body, Body::MariaDbGtid(_) | Body::MySqlGtid(_));
        if self.is_passed_over() && !begins {
            return self.skipped(sent);
        }
        let step = self.steps.of(sent.event);
        let step = step.map_err(|refusal| {
            // One that is refused as a whole has not begun.
            let gtid = match &sent.event.body {
                Body::MariaDbGtid(transaction) => transaction.gtid.to_string(),
                _ => self.gtid(),
            };
            Failure::Final(format!("{gtid}: {}: {refusal}", sent.event.place), Status::Damage)
        })?;
        match step {
            Step::Nothing => Ok(()),
            Step::Begin { gtid, prepares } => {
                self.begin(gtid, sent.event.header.server_id)?;
                let prepares = prepares.filter(|_| !self.is_passed_over());
                prepares.map_or(Ok(()), |xid| self.prepare(xid))
            }
            Step::Prepares(xid) => self.prepare(xid),
            Step::Completed { xid, is_commit } => {
                self.complete(&xid, is_commit)?;
                self.end(sent)
            }
            Step::Table(table) => {
                let routes = &self.source.routes;
                if routes.follows_table(table.database.as_bytes(), table.name.as_bytes()) {
                    let here = routes.names_of(&table.database, &table.name);
                    let part = routes.part(&table.database, &table.name);
                    let fit = self.target.must_fit(table, &here, part, self.source);
                    let fit = fit.map_err(|failure| self.named(failure))?;
                    self.gathered.table(&sent.event.header, sent.body, (&here.0, &here.1), &fit.columns);
                    match fit == Fit::default() {
                        true => self.fits.remove(&table.id),
                        false => self.fits.insert(table.id, fit),
                    };
                }
                Ok(())
            }
            Step::Rows(rows) => self.rows(sent, rows),
            Step::EndOfRows => self.end_of_rows(),
            Step::Savepoint(query) => {
                self.target.holds_nothing();
                self.add(query.statement.to_vec())
            }
            Step::PassedOver { query, why, ends } => {
                let text = String::from_utf8_lossy(&query.statement);
                let words: Vec<&str> = text.split_whitespace().take(3).collect();
                self.say(&format!("{}: {} ... is passed over: {why}", self.gtid(), words.join(" ")));
                if ends {
                    self.end(sent)
                } else {
                    Ok(())
                }
            }
            Step::Definition { query, definition, ends } => {
                self.definition(sent.event, query, &definition)?;
                if ends {
                    self.end(sent)
                } else {
                    Ok(())
                }
            }
            Step::Commit => self.end(sent),
        }
    }

    /// The transaction that is open, if one is, has no end in the log: the source died in the midst of it, and took it
    /// back.
    fn has_no_end(&mut self) -> Result<(), Failure> {
        if self.gtid.is_some() && self.gathering.take().is_none() {
            if self.joined > 0 {
                return Err(Failure::Unclear(format!("{} has no end in the source's log", self.gtid())));
            }
            let done = self.target.roll_back();
            done.map_err(|error| Failure::of_target(&error, || "ROLLBACK".into()))?;
            self.take_back()?;
        }
        (self.gtid, self.prepared) = (None, None);
        (self.is_skipped, self.is_above, self.is_own) = (false, false, false);
        Ok(())
    }

    /// A log has come to its end: all of it is committed. Whether that is all before a position.
    pub fn log_ends(&mut self, behind: &str) -> Result<bool, Failure> {
        self.has_no_end()?;
        self.settle()?;
        self.commit()?;
        Ok(has_all(&self.committed_position().0, behind))
    }

    fn begin(&mut self, gtid: Gtid, server_id: u32) -> Result<(), Failure> {
        self.has_no_end()?;
        if self.position.has(&gtid) {
            let why = format!("the source sends {gtid}, which the position {} has already", self.position);
            return Err(Failure::Final(why, Status::Damage));
        }
        self.gathered.clear();
        self.defined.clear();
        self.conflicts = 0;
        self.prepared = None;
        let name = gtid.to_string();
        self.is_above = self.target.is_above(&name);
        self.is_skipped = !self.is_above && self.target.skips(&name);
        self.is_own = !self.is_above && !self.is_skipped && self.target.is_own(server_id);
        self.gtid = Some(gtid);
        if self.is_skipped {
            self.say(&format!("{name} is skipped, as teak_replicate.skip has it"));
        }
        self.begin_apart(server_id)
    }

    fn rows(&mut self, sent: &Received<'_, '_>, rows: &Rows<'_>) -> Result<(), Failure> {
        let header = &sent.event.header;
        let (routes, table) = (&self.source.routes, &rows.table);
        let is_followed = routes.follows_table(table.database.as_bytes(), table.name.as_bytes());
        let is_left_out = self.source.exclusions.leaves_out(&table.database, &table.name, rows.change.into());
        let fit = self.fits.get(&table.id).filter(|_| is_followed && !is_left_out).cloned();
        let own_types = fit.as_ref().filter(|fit| !fit.columns.conversions.is_empty());
        let converted = own_types.map(|fit| self.converted(rows, fit)).transpose()?;
        let rows = converted.as_ref().unwrap_or(rows);
        let fit = fit.as_ref();
        let added = fit.and_then(|fit| fit.columns.one_more);
        let added = routes.part(&table.database, &table.name).zip(added);
        let widened = added.map(|(part, bytes)| rows.with_column(bytes, part.value.as_bytes()));
        let widened = widened.transpose().map_err(|error| self.stop(error.to_string()))?;
        let rows = widened.as_ref().unwrap_or(rows);
        let left_out = fit.map(|fit| &fit.left_out[..]).filter(|left_out| !left_out.is_empty());
        let narrowed = left_out.map(|left_out| rows.without_columns(left_out));
        let narrowed = narrowed.transpose().map_err(|error| self.stop(error.to_string()))?;
        let rows = narrowed.as_ref().unwrap_or(rows);
        if is_followed && !is_left_out {
            if self.gathering.is_some() {
                self.touch(&routes.names_of(&table.database, &table.name), rows)?;
            }
            let part = match self.copying.is_done() {
                true => None,
                false => {
                    let here = routes.names_of(&table.database, &table.name);
                    let part = self.copying.part(&here.0, &here.1).filter(|part| *part != Part::Rows);
                    self.touched.extend(self.prepared.is_some().then_some(here));
                    part
                }
            };
            if let Some(part) = part {
                let left_out = self.fits.get(&table.id).map(|fit| fit.left_out.clone()).unwrap_or_default();
                self.some_rows(sent, rows, &left_out, part)?;
            } else if self.care == Care::Each && self.prepared.is_none() {
                self.one_by_one(sent, rows)?;
            } else {
                let short = self.shortened(rows)?;
                let rows = short.as_ref().unwrap_or(rows);
                let mut full = Vec::new();
                let taken = self.gathered.rows(header, rows, &mut |statement| full.push(statement));
                taken.map_err(|long| self.too_long(rows, &long))?;
                for statement in full {
                    self.add(statement)?;
                }
            }
        }
        match rows.flags & Rows::STATEMENT_END {
            0 => Ok(()),
            _ => self.end_of_rows(),
        }
    }

    /// Rows with no more of what they were than the key by which the target finds them, if the transaction is long and
    /// they have more. It compares nothing else, so this changes nothing but the bytes that it reads.
    fn shortened(&mut self, rows: &Rows<'_>) -> Result<Option<Rows<'static>>, Failure> {
        let columns = rows.table.columns.len();
        let is_whole = rows.change == Change::Delete || (0..columns).all(|column| rows.has_new(column));
        let is_here = self.gathering.is_none() && self.prepared.is_none();
        if rows.change == Change::Write || !is_whole || !is_here || rows.has_partial_json() {
            return Ok(None);
        }
        let here = self.source.routes.names_of(&rows.table.database, &rows.table.name);
        let Some(key) = self.target.key_of_rows(&here)? else { return Ok(None) };
        let has_key = key.iter().all(|&column| column < columns && rows.has_old(column));
        let has_more = (0..columns).any(|column| rows.has_old(column) && !key.contains(&column));
        match has_key && has_more {
            true => rows.with_old_columns(&key).map(Some).map_err(|error| self.stop(error.to_string())),
            false => Ok(None),
        }
    }

    fn too_long(&self, rows: &Rows<'_>, long: &TooLong) -> Failure {
        let (table, bytes) = (rows.table.quoted_name(), long.bytes);
        let why = "is longer than the target's max_allowed_packet allows";
        self.stop(format!("table {table}: a row of {bytes} bytes {why}"))
    }

    fn end_of_rows(&mut self) -> Result<(), Failure> {
        let mut last = Vec::new();
        self.gathered.end(&mut |statement| last.push(statement));
        last.into_iter().try_for_each(|statement| self.add(statement))
    }

    /// Rows as statements of their own, so that an error names the row.
    fn one_by_one(&mut self, sent: &Received<'_, '_>, rows: &Rows<'_>) -> Result<(), Failure> {
        let images = rows.images();
        let (mut from, mut each) = (0, rows.iter());
        while let Some(row) = each.next() {
            let row = row.map_err(|error| self.stop(error.to_string()))?;
            let between = match rows.change {
                Change::Update => images.len() - each.images_between().len(),
                Change::Write => from,
                Change::Delete => images.len() - each.images_left().len(),
            };
            let to = images.len() - each.images_left().len();
            let (old, new) = (&images[from..between], &images[between..to]);
            self.one(OneRow { sent, rows, row: &row, old, new })?;
            from = to;
        }
        Ok(())
    }

    fn add(&mut self, statement: Vec<u8>) -> Result<(), Failure> {
        let Some(statement) = self.gather(statement)? else { return Ok(()) };
        let added = match &mut self.prepared {
            None => self.target.add(statement),
            Some((xid, parts)) => {
                *parts += 1;
                self.target.keep(xid, *parts, &statement)
            }
        };
        match self.care {
            Care::Usual => added,
            Care::Each => {
                added.and_then(|()| self.target.send().map(|_| ())).map_err(|failure| self.named(failure))
            }
        }
    }

    /// What comes is of an XA transaction: it is kept in the target, and carried out when that is committed.
    fn prepare(&mut self, xid: String) -> Result<(), Failure> {
        self.alone()?;
        // One of this name that was not completed in the log is gone at the source all the same.
        self.target.give_up(&xid)?;
        self.touched.clear();
        self.prepared = Some((xid, 0));
        Ok(())
    }

    /// It is prepared, even if it did nothing.
    fn has_prepared(&mut self) -> Result<(), Failure> {
        let Some((xid, _)) = self.prepared.take() else { return Ok(()) };
        let touched = std::mem::take(&mut self.touched);
        self.target.keep(&xid, 0, &prepared::as_text(&touched))?;
        self.copying.prepared.begins(&xid, touched);
        Ok(())
    }

    /// An XA transaction that was prepared is committed, or rolled back.
    fn complete(&mut self, xid: &str, is_commit: bool) -> Result<(), Failure> {
        self.alone()?;
        let kept = self.target.kept(xid)?;
        self.copying.prepared.ends(xid);
        if is_commit && kept == 0 && !self.is_before_copies()? {
            return Err(self.stop(format!("XA COMMIT {xid}: it was prepared before this source was begun")));
        }
        for part in (1..kept).filter(|_| is_commit) {
            let statement = self.target.kept_statement(xid, part)?;
            self.add(statement)?;
        }
        self.target.give_up(xid)
    }

    /// The source's transaction is at its end.
    fn end(&mut self, sent: &Received<'_, '_>) -> Result<(), Failure> {
        if self.hand_over(sent)? {
            return Ok(());
        }
        self.has_prepared()?;
        (self.is_skipped, self.is_above, self.is_own) = (false, false, false);
        self.tell_conflicts();
        let noted = self.target.intent().is_some_and(|intent| intent.gtid == self.gtid());
        if let Some(gtid) = self.gtid.take() {
            let added = self.position.add(&gtid);
            added.map_err(|problem| Failure::Final(format!("source: {problem}"), Status::Damage))?;
        }
        self.joined += 1;
        self.ends_intent |= noted;
        let (file, time) = (sent.file.to_string(), sent.event.header.time);
        self.ended = Some((file.clone(), sent.end));
        self.last = Some(Place { file, position: sent.end, time });
        if self.joined >= JOINED as u32 || self.target.is_long() || self.care == Care::Each || noted {
            self.commit()?;
        }
        Ok(())
    }

    fn commit(&mut self) -> Result<(), Failure> {
        let Some(place) = self.last.take() else { return Ok(()) };
        self.target.commit(&self.position.to_string(), &place, std::mem::take(&mut self.ends_intent))?;
        let joined = u64::from(std::mem::take(&mut self.joined));
        self.progress.transactions.add(joined);
        self.progress.source_time.set(u64::from(place.time));
        self.committed += joined;
        self.since_conflict += joined;
        // What could not be applied at once was behind the position, no further than so many.
        if self.since_conflict >= JOINED as u64 {
            self.care = Care::Usual;
        }
        Ok(())
    }

    fn position_family(&self) -> teak_binlog::Family {
        match self.position {
            Position::MariaDb(_) => teak_binlog::Family::MariaDb,
            Position::MySql(_) => teak_binlog::Family::MySql,
        }
    }

    fn gtid(&self) -> String {
        self.gtid.as_ref().map(Gtid::to_string).unwrap_or_default()
    }

    fn say(&self, text: &str) {
        terminal::message(&format!("{}: {text}", self.source.name));
    }

    /// It does not pass, with the transaction it is of.
    fn stop(&self, why: String) -> Failure {
        Failure::Final(format!("{}: {why}", self.gtid()), Status::Damage)
    }

    /// What stops is told with the transaction.
    fn named(&self, failure: Failure) -> Failure {
        match failure {
            Failure::Final(why, status) => Failure::Final(format!("{}: {why}", self.gtid()), status),
            Failure::Unclear(why) => Failure::Final(format!("{}: {why}", self.gtid()), Status::Server),
            passing => passing,
        }
    }
}
