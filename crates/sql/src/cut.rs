//! INSERTs that are longer than the server takes, cut between rows.
//!
//! ```text
//! INSERT INTO t VALUES (1,'a'),(2,'b'),(3,'c') ON DUPLICATE KEY UPDATE a=1
//! |<---- head ------->||<------ rows ------->||<----------- tail ------->|
//! ```
//!
//! Each part has the head, some rows in their order, and the tail.

use super::charset::Dialect;
use super::tokens::{Token, Tokens};
use std::ops::Range;

/// Some rows of a long INSERT, as a statement.
#[derive(Debug, PartialEq)]
pub struct Part {
    /// The statement.
    pub text: Vec<u8>,
    /// How many it has.
    pub rows: u64,
    /// Where its first row begins in the whole.
    pub from: usize,
}

/// Why a statement cannot be cut.
#[derive(Debug, PartialEq)]
pub enum Uncut {
    /// After the head comes no list of rows that ends.
    NoRows,
    /// The row at this place needs a statement of so many bytes.
    LongRow(usize, usize),
}

/// Cuts an INSERT whose rows begin at `head` into statements of at most `limit` bytes.
pub fn cut(text: &[u8], head: usize, dialect: Dialect, limit: usize) -> Result<Vec<Part>, Uncut> {
    let (rows, tail) = rows(text, head, dialect).ok_or(Uncut::NoRows)?;
    let mut parts: Vec<Part> = Vec::new();
    for row in rows {
        match parts.last_mut() {
            Some(part) if part.text.len() + 1 + row.len() + tail.len() <= limit => {
                part.text.push(b',');
                part.text.extend_from_slice(&text[row]);
                part.rows += 1;
            }
            _ => {
                let length = head + row.len() + tail.len();
                if length > limit {
                    return Err(Uncut::LongRow(row.start, length));
                }
                parts.push(Part {
                    text: [&text[..head], &text[row.clone()]].concat(),
                    rows: 1,
                    from: row.start,
                });
            }
        }
    }
    parts.iter_mut().for_each(|part| part.text.extend_from_slice(tail));
    Ok(parts)
}

/// Where each row is, and what comes after the last.
fn rows(text: &[u8], head: usize, dialect: Dialect) -> Option<(Vec<Range<usize>>, &[u8])> {
    let mut tokens = Tokens { text, at: head, dialect };
    let mut rows = Vec::new();
    loop {
        if !tokens.accept_mark(b'(') {
            return None;
        }
        let start = tokens.at - 1;
        let mut depth = 1;
        while depth > 0 {
            match tokens.next()? {
                Token::Mark(b'(') => depth += 1,
                Token::Mark(b')') => depth -= 1,
                _ => {}
            }
        }
        rows.push(start..tokens.at);
        let end = tokens.at;
        if !tokens.accept_mark(b',') {
            return Some((rows, &text[end..]));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn random(seed: &mut u64, below: usize) -> usize {
        *seed ^= *seed << 13;
        *seed ^= *seed >> 7;
        *seed ^= *seed << 17;
        (*seed % below as u64) as usize
    }

    #[test]
    fn parts_have_the_rows_of_the_whole_in_their_order() {
        const VALUES: &[&str] = &[
            "1",
            "'),('",
            "'it''s ('",
            r"'\'),('",
            "\"),(\"",
            "NOW()",
            "f((1),(2))",
            "/* ),( */ 3",
            "NULL",
            "x'00'",
            "`a),(`",
        ];
        const BETWEEN: &[&str] = &[",", " ,\n", ",/* ),( */", " , -- ),(\n"];
        const TAILS: &[&str] =
            &["", " ", " ON DUPLICATE KEY UPDATE a=VALUES(a), b=(1)", " RETURNING a, (b)", " */"];
        let mut seed = 0x9e37_79b9_7f4a_7c15;
        for _ in 0..2000 {
            let head = "INSERT INTO t (a) VALUES ";
            let tail = TAILS[random(&mut seed, TAILS.len())];
            let rows: Vec<String> = (0..1 + random(&mut seed, 20))
                .map(|_| {
                    let values: Vec<&str> =
                        (0..random(&mut seed, 4)).map(|_| VALUES[random(&mut seed, VALUES.len())]).collect();
                    format!("({})", values.join(","))
                })
                .collect();
            let mut text = head.to_string();
            for (i, row) in rows.iter().enumerate() {
                text += if i > 0 { BETWEEN[random(&mut seed, BETWEEN.len())] } else { "" };
                text += row;
            }
            text += tail;
            let limit = head.len() + tail.len() + random(&mut seed, 100);
            let longest = rows.iter().map(String::len).max().unwrap() + head.len() + tail.len();
            match cut(text.as_bytes(), head.len(), Dialect::OWN, limit) {
                Err(error) => {
                    assert!(longest > limit && matches!(error, Uncut::LongRow(..)), "{error:?} {text}")
                }
                Ok(parts) => {
                    assert!(longest <= limit);
                    let mut left = rows.iter();
                    for part in parts {
                        assert!(part.text.len() <= limit);
                        assert!(text[part.from..].starts_with('('));
                        let own: Vec<&str> =
                            left.by_ref().take(part.rows as usize).map(String::as_str).collect();
                        assert_eq!(part.text, format!("{head}{}{tail}", own.join(",")).into_bytes());
                    }
                    assert_eq!(left.next(), None);
                }
            }
        }
    }

    #[test]
    fn what_has_no_rows_is_not_cut() {
        for text in ["INSERT t SELECT 1", "INSERT t ", "INSERT t (1", "INSERT t (1),", "INSERT t ('a"] {
            assert_eq!(cut(text.as_bytes(), 9, Dialect::OWN, 5), Err(Uncut::NoRows), "{text}");
        }
        let long = Uncut::LongRow(13, 9 + 5);
        assert_eq!(cut(b"INSERT t (1),(222)", 9, Dialect::OWN, 13), Err(long));
    }
}
