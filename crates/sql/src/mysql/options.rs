//! Options of tables and databases.

use super::reader::Reader;
use super::Refusal;
use std::ops::Range;

/// What options say of character sets.
#[derive(Debug, Default)]
pub(super) struct Options {
    /// Behind the name of utf8mb4.
    utf8mb4_at: Option<usize>,
    has_collation: bool,
}

/// What becomes of something that stands in a list.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Taken {
    Kept,
    Removed,
}

impl Reader<'_> {
    /// Options of a table, with commas between them or without.
    pub fn table_options(&mut self) -> Result<(), Refusal> {
        let mut options = Options::default();
        let mut comma = None;
        let mut has_kept = false;
        while let Some(taken) = self.table_option(&mut options)? {
            self.keep_list(taken, &mut comma, &mut has_kept);
            let from = self.at();
            if self.accept_mark(b',') {
                comma = Some(from..self.tokens.at);
            }
        }
        match comma {
            None => self.end_of_options(&options),
            Some(_) => Err(self.refusal("an option that is not known here")),
        }
    }

    /// Of a list, of which some may be removed: no comma stands before what is first, or before what is not there.
    pub fn keep_list(&mut self, taken: Taken, comma: &mut Option<Range<usize>>, has_kept: &mut bool) {
        let comma = comma.take();
        if taken == Taken::Removed || !*has_kept {
            if let Some(place) = comma {
                self.replace(place, " ");
            }
        }
        *has_kept |= taken == Taken::Kept;
    }

    /// utf8mb4 gets the collation that it has at the source.
    pub fn end_of_options(&mut self, options: &Options) -> Result<(), Refusal> {
        match options.utf8mb4_at.filter(|_| !options.has_collation) {
            Some(at) => {
                if let Some(collation) = self.default_collation()? {
                    self.charset.extend_from_slice(format!(" COLLATE {collation}").as_bytes());
                }
                self.with_default_collation(at)
            }
            None => Ok(()),
        }
    }

    /// One option of a table; None: what comes is none.
    pub fn table_option(&mut self, options: &mut Options) -> Result<Option<Taken>, Refusal> {
        if self.charset_option(options)? {
            return Ok(Some(Taken::Kept));
        }
        let from = self.at();
        let Some(word) = self.next_word() else { return Ok(None) };
        let is_two = matches!(word.as_str(), "DATA" | "INDEX");
        match word.as_str() {
            "AUTO_INCREMENT" | "AVG_ROW_LENGTH" | "MAX_ROWS" | "MIN_ROWS" | "KEY_BLOCK_SIZE" | "CHECKSUM"
            | "TABLE_CHECKSUM" | "DELAY_KEY_WRITE" | "STATS_PERSISTENT" | "STATS_AUTO_RECALC"
            | "STATS_SAMPLE_PAGES" | "PACK_KEYS" | "ROW_FORMAT" | "INSERT_METHOD" => {
                self.option_name(1)?;
                self.word()?;
            }
            "COMMENT" | "CONNECTION" | "PASSWORD" | "DATA" | "INDEX" => {
                self.option_name(if is_two { 2 } else { 1 })?;
                self.string()?;
            }
            "UNION" => {
                self.option_name(1)?;
                self.expect_mark(b'(')?;
                while !self.accept_mark(b')') {
                    self.qualified()?;
                    let _ = self.accept_mark(b',');
                }
            }
            "ENGINE" => {
                self.option_name(1)?;
                self.engine()?;
            }
            "AUTOEXTEND_SIZE"
            | "COMPRESSION"
            | "ENCRYPTION"
            | "ENGINE_ATTRIBUTE"
            | "SECONDARY_ENGINE_ATTRIBUTE"
            | "SECONDARY_ENGINE"
            | "TABLESPACE" => {
                self.option_name(1)?;
                self.name_or_text()?;
                if word == "TABLESPACE" && self.accept("STORAGE") {
                    self.word()?;
                }
                self.remove_from(from);
                return Ok(Some(Taken::Removed));
            }
            "STORAGE" | "START" => {
                let (_, _) = (self.word()?, self.word()?);
                self.remove_from(from);
                return Ok(Some(Taken::Removed));
            }
            _ => return Ok(None),
        }
        Ok(Some(Taken::Kept))
    }

    /// The words of an option's name, and a sign behind them.
    fn option_name(&mut self, words: usize) -> Result<(), Refusal> {
        for _ in 0..words {
            self.word()?;
        }
        let _ = self.accept_mark(b'=');
        Ok(())
    }

    /// The name of an engine, which becomes the configured one.
    fn engine(&mut self) -> Result<(), Refusal> {
        let from = self.at();
        let name = self.name_or_text()?;
        if let Some(engine) =
            self.context.engine.filter(|engine| !name.eq_ignore_ascii_case(engine.as_bytes()))
        {
            self.replace(from..self.tokens.at, engine);
        }
        Ok(())
    }

    /// `[DEFAULT] CHARACTER SET [=] name` or `[DEFAULT] COLLATE [=] name`; whether one of them came.
    fn charset_option(&mut self, options: &mut Options) -> Result<bool, Refusal> {
        let before = self.tokens.clone();
        let _ = self.accept("DEFAULT");
        if self.charset_keyword() {
            let _ = self.accept_mark(b'=');
            let from = self.at();
            let is_utf8mb4 = self.charset()?;
            options.utf8mb4_at = is_utf8mb4.then_some(self.tokens.at);
            let name = &self.tokens.text[from..self.tokens.at];
            self.charset.extend_from_slice(&[b" CHARACTER SET ", name].concat());
            return Ok(true);
        }
        if self.accept("COLLATE") {
            let _ = self.accept_mark(b'=');
            let name = self.named_collation()?;
            options.has_collation = true;
            self.charset.extend_from_slice(&[b" COLLATE ", &name[..]].concat());
            return Ok(true);
        }
        self.tokens = before;
        Ok(false)
    }

    pub fn create_database(&mut self) -> Result<(), Refusal> {
        let _ = self.accept_all(&["IF", "NOT", "EXISTS"]);
        self.name()?;
        self.database_options().map(|_| ())
    }

    pub fn alter_database(&mut self) -> Result<(), Refusal> {
        const OPTIONS: [&str; 7] =
            ["DEFAULT", "CHARACTER", "CHAR", "CHARSET", "COLLATE", "ENCRYPTION", "READ"];
        if !OPTIONS.iter().any(|word| self.is(word)) {
            self.name()?;
        }
        match self.database_options()? {
            0 => Err(self.refusal("ALTER DATABASE of nothing that MariaDB has")),
            _ => Ok(()),
        }
    }

    /// How many of them stay.
    fn database_options(&mut self) -> Result<usize, Refusal> {
        let (mut options, mut kept) = (Options::default(), 0);
        while !self.is_at_end() {
            let from = self.at();
            if self.charset_option(&mut options)? {
                kept += 1;
                continue;
            }
            let _ = self.accept("DEFAULT");
            if self.accept("ENCRYPTION") {
                let _ = self.accept_mark(b'=');
                self.string()?;
            } else if self.accept_all(&["READ", "ONLY"]) {
                let _ = self.accept_mark(b'=');
                self.word()?;
            } else {
                return Err(self.refusal("an option that is not known here"));
            }
            self.remove_from(from);
        }
        self.end_of_options(&options)?;
        Ok(kept)
    }
}
