//! Partitions of tables.

use super::reader::Reader;
use super::Refusal;

impl Reader<'_> {
    /// `PARTITION BY ...` with all that belongs to it; whether it came.
    pub fn partitioning(&mut self) -> Result<bool, Refusal> {
        if !self.accept_all(&["PARTITION", "BY"]) {
            return Ok(false);
        }
        self.partitioned_by()?;
        if self.accept("PARTITIONS") {
            self.number()?;
        }
        if self.accept_all(&["SUBPARTITION", "BY"]) {
            self.partitioned_by()?;
            if self.accept("SUBPARTITIONS") {
                self.number()?;
            }
        }
        if self.is_mark(b'(') {
            self.partitions()?;
        }
        Ok(true)
    }

    /// HASH, KEY, RANGE or LIST, and of what.
    fn partitioned_by(&mut self) -> Result<(), Refusal> {
        let _ = self.accept("LINEAR");
        if self.accept("KEY") {
            if self.accept("ALGORITHM") {
                self.expect_mark(b'=')?;
                self.number()?;
            }
            if self.accept_mark(b'(') {
                while !self.accept_mark(b')') {
                    self.name()?;
                    let _ = self.accept_mark(b',');
                }
                return Ok(());
            }
        } else if self.accept("HASH") {
            return self.parentheses().map(|_| ());
        } else if self.accept_one(&["RANGE", "LIST"]) {
            return match self.accept("COLUMNS") {
                true => self.column_names(),
                false => self.parentheses().map(|_| ()),
            };
        }
        Err(self.refusal("partitions of a kind that is not known here"))
    }

    /// `(PARTITION name ..., ...)`.
    pub fn partitions(&mut self) -> Result<(), Refusal> {
        self.expect_mark(b'(')?;
        loop {
            self.expect("PARTITION")?;
            self.name()?;
            if self.accept("VALUES") {
                self.values()?;
            }
            self.partition_options()?;
            if self.accept_mark(b'(') {
                loop {
                    self.expect("SUBPARTITION")?;
                    self.name_or_text()?;
                    self.partition_options()?;
                    if !self.accept_mark(b',') {
                        break;
                    }
                }
                self.expect_mark(b')')?;
            }
            if !self.accept_mark(b',') {
                return self.expect_mark(b')');
            }
        }
    }

    fn values(&mut self) -> Result<(), Refusal> {
        if self.accept("IN") {
            return self.parentheses().map(|_| ());
        }
        self.expect("LESS")?;
        self.expect("THAN")?;
        match self.accept("MAXVALUE") {
            true => Ok(()),
            false => self.parentheses().map(|_| ()),
        }
    }

    fn partition_options(&mut self) -> Result<(), Refusal> {
        loop {
            let from = self.at();
            if self.accept("ENGINE") || self.accept_all(&["STORAGE", "ENGINE"]) {
                let _ = self.accept_mark(b'=');
                self.name_or_text()?;
                // They are of the table's engine.
                if self.context.engine.is_some() {
                    self.remove_from(from);
                }
            } else if self.accept_one(&["TABLESPACE", "NODEGROUP"]) {
                let _ = self.accept_mark(b'=');
                self.name_or_text()?;
                self.remove_from(from);
            } else if self.accept_one(&["MAX_ROWS", "MIN_ROWS"]) {
                let _ = self.accept_mark(b'=');
                self.number()?;
            } else if self.accept("COMMENT")
                || self.accept_all(&["DATA", "DIRECTORY"])
                || self.accept_all(&["INDEX", "DIRECTORY"])
            {
                let _ = self.accept_mark(b'=');
                self.string()?;
            } else {
                return Ok(());
            }
        }
    }

    /// What ALTER TABLE does with partitions; None: what comes is something else. Whether something stays of it.
    pub fn partition_change(&mut self) -> Result<Option<()>, Refusal> {
        const WITH_NAMES: [&str; 7] =
            ["DROP", "TRUNCATE", "ANALYZE", "CHECK", "OPTIMIZE", "REBUILD", "REPAIR"];
        if self.accept_all(&["REMOVE", "PARTITIONING"]) {
            return Ok(Some(()));
        }
        if self.accept_all(&["ADD", "PARTITION"]) {
            match self.accept("PARTITIONS") {
                true => self.number().map(|_| ())?,
                false => self.partitions()?,
            }
            return Ok(Some(()));
        }
        if self.accept_all(&["COALESCE", "PARTITION"]) {
            self.number()?;
            return Ok(Some(()));
        }
        if self.accept_all(&["REORGANIZE", "PARTITION"]) {
            if !self.is_at_end() {
                self.partition_names()?;
                self.expect("INTO")?;
                self.partitions()?;
            }
            return Ok(Some(()));
        }
        if self.accept_all(&["EXCHANGE", "PARTITION"]) {
            self.name()?;
            self.expect("WITH")?;
            self.expect("TABLE")?;
            self.qualified()?;
            let from = self.at();
            if self.accept_all(&["WITH", "VALIDATION"]) || self.accept_all(&["WITHOUT", "VALIDATION"]) {
                self.remove_from(from);
            }
            return Ok(Some(()));
        }
        if WITH_NAMES.iter().any(|word| self.accept_all(&[word, "PARTITION"])) {
            self.partition_names()?;
            return Ok(Some(()));
        }
        Ok(None)
    }

    fn partition_names(&mut self) -> Result<(), Refusal> {
        loop {
            self.name()?;
            if !self.accept_mark(b',') {
                return Ok(());
            }
        }
    }
}
