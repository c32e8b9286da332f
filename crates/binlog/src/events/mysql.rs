//! Transactions of MySQL: GTIDs, with tags and without, and sets of them.

use super::serialized::{signed, unsigned, Message};
use crate::bytes::Bytes;
use crate::error::Problem;
use std::fmt;
use std::str::FromStr;

const UUID_BYTES: usize = 16;
const LONGEST_TAG: usize = 32;
/// What stands before the two numbers by which replicas find what may run side by side.
const LOGICAL_CLOCK: u8 = 2;
/// One past the highest number of a transaction.
const END_OF_NUMBERS: u64 = i64::MAX as u64;

/// The server that made transactions, as its UUID.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Uuid(pub [u8; UUID_BYTES]);

impl Uuid {
    /// Of 32 digits, with dashes wherever they are.
    fn of_text(text: &str) -> Option<Uuid> {
        let digits: Option<Vec<u8>> = text
            .chars()
            .filter(|&character| character != '-')
            .map(|character| character.to_digit(16).map(|digit| digit as u8))
            .collect();
        let digits: [u8; 2 * UUID_BYTES] = digits?.try_into().ok()?;
        Some(Uuid(std::array::from_fn(|at| digits[2 * at] << 4 | digits[2 * at + 1])))
    }
}

impl fmt::Display for Uuid {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (at, byte) in self.0.iter().enumerate() {
            let dash = if matches!(at, 4 | 6 | 8 | 10) { "-" } else { "" };
            write!(f, "{dash}{byte:02x}")?;
        }
        Ok(())
    }
}

/// The number of a transaction.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct MySqlGtid {
    /// The server that made it.
    pub source: Uuid,
    /// Empty if it has none.
    pub tag: String,
    /// Its number among those of source and tag.
    pub number: u64,
}

impl fmt::Display for MySqlGtid {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.tag.as_str() {
            "" => write!(f, "{}:{}", self.source, self.number),
            tag => write!(f, "{}:{tag}:{}", self.source, self.number),
        }
    }
}

/// A transaction begins.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct MySqlTransaction {
    /// None of an anonymous one.
    pub gtid: Option<MySqlGtid>,
    /// 1: it may have statements.
    pub flags: u8,
    /// The newest transaction of the log that this one must wait for; 0: none.
    pub last_committed: i64,
    /// Its number in the log; 0 before MySQL 5.7.
    pub sequence_number: i64,
    /// When it was committed on the server that wrote this log, in millionths of a second of Unix time.
    pub immediate_commit_time: Option<u64>,
    /// When it was committed first.
    pub original_commit_time: Option<u64>,
    /// Of all its events, with this one.
    pub transaction_bytes: Option<u64>,
    /// The version of the server that wrote this log, such as 90704.
    pub immediate_server_version: Option<u32>,
    /// The version of the server where it was committed first.
    pub original_server_version: Option<u32>,
    /// Transactions of one ticket were ordered together.
    pub commit_group_ticket: Option<u64>,
}

impl MySqlTransaction {
    /// Types 33 and 34: fields in their order, of which older servers have fewer.
    pub(crate) fn read(mut bytes: Bytes<'_>, anonymous: bool) -> Result<MySqlTransaction, Problem> {
        let what = "a GTID event";
        let flags = bytes.u8(what)?;
        let (source, number) = (Uuid(bytes.array(what)?), bytes.u64(what)?);
        let gtid = match number {
            0 if anonymous => None,
            1..END_OF_NUMBERS if !anonymous => Some(MySqlGtid { source, tag: String::new(), number }),
            other => return Err(Problem::invalid(format!("a GTID with the number {other}"))),
        };
        let mut transaction = MySqlTransaction { gtid, flags, ..MySqlTransaction::default() };
        // MySQL 5.6 ends here, and what 5.7 had before its release has another number.
        if bytes.is_empty() || bytes.u8(what)? != LOGICAL_CLOCK {
            return Ok(transaction);
        }
        transaction.last_committed = bytes.u64(what)? as i64;
        transaction.sequence_number = bytes.u64(what)? as i64;
        transaction.read_times(bytes)?;
        Ok(transaction)
    }

