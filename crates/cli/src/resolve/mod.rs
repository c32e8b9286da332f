//! `teak resolve`: transactions over several shards that Spider's heads have left prepared, ended as these have noted.
//!
//! | module | is about |
//! |---|---|
//! | `xid` | names of transactions |
//! | `decision` | what follows from what a head has noted; knows no server |
//! | `head`, `shard` | what is asked of servers |
//!
//! Nothing is touched that may be in work: what is younger than a minute, or of a connection of the head that carries
//! out a statement. What no head knows is told, with the statements that would end it. What it does can be repeated.

mod decision;
mod head;
mod shard;
mod xid;

use decision::{Decision, Life};
use head::{Head, Noted};
use shard::{Endpoint, Prepared, Shard};
use std::collections::{BTreeMap, BTreeSet};
use std::io::Write;
use std::time::{Duration, Instant};
use teak_console::{signals, terminal, Status};
use xid::Xid;

/// Options of `teak resolve`.
#[derive(clap::Args, Debug)]
pub struct Arguments {
    /// A server with Spider: mariadb://[USER@][HOST[:PORT]], or mysql://, with the options below. Once for each head
    /// over the same shards
    #[arg(long, value_name = "URL", required = true)]
    head: Vec<String>,
    /// Say what would be done, and do nothing
    #[arg(long)]
    dry_run: bool,
    /// Touch nothing that is younger
    #[arg(long, value_name = "SECONDS", default_value_t = 60)]
    age: u64,
    #[command(flatten)]
    client: teak_client::Arguments,
}

