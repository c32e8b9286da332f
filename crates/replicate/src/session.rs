//! The session of a statement of the log: what a server has to be set to, so that it means the same.

use teak_binlog::{Family, Header, Query};
use teak_sql::mysql;
use teak_sql::quoting::literal;

const NO_ENGINE_SUBSTITUTION: u64 = 1 << 30;
/// Bits above these are not the same in both families.
const MODES_OF_BOTH: u64 = u32::MAX as u64;
/// The first of MySQL's collations that MariaDB has not, and one of the same character set that both have.
const UTF8MB4_0900: u16 = 255;
const UTF8MB4_GENERAL: u16 = 45;
const NO_FOREIGN_KEY_CHECKS: u32 = 0x400_0000;
const NO_UNIQUE_CHECKS: u32 = 0x800_0000;
const AUTO_IS_NULL: u32 = 0x4000;

/// The statement that sets it. `has_engine`: tables are made with another engine than statements name.
pub fn of(header: &Header, query: &Query<'_>, family: Family, has_engine: bool) -> String {
    let session = &query.session;
    let time = format!("{}.{:06}", header.time, session.microseconds.unwrap_or(0));
    let mut set = format!("SET SESSION timestamp = {time}");
    if let Some(mode) = session.sql_mode {
        let mode = if family == Family::MySql { mode & MODES_OF_BOTH } else { mode };
        let mode = if has_engine { mode & !NO_ENGINE_SUBSTITUTION } else { mode };
        set += &format!(", sql_mode = {mode}");
    }
    if let Some(flags) = session.flags {
        for (name, bit, when_set) in [
            ("foreign_key_checks", NO_FOREIGN_KEY_CHECKS, 0),
            ("unique_checks", NO_UNIQUE_CHECKS, 0),
            ("sql_auto_is_null", AUTO_IS_NULL, 1),
        ] {
            let value = if flags & bit != 0 { when_set } else { 1 - when_set };
            set += &format!(", {name} = {value}");
        }
    }
    if let Some([client, connection, server]) = session.collations {
        let is_other = family == Family::MySql && client >= UTF8MB4_0900;
        set += &format!(", character_set_client = {}", if is_other { UTF8MB4_GENERAL } else { client });
        for (name, collation) in [("collation_connection", connection), ("collation_server", server)] {
            let nearest = mysql::nearest_of_number(collation).filter(|_| family == Family::MySql);
            set += &format!(", {name} = {}", nearest.unwrap_or_else(|| collation.to_string()));
        }
    }
    if let Some(explicit) = session.explicit_timestamp_defaults {
        set += &format!(", explicit_defaults_for_timestamp = {}", u8::from(explicit));
    }
    if let Some(zone) = session.time_zone {
        set += &format!(", time_zone = {}", literal(zone));
    }
    if let Some(names) = session.time_names {
        set += &format!(", lc_time_names = {names}");
    }
    if let Some((increment, offset)) = session.auto_increment {
        set += &format!(", auto_increment_increment = {increment}, auto_increment_offset = {offset}");
    }
    set
}

#[cfg(test)]
mod tests {
    use super::*;
    use teak_binlog::{Flags, Session};

    #[test]
    fn a_session_is_as_the_log_has_it() {
        let header =
            Header { time: 17, code: 2, server_id: 1, length: 0, end_position: 0, flags: Flags::default() };
        let session = Session {
            flags: Some(NO_FOREIGN_KEY_CHECKS),
            sql_mode: Some(NO_ENGINE_SUBSTITUTION | 1 << 32 | 4),
            collations: Some([33, 255, 8]),
            time_zone: Some(b"+02:00"),
            microseconds: Some(5),
            ..Session::default()
        };
        let query = Query {
            thread_id: 0,
            seconds: 0,
            error_code: 0,
            session,
            database: b"",
            statement: b"".as_slice().into(),
            was_compressed: false,
        };
        let both =
            "foreign_key_checks = 0, unique_checks = 1, sql_auto_is_null = 0, character_set_client = 33";
        assert_eq!(
            of(&header, &query, Family::MySql, true),
            format!(
                "SET SESSION timestamp = 17.000005, sql_mode = 4, {both}, collation_connection = \
                 utf8mb4_uca1400_nopad_ai_ci, collation_server = 8, time_zone = _utf8mb4 x'2b30323a3030'"
            )
        );
        let mariadb = of(&header, &query, Family::MariaDb, false);
        assert!(
            mariadb.contains("sql_mode = 5368709124, ") && mariadb.contains("collation_connection = 255")
        );
    }
}