    /// What MySQL 8.0 added.
    fn read_times(&mut self, mut bytes: Bytes<'_>) -> Result<(), Problem> {
        let what = "a GTID event";
        if bytes.is_empty() {
            return Ok(());
        }
        let (immediate, original) = with_original(bytes.little(7, what)?, 1 << 55, || bytes.little(7, what))?;
        (self.immediate_commit_time, self.original_commit_time) = (Some(immediate), Some(original));
        if bytes.is_empty() {
            return Ok(());
        }
        self.transaction_bytes = Some(bytes.packed(what)?);
        if bytes.is_empty() {
            return Ok(());
        }
        let (immediate, original) = with_original(bytes.little(4, what)?, 1 << 31, || bytes.little(4, what))?;
        (self.immediate_server_version, self.original_server_version) =
            (Some(immediate as u32), Some(original as u32));
        if !bytes.is_empty() {
            self.commit_group_ticket = Some(bytes.u64(what)?);
        }
        Ok(())
    }

    /// Type 42.
    pub(crate) fn read_tagged(bytes: Bytes<'_>) -> Result<MySqlTransaction, Problem> {
        let mut message = Message::read(bytes)?;
        let narrow =
            |number: u64| u8::try_from(number).map_err(|_| Problem::invalid(format!("{number} is no byte")));
        let flags = narrow(unsigned(message.expect(0)?)?)?;
        let mut source = [0; UUID_BYTES];
        let field = message.expect(1)?;
        for byte in &mut source {
            *byte = narrow(unsigned(field)?)?;
        }
        let number = signed(message.expect(2)?)?;
        let tag = tag(message.expect(3)?)?;
        let number = match u64::try_from(number) {
            Ok(number @ 1..END_OF_NUMBERS) => number,
            _ => return Err(Problem::invalid(format!("a GTID with the number {number}"))),
        };
        let last_committed = signed(message.expect(4)?)?;
        let sequence_number = signed(message.expect(5)?)?;
        let immediate = unsigned(message.expect(6)?)?;
        let original = message.optional(7)?.map(unsigned).transpose()?;
        let transaction_bytes = unsigned(message.expect(8)?)?;
        let version = |number: u64| {
            u32::try_from(number).map_err(|_| Problem::invalid(format!("a server of version {number}")))
        };
        let immediate_version = version(unsigned(message.expect(9)?)?)?;
        let original_version = message.optional(10)?.map(unsigned).transpose()?.map(version).transpose()?;
        let commit_group_ticket = message.optional(11)?.map(unsigned).transpose()?;
        message.end(11)?;
        Ok(MySqlTransaction {
            gtid: Some(MySqlGtid { source: Uuid(source), tag, number }),
            flags,
            last_committed,
            sequence_number,
            immediate_commit_time: Some(immediate),
            original_commit_time: Some(original.unwrap_or(immediate)),
            transaction_bytes: Some(transaction_bytes),
            immediate_server_version: Some(immediate_version),
            original_server_version: Some(original_version.unwrap_or(immediate_version)),
            commit_group_ticket,
        })
    }
}

/// A number whose `mark` says that another one follows, and that one; else the same twice.
fn with_original(
    number: u64,
    mark: u64,
    another: impl FnOnce() -> Result<u64, Problem>,
) -> Result<(u64, u64), Problem> {
    match number & mark {
        0 => Ok((number, number)),
        _ => Ok((number & !mark, another()?)),
    }
}

/// Letters of the Latin alphabet, digits and underscores, of which a digit does not come first.
fn is_tag(text: &[u8]) -> bool {
    let follows = |byte: &u8| byte.is_ascii_alphanumeric() || *byte == b'_';
    matches!(text.first(), Some(first) if !first.is_ascii_digit())
        && text.len() <= LONGEST_TAG
        && text.iter().all(follows)
}

/// A tag, with its length before it; none is empty.
fn tag(bytes: &mut Bytes<'_>) -> Result<String, Problem> {
    let length = unsigned(bytes)?;
    let text = bytes.take_long(length, "the tag of a GTID")?;
    let fits = text.is_empty() || is_tag(text);
    match std::str::from_utf8(text) {
        Ok(text) if fits => Ok(text.to_string()),
        _ => Err(Problem::invalid("the tag of a GTID has what a tag cannot have")),
    }
}

/// Transactions of one source and tag.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct GtidIntervals {
    /// The server that made them.
    pub source: Uuid,
    /// Empty if they have none.
    pub tag: String,
    /// Numbers from the first of each pair to before the second, in rising order.
    pub intervals: Vec<(u64, u64)>,
}

/// A set of transactions, such as all of earlier logs.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct GtidSet {
    /// By source and tag.
    pub sources: Vec<GtidIntervals>,
}

