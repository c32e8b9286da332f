//! What is shown, without how: tables of cells with numbers, units and texts. The screen and JSON are made of the same.

use crate::sample::Record;
use serde_json::{Map, Value};
use teak_console::amounts;

/// What a number counts.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Unit {
    /// Which one: all of its digits matter.
    Id,
    /// How many.
    Count,
    /// Bytes.
    Bytes,
    /// Seconds.
    Seconds,
    /// Of 1.
    Share,
}

/// A value.
#[derive(Debug, Clone, PartialEq)]
pub enum Cell {
    /// NULL, or not known.
    Missing,
    /// A text as it came, which may be anything.
    Text(String),
    /// A number.
    Number(f64, Unit),
}

impl Cell {
    /// A text, if there is one.
    pub fn text(text: Option<&str>) -> Cell {
        text.map_or(Cell::Missing, |text| Cell::Text(text.into()))
    }

    /// A number, if it is known.
    pub fn number(number: Option<f64>, unit: Unit) -> Cell {
        number.map_or(Cell::Missing, |number| Cell::Number(number, unit))
    }

    /// The number of a session or transaction.
    pub fn id(id: Option<u64>) -> Cell {
        Cell::number(id.map(|id| id as f64), Unit::Id)
    }

    /// For people; a text is made harmless.
    pub fn shown(&self) -> String {
        match self {
            Cell::Missing => "-".into(),
            Cell::Text(text) => crate::harmless::line(text),
            Cell::Number(number, unit) => shown(*number, *unit),
        }
    }

    /// For programs.
    pub fn json(&self) -> Value {
        match self {
            Cell::Missing => Value::Null,
            Cell::Text(text) => Value::from(text.as_str()),
            Cell::Number(number, _) if number.fract() == 0.0 && number.abs() < 9e15 => {
                (*number as i64).into()
            }
            Cell::Number(number, _) => Value::from(*number),
        }
    }

    /// What is missing comes first, and numbers before texts.
    pub fn compare(&self, other: &Cell) -> std::cmp::Ordering {
        match (self, other) {
            (Cell::Number(one, _), Cell::Number(other, _)) => one.total_cmp(other),
            (Cell::Text(one), Cell::Text(other)) => one.cmp(other),
            _ => self.rank().cmp(&other.rank()),
        }
    }

    fn rank(&self) -> u8 {
        match self {
            Cell::Missing => 0,
            Cell::Number(..) => 1,
            Cell::Text(_) => 2,
        }
    }
}

/// A number as people read it.
pub fn shown(number: f64, unit: Unit) -> String {
    match unit {
        Unit::Id => format!("{number:.0}"),
        Unit::Count => count(number),
        Unit::Bytes => amounts::bytes(number),
        Unit::Seconds => seconds(number),
        Unit::Share => format!("{:.1}%", 100.0 * number),
    }
}

fn count(number: f64) -> String {
    match number.abs() {
        large if large >= 1e9 => format!("{:.1}G", number / 1e9),
        large if large >= 1e6 => format!("{:.1}M", number / 1e6),
        large if large >= 1e4 => format!("{:.1}k", number / 1e3),
        small if small < 10.0 && number.fract() != 0.0 => format!("{number:.1}"),
        _ => format!("{number:.0}"),
    }
}

fn seconds(number: f64) -> String {
    const DAY: f64 = 86_400.0;
    match number {
        _ if number < 60.0 => format!("{number:.1}s"),
        _ if number < DAY => amounts::clock(std::time::Duration::from_secs(number as u64)),
        _ => format!("{:.1}d", number / DAY),
    }
}

/// Where a column is.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Place {
    /// On the screen, so wide.
    Wide(u16),
    /// The same, and there alone: it is made of what others have.
    Made(u16),
    /// On the screen, what is left of it.
    Rest,
    /// Where all of a row is shown.
    Detail,
}

/// A column of a table.
#[derive(Debug, Clone, Copy)]
pub struct Column {
    /// In JSON, and for sorting.
    pub key: &'static str,
    /// On the screen.
    pub title: &'static str,
    /// Where it is.
    pub place: Place,
    /// What the server calls it; empty: it is made of something else.
    from: &'static str,
    /// Of a number.
    unit: Option<Unit>,
}

/// A column with texts.
pub const fn text(key: &'static str, title: &'static str, place: Place, from: &'static str) -> Column {
    Column { key, title, place, from, unit: None }
}

/// A column with numbers.
pub const fn number(
    key: &'static str,
    title: &'static str,
    place: Place,
    from: &'static str,
    unit: Unit,
) -> Column {
    Column { key, title, place, from, unit: Some(unit) }
}

/// Whom a row is about, for who would explain or end it.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Subject {
    /// The session, if it is one.
    pub connection: Option<u64>,
    /// What ends it, if it is none.
    pub statement: Option<String>,
}

