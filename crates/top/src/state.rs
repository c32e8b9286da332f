//! What whoever looks has chosen, and what keys do about it. It knows neither terminal nor server.

use crate::keys::Key;
use crate::moment::Moment;
use crate::table::{Cell, Column, Place, Row, Subject, Table};
use crate::views::View;
use crate::wanted::{Order, Wanted};
use std::collections::BTreeMap;

/// A filter is no longer.
const MOST_FILTER: usize = 64;
/// Of a statement that is to be ended.
const MOST_OF_LINE: usize = 150;
/// Rows of a page, and samples of a long step.
const PAGE: isize = 10;
const LONG_STEP: isize = 30;

/// What keys go to.
#[derive(Debug, Clone, PartialEq)]
pub enum Mode {
    /// The table.
    Table,
    /// A filter that is being written.
    Filter(String),
    /// Whether somebody is to be ended: what was known of it when that was asked.
    Kill { subject: Subject, about: Vec<String> },
    /// A text over the table, from a line on.
    Text { title: String, lines: Vec<String>, from: usize },
}

/// What keys ask for.
#[derive(Debug, Clone, PartialEq)]
pub enum Action {
    /// Nothing but to be shown.
    None,
    /// The end.
    Quit,
    /// A new sample at once: of what else is shown.
    Ask,
    /// The plan of what a session does.
    Explain(u64),
    /// A statement that ends somebody.
    End(String),
    /// Forward in a recording, or back.
    Step(isize),
}

/// What is shown, and how.
#[derive(Debug, Clone)]
pub struct State {
    /// Which table.
    pub view: View,
    /// Only rows that have this.
    pub filter: String,
    /// Sessions that do nothing, too.
    pub with_idle: bool,
    /// Whether nothing is asked.
    pub is_paused: bool,
    /// What keys go to.
    pub mode: Mode,
    /// The last line.
    pub message: String,
    /// A recording, or a server.
    pub is_replay: bool,
    orders: BTreeMap<View, Order>,
    chosen: Option<String>,
    /// Where that was when it was last there.
    at: usize,
}

impl State {
    /// The overview.
    pub fn new(is_replay: bool) -> State {
        State {
            view: View::Overview,
            filter: String::new(),
            with_idle: false,
            is_paused: false,
            mode: Mode::Table,
            message: String::new(),
            is_replay,
            orders: BTreeMap::new(),
            chosen: None,
            at: 0,
        }
    }

    /// What its table needs.
    pub fn wanted(&self) -> Wanted {
        Wanted {
            parts: self.view.parts().to_vec(),
            filter: if self.view == View::Sessions { self.filter.clone() } else { String::new() },
            with_idle: self.with_idle && self.view == View::Sessions,
            order: self.order().cloned(),
        }
    }

    /// By which column its table is sorted, if not as it comes.
    pub fn order(&self) -> Option<&Order> {
        self.orders.get(&self.view)
    }

    /// The table as it is shown.
    pub fn table(&self, moment: &Moment<'_>) -> Table {
        let mut table = self.view.table(moment);
        if !self.filter.is_empty() {
            table.filter(&self.filter);
        }
        if let Some(order) = self.order().filter(|_| table.is_sortable) {
            table.sort(order.key, order.is_descending);
        }
        table
    }

    /// Which row is chosen: the one that was, wherever it is now, or what took its place.
    pub fn chosen(&self, table: &Table) -> Option<usize> {
        let known = self.chosen.as_ref().and_then(|id| table.rows.iter().position(|row| row.id == *id));
        known.or(table.rows.len().checked_sub(1).map(|last| self.at.min(last)))
    }

    fn choose(&mut self, table: &Table, at: usize) {
        self.at = at.min(table.rows.len().saturating_sub(1));
        self.chosen = table.rows.get(self.at).map(|row| row.id.clone());
    }

    fn step(&mut self, table: &Table, by: isize) {
        let at = self.chosen(table).unwrap_or(0);
        self.choose(table, at.saturating_add_signed(by));
    }

