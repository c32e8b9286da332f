//! What transactions touch: values of unique keys of the target's tables, or tables as a whole where those cannot be
//! told, or compared, for sure.
//!
//! Two transactions may be applied at once, in any order, if they are about different rows, and if no unique key would
//! refuse a row in another order of them. Both are told by values of unique keys, as the images of the log have them.
//! Numbers stand for values: those of equal values are equal, and two that are equal by chance only make one wait.
//!
//! A table is touched as a whole if
//! - it has no key without NULLs, as then its rows have no names,
//! - a unique key has a prefix, an expression, a column that is computed, or of which the log does not tell whether two
//!   values are equal: text but of collations that compare codes, numbers that are not exact, types of plugins,
//! - it has periods or versions,
//! - it has foreign keys, or others have them to it: all tables that they connect are one,
//! - images lack a column of a key (`binlog_row_image`), for the transaction that has these.

use crate::routes::Name;
use crate::schedule::Touch;
use crate::tables::{self, Reference};
use std::collections::hash_map::DefaultHasher;
use std::collections::{BTreeMap, HashMap};
use std::fmt::Display;
use std::hash::{Hash, Hasher};
use std::sync::Arc;
use teak_binlog::{Change, Image, Rows, Value};
use teak_client::{Connection, Error};
use teak_sql::quoting::{literal, quoted_name};

/// Types whose values are equal if the log's are.
const EXACT: [&str; 16] = [
    "tinyint",
    "smallint",
    "mediumint",
    "int",
    "bigint",
    "decimal",
    "bit",
    "year",
    "date",
    "time",
    "datetime",
    "timestamp",
    "enum",
    "set",
    "binary",
    "varbinary",
];
/// And those that are if the collation compares codes.
const TEXT: [&str; 2] = ["char", "varchar"];

/// A unique key.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
struct Key {
    /// Places of its columns, from 0.
    columns: Vec<usize>,
    /// None of them is NULL.
    names_rows: bool,
}

/// How what touches a table is told.
#[derive(Debug, Clone, PartialEq, Eq)]
enum Told {
    /// As a whole.
    Whole,
    /// By these keys.
    Keys(Vec<Key>),
}

/// A table of the target.
#[derive(Debug, PartialEq, Eq)]
struct Known {
    number: u64,
    told: Told,
}

/// What a transaction touches.
#[derive(Debug, Default)]
pub struct Touched {
    /// All of it.
    pub all: Vec<Touch>,
    /// Tables that are in it as a whole.
    whole: Vec<u64>,
}

impl Touched {
    fn add_whole(&mut self, table: u64) {
        self.all.push(Touch::Table(table));
        self.whole.push(table);
    }
}

/// What is known of the target's tables, until a statement changes definitions.
#[derive(Debug, Default)]
pub struct Keys {
    tables: HashMap<Name, Arc<Known>>,
    /// Tables that foreign keys connect, each with one of them that stands for all.
    connected: Option<HashMap<Name, Name>>,
}

impl Keys {
    /// Definitions may have changed.
    pub fn forget(&mut self) {
        *self = Keys::default();
    }

    /// Adds what these rows touch of a table of the target.
    pub fn add(
        &mut self,
        connection: &mut Connection,
        here: &Name,
        rows: &Rows<'_>,
        touched: &mut Touched,
    ) -> Result<(), AddError> {
        let known = match self.tables.get(here) {
            Some(known) => Arc::clone(known),
            None => {
                let known = Arc::new(self.read(connection, here).map_err(AddError::Target)?);
                self.tables.insert(here.clone(), Arc::clone(&known));
                known
            }
        };
        let table = known.number;
        if touched.whole.contains(&table) {
            return Ok(());
        }
        let Told::Keys(keys) = &known.told else {
            touched.add_whole(table);
            return Ok(());
        };
        for row in rows {
            let row = row.map_err(AddError::Log)?;
            let mut numbers = Vec::new();
            if !numbers_of(keys, rows.change, row.old.as_ref(), row.new.as_ref(), &mut numbers) {
                touched.add_whole(table);
                return Ok(());
            }
            touched.all.extend(numbers.into_iter().map(|key| Touch::Key { table, key }));
        }
        Ok(())
    }