impl Subject {
    /// A session, if there is one.
    pub fn of(connection: Option<u64>) -> Subject {
        Subject { connection, statement: None }
    }
}

/// A row.
#[derive(Debug, Clone, PartialEq)]
pub struct Row {
    /// What stays the same as long as it is about the same.
    pub id: String,
    /// As many as there are columns.
    pub cells: Vec<Cell>,
    /// Whom it is about.
    pub subject: Subject,
}

impl Row {
    /// What the server says of the columns.
    pub fn of(columns: &[Column], record: Record<'_>, id: String, connection: Option<u64>) -> Row {
        let cell = |column: &Column| match column.unit {
            Some(unit) => Cell::number(record.number(column.from), unit),
            None => Cell::text(record.text(column.from)),
        };
        let cells = columns.iter().map(cell).collect();
        Row { id, cells, subject: Subject::of(connection) }
    }

    /// What it has by the name of a column.
    pub fn set(&mut self, columns: &[Column], key: &str, cell: Cell) {
        if let Some(at) = columns.iter().position(|column| column.key == key) {
            self.cells[at] = cell;
        }
    }
}

/// Rows, and what is to be said of them.
#[derive(Debug, Clone)]
pub struct Table {
    /// What each row has.
    pub columns: &'static [Column],
    /// In the order in which they are shown.
    pub rows: Vec<Row>,
    /// What is missing, or cut.
    pub notes: Vec<String>,
    /// Whether the order may be another one.
    pub is_sortable: bool,
}

impl Table {
    /// Without rows yet.
    pub fn new(columns: &'static [Column]) -> Table {
        Table { columns, rows: Vec::new(), notes: Vec::new(), is_sortable: true }
    }

    /// Leaves the rows that have a text somewhere, in small letters or capitals.
    pub fn filter(&mut self, text: &str) {
        let text = text.to_lowercase();
        let has = |cell: &Cell| cell.shown().to_lowercase().contains(&text);
        self.rows.retain(|row| row.cells.iter().any(has));
    }

    /// Sorts by a column, equal rows as they were.
    pub fn sort(&mut self, key: &str, is_descending: bool) {
        let Some(at) = self.columns.iter().position(|column| column.key == key) else { return };
        self.rows.sort_by(|one, other| {
            let order = one.cells[at].compare(&other.cells[at]);
            if is_descending {
                order.reverse()
            } else {
                order
            }
        });
    }

    /// Rows as objects.
    pub fn json(&self) -> Value {
        let of = |row: &Row| {
            let cells = self.columns.iter().zip(&row.cells);
            let cells = cells.filter(|(column, _)| !matches!(column.place, Place::Made(_)));
            Value::Object(
                cells.map(|(column, cell)| (column.key.to_string(), cell.json())).collect::<Map<_, _>>(),
            )
        };
        self.rows.iter().map(of).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_short_and_ids_are_whole() {
        let cases = [
            (1_234_567.0, Unit::Id, "1234567"),
            (9999.0, Unit::Count, "9999"),
            (12_345.0, Unit::Count, "12.3k"),
            (0.25, Unit::Count, "0.2"),
            (2.5e9, Unit::Count, "2.5G"),
            (1500.0, Unit::Bytes, "1.5 kB"),
            (3.21, Unit::Seconds, "3.2s"),
            (3725.0, Unit::Seconds, "1:02:05"),
            (1e300, Unit::Seconds, ""),
            (0.985, Unit::Share, "98.5%"),
        ];
        for (number, unit, wanted) in cases {
            let text = shown(number, unit);
            assert!(wanted.is_empty() || text == wanted, "{text} {wanted}");
        }
    }

    const COLUMNS: [Column; 2] =
        [number("a", "A", Place::Wide(5), "A", Unit::Count), text("b", "B", Place::Rest, "B")];

    #[test]
    fn rows_are_sorted_and_filtered_by_what_is_seen() {
        let mut table = Table::new(&COLUMNS);
        for (number, text) in [(Some(2.0), "Two"), (None, "none"), (Some(10.0), "ten\u{1b}")] {
            let cells = vec![Cell::number(number, Unit::Count), Cell::text(Some(text))];
            table.rows.push(Row { id: text.into(), cells, subject: Subject::default() });
        }
        table.sort("a", true);
        assert_eq!(
            table.rows.iter().map(|row| row.id.as_str()).collect::<Vec<_>>(),
            ["ten\u{1b}", "Two", "none"]
        );
        assert_eq!(
            table.json(),
            serde_json::json!([{"a": 10, "b": "ten\u{1b}"}, {"a": 2, "b": "Two"}, {"a": null, "b": "none"}])
        );
        table.filter("T");
        assert_eq!(table.rows.len(), 2);
        table.filter("\\X1b");
        assert_eq!(table.rows.len(), 1);
    }
}
