//! What follows from the facts: rules that know no server.

use crate::facts::{Facts, Index, Server, Table};
use serde::Serialize;
use std::time::Duration;
use teak_console::amounts::{bytes, clock};

/// Free space, or what an index takes, below which nobody is troubled.
const WORTH_BYTES: u64 = 16 << 20;
/// A part of a file that is free and worth having back.
const WORTH_SHARE: f64 = 0.25;
/// Blocks that are filled less than this gain from OPTIMIZE.
const LOW_FILL: f64 = 0.4;
/// So many reads of a table's other indexes say that it is in use.
const USED: u64 = 100;
/// A snapshot older than this is no statement that takes long.
const OLD_SECONDS: u64 = 600;
/// So many pages have to be asked for before their share says something, and so many of a hundred not found.
const ASKED_PAGES: u64 = 1_000_000;
const MISSED_PERCENT: u64 = 5;

/// Something to do.
#[derive(Debug, PartialEq, Eq, Serialize)]
pub struct Advice {
    /// What kind: `old-snapshot`, `duplicate-index`, ...
    pub kind: &'static str,
    /// The table, if it is about one: `db.table`.
    pub table: Option<String>,
    /// What was seen.
    pub evidence: String,
    /// What to run.
    pub statement: String,
    /// What that gives back on disk, about.
    pub gain_bytes: u64,
}

/// All of it, that about the server first, then what gives back most.
pub fn all(facts: &Facts, unused_after: u64) -> Vec<Advice> {
    let mut found: Vec<Advice> = facts.server.as_ref().map_or_else(Vec::new, |asked| server(asked, facts));
    let mut tables: Vec<Advice> = Vec::new();
    for table in &facts.tables {
        tables.extend(duplicates(table));
        let uptime = facts.server.as_ref().map(|server| server.uptime_seconds);
        if let Some(uptime) = uptime.filter(|&uptime| uptime >= unused_after) {
            tables.extend(unused(table, uptime));
        }
        tables.extend(space(table));
        tables.extend(without_key(table));
    }
    tables.sort_by_key(|advice| std::cmp::Reverse(advice.gain_bytes));
    found.extend(tables);
    found
}

fn quoted(name: &str) -> String {
    format!("`{}`", name.replace('`', "``"))
}

impl Table {
    /// As statements have it.
    fn quoted(&self) -> String {
        format!("{}.{}", quoted(&self.database), quoted(&self.name))
    }

    fn advice(&self, kind: &'static str, evidence: String, statement: String, gain_bytes: u64) -> Advice {
        let table = Some(format!("{}.{}", self.database, self.name));
        Advice { kind, table, evidence, statement, gain_bytes }
    }
}

fn server(server: &Server, facts: &Facts) -> Vec<Advice> {
    let advice = |kind, evidence, statement| Advice { kind, table: None, evidence, statement, gain_bytes: 0 };
    let metric = |name: &str| facts.metrics.get(name).copied().unwrap_or(0);
    let mut found = Vec::new();
    if let Some(old) = facts.oldest_snapshot.as_ref().filter(|old| old.age_seconds >= OLD_SECONDS) {
        let held = bytes((old.memory_bytes + old.spilled_bytes) as f64);
        let age = clock(Duration::from_secs(old.age_seconds));
        let evidence = format!(
            "connection {} reads as of {age} ago; {} old versions, {held}, are kept for it",
            old.connection, old.versions
        );
        found.push(advice("old-snapshot", evidence, format!("KILL {}", old.connection)));
    }
    let (asked, missed) = (metric("buffer_pool_read_requests"), metric("buffer_pool_reads"));
    if asked >= ASKED_PAGES && missed.saturating_mul(100) >= asked.saturating_mul(MISSED_PERCENT) {
        let evidence = format!(
            "of {asked} pages {missed} were not in memory ({} of a hundred), with a cache of {}",
            missed * 100 / asked,
            bytes(server.cache_bytes as f64)
        );
        let statement = format!("SET GLOBAL teak_cache_size = {}", server.cache_bytes.saturating_mul(2));
        found.push(advice("small-cache", evidence, statement));
    }
    let waits = metric("checkpoint_waits");
    if waits > 0 {
        let log = server.checkpoint_log_bytes;
        let evidence = format!(
            "writes have waited {waits} times since checkpoints, one after {} of log, were behind",
            bytes(log as f64)
        );
        let statement = format!("SET GLOBAL teak_checkpoint_log_size = {}", log.saturating_mul(2));
        found.push(advice("checkpoint-waits", evidence, statement));
    }
    found
}

