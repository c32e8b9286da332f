//! `teak backup list` and `teak backup prune`: the backups in a directory, and which of them go.
//!
//! A rule chooses backups; what a chosen one stands on stays with it, however old. Backups of other servers and of
//! other tables have nothing to do with each other: rules count each series for itself. What goes, goes from the top of
//! its chain down, and stops being a backup first: whatever interrupts it, none is left whose base is missing.

use super::layout::{self, Description};
use super::options::{self, Help};
use super::BackupError;
use clap::Args;
use serde::Serialize;
use std::collections::{BTreeMap, BTreeSet};
use std::io::Write;
use std::path::{Path, PathBuf};
use teak_console::amounts::bytes;

const SECONDS_OF_DAY: i64 = 86_400;

/// Options of `teak backup list`.
#[derive(Args, Debug)]
pub struct ListArguments {
    /// A directory that has backups in it, each in a directory of its own
    #[arg(value_name = "DIR")]
    dir: PathBuf,
    /// One JSON object a line
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    help: Help,
}

/// Options of `teak backup prune`.
#[derive(Args, Debug)]
#[command(group = clap::ArgGroup::new("rules").required(true).multiple(true))]
pub struct PruneArguments {
    /// A directory that has backups in it, each in a directory of its own
    #[arg(value_name = "DIR")]
    dir: PathBuf,
    /// Keep the newest N
    #[arg(long, value_name = "N", default_value_t = 0, group = "rules")]
    keep_last: usize,
    /// Keep the newest of each of the last N days that have any
    #[arg(long, value_name = "N", default_value_t = 0, group = "rules")]
    keep_daily: usize,
    /// Keep the newest of each of the last N weeks that have any; they begin on Mondays
    #[arg(long, value_name = "N", default_value_t = 0, group = "rules")]
    keep_weekly: usize,
    /// Say what would be removed, and remove nothing
    #[arg(long)]
    dry_run: bool,
    #[command(flatten)]
    help: Help,
}

/// A backup in the directory.
struct Kept {
    dir: PathBuf,
    description: Description,
}

/// What looks like a backup and is none, and why.
type NoBackup = (PathBuf, String);

/// What `list --json` writes of a backup.
#[derive(Serialize)]
struct Line<'a> {
    dir: &'a Path,
    id: &'a str,
    kind: &'a str,
    host: &'a str,
    began: u64,
    ended: u64,
    bytes: u64,
    base: Option<&'a str>,
    base_dir: Option<&'a Path>,
}

impl Kept {
    /// Those in `dir`, the oldest first; and what is there that looks like one and is none, with the reason.
    fn find(dir: &Path) -> Result<(Vec<Kept>, Vec<NoBackup>), BackupError> {
        let (mut found, mut others) = (Vec::new(), Vec::new());
        for entry in std::fs::read_dir(dir).map_err(BackupError::io("cannot read", dir))? {
            let dir = entry.map_err(BackupError::io("cannot read", dir))?.path();
            let has = |name: &str| dir.join(name).exists();
            match Description::read(&dir) {
                Ok(_) if !has(layout::ENGINE) => others.push((dir, "left by --extra-lsndir".into())),
                Ok(description) => found.push(Kept { dir, description }),
                Err(error) if has(layout::DESCRIPTION) => others.push((dir, error.to_string())),
                Err(_) if has(layout::ENGINE) => others.push((dir, "not finished, or under way".into())),
                Err(_) => {}
            }
        }
        found.sort_by(|a, b| (a.description.ended, &a.dir).cmp(&(b.description.ended, &b.dir)));
        Ok((found, others))
    }

    fn bytes(&self) -> u64 {
        self.description.own_engine_bytes + self.description.server_bytes
    }

    fn name(&self) -> std::borrow::Cow<'_, str> {
        self.dir.file_name().unwrap_or_default().to_string_lossy()
    }

    fn base(&self) -> Option<&str> {
        self.description.base.as_ref().map(|base| base.id.as_str())
    }
}

/// Prints the backups in the directory.
pub fn list(arguments: &ListArguments, out: &mut dyn Write) -> Result<(), BackupError> {
    let (found, others) = Kept::find(&arguments.dir)?;
    let by_id: BTreeMap<_, _> = found.iter().map(|kept| (kept.description.id.as_str(), kept)).collect();
    let mut text = String::new();
    for kept in &found {
        let Kept { dir, description } = kept;
        let base = kept.base().and_then(|id| by_id.get(id));
        if arguments.json {
            let line = Line {
                dir,
                id: &description.id,
                kind: description.kind(),
                host: &description.server.host,
                began: description.began,
                ended: description.ended,
                bytes: kept.bytes(),
                base: kept.base(),
                base_dir: base.map(|base| base.dir.as_path()),
            };
            text += &serde_json::to_string(&line).unwrap_or_default();
            text.push('\n');
            continue;
        }
        let (name, size) = (kept.name(), bytes(kept.bytes() as f64));
        text += &format!("{} {size:>9} {name}: {}", local_time(description.ended), description.kind());
        text += &match (kept.base(), base) {
            (_, Some(base)) => format!(" on {}\n", base.name()),
            (Some(id), None) => format!(" on one that is not here ({id})\n"),
            (None, None) => "\n".into(),
        };
    }
    if !arguments.json {
        let other = |(dir, why): &NoBackup| format!("no backup: {}: {why}\n", dir.display());
        text += &others.iter().map(other).collect::<String>();
    }
    options::write(out, &text)
}