    fn read(&mut self, connection: &mut Connection, here: &Name) -> Result<Known, Error> {
        let connected = match &self.connected {
            Some(connected) => connected,
            None => self.connected.insert(connections(&tables::references(connection)?)),
        };
        let name = in_one_case(here);
        if let Some(all) = connected.get(&name) {
            return Ok(Known { number: number_of(all), told: Told::Whole });
        }
        let told = told(connection, here)?;
        Ok(Known { number: number_of(&name), told })
    }
}

/// Why it is not told.
#[derive(Debug)]
pub enum AddError {
    /// The target.
    Target(Error),
    /// The log.
    Log(teak_binlog::Error),
}

/// Servers may hold names that differ in case for one.
fn in_one_case((database, table): &Name) -> Name {
    (database.to_lowercase(), table.to_lowercase())
}

fn number_of(what: &impl Hash) -> u64 {
    // With the same keys always.
    let mut hasher = DefaultHasher::new();
    what.hash(&mut hasher);
    hasher.finish()
}

/// Tables that foreign keys connect, each with one of them that stands for all.
fn connections(references: &[Reference]) -> HashMap<Name, Name> {
    let mut leads: BTreeMap<Name, Name> = BTreeMap::new();
    fn first(leads: &BTreeMap<Name, Name>, name: &Name) -> Name {
        let mut name = name;
        while let Some(next) = leads.get(name).filter(|next| *next != name) {
            name = next;
        }
        name.clone()
    }
    for reference in references {
        let (child, parent) = (in_one_case(&reference.child), in_one_case(&reference.parent));
        let (one, other) = (first(&leads, &child), first(&leads, &parent));
        for name in [child, parent, one.clone(), other.clone()] {
            leads.entry(name.clone()).or_insert(name);
        }
        leads.insert(one.clone().max(other.clone()), one.min(other));
    }
    leads.keys().map(|name| (name.clone(), first(&leads, name))).collect()
}

/// How what touches a table without foreign keys is told.
fn told(connection: &mut Connection, (database, table): &Name) -> Result<Told, Error> {
    let quoted = [&quoted_name(database.as_bytes())[..], b".", &quoted_name(table.as_bytes())].concat();
    let shown = connection.query([b"SHOW CREATE TABLE ", &quoted[..]].concat())?;
    let shown = tables::texts(shown).flatten().collect::<String>().to_uppercase();
    // Also in a comment: then it is less at once.
    if shown.contains("PERIOD") || shown.contains("VERSIONING") {
        return Ok(Told::Whole);
    }
    let (schema, name) = (literal(database.as_bytes()), literal(table.as_bytes()));
    let rows = connection.query(format!(
        "SELECT s.INDEX_NAME, c.ORDINAL_POSITION, LOWER(c.DATA_TYPE), c.COLLATION_NAME, s.NULLABLE = 'YES',
            s.SUB_PART IS NULL AND s.INDEX_TYPE = 'BTREE' AND IFNULL(c.GENERATION_EXPRESSION, '') = ''
        FROM information_schema.STATISTICS s LEFT JOIN information_schema.COLUMNS c
            ON c.TABLE_SCHEMA = {schema} AND c.TABLE_NAME = {name} AND c.COLUMN_NAME = s.COLUMN_NAME
        WHERE s.TABLE_SCHEMA = {schema} AND s.TABLE_NAME = {name} AND s.NON_UNIQUE = 0
        ORDER BY s.INDEX_NAME, s.SEQ_IN_INDEX"
    ))?;
    Ok(told_by(tables::texts(rows)))
}