/// Whether an index says nothing that `other` does not: that has its columns and more, or the same ones. Of two that
/// are the same the unique one stays, or the first one.
fn is_covered(index: (usize, &Index), other: (usize, &Index)) -> bool {
    let ((at, index), (other_at, other)) = (index, other);
    if at == other_at || !other.is_btree || !other.columns.starts_with(&index.columns) {
        return false;
    }
    match other.columns.len() == index.columns.len() {
        true if other.is_unique != index.is_unique => other.is_unique,
        true => other_at < at,
        false => !index.is_unique,
    }
}

/// Indexes whose columns another one begins with.
fn duplicates(table: &Table) -> Vec<Advice> {
    let mut found = Vec::new();
    for (at, index) in table.indexes.iter().enumerate() {
        if index.name == "PRIMARY" || index.columns.is_empty() || !index.is_btree {
            continue;
        }
        let others = table.indexes.iter().enumerate();
        let Some((_, other)) = others.into_iter().find(|other| is_covered((at, index), *other)) else {
            continue;
        };
        let evidence = format!(
            "index {} ({}) takes {}, and {} ({}) begins with its columns",
            index.name,
            index.columns.join(", "),
            bytes(index.disk_bytes as f64),
            other.name,
            other.columns.join(", ")
        );
        let statement = format!("ALTER TABLE {} DROP INDEX {}", table.quoted(), quoted(&index.name));
        found.push(table.advice("duplicate-index", evidence, statement, index.disk_bytes));
    }
    found
}

/// Indexes that nobody has read while the table was.
fn unused(table: &Table, uptime: u64) -> Vec<Advice> {
    let reads = |index: &Index| index.uses.map_or(0, |uses| uses.look_ups + uses.scans);
    let all: u64 = table.indexes.iter().map(reads).sum();
    let is_idle = |index: &&Index| {
        let may_go =
            !index.is_unique && index.is_btree && !index.serves_foreign_key && !index.columns.is_empty();
        may_go && index.uses.is_some() && reads(index) == 0
    };
    if all < USED {
        return Vec::new();
    }
    let advice = |index: &Index| {
        let evidence = format!(
            "index {} ({}) takes {}, had {} keys put in, and nobody has read it since the table was opened; its other \
             indexes were read {all} times (the server is up for {})",
            index.name,
            index.columns.join(", "),
            bytes(index.disk_bytes as f64),
            index.uses.unwrap_or_default().inserts,
            clock(Duration::from_secs(uptime)),
        );
        // It is still there when it was missed after all.
        let statement = format!("ALTER TABLE {} ALTER INDEX {} IGNORED", table.quoted(), quoted(&index.name));
        table.advice("unused-index", evidence, statement, index.disk_bytes)
    };
    table.indexes.iter().filter(is_idle).map(advice).collect()
}

/// What OPTIMIZE gives back.
fn space(table: &Table) -> Option<Advice> {
    let whole = (table.disk_bytes + table.free_bytes).max(1);
    let slack = |index: &Index| match index.fill {
        Some(fill) if fill < LOW_FILL => (index.disk_bytes as f64 * (1.0 - fill / 0.7)) as u64,
        _ => 0,
    };
    let slack: u64 = table.indexes.iter().map(slack).sum();
    let gain = table.free_bytes + slack;
    if gain < WORTH_BYTES || (gain as f64) < WORTH_SHARE * whole as f64 {
        return None;
    }
    let evidence = format!(
        "of {} on disk {} are free, and blocks that are less than {LOW_FILL} full would give about {}",
        bytes(whole as f64),
        bytes(table.free_bytes as f64),
        bytes(slack as f64)
    );
    Some(table.advice("optimize", evidence, format!("OPTIMIZE TABLE {}", table.quoted()), gain))
}