/// Removes the backups that no rule keeps.
pub fn prune(arguments: &PruneArguments, out: &mut dyn Write) -> Result<(), BackupError> {
    let (found, _) = Kept::find(&arguments.dir)?;
    let rules =
        Rules { last: arguments.keep_last, daily: arguments.keep_daily, weekly: arguments.keep_weekly };
    let candidates: Vec<_> = found.iter().map(Candidate::of).collect();
    let reasons = rules.apply(&candidates)?;
    for (kept, reasons) in found.iter().zip(&reasons).filter(|(_, reasons)| !reasons.is_empty()) {
        options::write(out, &format!("keep {} ({})\n", kept.name(), reasons.join(", ")))?;
    }
    // The newest first: what stands on others is younger than these.
    for (kept, _) in found.iter().zip(&reasons).rev().filter(|(_, reasons)| reasons.is_empty()) {
        let verb = if arguments.dry_run { "would remove" } else { "remove" };
        options::write(out, &format!("{verb} {} ({})\n", kept.name(), bytes(kept.bytes() as f64)))?;
        if !arguments.dry_run {
            remove(&kept.dir)?;
        }
    }
    Ok(())
}

/// First it is no backup any more.
fn remove(dir: &Path) -> Result<(), BackupError> {
    let description = dir.join(layout::DESCRIPTION);
    std::fs::remove_file(&description).map_err(BackupError::io("cannot remove", &description))?;
    layout::sync_dir(dir)?;
    std::fs::remove_dir_all(dir).map_err(BackupError::io("cannot remove", dir))
}

/// What the rules look at.
struct Candidate<'a> {
    id: &'a str,
    base: Option<&'a str>,
    /// Of which server, and of which of its tables.
    series: String,
    /// Since 1970, in local time.
    day: i64,
}

impl Candidate<'_> {
    fn of(kept: &Kept) -> Candidate<'_> {
        let Description { id, server, selection, ended, .. } = &kept.description;
        let selection = selection.as_ref().map(ToString::to_string).unwrap_or_default();
        let series = format!("{} {} {selection}", server.host, server.port);
        let local = local(*ended).map_or(0, |time| time.tm_gmtoff);
        Candidate { id, base: kept.base(), series, day: (*ended as i64 + local).div_euclid(SECONDS_OF_DAY) }
    }
}

/// How many backups are kept, by each rule.
struct Rules {
    last: usize,
    daily: usize,
    weekly: usize,
}

