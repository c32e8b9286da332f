//! The rows of `INSERT ... VALUES (...),(...)`: how many, whether they are nothing but values, whether one asks for a
//! number of AUTO_INCREMENT.
//!
//! Only rows of plain values may be inserted by any connection and in any order: a function or a variable may depend on
//! what was done before, on that connection.

use super::charset::Dialect;

/// Functions of their arguments alone, which dumps contain for values that have no literal.
const PURE: &[&str] = &[
    "UNHEX",
    "FROM_BASE64",
    "GEOMFROMTEXT",
    "GEOMFROMWKB",
    "GEOMETRYFROMTEXT",
    "POINTFROMTEXT",
    "ST_GEOMFROMTEXT",
    "ST_GEOMFROMWKB",
    "ST_GEOMETRYFROMTEXT",
    "ST_POINTFROMTEXT",
    "ST_LINEFROMTEXT",
    "ST_POLYFROMTEXT",
    "ST_MPOINTFROMTEXT",
    "POINT",
];

/// What a list of plain rows is like.
#[derive(Debug, PartialEq, Clone, Copy)]
pub struct Rows {
    /// How many rows.
    pub count: u64,
    /// A row has NULL, 0 or DEFAULT where the AUTO_INCREMENT column is: the order of inserts decides its number.
    pub generates: bool,
    /// A row has NULL or DEFAULT where the value is then the time's, or chance.
    pub passing: bool,
}

/// Places in a row, from 0, whose values may be given by the server.
#[derive(Debug, Default)]
pub struct Watched {
    /// Where the AUTO_INCREMENT column is, if the table has one.
    pub auto_increment: Option<usize>,
    /// With defaults that depend on when they are taken.
    pub passing: Vec<usize>,
    /// Those of them that take their default for NULL too.
    pub passing_for_null: Vec<usize>,
}

#[derive(PartialEq, Clone, Copy)]
enum Value {
    /// Certainly neither NULL nor 0.
    Given,
    MayGenerate,
    Null,
    Default,
}

impl Watched {
    fn is_passing(&self, column: usize, value: Value) -> bool {
        match value {
            Value::Given | Value::MayGenerate => false,
            Value::Null => self.passing_for_null.contains(&column),
            Value::Default => self.passing.contains(&column),
        }
    }
}

/// Looks through the rows that begin at `from` and end with the text. `None` if they are not plain.
pub fn scan(text: &[u8], from: usize, dialect: Dialect, watched: &Watched) -> Option<Rows> {
    let mut reader = Reader { text, at: from, dialect };
    let mut rows = Rows { count: 0, generates: false, passing: false };
    loop {
        reader.expect(b'(')?;
        let mut column = 0;
        if reader.next_byte()? == b')' {
            // All columns get their defaults.
            rows.generates |= watched.auto_increment.is_some();
            rows.passing |= !watched.passing.is_empty();
            reader.at += 1;
        } else {
            loop {
                let value = reader.value()?;
                if value != Value::Given {
                    rows.generates |= watched.auto_increment == Some(column);
                    rows.passing |= watched.is_passing(column, value);
                }
                column += 1;
                match reader.next_byte()? {
                    b',' => reader.at += 1,
                    b')' => break,
                    _ => return None,
                }
            }
            reader.at += 1;
        }
        rows.count += 1;
        match reader.next_byte() {
            None => return Some(rows),
            Some(b',') => reader.at += 1,
            Some(_) => return None,
        }
    }
}

struct Reader<'a> {
    text: &'a [u8],
    at: usize,
    dialect: Dialect,
}

