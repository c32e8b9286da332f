//! Draws what is shown. Nothing is told by colours alone, and no text reaches the terminal that was not made harmless.

use crate::harmless;
use crate::moment::{Header, Moment};
use crate::state::{Mode, State};
use crate::table::{shown, Cell, Column, Place, Table, Unit};
use crate::time;
use crate::views::View;
use ratatui::buffer::Buffer;
use ratatui::layout::Rect;
use ratatui::style::{Color, Modifier, Style};

/// Lines before the table, with its titles.
const HEAD: u16 = 6;
const MOST_NOTES: usize = 4;
const KEYS: &str = "?: keys  q: quit  /: filter  s: sort  e: explain  k: kill  p: pause  Enter: all";

/// What is told beside the table.
pub struct Around<'a> {
    /// Above.
    pub moment: Moment<'a>,
    /// Where in a recording this is, or how often a server is asked.
    pub place: String,
    /// Whether there may be colours.
    pub has_colours: bool,
}

struct Canvas<'b> {
    buffer: &'b mut Buffer,
    area: Rect,
    has_colours: bool,
}

impl Canvas<'_> {
    /// A text on a line, from a column on, in so many at most; what is not seen of it is left out.
    fn put(&mut self, x: u16, y: u16, width: u16, text: &str, style: Style) {
        if x < self.area.width && y < self.area.height {
            let width = width.min(self.area.width - x);
            self.buffer.set_stringn(
                self.area.x + x,
                self.area.y + y,
                harmless::line(text),
                usize::from(width),
                style,
            );
        }
    }

    fn line(&mut self, y: u16, text: &str, style: Style) {
        self.put(0, y, self.area.width, text, style);
    }

    fn coloured(&self, style: Style, colour: Color) -> Style {
        if self.has_colours {
            style.fg(colour)
        } else {
            style
        }
    }

    /// A box with lines; the last ones stay in sight.
    fn text(&mut self, title: &str, lines: &[String], last: &[String]) {
        // The last line is not the box's.
        let (width, height) = (self.area.width, self.area.height.saturating_sub(HEAD + 1));
        let plain = Style::default();
        for y in HEAD - 1..self.area.height {
            self.line(y, &" ".repeat(usize::from(width)), plain);
        }
        let bar = format!("--- {title} {}", "-".repeat(usize::from(width)));
        self.line(HEAD - 1, &bar, plain.add_modifier(Modifier::BOLD));
        let room = usize::from(height).saturating_sub(last.len());
        let wrapped = lines.iter().flat_map(|line| wrap(line, usize::from(width)));
        for (y, line) in wrapped.take(room).chain(last.iter().cloned()).enumerate() {
            self.line(HEAD + y as u16, &line, plain);
        }
    }
}

/// Draws all of it; which table was drawn is what keys are about.
pub fn draw(buffer: &mut Buffer, around: &Around<'_>, table: &Table, state: &State) {
    let area = buffer.area;
    let mut canvas = Canvas { buffer, area, has_colours: around.has_colours };
    head(&mut canvas, around, state);
    tabs(&mut canvas, state);
    match &state.mode {
        Mode::Table | Mode::Filter(_) => rows(&mut canvas, table, state),
        Mode::Text { title, lines, from } => {
            let hint = ["(any other key than arrows: back)".to_string()];
            canvas.text(title, lines.get(*from..).unwrap_or_default(), &hint);
        }
        Mode::Kill { subject, about } => {
            let question = match (subject.connection, &subject.statement) {
                (Some(id), _) => {
                    format!("End {id}?  c: its connection (KILL {id})  q: its query (KILL QUERY {id})")
                }
                (None, statement) => format!("{}?  y: yes", statement.as_deref().unwrap_or_default()),
            };
            canvas.text("End it?", about, &[String::new(), question, "Any other key: no".into()]);
        }
    }
    let last = area.height.saturating_sub(1);
    let (text, style) = match &state.mode {
        Mode::Filter(text) => (format!("filter: {text}_"), Style::default().add_modifier(Modifier::BOLD)),
        _ if !state.message.is_empty() => {
            (state.message.clone(), Style::default().add_modifier(Modifier::BOLD))
        }
        _ if !state.filter.is_empty() => {
            (format!("only rows with '{}'; Esc: all  {KEYS}", state.filter), Style::default())
        }
        _ if state.is_replay => (format!(". , > <: on, back  {KEYS}"), Style::default()),
        _ => (KEYS.into(), Style::default()),
    };
    canvas.line(last, &" ".repeat(usize::from(area.width)), Style::default());
    canvas.line(last, &text, style);
}