impl Rules {
    /// Why each of the backups is kept, the oldest of which is the first; those without a reason go.
    fn apply(&self, candidates: &[Candidate<'_>]) -> Result<Vec<Vec<&'static str>>, BackupError> {
        if self.last + self.daily + self.weekly == 0 {
            return Err(BackupError::Usage("no rule keeps anything: that would remove all backups".into()));
        }
        let mut reasons = vec![Vec::new(); candidates.len()];
        let mut series: BTreeMap<&str, Vec<usize>> = BTreeMap::new();
        for (at, candidate) in candidates.iter().enumerate().rev() {
            series.entry(&candidate.series).or_default().push(at);
        }
        for newest_first in series.values() {
            newest_first.iter().take(self.last).for_each(|at| reasons[*at].push("last"));
            // 1970 began on a Thursday.
            let week = |day: i64| (day + 3).div_euclid(7);
            for (name, count, is_weekly) in [("daily", self.daily, false), ("weekly", self.weekly, true)] {
                let period = |day: i64| if is_weekly { week(day) } else { day };
                let mut seen = BTreeSet::new();
                for at in newest_first {
                    let of = period(candidates[*at].day);
                    if seen.len() < count && seen.insert(of) {
                        reasons[*at].push(name);
                    }
                }
            }
        }
        let by_id: BTreeMap<_, _> = candidates.iter().enumerate().map(|(at, one)| (one.id, at)).collect();
        for at in 0..candidates.len() {
            let mut above = at;
            // A base that has a reason has passed it on to what is below it, or will.
            while let Some(&base) = candidates[above].base.and_then(|id| by_id.get(id)) {
                if reasons[at].is_empty() || reasons[base].contains(&"needed") || base == at {
                    break;
                }
                reasons[base].push("needed");
                above = base;
            }
        }
        Ok(reasons)
    }
}

fn local(time: u64) -> Option<libc::tm> {
    let time = libc::time_t::try_from(time).ok()?;
    // SAFETY: a structure of numbers and a pointer, for which zeros are valid.
    let mut broken_down: libc::tm = unsafe { std::mem::zeroed() };
    // SAFETY: both pointers are to what lives as long as the call.
    let filled = unsafe { libc::localtime_r(&time, &mut broken_down) };
    (!filled.is_null()).then_some(broken_down)
}

/// As people read it.
pub fn local_time(time: u64) -> String {
    local(time).map_or_else(
        || time.to_string(),
        |at| {
            let (year, month) = (at.tm_year + 1900, at.tm_mon + 1);
            format!("{year}-{month:02}-{:02} {:02}:{:02}:{:02}", at.tm_mday, at.tm_hour, at.tm_min, at.tm_sec)
        },
    )
}

/// The time that people write so, in seconds since 1970, if there is such a time.
pub fn seconds_of(text: &str) -> Option<u64> {
    let (date, time) = text.split_once(' ')?;
    let numbers =
        |text: &str, mark| text.split(mark).map(|part| part.parse::<i32>().ok()).collect::<Option<Vec<_>>>();
    let (date, time) = (numbers(date, '-')?, numbers(time, ':')?);
    let (&[year, month, day], &[hour, minute, second]) = (&date[..], &time[..]) else { return None };
    // SAFETY: a structure of numbers and a pointer, for which zeros are valid.
    let mut broken_down: libc::tm = unsafe { std::mem::zeroed() };
    (broken_down.tm_year, broken_down.tm_mon, broken_down.tm_mday) =
        (year.checked_sub(1900)?, month.checked_sub(1)?, day);
    (broken_down.tm_hour, broken_down.tm_min, broken_down.tm_sec, broken_down.tm_isdst) =
        (hour, minute, second, -1);
    // SAFETY: the pointer is to what lives as long as the call.
    let seconds = u64::try_from(unsafe { libc::mktime(&mut broken_down) }).ok()?;
    // What does not exist was turned into something that does.
    let same = (broken_down.tm_year + 1900, broken_down.tm_mon + 1, broken_down.tm_mday)
        == (year, month, day)
        && (broken_down.tm_hour, broken_down.tm_min) == (hour, minute);
    same.then_some(seconds)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Backups `name`, `base` (empty: a full one), day.
    fn kept(rules: &Rules, backups: &[(&str, &str, i64)]) -> String {
        let of = |(id, base, day): &(&'static str, &'static str, i64)| Candidate {
            id,
            base: Some(*base).filter(|base| !base.is_empty()),
            series: if id.starts_with('p') { "partial".into() } else { String::new() },
            day: *day,
        };
        let candidates: Vec<_> = backups
            .iter()
            .map(|(id, base, day)| of(&(id.to_string().leak(), base.to_string().leak(), *day)))
            .collect();
        let reasons = rules.apply(&candidates).unwrap();
        let named = candidates.iter().zip(&reasons).filter(|(_, reasons)| !reasons.is_empty());
        named.map(|(candidate, _)| candidate.id).collect::<Vec<_>>().join(" ")
    }

    #[test]
    fn rules_keep_the_newest_of_each_period() {
        // Day 4 is a Monday.
        let days = [("a", "", 1), ("b", "", 3), ("c", "", 4), ("d", "", 5), ("e", "", 5)];
        assert_eq!(kept(&Rules { last: 2, daily: 0, weekly: 0 }, &days), "d e");
        assert_eq!(kept(&Rules { last: 0, daily: 2, weekly: 0 }, &days), "c e");
        assert_eq!(kept(&Rules { last: 0, daily: 0, weekly: 9 }, &days), "b e");
        assert_eq!(kept(&Rules { last: 1, daily: 9, weekly: 1 }, &days), "a b c e");
        assert!(Rules { last: 0, daily: 0, weekly: 0 }.apply(&[]).is_err());
    }

    #[test]
    fn no_chain_is_broken() {
        let chain = [("f", "", 1), ("i", "f", 2), ("g", "", 3), ("j", "i", 4), ("k", "j", 5), ("h", "g", 6)];
        assert_eq!(kept(&Rules { last: 1, daily: 0, weekly: 0 }, &chain), "g h");
        assert_eq!(kept(&Rules { last: 2, daily: 0, weekly: 0 }, &chain), "f i g j k h");
        assert_eq!(kept(&Rules { last: 1, daily: 0, weekly: 0 }, &[("x", "gone", 1)]), "x");
        // A circle, which no program makes, ends.
        assert_eq!(kept(&Rules { last: 1, daily: 0, weekly: 0 }, &[("x", "y", 1), ("y", "x", 1)]), "x y");
    }

    #[test]
    fn partial_backups_are_counted_apart() {
        let both = [("a", "", 1), ("p1", "", 1), ("b", "", 2), ("p2", "", 2)];
        assert_eq!(kept(&Rules { last: 1, daily: 0, weekly: 0 }, &both), "b p2");
    }

    #[test]
    fn a_backup_that_goes_leaves_nothing() {
        let dir = std::env::temp_dir().join(format!("teak-kept-{}", std::process::id()));
        std::fs::create_dir_all(dir.join("teak")).unwrap();
        assert!(remove(&dir).is_err(), "what is no backup stays");
        std::fs::write(dir.join(layout::DESCRIPTION), b"").unwrap();
        remove(&dir).unwrap();
        assert!(!dir.exists());
        assert_eq!(local_time(0).len(), "1970-01-01 00:00:00".len());
    }
}