/// Why transactions are left.
#[derive(Debug, thiserror::Error)]
pub enum ResolveError {
    /// An option, a connection to a head, or a statement that was refused.
    #[error("{0}")]
    Client(#[from] teak_client::Error),
    /// It has no tables of Spider.
    #[error("{0} is no head: it has no mysql.spider_xa (INSTALL SONAME 'ha_spider')")]
    NoHead(String),
    /// Some were not decided.
    #[error("{0} left undecided")]
    Left(usize),
    /// A signal came.
    #[error("interrupted")]
    Interrupted,
    /// The output cannot be written.
    #[error("cannot write the output: {0}")]
    Output(#[from] std::io::Error),
}

impl ResolveError {
    /// The exit status.
    pub fn status(&self) -> Status {
        match self {
            ResolveError::Client(error) => error.status(),
            ResolveError::NoHead(_) => Status::Usage,
            ResolveError::Left(_) | ResolveError::Interrupted => Status::Other,
            ResolveError::Output(_) => Status::InputOutput,
        }
    }
}

/// What a shard that can be reached has prepared.
type Found = BTreeMap<String, BTreeMap<Xid, Prepared>>;

/// All servers, as they were looked at.
struct Look {
    heads: Vec<(Head, BTreeMap<Xid, Noted>, Vec<u64>)>,
    shards: BTreeMap<String, Shard>,
    found: Found,
    /// Why others cannot be asked.
    away: BTreeMap<String, String>,
}

/// Asks heads and shards, and ends what is decided; an error if something is left.
pub fn run(arguments: &Arguments, out: &mut dyn Write) -> Result<(), ResolveError> {
    let began = Instant::now();
    let mut settings = Vec::new();
    for url in &arguments.head {
        settings.push(crate::url::settings("--head", url, &arguments.client)?);
    }
    let mut look = Look::take(&settings)?;
    let (mut seen, mut waited) = (BTreeSet::new(), 0.0);
    // What nobody knows the age of is looked at for long enough.
    if look.has_unknown_ages() && arguments.age > 0 {
        let text = format!(
            "of some transactions no shard says how old they are: looking again in {} s",
            arguments.age
        );
        terminal::message(&text);
        seen = look.names();
        wait(Duration::from_secs(arguments.age))?;
        look = Look::take(&settings)?;
        waited = began.elapsed().as_secs_f64();
    }
    let mut work = Work {
        look,
        least: arguments.age as f64,
        seen,
        waited,
        dry_run: arguments.dry_run,
        out,
        ended: 0,
        left: 0,
    };
    work.all()?;
    let (ended, left) = (work.ended, work.left);
    let verb = if arguments.dry_run { "would be resolved" } else { "resolved" };
    writeln!(out, "{ended} {verb}, {left} left")?;
    match left {
        0 => Ok(()),
        left => Err(ResolveError::Left(left)),
    }
}

fn wait(time: Duration) -> Result<(), ResolveError> {
    let end = Instant::now() + time;
    while Instant::now() < end {
        if signals::interrupted() {
            return Err(ResolveError::Interrupted);
        }
        std::thread::sleep(Duration::from_millis(100).min(end.saturating_duration_since(Instant::now())));
    }
    Ok(())
}

impl Look {
    /// Heads first: of what they have noted by then a connection that does nothing afterwards does not go on.
    fn take(settings: &[teak_client::Settings]) -> Result<Look, ResolveError> {
        let mut look = Look {
            heads: Vec::new(),
            shards: BTreeMap::new(),
            found: BTreeMap::new(),
            away: BTreeMap::new(),
        };
        for settings in settings {
            let mut head = Head::connect(settings)?;
            let noted = head.noted()?;
            let busy = head.busy()?;
            let mut places = head.places()?;
            places.extend(noted.values().flat_map(|noted| noted.members.clone()));
            places.iter().try_for_each(|place| look.reach(place, settings))?;
            look.heads.push((head, noted, busy));
        }
        for (name, shard) in &mut look.shards {
            look.found.insert(name.clone(), shard.prepared()?);
        }
        Ok(look)
    }

    fn reach(&mut self, place: &Endpoint, like: &teak_client::Settings) -> Result<(), ResolveError> {
        let name = place.name();
        if self.shards.contains_key(&name) || self.away.contains_key(&name) {
            return Ok(());
        }
        match Shard::connect(place, like) {
            Ok(shard) => drop(self.shards.insert(name, shard)),
            Err(error) => drop(self.away.insert(name, error.to_string())),
        }
        Ok(())
    }

    /// Of all transactions that a head has noted, or that are prepared.
    fn names(&self) -> BTreeSet<Xid> {
        let noted = self.heads.iter().flat_map(|(_, noted, _)| noted.keys());
        noted.chain(self.found.values().flat_map(BTreeMap::keys)).cloned().collect()
    }

    fn has_unknown_ages(&self) -> bool {
        let is_unknown = |prepared: &Prepared| prepared.age.is_none();
        let is_nowhere = |xid: &Xid| !self.found.values().any(|prepared| prepared.contains_key(xid));
        self.found.values().flat_map(BTreeMap::values).any(is_unknown)
            || self.heads.iter().flat_map(|(_, noted, _)| noted.keys()).any(is_nowhere)
    }
}

/// What is done with what was found.
struct Work<'a> {
    look: Look,
    /// Seconds from which on one is touched.
    least: f64,
    /// Which were there at the first of two looks, and how many seconds ago that was.
    seen: BTreeSet<Xid>,
    waited: f64,
    dry_run: bool,
    out: &'a mut dyn Write,
    ended: usize,
    left: usize,
}

impl Work<'_> {
    fn all(&mut self) -> Result<(), ResolveError> {
        let mut known = BTreeSet::new();
        for at in 0..self.look.heads.len() {
            for (xid, noted) in self.look.heads[at].1.clone() {
                self.one(at, &xid, &noted)?;
                known.insert(xid);
            }
        }
        for (name, why) in self.look.away.clone() {
            writeln!(self.out, "{name}: cannot be asked: {why}")?;
            self.left += 1;
        }
        self.strangers(&known)
    }

