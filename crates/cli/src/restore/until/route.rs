//! The way from a backup to a point in time: which binary logs, and where the last of them is left.
//!
//! A transaction begins with its GTID and goes to the next event of the frame; the point is between two. All logs are
//! looked at before anything is restored, so that a log that is missing or was cut, and a point that is in none of
//! them, are found out in time. Each log begins with the GTIDs that were last in those before it: if they are others
//! than those that the way has come by, something is missing between the two.

use super::events::{Event, Events, Kind};
use super::gtids::{Gtid, Gtids};
use super::Until;
use crate::backup::layout::Position;
use crate::backup::BackupError;
use std::path::{Path, PathBuf};

/// Logs to apply, from a position in the first to one in the last.
#[derive(Debug)]
pub struct Route {
    pub files: Vec<PathBuf>,
    pub start: u64,
    pub stop: u64,
    pub transactions: u64,
    /// Where the server's binary log was then.
    pub end: Position,
}

impl Route {
    /// From a backup's position on, by the logs in `dir`.
    pub fn find(dir: &Path, from: &Position, until: &Until) -> Result<Route, BackupError> {
        let (Some(first), Some(start)) = (&from.binlog_file, from.binlog_position) else {
            let why = "the server had no binary log when the backup was made: no log leads on from it";
            return Err(BackupError::Usage(why.into()));
        };
        let Some((base, number)) = number_of(first) else {
            return Err(BackupError::Usage(format!("{first} is no name of a binary log")));
        };
        refuse_the_past(from, (base, number, start), until)?;
        let last = newest(dir, base)?.filter(|last| *last >= number);
        let Some(last) = last else { return Err(missing(dir, first)) };
        let mut walk = Walk::new(from, start, until);
        for number in number..=last {
            let name = format!("{base}.{number:06}");
            let path = dir.join(&name);
            if !path.exists() {
                return Err(missing(dir, &name));
            }
            walk.files.push(path);
            walk.name = name;
            if walk.through_file()? {
                return walk.route();
            }
        }
        walk.at_the_end(dir, (base, last))
    }
}

/// The point is not before the backup.
fn refuse_the_past(
    from: &Position,
    (base, number, start): (&str, u64, u64),
    until: &Until,
) -> Result<(), BackupError> {
    let is_past = match until {
        Until::Position(name, at) => match number_of(name) {
            Some((of, to)) if of == base => (to, *at) < (number, start),
            _ => {
                let why = format!("{name} is none of the logs {base}.* that follow the backup");
                return Err(BackupError::Usage(why));
            }
        },
        Until::Gtid(gtid) => Gtids::parse(&from.gtid_binlog_state).has(*gtid),
        Until::Time(_) => false,
    };
    match is_past {
        true => Err(past(until)),
        false => Ok(()),
    }
}

fn past(until: &Until) -> BackupError {
    BackupError::Usage(format!("the backup is from after {until}: take an earlier one"))
}

fn missing(dir: &Path, name: &str) -> BackupError {
    let detail = format!("the binary log {name} is not there, without which there is no way to that point");
    BackupError::damaged(dir, detail)
}

/// What is before the number, and the number, of the name of a log.
pub fn number_of(name: &str) -> Option<(&str, u64)> {
    let (base, digits) = name.rsplit_once('.')?;
    let is_number = digits.len() >= 6 && digits.bytes().all(|digit| digit.is_ascii_digit());
    digits.parse().ok().filter(|_| is_number && !base.is_empty()).map(|number| (base, number))
}

/// The highest number of a log in a directory.
fn newest(dir: &Path, base: &str) -> Result<Option<u64>, BackupError> {
    let entries = std::fs::read_dir(dir).map_err(BackupError::io("cannot read", dir))?;
    let names = entries.flatten().map(|entry| entry.file_name().to_string_lossy().into_owned());
    let numbers =
        names.filter_map(|name| number_of(&name).filter(|(of, _)| *of == base).map(|(_, number)| number));
    Ok(numbers.max())
}