fn head(canvas: &mut Canvas<'_>, around: &Around<'_>, state: &State) {
    let header = around.moment.header();
    let bold = Style::default().add_modifier(Modifier::BOLD);
    for (y, line) in lines(&header).iter().enumerate() {
        let style = if y == 0 { bold } else { Style::default() };
        canvas.line(y as u16, line, style);
    }
    let paused = if state.is_paused { "PAUSED " } else { "" };
    let place = format!(" {paused}{}{}", around.place, time::utc(around.moment.now.at));
    let x = canvas.area.width.saturating_sub(place.len() as u16);
    canvas.put(x, 0, place.len() as u16, &place, canvas.coloured(bold, Color::Cyan));
}

/// The head.
fn lines(header: &Header) -> [String; 4] {
    let number = |value: Option<f64>, unit| Cell::number(value, unit).shown();
    let count = |value| number(value, Unit::Count);
    let bytes = |value| number(value, Unit::Bytes);
    let version = header.version.as_deref().unwrap_or("no answer");
    let version = version.split_once("-MariaDB").map_or(version, |(number, _)| number);
    [
        format!(
            "{} {version} up {} sessions {} running {}",
            header.host.as_deref().unwrap_or("?"),
            number(header.uptime_seconds, Unit::Seconds),
            count(header.sessions),
            count(header.sessions_running),
        ),
        format!(
            "/s: queries {}  commits {}  rows read {}  written {}  slow {}",
            count(header.queries),
            count(header.commits),
            count(header.rows_read),
            count(header.rows_written),
            count(header.slow_queries),
        ),
        format!(
            "/s: log {}  syncs {}  disk read {}  disk written {}  ({})",
            bytes(header.log_bytes),
            count(header.log_syncs),
            bytes(header.disk_read_bytes),
            bytes(header.disk_written_bytes),
            header.engine,
        ),
        format!(
            "cache {}  checkpoint {}  snapshot {}  lock waits {}  deadlocks {}",
            number(header.cache_hits, Unit::Share),
            number(header.checkpoint, Unit::Share),
            number(header.oldest_snapshot_seconds, Unit::Seconds),
            count(header.lock_waits),
            count(header.deadlocks),
        ),
    ]
}

/// The one that is shown stands in brackets.
fn tabs(canvas: &mut Canvas<'_>, state: &State) {
    let titles = ["Overview", "Sessions", "Locks", "Trx", "SQL", "Deadlocks", "Memory", "Replicas"];
    let mut x = 0;
    for (at, (view, title)) in View::ALL.iter().zip(titles).enumerate() {
        let is_shown = *view == state.view;
        let text = if is_shown { format!("[{} {title}]", at + 1) } else { format!(" {} {title}", at + 1) };
        let style = if is_shown { Style::default().add_modifier(Modifier::BOLD) } else { Style::default() };
        canvas.put(
            x,
            4,
            text.len() as u16,
            &text,
            if is_shown { canvas.coloured(style, Color::Cyan) } else { style },
        );
        x += text.len() as u16;
    }
}

