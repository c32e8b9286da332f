//! Types of columns.

use super::reader::Reader;
use super::{nearest_of_number, Refusal};
use crate::tokens::Token;

/// How many numbers a VECTOR has that says nothing of it.
pub const VECTOR_DIMENSIONS: u64 = 2048;
/// So many bytes a VARBINARY may have beside others in a row: MariaDB's rows have 65,535 without long values.
const SHORT_VECTOR: u64 = 16 << 10;

/// The type of MariaDB for a VECTOR of so many numbers: one that has its bytes.
pub fn vector_type(dimensions: u64) -> String {
    match dimensions * 4 {
        bytes @ ..=SHORT_VECTOR => format!("varbinary({bytes})"),
        _ => "mediumblob".into(),
    }
}

impl Reader<'_> {
    /// A type with all that belongs to it.
    pub fn data_type(&mut self) -> Result<(), Refusal> {
        let refusal = self.refusal("a type that is not known here");
        let from = self.at();
        let word = self.word().map_err(|_| refusal.clone())?;
        match word.as_str() {
            "TINYINT" | "SMALLINT" | "MEDIUMINT" | "INT" | "INTEGER" | "BIGINT" | "INT1" | "INT2"
            | "INT3" | "INT4" | "INT8" | "MIDDLEINT" | "REAL" | "FLOAT" | "FLOAT4" | "FLOAT8" | "DECIMAL"
            | "DEC" | "NUMERIC" | "FIXED" => self.numeric(),
            "DOUBLE" => {
                let _ = self.accept("PRECISION");
                self.numeric()
            }
            "BOOL" | "BOOLEAN" | "DATE" | "JSON" | "SERIAL" | "TINYBLOB" | "MEDIUMBLOB" | "LONGBLOB"
            | "GEOMETRY" | "POINT" | "LINESTRING" | "POLYGON" | "MULTIPOINT" | "MULTILINESTRING"
            | "MULTIPOLYGON" | "GEOMETRYCOLLECTION" => Ok(()),
            "GEOMCOLLECTION" => {
                self.replace(from..self.tokens.at, "GEOMETRYCOLLECTION");
                Ok(())
            }
            "BIT" | "TIME" | "DATETIME" | "TIMESTAMP" | "YEAR" | "BINARY" | "VARBINARY" | "BLOB" => {
                self.length()
            }
            "CHAR" | "CHARACTER" | "NCHAR" => {
                let _ = self.accept_one(&["VARYING", "VARCHAR", "VARCHARACTER"]);
                self.sized_text()
            }
            "VARCHAR" | "VARCHARACTER" | "NVARCHAR" | "TEXT" => self.sized_text(),
            "NATIONAL" => {
                self.word()?;
                let _ = self.accept("VARYING");
                self.sized_text()
            }
            "LONG" => {
                if self.accept("VARBINARY") {
                    return Ok(());
                }
                let _ = self.accept("VARCHAR") || self.accept_all(&["CHAR", "VARYING"]);
                self.charset_of_type()
            }
            "TINYTEXT" | "MEDIUMTEXT" | "LONGTEXT" => self.charset_of_type(),
            "ENUM" | "SET" => {
                self.expect_mark(b'(')?;
                loop {
                    let _ = self.introducer();
                    self.string()?;
                    if !self.accept_mark(b',') {
                        break;
                    }
                }
                self.expect_mark(b')')?;
                self.charset_of_type()
            }
            "VECTOR" => {
                let mut dimensions = VECTOR_DIMENSIONS;
                if self.accept_mark(b'(') {
                    dimensions = self.number()?;
                    self.expect_mark(b')')?;
                }
                self.replace(from..self.tokens.at, vector_type(dimensions));
                Ok(())
            }
            _ => Err(refusal),
        }
    }

    fn numeric(&mut self) -> Result<(), Refusal> {
        self.length()?;
        while self.accept_one(&["UNSIGNED", "SIGNED", "ZEROFILL"]) {}
        Ok(())
    }

    /// `(n)` or `(n, m)`, or neither.
    fn length(&mut self) -> Result<(), Refusal> {
        if self.accept_mark(b'(') {
            self.number()?;
            if self.accept_mark(b',') {
                self.number()?;
            }
            self.expect_mark(b')')?;
        }
        Ok(())
    }

    fn sized_text(&mut self) -> Result<(), Refusal> {
        self.length()?;
        self.charset_of_type()
    }

    /// What a type says of its character set. If it says that alone, not its collation, that is MySQL's.
    fn charset_of_type(&mut self) -> Result<(), Refusal> {
        let (mut behind, mut is_binary) = (None, false);
        loop {
            if self.charset_keyword() {
                behind = self.charset()?.then_some(self.tokens.at);
            } else if self.accept("BINARY") {
                is_binary = true;
            } else if !self.accept_one(&["ASCII", "UNICODE", "BYTE"]) {
                break;
            }
        }
        match behind.filter(|_| !is_binary && !self.has_collation()) {
            Some(at) => self.with_default_collation(at),
            None => Ok(()),
        }
    }

    /// CHARACTER SET, in one of its forms.
    pub fn charset_keyword(&mut self) -> bool {
        self.accept("CHARSET") || self.accept_all(&["CHARACTER", "SET"]) || self.accept_all(&["CHAR", "SET"])
    }

    /// The name of a character set; whether that is utf8mb4.
    pub fn charset(&mut self) -> Result<bool, Refusal> {
        let refusal = self.refusal("a character set that MariaDB has not");
        let name = self.name_or_text()?;
        match name.eq_ignore_ascii_case(b"gb18030") {
            true => Err(refusal),
            false => Ok(name.eq_ignore_ascii_case(b"utf8mb4")),
        }
    }

    /// The collation that utf8mb4 has by itself is added.
    pub fn with_default_collation(&mut self, at: usize) -> Result<(), Refusal> {
        if let Some(collation) = self.default_collation()? {
            self.insert(at, format!(" COLLATE {collation}"));
        }
        Ok(())
    }

    /// The collation that utf8mb4 has by itself at the source, if MariaDB has another one.
    pub fn default_collation(&self) -> Result<Option<String>, Refusal> {
        let Some(number) = self.context.utf8mb4_collation else { return Ok(None) };
        match (number, nearest_of_number(number)) {
            (_, Some(name)) => Ok(Some(name)),
            (45, None) => Ok(Some("utf8mb4_general_ci".into())),
            (_, None) => Err(self.refusal("utf8mb4 with a collation that is not known here")),
        }
    }

    /// Whether COLLATE comes before the definition of the column ends.
    fn has_collation(&self) -> bool {
        let mut depth = 0;
        for token in self.tokens.clone() {
            match token {
                Token::Mark(b'(') => depth += 1,
                Token::Mark(b')') if depth == 0 => return false,
                Token::Mark(b')') => depth -= 1,
                Token::Mark(b',') if depth == 0 => return false,
                token if depth == 0 && token.is("COLLATE") => return true,
                _ => (),
            }
        }
        false
    }

    /// `_utf8mb4` before a string.
    pub fn introducer(&mut self) -> bool {
        let mut ahead = self.tokens.clone();
        let is_word = matches!(ahead.next(), Some(Token::Word(word)) if word.first() == Some(&b'_'));
        let taken = is_word && ahead.peek() == Some(Token::Text);
        if taken {
            let _ = self.tokens.next();
        }
        taken
    }
}