fn told_by(rows: impl Iterator<Item = Vec<String>>) -> Told {
    let mut keys: BTreeMap<String, Key> = BTreeMap::new();
    for row in rows {
        let [index, place, kind, collation, may_be_null, is_plain] = row.try_into().unwrap_or_default();
        let is_exact = EXACT.contains(&kind.as_str())
            || TEXT.contains(&kind.as_str()) && (collation.ends_with("_bin") || collation == "binary");
        let place = place.parse::<usize>().ok().and_then(|place| place.checked_sub(1));
        let (Some(place), true, "1") = (place, is_exact, is_plain.as_str()) else { return Told::Whole };
        let key = keys.entry(index).or_insert(Key { columns: Vec::new(), names_rows: true });
        key.columns.push(place);
        key.names_rows &= may_be_null == "0";
    }
    match keys.values().any(|key| key.names_rows) {
        true => Told::Keys(keys.into_values().collect()),
        false => Told::Whole,
    }
}

fn value_of<'r, 'a>(image: Option<&'r Image<'a>>, column: usize) -> Option<&'r Value<'a>> {
    image?.0.get(column)?.as_ref()
}

/// Adds the numbers of the values that a row has, and had, in keys. False: the images do not tell all of them.
fn numbers_of(
    keys: &[Key],
    change: Change,
    old: Option<&Image<'_>>,
    new: Option<&Image<'_>>,
    numbers: &mut Vec<u64>,
) -> bool {
    let mut is_named = false;
    for (at, key) in keys.iter().enumerate() {
        let has_some_new = key.columns.iter().any(|&column| value_of(new, column).is_some());
        let before: Option<Vec<_>> = key.columns.iter().map(|&column| value_of(old, column)).collect();
        // What an update does not name stays as it is.
        let after = |&column: &usize| value_of(new, column).or_else(|| value_of(old, column));
        let after: Option<Vec<_>> = key.columns.iter().map(after).collect();
        let has = |values: &Option<Vec<_>>| values.is_some();
        let is_told = match change {
            Change::Write => has(&after),
            Change::Delete => has(&before),
            Change::Update => !has_some_new || has(&before) && has(&after),
        };
        if !is_told {
            return false;
        }
        is_named |= key.names_rows && if change == Change::Write { has(&after) } else { has(&before) };
        let sides = match change {
            Change::Write => [None, after],
            Change::Delete => [before, None],
            Change::Update => [before, after],
        };
        for values in sides.into_iter().flatten() {
            match number_of_values(at, &values) {
                Number::Is(number) if numbers.last() != Some(&number) => numbers.push(number),
                Number::Is(_) | Number::None => (),
                Number::NotTold => return false,
            }
        }
    }
    is_named
}

enum Number {
    Is(u64),
    /// One is NULL: no other row is refused for it.
    None,
    NotTold,
}