impl Reader<'_> {
    /// The next byte that is not white space, without taking it.
    #[inline]
    fn next_byte(&mut self) -> Option<u8> {
        while self.text.get(self.at)?.is_ascii_whitespace() {
            self.at += 1;
        }
        Some(self.text[self.at])
    }

    fn expect(&mut self, byte: u8) -> Option<()> {
        (self.next_byte()? == byte).then(|| self.at += 1)
    }

    #[inline]
    fn value(&mut self) -> Option<Value> {
        match self.next_byte()? {
            b'\'' => self.string(),
            b'"' if !self.dialect.ansi_quotes => self.string(),
            b'0'..=b'9' | b'.' | b'+' | b'-' => self.number(),
            b'a'..=b'z' | b'A'..=b'Z' | b'_' => self.word(),
            _ => None,
        }
    }

    /// A string, or several in a row, which are one.
    fn string(&mut self) -> Option<Value> {
        let begin = self.text.get(self.at + 1);
        let value = if matches!(begin, Some(b'1'..=b'9')) { Value::Given } else { Value::MayGenerate };
        while matches!(self.next_byte(), Some(b'\'' | b'"')) {
            self.at = self.dialect.end_of_quoted(self.text, self.at)?;
        }
        Some(value)
    }

    fn number(&mut self) -> Option<Value> {
        let start = self.at;
        if matches!(self.text[start], b'+' | b'-') {
            self.at += 1;
        }
        let rest = self.text.get(self.at..)?;
        let length = rest
            .iter()
            .position(|byte| !(byte.is_ascii_alphanumeric() || *byte == b'.'))
            .unwrap_or(rest.len());
        if length == 0 {
            return None;
        }
        self.at += length;
        let exponent = matches!(self.text[self.at - 1], b'e' | b'E') && !rest.starts_with(b"0x");
        if exponent && matches!(self.text.get(self.at), Some(b'+' | b'-')) {
            self.at += 1;
            self.at += self.text[self.at..].iter().take_while(|byte| byte.is_ascii_digit()).count();
        }
        // 0.3 would be rounded to 0.
        let whole = matches!(rest[0], b'1'..=b'9');
        Some(if whole { Value::Given } else { Value::MayGenerate })
    }

    /// NULL, DEFAULT, a string with its character set before it, or a function without side effects.
    fn word(&mut self) -> Option<Value> {
        let start = self.at;
        let rest = &self.text[start..];
        let length = rest
            .iter()
            .position(|byte| !(byte.is_ascii_alphanumeric() || *byte == b'_'))
            .unwrap_or(rest.len());
        let word = &self.text[start..start + length];
        self.at += length;
        let is = |name: &&str| word.eq_ignore_ascii_case(name.as_bytes());
        match self.next_byte() {
            Some(b'\'' | b'"') if ["X", "B", "N", "DATE", "TIME", "TIMESTAMP"].iter().any(&is) => {
                self.string()
            }
            Some(_) if word[0] == b'_' => self.value(),
            Some(b'(') if PURE.iter().any(&is) => {
                self.at += 1;
                loop {
                    self.value()?;
                    match self.next_byte()? {
                        b',' => self.at += 1,
                        b')' => break,
                        _ => return None,
                    }
                }
                self.at += 1;
                Some(Value::MayGenerate)
            }
            _ if is(&"TRUE") => Some(Value::Given),
            _ if is(&"NULL") => Some(Value::Null),
            _ if is(&"DEFAULT") => Some(Value::Default),
            _ => is(&"FALSE").then_some(Value::MayGenerate),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn rows(text: &str, column: Option<usize>) -> Option<(u64, bool)> {
        let watched = Watched { auto_increment: column, ..Watched::default() };
        scan(text.as_bytes(), 0, Dialect::OWN, &watched).map(|rows| (rows.count, rows.generates))
    }

    #[test]
    fn plain_values_are_counted() {
        let all = "(1,'a),(',NULL,-1.5e-3,0x00ff,x'00',_binary 'b\\'c',\"d\",b'01',DATE '2000-01-01',TRUE, 'x' 'y' ) ,\n(),(DEFAULT)";
        assert_eq!(rows(all, None), Some((3, false)));
        assert_eq!(
            rows("(ST_GeomFromText('POINT(1 2)', 4326)),(_utf8mb4'x'),(_binary 0x00)", None),
            Some((3, false))
        );
    }

    #[test]
    fn what_may_depend_on_something_is_not_plain() {
        for text in [
            "(@a)",
            "(LAST_INSERT_ID())",
            "(1),(NOW())",
            "((SELECT 1))",
            "(1) ON DUPLICATE KEY UPDATE a=1",
            "(1) RETURNING a",
            "(a)",
            "(1+a)",
            "(1",
            "(1,",
            "(",
            "",
            "(1)(2)",
            "(1),",
            "('a",
            "(1 2)",
            "(-)",
            "(NEXT VALUE FOR s)",
            "(?)",
            "(UNHEX(@a))",
            "(UNHEX(",
            "(_x",
        ] {
            assert_eq!(rows(text, Some(0)), None, "{text}");
        }
    }

    #[test]
    fn rows_that_take_a_passing_default_are_seen() {
        let watched = Watched { auto_increment: None, passing: vec![0, 1], passing_for_null: vec![1] };
        for (text, passing) in [
            ("(1,2,DEFAULT)", false),
            ("(NULL,'0')", false),
            ("(1,2),(1,NULL)", true),
            ("(1,2),(DEFAULT,2)", true),
            ("(1,2),()", true),
        ] {
            let rows = scan(text.as_bytes(), 0, Dialect::OWN, &watched);
            assert_eq!(rows.map(|rows| rows.passing), Some(passing), "{text}");
        }
    }

    #[test]
    fn rows_that_ask_for_a_number_are_seen() {
        for (text, generates) in [
            ("(1,2),(3,4)", false),
            ("(1,2),(NULL,4)", true),
            ("(0,1)", true),
            ("('0',1)", true),
            ("('7',1)", false),
            ("('',1)", true),
            ("(DEFAULT,1)", true),
            ("(0.3,1)", true),
            ("(00,1)", true),
            ("(1,NULL)", false),
            ("()", true),
            ("(-1,2)", false),
            ("(0x0,1)", true),
        ] {
            assert_eq!(rows(text, Some(0)).map(|rows| rows.1), Some(generates), "{text}");
            assert_eq!(rows(text, None).map(|rows| rows.1), Some(false), "{text}");
        }
        assert_eq!(rows("(1,NULL)", Some(1)), Some((1, true)));
    }
}
