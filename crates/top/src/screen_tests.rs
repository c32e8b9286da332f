//! What is seen of samples, on a screen that is a buffer.

use super::*;
use crate::keys::Key;
use crate::sample::{Answer, Part, Sample};
use crate::state::Action;
use ratatui::backend::TestBackend;
use ratatui::Terminal;

fn answer(columns: &str, rows: &[&[&str]]) -> Answer {
    let value = |text: &&str| (*text != "NULL").then(|| text.to_string());
    Answer {
        columns: columns.split(' ').map(String::from).collect(),
        rows: rows.iter().map(|row| row.iter().map(value).collect()).collect(),
        is_cut: false,
    }
}

fn sample() -> Sample {
    let mut sample = Sample { at: 1_795_996_801_000, ..Sample::default() };
    let parts = [
        (Part::Server, answer("version host", &[&["10.11.18-MariaDB-x", "db1\u{1b}[2J"]])),
        (Part::Status, answer("n v", &[&["UPTIME", "3725"], &["TEAK_COMMITS", "9"], &["QUERIES", "1"]])),
        (
            Part::Sessions,
            answer(
                "ID USER HOST DB COMMAND SECONDS STATE QUERY",
                &[
                    &["7", "shop", "h", "d", "Query", "2.5", "Updating", "update t\nset v = '\u{1b}]0;x\u{7}'"],
                    &["8", "back", "h", "NULL", "Query", "1", "NULL", "select 木木木木木木木木木木木木木木木木木木木木木木木木木木木木"],
                ],
            ),
        ),
        (
            Part::Waits,
            answer(
                "WAITING_CONNECTION_ID BLOCKING_CONNECTION_ID WAIT_SECONDS TABLE_SCHEMA TABLE_NAME INDEX_NAME LOCK_MODE LOCK_KEY",
                &[&["7", "3", "2.5", "d", "t", "PRIMARY", "EXCLUSIVE", "(1)"]],
            ),
        ),
    ];
    sample.parts.extend(parts);
    sample
}

fn seen(width: u16, height: u16, sample: &Sample, state: &State) -> Vec<String> {
    let mut terminal = Terminal::new(TestBackend::new(width, height)).unwrap();
    let moment = Moment::new(sample, None);
    let table = state.table(&moment);
    let around = Around { moment, place: "1/2 ".into(), has_colours: true };
    terminal.draw(|frame| draw(frame.buffer_mut(), &around, &table, state)).unwrap();
    let buffer = terminal.backend().buffer().clone();
    let line = |y| (0..width).map(|x| buffer[(x, y)].symbol()).collect::<String>().trim_end().to_string();
    (0..height).map(line).collect()
}

fn press(state: &mut State, sample: &Sample, key: Key) -> Action {
    let table = state.table(&Moment::new(sample, None));
    state.key(key, &table)
}

#[test]
fn a_screen_of_80_columns_and_24_lines_has_all() {
    let (sample, mut state) = (sample(), State::new(false));
    let screen = seen(80, 24, &sample, &state);
    assert!(
        screen[0].starts_with("db1\\x1b[2J 10.11.18 up 1:02:05")
            && screen[0].ends_with("1/2 2026-11-30 00:00:01")
    );
    assert_eq!(screen[4], "[1 Overview] 2 Sessions 3 Locks 4 Trx 5 SQL 6 Deadlocks 7 Memory 8 Replicas");
    assert_eq!(screen[6], "> in the way               1        3 1 wait, at last, for 3: KILL 3");
    assert_eq!(screen[23], KEYS);
    assert_eq!(press(&mut state, &sample, Key::Char('2')), Action::Ask);
    let screen = seen(80, 24, &sample, &state);
    assert_eq!(
        screen[6],
        ">       7 shop      d        Query      2.5s Updating     update t set v = '\\x1b"
    );
    assert!(
        screen[7].starts_with("        8 back      -        Query      1.0s -            select 木"),
        "{}",
        screen[7]
    );
    press(&mut state, &sample, Key::Char('3'));
    let screen = seen(80, 24, &sample, &state);
    assert_eq!(screen[6], "> 3                  1 -       KILL 3                          -");
    assert_eq!(screen[7], "    7                0    2.5s t PRIMARY (1) X                 -");
}

