//! What the loader asks the server: about itself, and about the tables that rows go into.

use super::task::{Facts, Table};
use std::collections::HashSet;
use teak_client::{Connection, Error};
use teak_sql::quoting::literal;

/// What the server is like.
pub struct Server {
    pub max_allowed_packet: usize,
    /// Names of tables that differ only in case are one.
    pub folds_names: bool,
    /// Engines that have transactions, in small letters.
    transactional: HashSet<String>,
}

impl Server {
    /// The longest statement that it takes, in bytes.
    pub fn longest_statement(&self) -> usize {
        // The packet has one byte more, and must be shorter than the limit.
        self.max_allowed_packet.saturating_sub(2)
    }

    pub fn ask(control: &mut Connection) -> Result<Server, Error> {
        let mut value = |name: &str| control.value(format!("SELECT @@{name}")).map(Option::unwrap_or_default);
        let max_allowed_packet = value("max_allowed_packet")?.parse().unwrap_or(16 << 20);
        let folds_names = value("lower_case_table_names")? != "0";
        let rows = control
            .query("SELECT LOWER(ENGINE) FROM information_schema.ENGINES WHERE TRANSACTIONS = 'YES'")?;
        let transactional =
            rows.into_iter().filter_map(|row| text(row.into_iter().next().flatten())).collect();
        Ok(Server { max_allowed_packet, folds_names, transactional })
    }

    /// What decides how rows may be inserted into a table. Of one whose name is in another character set than this
    /// connection's, nothing is known: its rows are inserted in the dump's order.
    pub fn facts(&self, control: &mut Connection, table: &Table) -> Result<Facts, Error> {
        if [&table.database, &table.name].iter().any(|name| std::str::from_utf8(name).is_err()) {
            return Ok(Facts::default());
        }
        let of_table =
            format!("TABLE_SCHEMA = {} AND TABLE_NAME = {}", literal(&table.database), literal(&table.name));
        let kind = format!("SELECT ENGINE FROM information_schema.TABLES WHERE {of_table} AND TABLE_TYPE IN ('BASE TABLE', 'SYSTEM VERSIONED')");
        let engine = control.value(kind)?.unwrap_or_default();
        let mut facts = Facts {
            transactional: self.transactional.contains(&engine.to_ascii_lowercase()),
            engine,
            ..Facts::default()
        };
        if facts.engine.is_empty() {
            return Ok(facts);
        }
        let columns = format!("SELECT COLUMN_NAME, EXTRA, COLUMN_DEFAULT FROM information_schema.COLUMNS WHERE {of_table} ORDER BY ORDINAL_POSITION");
        for row in control.query(columns)? {
            let mut row = row.into_iter();
            let name = row.next().flatten().unwrap_or_default();
            let extra = text(row.next().flatten()).unwrap_or_default().to_ascii_uppercase();
            let default = text(row.next().flatten()).unwrap_or_default().to_ascii_lowercase();
            facts.draws_numbers |= default.contains("nextval") || default.contains("next value");
            if extra.contains("AUTO_INCREMENT") {
                facts.auto_increment = Some(name.clone());
            }
            if !extra.contains("INVISIBLE") {
                facts.columns.push(name);
            }
        }
        let of_trigger = of_table
            .replace("TABLE_SCHEMA", "EVENT_OBJECT_SCHEMA")
            .replace("TABLE_NAME", "EVENT_OBJECT_TABLE");
        let triggers = format!("SELECT COUNT(*) FROM information_schema.TRIGGERS WHERE {of_trigger}");
        facts.has_triggers = control.value(triggers)?.as_deref() != Some("0");
        let keys = format!("SELECT COUNT(*) FROM information_schema.KEY_COLUMN_USAGE WHERE {of_table} AND REFERENCED_TABLE_NAME IS NOT NULL");
        facts.has_foreign_keys = control.value(keys)?.as_deref() != Some("0");
        Ok(facts)
    }
}

fn text(value: Option<Vec<u8>>) -> Option<String> {
    value.map(|value| String::from_utf8_lossy(&value).into_owned())
}
