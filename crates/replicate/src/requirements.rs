//! What servers must be for a source to be followed: what `check` tells as errors, and what following does not begin
//! without.

use crate::configuration::{SourcePlan, TargetPlan};
use teak_binlog::Family;
use teak_client::{Connection, Error};
use teak_sql::quoting::literal;

/// The oldest versions.
const MARIADB_SOURCE: (u32, u32) = (10, 5);
const MYSQL_SOURCE: (u32, u32) = (5, 7);
const TARGET: (u32, u32) = (10, 11);

/// Why a server cannot be followed, all that there is.
pub fn of_source(
    connection: &mut Connection,
    family: Family,
    plan: &SourcePlan,
) -> Result<Vec<String>, Error> {
    let mut wrong = Vec::new();
    let oldest = if family == Family::MariaDb { MARIADB_SOURCE } else { MYSQL_SOURCE };
    wrong.extend(too_old(connection.version(), oldest));
    let mut ask = |variable: &str| {
        Ok::<_, Error>(connection.value(format!("SELECT @@GLOBAL.{variable}"))?.unwrap_or_default())
    };
    if ask("log_bin")? != "1" {
        wrong.push("it has no binary log (log_bin)".into());
    }
    match ask("binlog_format")? {
        row if row == "ROW" => (),
        other => wrong.push(format!("binlog_format is {other}, and must be ROW, in all of its sessions")),
    }
    if family == Family::MySql {
        match ask("gtid_mode")? {
            on if on == "ON" => (),
            other => wrong.push(format!("gtid_mode is {other}, and must be ON")),
        }
    }
    let id = ask("server_id")?;
    if plan.server_id.is_some_and(|ours| ours.to_string() == id) {
        wrong.push(format!("server_id {id} is its own, and another one is needed here"));
    }
    Ok(wrong)
}

/// Why nothing can be applied in a server, all that there is.
pub fn of_target(connection: &mut Connection, plan: &TargetPlan) -> Result<Vec<String>, Error> {
    let mut wrong = Vec::new();
    if !connection.version().contains("MariaDB") {
        wrong.push(format!("it is no MariaDB ({})", connection.version()));
        return Ok(wrong);
    }
    wrong.extend(too_old(connection.version(), TARGET));
    if let Some(engine) = &plan.engine {
        let known = format!(
            "SELECT CONCAT(SUPPORT, ' ', IFNULL(TRANSACTIONS, 'NO')) FROM information_schema.ENGINES WHERE ENGINE = {}",
            literal(engine.as_bytes())
        );
        match connection.value(known)?.as_deref() {
            Some("YES YES" | "DEFAULT YES") => (),
            Some("YES NO" | "DEFAULT NO") => wrong.push(format!(
                "engine {engine} has no transactions: rows and position could not be kept together"
            )),
            _ => wrong.push(format!("it has no engine {engine}")),
        }
    }
    let mode = connection.value("SELECT @@GLOBAL.slave_exec_mode")?.unwrap_or_default();
    if mode != "STRICT" {
        wrong.push(format!(
            "slave_exec_mode is {mode}: rows that do not fit would be overwritten without a word"
        ));
    }
    let triggers = connection.value("SELECT @@GLOBAL.slave_run_triggers_for_rbr")?.unwrap_or_default();
    if triggers != "NO" {
        wrong.push(format!(
            "slave_run_triggers_for_rbr is {triggers}: triggers would act once more on what they did at the source"
        ));
    }
    Ok(wrong)
}

/// If a version is older than another one.
fn too_old(version: &str, oldest: (u32, u32)) -> Option<String> {
    let mut parts = version.split(['.', '-']).map(|part| part.parse::<u32>().unwrap_or(0));
    let found = (parts.next().unwrap_or(0), parts.next().unwrap_or(0));
    let (major, minor) = oldest;
    (found < oldest).then(|| format!("its version is {version}, and {major}.{minor} is needed at least"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn versions_are_compared_by_numbers() {
        for (version, is_too_old) in [
            ("10.11.18-MariaDB-log", false),
            ("10.4.30-MariaDB", true),
            ("11.0.2-MariaDB", false),
            ("9.7.0", true),
        ] {
            assert_eq!(too_old(version, (10, 5)).is_some(), is_too_old, "{version}");
        }
    }
}