/// What stands for the values that a row has in the columns of a key.
fn number_of_values(key: usize, values: &[&Value<'_>]) -> Number {
    let mut hasher = DefaultHasher::new();
    key.hash(&mut hasher);
    for value in values {
        match value {
            Value::Null => return Number::None,
            // All values of a column have the same length, and either all have a sign or none has.
            Value::Integer(number) => number.unsigned().hash(&mut hasher),
            Value::Bit(bits) | Value::Set(bits) => bits.hash(&mut hasher),
            Value::Year(year) => year.hash(&mut hasher),
            Value::Enum(member) => member.hash(&mut hasher),
            // Zero may have a sign.
            Value::Decimal(number) => without_sign(number).hash(&mut hasher),
            Value::Time(time) => without_sign(time).hash(&mut hasher),
            Value::Date(date) => date.to_string().hash(&mut hasher),
            Value::DateTime(moment) => moment.to_string().hash(&mut hasher),
            Value::Timestamp(moment) => moment.to_string().hash(&mut hasher),
            // Spaces at the end do not count under most collations, and zeros may be left out of the log.
            Value::Bytes(bytes) => {
                let end = bytes.iter().rposition(|byte| !matches!(byte, b' ' | 0));
                bytes[..end.map_or(0, |last| last + 1)].hash(&mut hasher);
            }
            Value::Float(_)
            | Value::Double(_)
            | Value::Json(_)
            | Value::JsonChanges(_)
            | Value::Geometry(_)
            | Value::Vector(_) => return Number::NotTold,
        }
    }
    Number::Is(hasher.finish())
}

fn without_sign(number: &impl Display) -> String {
    number.to_string().trim_start_matches('-').to_string()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn key(columns: &[usize], names_rows: bool) -> Key {
        Key { columns: columns.to_vec(), names_rows }
    }

    fn image<'a>(values: &[Option<&'a str>]) -> Image<'a> {
        let value = |value: &Option<&'a str>| {
            value.map(|text| if text == "NULL" { Value::Null } else { Value::Bytes(text.as_bytes().into()) })
        };
        Image(values.iter().map(value).collect())
    }

    fn numbers(
        keys: &[Key],
        change: Change,
        old: Option<&[Option<&str>]>,
        new: Option<&[Option<&str>]>,
    ) -> Option<Vec<u64>> {
        let (old, new) = (old.map(image), new.map(image));
        let mut numbers = Vec::new();
        numbers_of(keys, change, old.as_ref(), new.as_ref(), &mut numbers).then_some(numbers)
    }

    #[test]
    fn rows_touch_what_their_keys_have_before_and_after() {
        let keys = [key(&[0], true), key(&[1, 2], false)];
        let write = |values: &[Option<&str>]| numbers(&keys, Change::Write, None, Some(values)).unwrap();
        let (first, second) =
            (write(&[Some("1"), Some("a"), Some("b")]), write(&[Some("2"), Some("a"), Some("b")]));
        assert_eq!((first.len(), first[0] == second[0], first[1] == second[1]), (2, false, true));
        // The values of one key are not those of another one, nor their order.
        assert_ne!(
            write(&[Some("1"), Some("1"), Some("1")])[0],
            write(&[Some("1"), Some("1"), Some("1")])[1]
        );
        assert_ne!(write(&[Some("1"), Some("b"), Some("a")])[1], first[1]);
        // NULL is in nobody's way.
        assert_eq!(write(&[Some("1"), Some("a"), Some("NULL")]), first[..1]);
        let whole = [Some("1"), Some("a"), Some("b")];
        assert_eq!(numbers(&keys, Change::Delete, Some(&whole), None).unwrap(), first);
        let moved =
            numbers(&keys, Change::Update, Some(&whole), Some(&[Some("2"), Some("a"), Some("b")])).unwrap();
        assert_eq!(moved, [first[0], second[0], first[1]]);
    }

    #[test]
    fn images_that_lack_a_part_of_a_key_do_not_tell_it() {
        let keys = [key(&[0], true), key(&[1, 2], false)];
        let old = [Some("1"), None, None];
        // Neither of the two is named, so it stays.
        let stays = numbers(&keys, Change::Update, Some(&old), Some(&[None, None, None, Some("x")]));
        assert_eq!(stays.unwrap().len(), 1);
        for (change, old, new) in [
            // What it was is not told.
            (Change::Update, Some(&old[..]), Some(&[None, Some("a"), None][..])),
            (Change::Update, Some(&[Some("1"), None, Some("b")]), Some(&[None, Some("a"), None])),
            (Change::Delete, Some(&old), None),
            (Change::Write, None, Some(&[Some("1"), Some("a"), None])),
            // Whose row it is is not told.
            (Change::Update, Some(&[None, Some("a"), Some("b")]), Some(&[None, None, None])),
            (Change::Delete, Some(&[None, Some("a"), Some("b")]), None),
        ] {
            assert_eq!(numbers(&keys, change, old, new), None, "{change:?} {old:?} {new:?}");
        }
        // What it was is, and one column of it changes.
        let part = numbers(
            &keys,
            Change::Update,
            Some(&[Some("1"), Some("a"), Some("b")]),
            Some(&[None, Some("c"), None]),
        );
        let other = numbers(&keys, Change::Write, None, Some(&[Some("9"), Some("c"), Some("b")]));
        assert_eq!(part.unwrap()[2], other.unwrap()[1]);
    }

    #[test]
    fn values_that_may_be_equal_have_one_number() {
        let number = |value: Value<'static>| match number_of_values(0, &[&value]) {
            Number::Is(number) => Some(number),
            Number::None | Number::NotTold => None,
        };
        let bytes = |bytes: &'static [u8]| number(Value::Bytes(bytes.into()));
        assert_eq!(bytes(b"a"), bytes(b"a  "));
        assert_eq!(bytes(b"a\0"), bytes(b"a"));
        assert_eq!(bytes(b" "), bytes(b""));
        assert_ne!(bytes(b"a"), bytes(b" a"));
        assert_ne!(bytes(b"a"), bytes(b"A"));
        assert_eq!(number(Value::Double(0.0)), None);
        assert_eq!(number(Value::Geometry(b"x")), None);
    }

    #[test]
    fn tables_are_told_by_keys_only_if_all_of_them_can_be_compared() {
        let row =
            |index: &str, place: &str, kind: &str, collation: &str, may_be_null: &str, is_plain: &str| {
                [index, place, kind, collation, may_be_null, is_plain].map(String::from).to_vec()
            };
        let primary = || row("PRIMARY", "1", "int", "", "0", "1");
        for (second, wanted) in [
            (None, Some(vec![key(&[0], true)])),
            (Some(row("u", "3", "varbinary", "", "1", "1")), Some(vec![key(&[0], true), key(&[2], false)])),
            (
                Some(row("u", "3", "varchar", "utf8mb4_bin", "0", "1")),
                Some(vec![key(&[0], true), key(&[2], true)]),
            ),
            (Some(row("u", "3", "varchar", "utf8mb4_general_ci", "0", "1")), None),
            (Some(row("u", "3", "double", "", "0", "1")), None),
            (Some(row("u", "3", "uuid", "", "0", "1")), None),
            // A prefix, a hash, or a computed column; a column that is hidden.
            (Some(row("u", "3", "int", "", "0", "0")), None),
            (Some(row("u", "", "", "", "0", "0")), None),
        ] {
            let rows = [Some(primary()), second.clone()].into_iter().flatten();
            let found = told_by(rows);
            assert_eq!(found, wanted.map_or(Told::Whole, Told::Keys), "{second:?}");
        }
        assert_eq!(told_by([row("u", "1", "int", "", "1", "1")].into_iter()), Told::Whole);
        assert_eq!(told_by(std::iter::empty()), Told::Whole);
        let two =
            told_by([row("u", "2", "int", "", "0", "1"), row("u", "1", "date", "", "0", "1")].into_iter());
        assert_eq!(two, Told::Keys(vec![key(&[1, 0], true)]));
    }

    #[test]
    fn tables_that_foreign_keys_connect_are_one() {
        let reference = |child: &str, parent: &str| Reference {
            child: ("d".into(), child.into()),
            parent: ("d".into(), parent.into()),
            ..Reference::default()
        };
        let all = connections(&[
            reference("c", "b"),
            reference("e", "f"),
            reference("B", "a"),
            reference("g", "g"),
            reference("h", "f"),
        ]);
        let of = |table: &str| all.get(&("d".to_string(), table.to_string())).map(|name| name.1.as_str());
        assert_eq!(["a", "b", "c"].map(of), [Some("a"); 3]);
        assert_eq!(["e", "f", "h"].map(of), [Some("e"); 3]);
        assert_eq!((of("g"), of("i")), (Some("g"), None));
    }
}
