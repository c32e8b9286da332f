//! Secondary keys that are built after the rows: by DISABLE KEYS where the engine has it, else by taking the keys off
//! the empty table and adding them in the end.
//!
//! The definitions come from SHOW CREATE TABLE, so they are the server's whatever the dump looked like, and they are
//! recorded before they are taken off. Unique keys stay, since rows are checked against them; so do keys that something
//! else needs.

use super::error::LoadError;
use super::state::LoadState;
use super::task::Table;
use super::worker::says_it_is_done;
use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError};
use teak_client::Connection;
use teak_sql::charset::Dialect;
use teak_sql::tokens::{Token, Tokens};

/// When keys are put off.
#[derive(Debug, Clone, Copy, PartialEq, Default, clap::ValueEnum)]
pub enum DeferIndexes {
    /// Where it is faster: in Teak and MyISAM, in InnoDB for large inputs
    #[default]
    Auto,
    On,
    Off,
}

/// From this size of the inputs on, InnoDB builds keys faster afterwards than it maintains them.
const LARGE: u64 = 64 << 20;

const ENABLE: &[u8] = b"ENABLE KEYS";

/// By the table's name; the clauses of an ALTER TABLE.
type Pending = BTreeMap<String, (Arc<Table>, Vec<u8>)>;

/// Keys that are still to be built.
pub struct Deferred {
    mode: DeferIndexes,
    pending: Mutex<Pending>,
}

impl Deferred {
    pub fn new(mode: DeferIndexes) -> Deferred {
        Deferred { mode, pending: Mutex::new(BTreeMap::new()) }
    }

    /// What a former run has put off.
    pub fn add(&self, table: Arc<Table>, clauses: Vec<u8>) {
        self.lock().insert(table.shown(), (table, clauses));
    }

    /// Tables that still lack keys.
    pub fn tables(&self) -> Vec<Arc<Table>> {
        self.lock().values().map(|(table, _)| table.clone()).collect()
    }

