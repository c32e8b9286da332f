//! Statements that change definitions, and what is noted of them so that a restart finds out what became of them.

use super::{Intent, Target, NO_DATABASE, SESSION};
use crate::failure::Failure;
use crate::schema;
use teak_client::Error;
use teak_sql::quoting::{hex, quoted_name};

/// What a mark says of itself.
const MARK: &str = "teak replicate: renamed together with tables that change places";

impl Target<'_> {
    /// The statement of a transaction that may have been carried out.
    pub fn intent(&self) -> Option<&Intent> {
        self.intent.as_ref()
    }

    /// Notes that a statement will be carried out.
    pub fn note(&mut self, intent: Intent, statement: &[u8]) -> Result<(), Failure> {
        let insert = format!(
            "INSERT INTO teak_replicate.ddl (source, gtid, statement, before_it) VALUES ('{}', '{}', x'{}', x'{}')",
            self.source,
            intent.gtid,
            hex(statement),
            hex(&intent.before)
        );
        self.add(insert.into_bytes())?;
        self.send_of(&|error| {
            Failure::of_target(error, || format!("{}: a note of a statement", intent.gtid))
        })?;
        self.commit_beside()?;
        self.intent = Some(intent);
        Ok(())
    }

    /// A statement that was noted has failed, and has changed nothing.
    pub fn forget(&mut self) -> Result<(), Failure> {
        let forgotten = self.connection.execute(self.forgetting());
        forgotten.map_err(|error| Failure::of_target(&error, || "a note of a statement".into()))?;
        self.intent = None;
        Ok(())
    }

    /// Drops a table, if it is there.
    pub fn drop_table(&mut self, quoted: &[u8]) -> Result<(), Error> {
        self.known.clear();
        let drop = [b"SET STATEMENT foreign_key_checks = 0 FOR DROP TABLE IF EXISTS ", quoted].concat();
        self.connection.execute(drop).map(|_| ())
    }

    /// Makes the table that [`Target::renaming_of_mark`] renames.
    pub fn make_mark(&mut self) -> Result<(), Failure> {
        let statements = [
            format!("DROP TABLE IF EXISTS {}", self.mark(1)),
            format!("CREATE OR REPLACE TABLE {} (a INT) COMMENT '{MARK}'", self.mark(0)),
        ];
        let mut made = statements.iter().map(|statement| self.connection.execute(statement));
        let failed = made.find_map(Result::err);
        failed.map_or(Ok(()), |error| Err(Failure::of_target(&error, || "a table as a mark".into())))
    }

    /// Whether it is there: what was to rename it was not carried out.
    pub fn has_mark(&mut self) -> Result<bool, Failure> {
        let there = self.connection.value(schema::has_table("teak_replicate", &format!("{}.0", self.source)));
        Ok(there.map_err(|error| Failure::of_target(&error, || "a table as a mark".into()))?.is_some())
    }

    /// What is added to a RENAME TABLE, which is carried out as a whole or not at all. A comment at its end has ended.
    pub fn renaming_of_mark(&self) -> Vec<u8> {
        format!("\n, {} TO {}", self.mark(0), self.mark(1)).into_bytes()
    }

    /// A source's name has no point.
    fn mark(&self, number: u32) -> String {
        format!("teak_replicate.`{}.{number}`", self.source)
    }

    /// What forgets a note.
    pub(super) fn forgetting(&self) -> String {
        format!("DELETE FROM teak_replicate.ddl WHERE source = '{}'", self.source)
    }

    /// What `SHOW CREATE` says, without the number that AUTO_INCREMENT is at; empty if there is no such thing.
    pub fn definition(&mut self, kind: &str, quoted: &[u8]) -> Result<Vec<u8>, Error> {
        // Not there: databases, tables, triggers, routines.
        const MISSING: [u16; 6] = [1008, 1049, 1146, 1305, 1360, 4091];
        let shown = self.connection.query([b"SHOW CREATE ", kind.as_bytes(), b" ", quoted].concat());
        match shown {
            Err(Error::Server { code, .. }) if MISSING.contains(&code) => Ok(Vec::new()),
            Err(error) => Err(error),
            Ok(rows) => {
                let mut text = Vec::new();
                for value in rows.into_iter().flatten().flatten() {
                    text.extend_from_slice(&without_counter(value));
                    text.push(b'\n');
                }
                Ok(text)
            }
        }
    }

    /// Carries out a statement as the session of the source did, which `session` is to set; afterwards the session is
    /// that of rows again.
    pub fn define(
        &mut self,
        session: &str,
        database: &[u8],
        needs_database: bool,
        statement: &[u8],
    ) -> Result<(), Error> {
        self.known.clear();
        if !database.is_empty() {
            let used = self.connection.execute([b"USE ", &quoted_name(database)[..]].concat());
            if !matches!(&used, Err(error) if error.code() == Some(NO_DATABASE) && !needs_database) {
                used?;
            }
        }
        self.connection.execute(session)?;
        if let Some(engine) = &self.engine {
            self.connection.execute(format!("SET SESSION enforce_storage_engine = `{engine}`"))?;
        }
        let done = self.connection.execute(statement).map(|_| ());
        if matches!(done, Ok(()) | Err(Error::Server { .. })) {
            self.connection.execute(SESSION)?;
            if self.engine.is_some() {
                self.connection.execute("SET SESSION enforce_storage_engine = NULL")?;
            }
            self.connection.execute("USE teak_replicate")?;
        }
        done
    }
}

/// What SHOW CREATE TABLE tells, but for the counter, which restarts may change.
pub fn without_counter(mut text: Vec<u8>) -> Vec<u8> {
    const COUNTER: &[u8] = b" AUTO_INCREMENT=";
    let found = text.windows(COUNTER.len()).rposition(|window| window == COUNTER);
    if let Some(at) = found {
        let digits = text[at + COUNTER.len()..].iter().take_while(|byte| byte.is_ascii_digit()).count();
        text.drain(at..at + COUNTER.len() + digits);
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn definitions_are_compared_without_counters() {
        let text = |text: &str| String::from_utf8(without_counter(text.as_bytes().to_vec())).unwrap();
        assert_eq!(text("x ENGINE=Teak AUTO_INCREMENT=17 DEFAULT"), "x ENGINE=Teak DEFAULT");
        assert_eq!(text("AUTO_INCREMENT,\n y"), "AUTO_INCREMENT,\n y");
    }
}