    fn show(&mut self, view: View) -> Action {
        self.view = view;
        (self.chosen, self.at) = (None, 0);
        self.message.clear();
        Action::Ask
    }

    /// A text over the table.
    pub fn tell(&mut self, title: &str, lines: Vec<String>) {
        self.mode = Mode::Text { title: title.into(), lines, from: 0 };
    }

    /// What a key does, of somebody who sees this table.
    pub fn key(&mut self, key: Key, table: &Table) -> Action {
        if key == Key::Interrupt {
            return Action::Quit;
        }
        match std::mem::replace(&mut self.mode, Mode::Table) {
            Mode::Table => {
                // It was read.
                self.message.clear();
                self.table_key(key, table)
            }
            Mode::Filter(text) => self.filter_key(key, text),
            Mode::Kill { subject, .. } => self.kill_key(key, &subject),
            Mode::Text { title, lines, from } => {
                let last = lines.len().saturating_sub(1);
                let from = match key {
                    Key::Down => from + 1,
                    Key::Up => from.saturating_sub(1),
                    Key::PageDown | Key::Char(' ') => from + PAGE as usize,
                    Key::PageUp => from.saturating_sub(PAGE as usize),
                    _ => return Action::None,
                };
                self.mode = Mode::Text { title, lines, from: from.min(last) };
                Action::None
            }
        }
    }

    fn table_key(&mut self, key: Key, table: &Table) -> Action {
        let row = self.chosen(table).and_then(|at| table.rows.get(at));
        match key {
            Key::Char('q') => return Action::Quit,
            Key::Char(digit @ '1'..='8') => return self.show(View::ALL[digit as usize - '1' as usize]),
            Key::Tab | Key::Right => return self.show(self.neighbour(1)),
            Key::BackTab | Key::Left => return self.show(self.neighbour(View::ALL.len() - 1)),
            Key::Down => self.step(table, 1),
            Key::Up => self.step(table, -1),
            Key::PageDown => self.step(table, PAGE),
            Key::PageUp => self.step(table, -PAGE),
            Key::Home => self.choose(table, 0),
            Key::End => self.choose(table, usize::MAX),
            Key::Char('/') => self.mode = Mode::Filter(self.filter.clone()),
            Key::Escape if !self.filter.is_empty() => {
                self.filter.clear();
                return Action::Ask;
            }
            Key::Char('s') => return self.sort(table),
            Key::Char('r') => return self.reverse(),
            Key::Char('i') if self.view == View::Sessions && !self.is_replay => {
                self.with_idle = !self.with_idle;
                self.message = format!(
                    "sessions that do nothing are {}",
                    if self.with_idle { "shown" } else { "hidden" }
                );
                return Action::Ask;
            }
            Key::Char('p' | ' ') => self.is_paused = !self.is_paused,
            Key::Char('.') if self.is_replay => return self.go(1),
            Key::Char(',') if self.is_replay => return self.go(-1),
            Key::Char('>') if self.is_replay => return self.go(LONG_STEP),
            Key::Char('<') if self.is_replay => return self.go(-LONG_STEP),
            Key::Char('?' | 'h') => self.tell("Keys", HELP.iter().map(|line| line.to_string()).collect()),
            Key::Enter => {
                let lines = row.map_or(Vec::new(), |row| about(table, row));
                self.tell("All of the row", lines);
            }
            Key::Char('e' | 'k') if self.is_replay => {
                self.message = "this is a recording: nobody is there".into()
            }
            Key::Char('e') => match row.and_then(|row| row.subject.connection) {
                Some(connection) => {
                    self.message = format!("the plan of {connection} is asked for");
                    return Action::Explain(connection);
                }
                None => {
                    self.message = "the row is not about a session, whose statement could be explained".into()
                }
            },
            Key::Char('k') => match row.filter(|row| row.subject != Subject::default()) {
                Some(row) => {
                    self.mode = Mode::Kill { subject: row.subject.clone(), about: shortly(about(table, row)) }
                }
                None => self.message = "the row is not about anybody who could be ended".into(),
            },
            _ => {}
        }
        Action::None
    }