    /// Of a transaction that a head has noted.
    fn one(&mut self, at: usize, xid: &Xid, noted: &Noted) -> Result<(), ResolveError> {
        let (head, _, busy) = &self.look.heads[at];
        let maker = xid.maker(head.number);
        // On any shard: what was noted of members may be missing after a crash of the head.
        let prepared: Vec<(String, Prepared)> = self
            .look
            .found
            .iter()
            .filter_map(|(name, prepared)| Some((name.clone(), prepared.get(xid)?.clone())))
            .collect();
        let is_busy = maker.is_some_and(|maker| busy.contains(&maker.connection));
        // What no shard has prepared may be on its way to one.
        let age = self.age(xid, prepared.iter().map(|(_, prepared)| prepared));
        let decision = decision::decide(noted.state, maker, Life { is_busy, age, least: self.least });
        let where_it_is: Vec<&str> = prepared.iter().map(|(name, _)| name.as_str()).collect();
        let waiting: BTreeSet<&str> =
            prepared.iter().flat_map(|(_, prepared)| prepared.waiting.iter().map(String::as_str)).collect();
        let mut line = format!("{}: {} is {}", head.name, xid.text(), noted.text);
        match where_it_is.is_empty() {
            true => line += ", prepared on no shard that can be asked",
            false => line += &format!(", prepared for {age:.0} s at {}", where_it_is.join(", ")),
        }
        if !waiting.is_empty() {
            line += &format!("; waited for: {}", Vec::from_iter(waiting).join(", "));
        }
        let (commits, verb) = match decision {
            Decision::Leave(why) => {
                self.left += 1;
                return Ok(writeln!(self.out, "{line}: left, as {why}")?);
            }
            Decision::Commit => (true, "commit"),
            Decision::Rollback => (false, "roll back"),
        };
        let is_lost = |place: &Endpoint| self.look.away.contains_key(&place.name());
        let has_all = match noted.members.is_empty() {
            true => self.look.away.is_empty(),
            false => !noted.members.iter().any(is_lost),
        };
        if self.dry_run {
            self.count(has_all);
            return Ok(writeln!(self.out, "{line}: would {verb}")?);
        }
        let outcome = self.end(at, xid, noted, commits, &where_it_is, has_all)?;
        writeln!(self.out, "{line}: {outcome}")?;
        Ok(())
    }

    /// Seconds for which it has been there at least: as the shards say that have it prepared, or since it was seen.
    fn age<'p>(&self, xid: &Xid, prepared: impl IntoIterator<Item = &'p Prepared>) -> f64 {
        let told = prepared.into_iter().filter_map(|prepared| prepared.age).reduce(f64::max);
        told.unwrap_or(if self.seen.contains(xid) { self.waited } else { 0.0 })
    }

    fn count(&mut self, is_done: bool) {
        match is_done {
            true => self.ended += 1,
            false => self.left += 1,
        }
    }

    /// Ends it on these shards, and has the head forget it if all could be asked; what to say of it.
    fn end(
        &mut self,
        at: usize,
        xid: &Xid,
        noted: &Noted,
        commits: bool,
        shards: &[&str],
        has_all: bool,
    ) -> Result<String, ResolveError> {
        let head = &mut self.look.heads[at].0;
        if !head.still_says(xid, &noted.text)? {
            return Ok("left, as the head goes on with it".into());
        }
        if !commits {
            head.roll_back_if_listed(xid);
        }
        let mut attached = Vec::new();
        for name in shards {
            let Some(shard) = self.look.shards.get_mut(*name) else { continue };
            if !shard.end(xid, commits)? {
                let connection = self.look.found[*name][xid].connection.clone();
                let whose = connection.map_or("a connection".into(), |number| format!("connection {number}"));
                attached.push(format!("{whose} of {name} has it still: KILL it"));
            }
        }
        let verb = if commits { "committed" } else { "rolled back" };
        let is_done = attached.is_empty() && has_all;
        self.count(is_done);
        if !is_done {
            let why = if has_all { attached.join("; ") } else { "a shard of it cannot be asked".into() };
            return Ok(format!("{verb} where it could be, as {why}"));
        }
        self.look.heads[at].0.forget(xid)?;
        Ok(verb.into())
    }

    /// What is prepared and no head has noted.
    fn strangers(&mut self, known: &BTreeSet<Xid>) -> Result<(), ResolveError> {
        let is_busy = |xid: &Xid| {
            self.look.heads.iter().any(|(head, _, busy)| {
                xid.maker(head.number).is_some_and(|maker| busy.contains(&maker.connection))
            })
        };
        let mut count = 0;
        for (name, prepared) in &self.look.found {
            for (xid, of_xid) in prepared.iter().filter(|(xid, _)| !known.contains(xid) && !is_busy(xid)) {
                count += 1;
                let age = self.age(xid, [of_xid]);
                let literal = xid.literal();
                let waiting = match of_xid.waiting.is_empty() {
                    true => String::new(),
                    false => format!("; waited for: {}", of_xid.waiting.join(", ")),
                };
                writeln!(
                    self.out,
                    "{name}: {} is prepared for {age:.0} s, and no head has noted it{waiting}: left, who made it decides: \
                     XA COMMIT {literal}; or XA ROLLBACK {literal};",
                    xid.text()
                )?;
            }
        }
        self.left += count;
        Ok(())
    }
}