impl GtidSet {
    pub(crate) fn read(mut bytes: Bytes<'_>) -> Result<GtidSet, Problem> {
        let what = "a set of GTIDs";
        let head = bytes.u64(what)?;
        // The highest byte tells the format; with tags it stands at the other end, too.
        let (tagged, number) = match head >> 56 {
            0 => (false, head),
            1 => (true, head >> 8 & 0xffff_ffff_ffff),
            other => return Err(Problem::invalid(format!("{what} in format {other}"))),
        };
        let mut sources = Vec::new();
        for _ in 0..number {
            let source = Uuid(bytes.array(what)?);
            let tag = if tagged { tag(&mut bytes)? } else { String::new() };
            let length = bytes.u64(what)?;
            let length =
                length.checked_mul(16).ok_or_else(|| Problem::invalid("more GTIDs than there can be"))?;
            let mut list = Bytes(bytes.take_long(length, what)?);
            let mut intervals: Vec<(u64, u64)> = Vec::new();
            while !list.is_empty() {
                let (from, to) = (list.u64(what)?, list.u64(what)?);
                let last = intervals.last().map_or(0, |last| last.1);
                if from == 0 || from < last || to <= from || to > END_OF_NUMBERS {
                    return Err(Problem::invalid(format!("an interval of GTIDs from {from} to before {to}")));
                }
                intervals.push((from, to));
            }
            sources.push(GtidIntervals { source, tag, intervals });
        }
        bytes.end(what)?;
        Ok(GtidSet { sources })
    }

    /// As logs have it, and as a server takes it that is asked for what is not in it.
    pub fn to_bytes(&self) -> Vec<u8> {
        let tagged = self.sources.iter().any(|set| !set.tag.is_empty());
        let number = self.sources.len() as u64;
        let head = if tagged { 1 << 56 | number << 8 | 1 } else { number };
        let mut out = head.to_le_bytes().to_vec();
        let mut sources: Vec<&GtidIntervals> = self.sources.iter().collect();
        sources.sort_by_key(|set| (set.source, &set.tag));
        for set in sources {
            out.extend_from_slice(&set.source.0);
            if tagged {
                // A tag's length has one byte, in the form of `serialized`.
                out.push((set.tag.len() as u8) << 1);
                out.extend_from_slice(set.tag.as_bytes());
            }
            out.extend_from_slice(&(set.intervals.len() as u64).to_le_bytes());
            for (from, to) in &set.intervals {
                out.extend_from_slice(&from.to_le_bytes());
                out.extend_from_slice(&to.to_le_bytes());
            }
        }
        out
    }

    /// Adds a transaction.
    pub fn add(&mut self, gtid: &MySqlGtid) {
        add(&mut self.sources, gtid.source, &gtid.tag, (gtid.number, gtid.number + 1));
    }

    /// Whether it has all transactions of another one.
    pub fn has_all(&self, other: &GtidSet) -> bool {
        let within = |set: &GtidIntervals, (from, to): (u64, u64)| {
            let mine = self.sources.iter().filter(|mine| mine.source == set.source && mine.tag == set.tag);
            mine.flat_map(|mine| &mine.intervals).any(|&(first, end)| first <= from && to <= end)
        };
        other.sources.iter().all(|set| set.intervals.iter().all(|&interval| within(set, interval)))
    }

    /// Whether it has a transaction.
    pub fn has(&self, gtid: &MySqlGtid) -> bool {
        let of_source = self.sources.iter().filter(|set| set.source == gtid.source && set.tag == gtid.tag);
        of_source.flat_map(|set| &set.intervals).any(|&(from, to)| (from..to).contains(&gtid.number))
    }
}

/// As MySQL writes it: `uuid:1-5:8,uuid:tag:1-7`.
impl FromStr for GtidSet {
    type Err = Problem;

    fn from_str(text: &str) -> Result<GtidSet, Problem> {
        let mut sources: Vec<GtidIntervals> = Vec::new();
        for part in text.split(',').map(str::trim).filter(|part| !part.is_empty()) {
            let wrong =
                || Problem::invalid(format!("{part} is no set of GTIDs of MySQL, such as uuid:1-5:8"));
            let mut words = part.split(':').map(str::trim);
            let source = words.next().and_then(Uuid::of_text).ok_or_else(wrong)?;
            let mut tag = String::new();
            for word in words {
                if !word.starts_with(|first: char| first.is_ascii_digit()) {
                    tag = word.to_ascii_lowercase();
                    is_tag(tag.as_bytes()).then_some(()).ok_or_else(wrong)?;
                    continue;
                }
                let (from, last) = word.split_once('-').unwrap_or((word, word));
                let numbers = (from.trim().parse::<u64>().ok(), last.trim().parse::<u64>().ok());
                let (Some(from @ 1..), Some(last @ ..END_OF_NUMBERS)) = numbers else { return Err(wrong()) };
                if from <= last {
                    add(&mut sources, source, &tag, (from, last + 1));
                }
            }
        }
        Ok(GtidSet { sources })
    }
}