    /// Somebody who goes through a recording does not want it to go on by itself.
    fn go(&mut self, by: isize) -> Action {
        self.is_paused = true;
        Action::Step(by)
    }

    fn neighbour(&self, by: usize) -> View {
        let at = View::ALL.iter().position(|view| *view == self.view).unwrap_or(0);
        View::ALL[(at + by) % View::ALL.len()]
    }

    fn filter_key(&mut self, key: Key, mut text: String) -> Action {
        match key {
            Key::Enter => {
                self.filter = text;
                return Action::Ask;
            }
            Key::Escape => return Action::None,
            Key::Backspace => drop(text.pop()),
            Key::Char(character) if text.chars().count() < MOST_FILTER => text.push(character),
            _ => {}
        }
        self.mode = Mode::Filter(text);
        Action::None
    }

    fn kill_key(&mut self, key: Key, subject: &Subject) -> Action {
        let statement = match (subject.connection, key) {
            (Some(connection), Key::Char('c')) => Some(format!("KILL {connection}")),
            (Some(connection), Key::Char('q')) => Some(format!("KILL QUERY {connection}")),
            (None, Key::Char('y')) => subject.statement.clone(),
            _ => None,
        };
        self.message = match &statement {
            Some(statement) => format!("sent: {statement}"),
            None => "nobody was ended".into(),
        };
        statement.map_or(Action::None, Action::End)
    }

    /// The next column by which rows can be sorted, of those on the screen; behind the last, as they come.
    fn sort(&mut self, table: &Table) -> Action {
        if !table.is_sortable {
            self.message = "this table has an order of its own".into();
            return Action::None;
        }
        let keys: Vec<&'static str> = table
            .columns
            .iter()
            .filter(|column| column.place != Place::Detail)
            .map(|column| column.key)
            .collect();
        let next = match self.order() {
            None => Some(0),
            Some(order) => keys.iter().position(|key| *key == order.key).map(|at| at + 1),
        };
        match next.and_then(|at| keys.get(at)) {
            Some(key) => self.orders.insert(self.view, Order { key, is_descending: true }),
            None => self.orders.remove(&self.view),
        };
        Action::Ask
    }

    fn reverse(&mut self) -> Action {
        if let Some(order) = self.orders.get_mut(&self.view) {
            order.is_descending = !order.is_descending;
        }
        Action::Ask
    }
}

/// All that is known of a row, a line for each column, with what it does first.
fn about(table: &Table, row: &Row) -> Vec<String> {
    let known = table
        .columns
        .iter()
        .zip(&row.cells)
        .filter(|(column, cell)| **cell != Cell::Missing && !matches!(column.place, Place::Made(_)));
    let (first, others): (Vec<_>, Vec<_>) = known.partition(|(column, _)| column.place == Place::Rest);
    let line = |(column, cell): (&Column, &Cell)| format!("{:<22} {}", column.key, cell.shown());
    first.into_iter().chain(others).map(line).collect()
}

/// So that the question is in sight.
fn shortly(lines: Vec<String>) -> Vec<String> {
    lines.into_iter().map(|line| line.chars().take(MOST_OF_LINE).collect()).collect()
}

const HELP: [&str; 17] = [
    "1-8, Tab, arrows left and right   another view",
    "arrows, PgUp, PgDn, Home, End     choose a row; it stays chosen where it goes",
    "Enter                             all of the row",
    "/                                 only rows with a text; Esc: all again",
    "s, r                              sort by the next column; the other way round",
    "i                                 sessions that do nothing, too (view 2)",
    "e                                 explain what the row's session does",
    "k                                 end the row's session or its query; asks first",
    "p, space                          stop asking, or showing; again: go on",
    ". ,                               in a recording: a sample on, or back",
    "> <                               thirty of them",
    "q, Ctrl-C                         the end",
    "",
    "Numbers in the head are for a second, between the last two samples. A '-' is",
    "not known: of a server without Teak, another version, or without PROCESS.",
    "Lines with a '!' say what is missing, and why.",
    "docs/top.md has more.",
];