/// Where each column that is on the screen begins, and how wide it is.
fn columns(table: &Table, width: u16) -> Vec<(usize, &'static Column, u16, u16)> {
    let (mut found, mut x) = (Vec::new(), 2);
    for (at, column) in table.columns.iter().enumerate() {
        let wide = match column.place {
            Place::Wide(wide) | Place::Made(wide) => wide,
            Place::Rest => width.saturating_sub(x),
            Place::Detail => continue,
        };
        found.push((at, column, x, wide));
        x = x.saturating_add(wide + 1);
    }
    found
}

fn rows(canvas: &mut Canvas<'_>, table: &Table, state: &State) {
    let (width, height) = (canvas.area.width, canvas.area.height);
    let notes = notes(table, state, usize::from(width));
    let room = usize::from(height.saturating_sub(HEAD + 1)).saturating_sub(notes.len());
    let columns = columns(table, width);
    let titles = Style::default().add_modifier(Modifier::UNDERLINED);
    for (_, column, x, wide) in &columns {
        let mark = match state.order() {
            Some(order) if order.key == column.key && order.is_descending => "v",
            Some(order) if order.key == column.key => "^",
            _ => "",
        };
        canvas.put(*x, HEAD - 1, *wide, &format!("{mark}{}", column.title), titles);
    }
    let chosen = state.chosen(table);
    // The chosen row is in sight.
    let from = chosen.map_or(0, |chosen| (chosen + 1).saturating_sub(room.max(1)));
    for (line, (at, row)) in table.rows.iter().enumerate().skip(from).take(room).enumerate() {
        let y = HEAD + line as u16;
        let is_chosen = chosen == Some(at);
        let style =
            if is_chosen { Style::default().add_modifier(Modifier::REVERSED) } else { Style::default() };
        if is_chosen {
            canvas.line(y, &format!("> {}", " ".repeat(usize::from(width))), style);
        }
        for (at, _, x, wide) in &columns {
            let cell = &row.cells[*at];
            let text = cell.shown();
            let is_number = matches!(cell, Cell::Number(..)) && text.len() < usize::from(*wide);
            let text = if is_number { format!("{text:>width$}", width = usize::from(*wide)) } else { text };
            canvas.put(*x, y, *wide, &text, style);
        }
    }
    let first = HEAD + room.min(table.rows.len().saturating_sub(from)) as u16;
    for (at, note) in notes.iter().enumerate() {
        let style = canvas.coloured(Style::default(), Color::Yellow);
        canvas.line(first + at as u16, note, style);
    }
}

/// What is to be said of the table, in lines.
fn notes(table: &Table, state: &State, width: usize) -> Vec<String> {
    let mut notes: Vec<String> = Vec::new();
    let shown = table.notes.iter().map(|note| format!("! {note}"));
    notes.extend(shown.flat_map(|note| wrap(&note, width)).take(MOST_NOTES));
    if table.rows.is_empty() && notes.is_empty() {
        notes.push(match state.filter.is_empty() {
            true => "nothing".into(),
            false => format!("nothing has '{}' (Esc: all)", harmless::line(&state.filter)),
        });
    }
    notes
}

/// Lines of so many characters at most, made harmless, ended between words where that is possible.
fn wrap(text: &str, width: usize) -> Vec<String> {
    let text: Vec<char> = harmless::line(text).chars().collect();
    let (mut rest, mut lines) = (text.as_slice(), Vec::new());
    while rest.len() > width.max(1) {
        let space =
            rest[..=width].iter().rposition(|character| *character == ' ').filter(|at| *at > width / 2);
        let end = space.unwrap_or(width).max(1);
        lines.push(rest[..end].iter().collect());
        rest = &rest[if space.is_some() { end + 1 } else { end }..];
    }
    lines.push(rest.iter().collect());
    lines
}

/// So many of what.
pub fn counted(number: usize, of: &str) -> String {
    format!("{} {of}{}", shown(number as f64, Unit::Count), if number == 1 { "" } else { "s" })
}

#[cfg(test)]
#[path = "screen_tests.rs"]
mod tests;