fn without_key(table: &Table) -> Option<Advice> {
    let is_told = table.indexes.iter().any(|index| !index.name.starts_with("tree "));
    if table.has_primary_key || !is_told || table.rows == 0 {
        return None;
    }
    let evidence = format!(
        "{} rows have no primary key: replicas look for each that is changed by its values, and nothing finds one \
         faster than a scan",
        table.rows
    );
    let statement = format!("ALTER TABLE {} ADD id BIGINT AUTO_INCREMENT PRIMARY KEY", table.quoted());
    Some(table.advice("no-primary-key", evidence, statement, 0))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::facts::{Snapshot, Uses};

    fn index(name: &str, columns: &[&str], is_unique: bool) -> Index {
        Index {
            name: name.into(),
            columns: columns.iter().map(|column| column.to_string()).collect(),
            is_unique,
            is_btree: true,
            disk_bytes: 1 << 20,
            fill: Some(0.8),
            uses: Some(Uses::default()),
            ..Index::default()
        }
    }

    fn facts(indexes: Vec<Index>) -> Facts {
        let table = Table {
            database: "d".into(),
            name: "t`x".into(),
            rows: 5,
            disk_bytes: 100 << 20,
            has_primary_key: true,
            indexes,
            ..Table::default()
        };
        Facts { server: Some(Server::default()), tables: vec![table], ..Facts::default() }
    }

    fn said(facts: &Facts) -> Vec<(&'static str, String)> {
        all(facts, 0).into_iter().map(|advice| (advice.kind, advice.statement)).collect()
    }

    #[test]
    fn of_indexes_that_begin_alike_the_shorter_goes_and_of_equal_ones_one() {
        let check = |others: Vec<Index>, dropped: &[&str]| {
            let indexes = std::iter::once(index("PRIMARY", &["id"], true)).chain(others).collect();
            let drop = |name| ("duplicate-index", format!("ALTER TABLE `d`.`t``x` DROP INDEX `{name}`"));
            assert_eq!(said(&facts(indexes)), dropped.iter().map(drop).collect::<Vec<_>>());
        };
        let (a, ab) = (|| index("a", &["a"], false), || index("ab", &["a", "b"], false));
        check(vec![a(), ab()], &["a"]);
        check(vec![a(), index("a2", &["a"], false)], &["a2"]);
        check(vec![index("u", &["a"], true), a()], &["a"]);
        check(vec![a(), index("u", &["a"], true)], &["a"]);
        // A unique one says more than what begins with its columns; a beginning of a text is another column.
        check(vec![index("u", &["a"], true), ab()], &[]);
        check(vec![index("part", &["a(10)"], false), ab()], &[]);
    }

    #[test]
    fn an_index_is_unused_where_the_table_is_used_and_nothing_else_needs_it() {
        let used = |reads| Some(Uses { look_ups: reads, ..Uses::default() });
        let mut primary = index("PRIMARY", &["id"], true);
        primary.uses = used(USED);
        let idle = || index("idle", &["a"], false);
        let expected =
            vec![("unused-index", "ALTER TABLE `d`.`t``x` ALTER INDEX `idle` IGNORED".to_string())];
        let mut known = facts(vec![primary, idle(), index("unique", &["b"], true)]);
        assert_eq!(said(&known), expected);
        assert_eq!(all(&known, 1), [], "the server has just been started");
        known.tables[0].indexes[1].serves_foreign_key = true;
        assert_eq!(said(&known), []);
        known.tables[0].indexes[1] = Index { uses: None, ..idle() };
        assert_eq!(said(&known), [], "the table was not open");
        known.tables[0].indexes[1] = Index { uses: used(1), ..idle() };
        assert_eq!(said(&known), []);
        known.tables[0].indexes[1] = idle();
        known.tables[0].indexes[0].uses = used(USED - 1);
        assert_eq!(said(&known), [], "nobody uses the table");
    }

    #[test]
    fn space_is_told_of_when_it_is_worth_an_optimize() {
        let mut known = facts(vec![index("PRIMARY", &["id"], true)]);
        known.tables[0].free_bytes = 33 << 20;
        assert_eq!(said(&known), []);
        known.tables[0].free_bytes = 50 << 20;
        assert_eq!(said(&known), [("optimize", "OPTIMIZE TABLE `d`.`t``x`".to_string())]);
        known.tables[0].free_bytes = 0;
        known.tables[0].indexes[0].fill = Some(0.2);
        known.tables[0].indexes[0].disk_bytes = 60 << 20;
        assert_eq!(all(&known, 0)[0].gain_bytes, ((60 << 20) as f64 * (1.0 - 0.2 / 0.7)) as u64);
    }

    #[test]
    fn the_server_comes_first() {
        let mut known = facts(vec![index("rows", &[], false)]);
        known.tables[0].has_primary_key = false;
        let old =
            Snapshot { connection: 7, age_seconds: 3725, versions: 9, memory_bytes: 1, spilled_bytes: 2 };
        known.oldest_snapshot = Some(old);
        known.server =
            Some(Server { cache_bytes: 1 << 30, checkpoint_log_bytes: 1 << 20, ..Server::default() });
        let metrics = [
            ("buffer_pool_read_requests", 2_000_000),
            ("buffer_pool_reads", 100_000),
            ("checkpoint_waits", 3),
        ];
        known.metrics = metrics.map(|(name, value)| (name.to_string(), value)).into();
        let kinds: Vec<_> = said(&known).into_iter().map(|(kind, _)| kind).collect();
        assert_eq!(kinds, ["old-snapshot", "small-cache", "checkpoint-waits", "no-primary-key"]);
        known.oldest_snapshot.as_mut().unwrap().age_seconds = OLD_SECONDS - 1;
        assert_eq!(all(&known, 0)[0].statement, format!("SET GLOBAL teak_cache_size = {}", 2u64 << 30));
    }
}