    /// What builds the keys that are missing.
    pub fn statements(&self) -> Vec<String> {
        let statement = |(table, clauses): &(Arc<Table>, Vec<u8>)| {
            let quoted = table.quoted();
            format!("ALTER TABLE {} {}", String::from_utf8_lossy(&quoted), String::from_utf8_lossy(clauses))
        };
        self.lock().values().map(statement).collect()
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, Pending> {
        self.pending.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Takes the secondary keys off a table that was just created.
    pub fn put_off(
        &self,
        connection: &mut Connection,
        table: &Arc<Table>,
        shared: &LoadState,
    ) -> Result<(), LoadError> {
        if self.mode == DeferIndexes::Off || self.lock().contains_key(&table.shown()) {
            return Ok(());
        }
        let quoted = table.quoted();
        // A view, or a table that the server did not make: there is nothing to put off.
        let Ok(rows) = connection.query([b"SHOW CREATE TABLE ", &quoted[..]].concat()) else { return Ok(()) };
        let Some(definition) = rows.into_iter().next().and_then(|row| row.into_iter().nth(1)).flatten()
        else {
            return Ok(());
        };
        let Some((take_off, put_back)) = plan(&definition, self.mode, shared.total.unwrap_or(0) >= LARGE)
        else {
            return Ok(());
        };
        // What is taken off, and not only switched off, would be lost with this program.
        if shared.progress.is_none() && put_back != ENABLE {
            return Ok(());
        }
        // CREATE TABLE IF NOT EXISTS may have met a table with rows.
        if !connection.query([b"SELECT 1 FROM ", &quoted[..], b" LIMIT 1"].concat())?.is_empty() {
            return Ok(());
        }
        if let Some(progress) = &shared.progress {
            connection.execute(progress.deferred(table, &put_back))?;
        }
        connection.execute([b"ALTER TABLE ", &quoted[..], b" ", &take_off[..]].concat())?;
        self.add(table.clone(), put_back);
        Ok(())
    }

    /// Builds what is missing of a table.
    pub fn build(
        &self,
        connection: &mut Connection,
        table: &Table,
        shared: &LoadState,
    ) -> Result<(), LoadError> {
        let Some((_, clauses)) = self.lock().get(&table.shown()).cloned() else { return Ok(()) };
        match connection.execute([b"ALTER TABLE ", &table.quoted()[..], b" ", &clauses[..]].concat()) {
            Ok(_) => {}
            Err(error) if shared.resumes && says_it_is_done(&error) => {}
            Err(error) => return Err(error.into()),
        }
        if let Some(progress) = &shared.progress {
            connection.execute(progress.built(table))?;
        }
        self.lock().remove(&table.shown());
        Ok(())
    }
}

/// What takes the keys off and what puts them back; `None` if they stay.
fn plan(definition: &[u8], mode: DeferIndexes, large: bool) -> Option<(Vec<u8>, Vec<u8>)> {
    let text = std::str::from_utf8(definition).ok().filter(|text| text.is_ascii())?;
    let lines: Vec<&str> = text.lines().map(|line| line.trim_end_matches(',')).collect();
    let engine =
        lines.iter().find_map(|line| line.strip_prefix(") ENGINE="))?.split(' ').next()?.to_ascii_lowercase();
    let keys: Vec<&str> = lines
        .iter()
        .filter_map(|line| line.strip_prefix("  "))
        .filter(|line| line.starts_with("KEY `"))
        .collect();
    if keys.is_empty() {
        return None;
    }
    if matches!(engine.as_str(), "teak" | "myisam" | "aria") {
        return Some((b"DISABLE KEYS".to_vec(), ENABLE.to_vec()));
    }
    let wanted = mode == DeferIndexes::On || (engine == "innodb" && large);
    // A foreign key needs a key of its columns, and would make another.
    if !wanted || engine == "blackhole" || text.contains(" FOREIGN KEY ") {
        return None;
    }
    let counter = lines.iter().find(|line| line.contains(" AUTO_INCREMENT") && line.starts_with("  `"));
    let counter = counter.and_then(|line| line.split('`').nth(1));
    let needed = |key: &&&str| counter.is_some_and(|column| key.contains(&format!("`{column}`")));
    let off: Vec<&&str> = keys.iter().filter(|key| !needed(key)).collect();
    let names: Option<Vec<String>> =
        off.iter().map(|key| Some(format!("DROP KEY `{}`", key.split('`').nth(1)?))).collect();
    let back: Vec<String> = off.iter().map(|key| format!("ADD {key}")).collect();
    let put_back = back.join(", ").into_bytes();
    if !only_builds_keys(&put_back) {
        return None;
    }
    // A key with a backtick in its name is left alone with all others: it would need to be taken apart.
    let names = names.filter(|names| !names.is_empty() && !keys.iter().any(|key| key.contains("``")))?;
    Some((names.join(", ").into_bytes(), put_back))
}

/// Whether these clauses of an ALTER TABLE do nothing but to switch keys on, or to add some: what is recorded in a
/// table of the server may be written by others.
pub fn only_builds_keys(clauses: &[u8]) -> bool {
    const OPTIONS: &[&str] =
        &["USING", "BTREE", "HASH", "RTREE", "COMMENT", "KEY_BLOCK_SIZE", "IGNORED", "INVISIBLE"];
    if clauses == ENABLE {
        return true;
    }
    // What is in a versioned comment is read, and what is in others does nothing.
    let mut tokens = Tokens::new(clauses, Dialect::OWN);
    loop {
        let begins =
            tokens.accept("ADD") && tokens.accept("KEY") && matches!(tokens.next(), Some(Token::Name(_)));
        if !begins || !key_parts(&mut tokens) {
            return false;
        }
        loop {
            match tokens.next() {
                None => return true,
                Some(Token::Mark(b',')) => break,
                // An option, or its value: of the engine's own the names are quoted.
                Some(Token::Text | Token::Name(_) | Token::Mark(b'=')) => {}
                Some(Token::Word(word)) if word.iter().all(u8::is_ascii_digit) => {}
                Some(word) if OPTIONS.iter().any(|option| word.is(option)) => {}
                Some(_) => return false,
            }
        }
    }
}

/// ``(`a`,`b`(10) DESC)``
fn key_parts(tokens: &mut Tokens<'_>) -> bool {
    let mut depth = 0;
    loop {
        match tokens.next() {
            Some(Token::Mark(b'(')) if depth < 2 => depth += 1,
            Some(Token::Mark(b')')) if depth == 1 => return true,
            Some(Token::Mark(b')')) if depth == 2 => depth -= 1,
            Some(Token::Name(_) | Token::Mark(b',')) if depth == 1 => {}
            Some(Token::Word(word)) if depth == 2 && word.iter().all(u8::is_ascii_digit) => {}
            Some(word) if depth == 1 && (word.is("DESC") || word.is("ASC")) => {}
            _ => return false,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn planned(definition: &str, mode: DeferIndexes, large: bool) -> Option<(String, String)> {
        let (off, back) = plan(definition.as_bytes(), mode, large)?;
        Some((String::from_utf8(off).unwrap(), String::from_utf8(back).unwrap()))
    }

    fn table(engine: &str, more: &str) -> String {
        format!(
            "CREATE TABLE `t` (\n  `id` int(11) NOT NULL AUTO_INCREMENT,\n  `a` int(11) DEFAULT NULL COMMENT 'x, y',\n  PRIMARY KEY (`id`),\n  \
             UNIQUE KEY `u` (`a`),\n  KEY `k` (`a`,`b`(10)),\n  KEY `of_counter` (`id`,`a`),\n  KEY `l` (`b`) USING BTREE{more}\n) \
             ENGINE={engine} AUTO_INCREMENT=7 DEFAULT CHARSET=utf8mb4"
        )
    }

    #[test]
    fn secondary_keys_that_nothing_needs_are_put_off() {
        let expected = (
            "DROP KEY `k`, DROP KEY `l`".to_string(),
            "ADD KEY `k` (`a`,`b`(10)), ADD KEY `l` (`b`) USING BTREE".to_string(),
        );
        assert_eq!(planned(&table("InnoDB", ""), DeferIndexes::On, false), Some(expected.clone()));
        assert_eq!(planned(&table("InnoDB", ""), DeferIndexes::Auto, true), Some(expected));
        assert_eq!(planned(&table("InnoDB", ""), DeferIndexes::Auto, false), None);
        assert_eq!(planned(&table("RocksDB", ""), DeferIndexes::Auto, true), None);
        let keys = Some(("DISABLE KEYS".to_string(), "ENABLE KEYS".to_string()));
        assert_eq!(planned(&table("Teak", ""), DeferIndexes::Auto, false), keys);
    }

    #[test]
    fn what_is_recorded_is_believed_only_if_it_builds_keys() {
        for good in [
            "ENABLE KEYS",
            "ADD KEY `k` (`a`,`b`(10)), ADD KEY `l` (`b` DESC) USING BTREE",
            "ADD KEY `k` (`a`) KEY_BLOCK_SIZE=8 COMMENT 'x, DROP KEY'",
        ] {
            assert!(only_builds_keys(good.as_bytes()), "{good}");
        }
        for bad in [
            "",
            "enable keys, DROP PRIMARY KEY",
            "ADD KEY `k` (`a`), DROP PRIMARY KEY",
            "ADD KEY `k` (`a`), ENGINE=MEMORY",
            "ADD KEY `k` (`a`) /*! , DROP COLUMN a */",
            "ADD KEY `k` (f(`a`))",
            "ADD KEY `k` ((f(1)))",
            "ADD KEY `k`",
            "ADD KEY `k` (`a`",
            "ADD KEY `k` (`a`),",
            "ADD KEY k (a)",
            "RENAME TO `x`",
        ] {
            assert!(!only_builds_keys(bad.as_bytes()), "{bad}");
        }
    }

    #[test]
    fn keys_stay_where_something_needs_them() {
        let foreign = ",\n  CONSTRAINT `f` FOREIGN KEY (`a`) REFERENCES `p` (`id`)";
        assert_eq!(planned(&table("InnoDB", foreign), DeferIndexes::On, true), None);
        assert_eq!(planned("CREATE TABLE `t` (\n  `a` int\n) ENGINE=InnoDB", DeferIndexes::On, true), None);
        assert_eq!(planned(&table("InnoDB", ",\n  KEY `a``b` (`a`)"), DeferIndexes::On, true), None);
        assert_eq!(planned("CREATE VIEW", DeferIndexes::On, true), None);
    }
}