/// How far the way is.
struct Walk<'a> {
    until: &'a Until,
    from: &'a Position,
    start: u64,
    files: Vec<PathBuf>,
    /// Of the last of them.
    name: String,
    /// The end of the last transaction that is on the way: how many files that takes, and where in the last.
    boundary: (usize, u64),
    /// The transaction that has begun, and where it ends so far.
    open: Option<(Gtid, u64)>,
    is_whole: bool,
    /// The backup's position has been passed.
    has_begun: bool,
    transactions: u64,
    state: Gtids,
    position: Gtids,
    rotates: bool,
}

impl<'a> Walk<'a> {
    fn new(from: &'a Position, start: u64, until: &'a Until) -> Walk<'a> {
        Walk {
            until,
            from,
            start,
            files: Vec::new(),
            name: String::new(),
            boundary: (1, start),
            open: None,
            is_whole: false,
            has_begun: false,
            transactions: 0,
            state: Gtids::parse(&from.gtid_binlog_state),
            position: Gtids::parse(&from.gtid_current_pos),
            rotates: false,
        }
    }

    /// Whether the point is in the last file.
    fn through_file(&mut self) -> Result<bool, BackupError> {
        let path = self.files[self.files.len() - 1].clone();
        let mut events = Events::open(&path)?;
        let mut end = 4;
        self.rotates = false;
        while let Some(event) = events.next()? {
            end = event.end;
            if !self.has_begun && event.begin < self.start {
                self.make_sure_of_past(&event)?;
                continue;
            }
            if !self.has_begun && event.begin != self.start {
                let detail = format!(
                    "no event begins at {}, where the backup was made: it is another log",
                    self.start
                );
                return Err(BackupError::damaged(&path, detail));
            }
            self.has_begun = true;
            if self.passes(&path, event)? {
                return Ok(true);
            }
        }
        if !self.has_begun && end < self.start {
            let detail = format!("it ends at {end}, and the backup was made at {}: it was cut", self.start);
            return Err(BackupError::damaged(&path, detail));
        }
        self.has_begun = true;
        // A transaction that was being written as the server ended, or as the file was copied, is none.
        if !self.is_whole {
            self.open = None;
        }
        Ok(self.settle() || self.is_at(end)?)
    }

    /// What the backup has of a log is from before the point.
    fn make_sure_of_past(&self, event: &Event) -> Result<(), BackupError> {
        match (self.until, &event.kind) {
            (Until::Time(time), Kind::Gtid(_)) if event.time >= *time => Err(past(self.until)),
            _ => Ok(()),
        }
    }

    /// Whether the point is before this event.
    fn passes(&mut self, path: &Path, event: Event) -> Result<bool, BackupError> {
        let within = matches!(event.kind, Kind::Ending | Kind::Other);
        if within {
            self.is_whole = event.kind == Kind::Ending;
            if let Some((_, end)) = &mut self.open {
                *end = event.end;
            }
            return Ok(false);
        }
        if self.settle() || self.is_at(event.begin)? {
            return Ok(true);
        }
        match event.kind {
            Kind::Gtid(_) if matches!(self.until, Until::Time(time) if event.time >= *time) => {
                return Ok(true)
            }
            Kind::Gtid(gtid) => self.open = Some((gtid, event.end)),
            Kind::List(list) => self.go_on(path, list)?,
            Kind::Rotate => self.rotates = true,
            Kind::Encryption => {
                let why = format!(
                    "{} is encrypted, so only its server can read it (mariadb-binlog --read-from-remote-server)",
                    path.display()
                );
                return Err(BackupError::Usage(why));
            }
            _ => {}
        }
        self.is_whole = false;
        Ok(false)
    }

    /// The open transaction is over. Whether the point is behind it.
    fn settle(&mut self) -> bool {
        let Some((gtid, end)) = self.open.take() else { return false };
        self.transactions += 1;
        self.boundary = (self.files.len(), end);
        self.state.add_to_state(gtid);
        self.position.add_to_position(gtid);
        matches!(self.until, Until::Gtid(until) if *until == gtid)
    }

    /// Whether the point is here, between two transactions. An error if it was within one.
    fn is_at(&mut self, offset: u64) -> Result<bool, BackupError> {
        match self.until {
            Until::Position(name, at) if *name == self.name && offset > *at => {
                let why = format!("{name}:{at} is within a transaction, which ends at {offset}");
                Err(BackupError::Usage(why))
            }
            Until::Position(name, at) if *name == self.name && offset == *at => {
                self.boundary = (self.files.len(), offset);
                Ok(true)
            }
            _ => Ok(false),
        }
    }

    /// A log goes on where the one before it has ended.
    fn go_on(&mut self, path: &Path, list: Vec<Gtid>) -> Result<(), BackupError> {
        let list = Gtids::of(list);
        match self.state.is_same(&list) || (self.state.is_empty() && self.transactions == 0) {
            true => {
                self.state = list;
                Ok(())
            }
            false => {
                let detail = format!(
                    "it begins behind the transactions {list}, and the log before it ends with {}: what is between is missing",
                    self.state
                );
                Err(BackupError::damaged(path, detail))
            }
        }
    }

    /// All logs were looked at. A time may be behind them, if there are no more; a position and a transaction not.
    fn at_the_end(self, dir: &Path, (base, last): (&str, u64)) -> Result<Route, BackupError> {
        match self.until {
            Until::Time(_) if self.rotates => Err(missing(dir, &format!("{base}.{:06}", last + 1))),
            Until::Time(_) => self.route(),
            _ => {
                let first = self.from.binlog_file.as_deref().unwrap_or_default();
                let detail = format!(
                    "{} is in none of the binary logs from {first}, {}, to {}",
                    self.until, self.start, self.name
                );
                Err(BackupError::damaged(dir, detail))
            }
        }
    }

    fn route(self) -> Result<Route, BackupError> {
        let (count, stop) = self.boundary;
        let files: Vec<_> = self.files.into_iter().take(count).collect();
        let name =
            files.last().and_then(|path| path.file_name()).map(|name| name.to_string_lossy().into_owned());
        let end = Position {
            binlog_file: name,
            binlog_position: Some(stop),
            gtid_binlog_pos: self.position.to_string(),
            gtid_current_pos: self.position.to_string(),
            gtid_binlog_state: self.state.to_string(),
            ..self.from.clone()
        };
        Ok(Route { files, start: self.start, stop, transactions: self.transactions, end })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A directory of logs that the tests write.
    struct Logs(PathBuf);

    impl Drop for Logs {
        fn drop(&mut self) {
            let _ = std::fs::remove_dir_all(&self.0);
        }
    }

    fn event(kind: u8, time: u32, body: &[u8]) -> Vec<u8> {
        let length = 19 + body.len() as u32;
        [&time.to_le_bytes()[..], &[kind], &1u32.to_le_bytes(), &length.to_le_bytes(), &[0; 6], body].concat()
    }

    /// 19 + 13 + 19 + 19 bytes.
    fn transaction(number: u64, time: u32) -> Vec<u8> {
        let body = [&number.to_le_bytes()[..], &[0; 4], &[0]].concat();
        [event(162, time, &body), event(23, time, b""), event(16, time, b"")].concat()
    }

    /// Ends at 4 + 19 + 19 + 20.
    fn beginning(last: u64) -> Vec<u8> {
        let list = [&1u32.to_le_bytes()[..], &[0; 4], &1u32.to_le_bytes(), &last.to_le_bytes()].concat();
        [&b"\xfebin"[..], &event(15, 0, b""), &event(163, 0, &list)].concat()
    }

    const BEGIN: u64 = 4 + 19 + 19 + 20;
    const LENGTH: u64 = 19 + 13 + 19 + 19;

    /// Three logs with the transactions 1 to 6, two in each, at 1001 to 1006 seconds.
    fn logs(name: &str) -> Logs {
        let dir = std::env::temp_dir().join(format!("teak-route-{name}-{}", std::process::id()));
        std::fs::create_dir_all(&dir).unwrap();
        for log in 0..3u64 {
            let mut content = beginning(log * 2);
            for number in log * 2 + 1..log * 2 + 3 {
                content.extend(transaction(number, 1000 + number as u32));
            }
            if log < 2 {
                content.extend(event(4, 0, b"12345678b.000002"));
            }
            std::fs::write(dir.join(format!("b.{:06}", log + 1)), content).unwrap();
        }
        Logs(dir)
    }

    /// Behind the first transaction.
    fn backup() -> Position {
        Position {
            binlog_file: Some("b.000001".into()),
            binlog_position: Some(BEGIN + LENGTH),
            gtid_binlog_state: "0-1-1".into(),
            gtid_current_pos: "0-1-1".into(),
            ..Position::default()
        }
    }

    /// Logs, stop, transactions, GTIDs; or why not.
    fn route(logs: &Logs, until: &str) -> Result<(usize, u64, u64, String), String> {
        let until = Until::parse(until).unwrap();
        let found = Route::find(&logs.0, &backup(), &until).map_err(|error| error.to_string())?;
        Ok((found.files.len(), found.stop, found.transactions, found.end.gtid_binlog_state))
    }

    fn time(seconds: u64) -> String {
        Until::Time(seconds).to_string()
    }

    #[test]
    fn a_point_is_between_two_transactions() {
        let logs = logs("points");
        let of = |files, transactions_in_last, all, last: u64| {
            Ok((files, BEGIN + transactions_in_last * LENGTH, all, format!("0-1-{last}")))
        };
        assert_eq!(route(&logs, "0-1-3"), of(2, 1, 2, 3));
        assert_eq!(route(&logs, "0-1-2"), of(1, 2, 1, 2));
        assert_eq!(route(&logs, &format!("b.000002:{}", BEGIN + LENGTH)), of(2, 1, 2, 3));
        assert_eq!(route(&logs, &format!("b.000001:{}", BEGIN + LENGTH)), of(1, 1, 0, 1));
        assert_eq!(route(&logs, &time(1004)), of(2, 1, 2, 3));
        assert_eq!(route(&logs, &time(1002)), of(1, 1, 0, 1));
        // Behind the last of all.
        assert_eq!(route(&logs, &time(2000)), of(3, 2, 5, 6));
    }

    #[test]
    fn what_no_log_has_and_what_the_backup_has_is_refused() {
        let logs = logs("refused");
        let why = |until: &str| route(&logs, until).unwrap_err();
        assert!(why("0-1-7").contains("in none of") && why("b.000003:9999").contains("in none of"));
        assert!(why("0-1-1").contains("earlier one") && why(&time(1001)).contains("earlier one"));
        assert!(why(&format!("b.000001:{BEGIN}")).contains("earlier one"));
        assert!(why(&format!("b.000002:{}", BEGIN + 1)).contains("within a transaction"));
    }

    #[test]
    fn a_gap_is_found_out_wherever_the_point_is() {
        let logs = logs("gap");
        let (first, second, third) =
            (logs.0.join("b.000001"), logs.0.join("b.000002"), logs.0.join("b.000003"));
        let content = std::fs::read(&second).unwrap();
        // Cut in its last transaction, and before it.
        for length in [BEGIN + LENGTH + 40, BEGIN + LENGTH, BEGIN, 30] {
            std::fs::write(&second, &content[..length as usize]).unwrap();
            let why = route(&logs, "0-1-6").unwrap_err();
            assert!(why.contains("b.000003") && why.contains("is missing"), "{length}: {why}");
        }
        std::fs::remove_file(&second).unwrap();
        assert!(route(&logs, &time(2000)).unwrap_err().contains("b.000002 is not there"));
        std::fs::write(&second, &content).unwrap();
        std::fs::remove_file(&third).unwrap();
        // The second says that another follows.
        assert!(route(&logs, &time(2000)).unwrap_err().contains("b.000003 is not there"));
        assert!(route(&logs, "0-1-4").is_ok());
        std::fs::write(&first, beginning(0)).unwrap();
        assert!(route(&logs, "0-1-4").unwrap_err().contains("it was cut"));
    }
}