/// Adds an interval, in its place; those that touch become one.
fn add(sources: &mut Vec<GtidIntervals>, source: Uuid, tag: &str, interval: (u64, u64)) {
    let same = |set: &GtidIntervals| set.source == source && set.tag == tag;
    if !sources.iter().any(same) {
        sources.push(GtidIntervals { source, tag: tag.into(), intervals: Vec::new() });
    }
    for set in sources.iter_mut().filter(|set| same(set)) {
        set.intervals.push(interval);
        set.intervals.sort_unstable();
        let mut joined: Vec<(u64, u64)> = Vec::new();
        for &(from, to) in &set.intervals {
            match joined.last_mut() {
                Some(last) if from <= last.1 => last.1 = last.1.max(to),
                _ => joined.push((from, to)),
            }
        }
        set.intervals = joined;
    }
}

impl fmt::Display for GtidSet {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (at, set) in self.sources.iter().enumerate() {
            let comma = if at > 0 { "," } else { "" };
            write!(f, "{comma}{}", set.source)?;
            if !set.tag.is_empty() {
                write!(f, ":{}", set.tag)?;
            }
            for &(from, to) in &set.intervals {
                match to - from {
                    1 => write!(f, ":{from}")?,
                    _ => write!(f, ":{from}-{}", to - 1)?,
                }
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const UUID: [u8; 16] =
        [0x5c, 0xcc, 0x10, 0x33, 0x44, 0xa8, 0x11, 0xea, 0xbd, 0x59, 2, 0x42, 0xac, 0x19, 0, 3];

    fn untagged(number: u64, tail: &[u8]) -> Vec<u8> {
        [&[1][..], &UUID, &number.to_le_bytes(), tail].concat()
    }

    #[test]
    fn each_release_has_its_fields() {
        let clock = [&[2][..], &118u64.to_le_bytes(), &119u64.to_le_bytes()].concat();
        // Of MySQL 5.6, 5.7, 8.0; the last from another server, of an older version.
        let eight = [&clock[..], b"j0\xb1>x\xa0\x05\xfc\xc3\x03\x938\x01\x00"].concat();
        let other =
            [&clock[..], b"\xc1G\x81\x16x\xa0\x85\0\0\0\0\0\0\0\xfc\xc5\x03\x938\x01\x80\0\0\0\0"].concat();
        let old = MySqlTransaction::read(Bytes(&untagged(119, &[])), false).unwrap();
        assert_eq!(old.gtid.unwrap().to_string(), "5ccc1033-44a8-11ea-bd59-0242ac190003:119");
        assert_eq!((old.sequence_number, old.transaction_bytes), (0, None));
        let seven = MySqlTransaction::read(Bytes(&untagged(119, &clock)), false).unwrap();
        assert_eq!(
            (seven.last_committed, seven.sequence_number, seven.immediate_commit_time),
            (118, 119, None)
        );
        let eight = MySqlTransaction::read(Bytes(&untagged(119, &eight)), false).unwrap();
        assert_eq!(eight.immediate_commit_time, Some(1_583_813_191_872_618));
        assert_eq!(
            (eight.original_commit_time, eight.transaction_bytes),
            (eight.immediate_commit_time, Some(963))
        );
        assert_eq!(
            (eight.immediate_server_version, eight.original_server_version),
            (Some(80019), Some(80019))
        );
        let other = MySqlTransaction::read(Bytes(&untagged(119, &other)), false).unwrap();
        assert_eq!(
            (other.immediate_commit_time, other.original_commit_time),
            (Some(1_583_812_517_644_225), Some(0))
        );
        assert_eq!((other.immediate_server_version, other.original_server_version), (Some(80019), Some(0)));
    }

    #[test]
    fn a_tagged_gtid_is_read_as_mysql_9_7_wrote_it() {
        let bytes = [
            0x02, 0x76, 0x00, 0x00, 0x00, 0x02, 0x25, 0x03, 0x5d, 0x03, 0xe5, 0x03, 0xec, 0xad, 0x03, 0xc2,
            0x22, 0xc5, 0x03, 0xcd, 0x02, 0xe5, 0x03, 0x04, 0xf1, 0x03, 0x00, 0x00, 0x00, 0x02, 0x04, 0x04,
            0x06, 0x0a, b'm', b'y', b't', b'a', b'g', 0x08, 0x08, 0x0a, 0x18, 0x0c, 0x7f, 0xfc, 0x27, 0x43,
            0x66, 0x5b, 0x61, 0x06, 0x10, 0xdd, 0x06, 0x12, 0x83, 0x12, 0x0b,
        ];
        let read = |bytes: &[u8]| MySqlTransaction::read_tagged(Bytes(bytes));
        let transaction = read(&bytes).unwrap();
        assert_eq!(transaction.gtid.unwrap().to_string(), "c9d7f976-eb61-11f1-b3f9-02fc00000001:mytag:1");
        assert_eq!((transaction.last_committed, transaction.sequence_number, transaction.flags), (2, 6, 0));
        assert_eq!(transaction.immediate_commit_time, Some(1_795_895_045_859_324));
        assert_eq!(
            (transaction.transaction_bytes, transaction.original_server_version),
            (Some(439), Some(90704))
        );
        for end in 0..bytes.len() {
            assert!(read(&bytes[..end]).is_err(), "{end}");
        }
        let with = |at: usize, byte| {
            let mut other = bytes;
            other[at] = byte;
            read(&other)
        };
        // Another version; a field that must be known, the last that is known and one that is not.
        assert!(with(0, 0).is_err() && with(2, 12 << 1).is_ok() && with(2, 13 << 1).is_err());
        assert!(with(34, b'-').is_err() && with(31, 0).is_err());
    }

    #[test]
    fn numbers_are_those_that_a_transaction_can_have() {
        for (number, anonymous, good) in
            [(0, true, true), (0, false, false), (1, true, false), (u64::MAX, false, false)]
        {
            let read = MySqlTransaction::read(Bytes(&untagged(number, &[])), anonymous);
            assert_eq!(read.is_ok(), good, "{number}");
        }
    }

    #[test]
    fn sets_come_with_tags_and_without() {
        let intervals = [&2u64.to_le_bytes()[..], &[1, 0, 0, 0, 0, 0, 0, 0, 6, 0, 0, 0, 0, 0, 0, 0]].concat();
        let intervals = [&intervals[..], &[8, 0, 0, 0, 0, 0, 0, 0, 9, 0, 0, 0, 0, 0, 0, 0]].concat();
        let plain = [&[1, 0, 0, 0, 0, 0, 0, 0][..], &UUID, &intervals].concat();
        let set = GtidSet::read(Bytes(&plain)).unwrap();
        assert_eq!(set.to_string(), "5ccc1033-44a8-11ea-bd59-0242ac190003:1-5:8");
        let gtid = |number| MySqlGtid { source: Uuid(UUID), tag: String::new(), number };
        assert_eq!([5, 6, 7, 8].map(|number| set.has(&gtid(number))), [true, false, false, true]);
        let tagged = [&[1, 1, 0, 0, 0, 0, 0, 1][..], &UUID, b"\x06abc", &intervals].concat();
        let tagged = GtidSet::read(Bytes(&tagged)).unwrap();
        assert_eq!(tagged.to_string(), "5ccc1033-44a8-11ea-bd59-0242ac190003:abc:1-5:8");
        assert!(!tagged.has(&gtid(5)));
        for set in [&set, &tagged] {
            assert_eq!(set.to_string().parse().as_ref(), Ok(set));
            assert_eq!(GtidSet::read(Bytes(&set.to_bytes())).as_ref(), Ok(set));
        }
        let wider: GtidSet = format!("{0}:8-9:1-3:4-6,{0}:abc:1", Uuid(UUID)).parse().unwrap();
        assert_eq!(
            wider.to_string(),
            "5ccc1033-44a8-11ea-bd59-0242ac190003:1-6:8-9,5ccc1033-44a8-11ea-bd59-0242ac190003:abc:1"
        );
        assert_eq!([wider.has_all(&set), set.has_all(&wider), wider.has_all(&tagged)], [true, false, false]);
        for text in
            ["x:1", "5ccc1033-44a8-11ea-bd59-0242ac190003:0-1", "5ccc1033-44a8-11ea-bd59-0242ac190003:1-x"]
        {
            assert!(text.parse::<GtidSet>().is_err(), "{text}");
        }
        for end in 0..plain.len() {
            assert!(GtidSet::read(Bytes(&plain[..end])).is_err(), "{end}");
        }
        assert!(GtidSet::read(Bytes(&[0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0])).is_err());
        assert!(GtidSet::read(Bytes(&[0; 8])).unwrap().sources.is_empty());
    }
}