#[test]
fn a_screen_may_be_of_any_size() {
    let (sample, mut state) = (sample(), State::new(false));
    for key in ['2', 'k', 'n', '?', 'x', '/', 'a'] {
        press(&mut state, &sample, Key::Char(key));
        for (width, height) in [(1, 1), (3, 7), (79, 5), (80, 8), (300, 100), (2, 60)] {
            seen(width, height, &sample, &state);
        }
    }
}

#[test]
fn what_is_chosen_stays_so_where_it_goes() {
    let (mut sample, mut state) = (sample(), State::new(false));
    press(&mut state, &sample, Key::Char('2'));
    press(&mut state, &sample, Key::Down);
    sample.parts.get_mut(&Part::Sessions).unwrap().rows.reverse();
    assert!(seen(80, 24, &sample, &state)[6].starts_with(">       8"));
    assert_eq!(press(&mut state, &sample, Key::Char('e')), Action::Explain(8));
    sample.parts.get_mut(&Part::Sessions).unwrap().rows.remove(0);
    assert!(seen(80, 24, &sample, &state)[6].starts_with(">       7"));
    sample.parts.get_mut(&Part::Sessions).unwrap().rows.clear();
    assert_eq!(seen(80, 24, &sample, &state)[6], "nothing");
    assert_eq!(press(&mut state, &sample, Key::Char('k')), Action::None);
}

#[test]
fn nobody_is_ended_without_being_asked_for() {
    let (sample, mut state) = (sample(), State::new(false));
    press(&mut state, &sample, Key::Char('2'));
    for (key, wanted) in [
        ('c', Action::End("KILL 7".into())),
        ('q', Action::End("KILL QUERY 7".into())),
        ('y', Action::None),
        ('k', Action::None),
    ] {
        assert_eq!(press(&mut state, &sample, Key::Char('k')), Action::None);
        let screen = seen(80, 24, &sample, &state).join("\n");
        assert!(
            screen.contains("End 7?") && screen.contains("shop") && screen.contains("Any other key: no"),
            "{screen}"
        );
        assert_eq!(press(&mut state, &sample, Key::Char(key)), wanted);
        assert_eq!(state.mode, Mode::Table);
    }
    let mut replay = State::new(true);
    press(&mut replay, &sample, Key::Char('2'));
    press(&mut replay, &sample, Key::Char('k'));
    assert_eq!(replay.mode, Mode::Table);
}

#[test]
fn rows_are_filtered_and_sorted_by_keys() {
    let (sample, mut state) = (sample(), State::new(false));
    press(&mut state, &sample, Key::Char('2'));
    press(&mut state, &sample, Key::Char('s'));
    let screen = seen(80, 24, &sample, &state);
    assert!(screen[5].starts_with("  vID") && screen[6].starts_with(">       8"), "{screen:?}");
    press(&mut state, &sample, Key::Char('r'));
    assert!(seen(80, 24, &sample, &state)[6].starts_with(">       7"));
    for key in ['/', 'B', 'A', 'C', 'x'] {
        press(&mut state, &sample, Key::Char(key));
    }
    assert_eq!(seen(80, 24, &sample, &state)[23], "filter: BACx_");
    press(&mut state, &sample, Key::Backspace);
    assert_eq!(press(&mut state, &sample, Key::Enter), Action::Ask);
    assert_eq!(state.wanted().filter, "BAC");
    let screen = seen(80, 24, &sample, &state);
    assert!(
        screen[6].starts_with(">       8")
            && screen[7].is_empty()
            && screen[23].starts_with("only rows with 'BAC'; Esc: all"),
        "{screen:?}"
    );
    press(&mut state, &sample, Key::Escape);
    assert!(state.filter.is_empty());
}

#[test]
fn what_is_missing_is_said() {
    let mut sample = sample();
    sample.missing.insert(Part::Server, "the user has no PROCESS privilege\u{9b}".into());
    sample.parts.remove(&Part::Waits);
    let screen = seen(80, 24, &sample, &State::new(false)).join("\n");
    assert!(screen.contains("! server: the user has no PROCESS privilege\\x9b"), "{screen}");
    assert!(screen.contains("! TEAK_LOCK_WAITS: is asked for"), "{screen}");
}

#[test]
fn lines_end_between_words() {
    assert_eq!(wrap("one two three", 8), ["one two", "three"]);
    assert_eq!(wrap("abcdefghij", 4), ["abcd", "efgh", "ij"]);
    assert_eq!(wrap("", 4), [""]);
    assert_eq!(wrap("abc", 0).concat(), "abc");
}
