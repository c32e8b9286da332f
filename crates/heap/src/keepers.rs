//! What a server keeps of a statement on purpose: caches and pools, known by the functions that fill them.
//!
//! A leak check finds all that a statement has allocated and not freed. What one of these has put away is no leak: the
//! next statement that wants it has it from there. It is told apart, and not left out, since a cache that nobody
//! bounds is one of the places where memory goes.

use crate::symbols::Frame;

/// Beginnings of names of functions, and what keeps the objects that are allocated below them.
const KEEPERS: &[(&str, &str)] = &[
    ("lf_alloc_new", "a pool of the server, for lock-free structures"),
    ("lf_hash_", "a hash of the server, which grows"),
    ("lf_pinbox_", "a pool of the server, for lock-free structures"),
    ("lf_dynarray_", "a pool of the server, for lock-free structures"),
    ("MDL_map::", "metadata locks"),
    ("tdc_acquire_share", "the table definition cache"),
    ("open_table_from_share", "the table cache"),
    ("open_table(", "the table cache"),
    ("open_table_def", "the table definition cache"),
    ("read_statistics_for_tables", "the table definition cache"),
    ("sp_cache_", "the session's cache of routines"),
    ("Sp_handler::db_find_routine", "the session's cache of routines"),
    ("Sp_handler::sp_cache_", "the session's cache of routines"),
    ("Query_cache::", "the query cache"),
    ("Statement_map::", "the session's prepared statements"),
    ("acl_", "the server's privileges"),
    ("my_uca_", "a collation, loaded by its first use"),
    ("get_internal_charset", "a collation, loaded by its first use"),
    ("init_available_charsets", "a collation, loaded by its first use"),
    ("mysql_audit_acquire_plugins", "the session's list of plugins"),
    ("THD::binlog_setup_trx_data", "the session's cache of the binary log"),
    ("ha_teak::", "an open table of Teak, in the table cache"),
    ("ha_innobase::", "an open table of InnoDB, in the table cache"),
    ("ha_maria::", "an open table of Aria, in the table cache"),
    ("teak_core::", "Teak: rows, blocks and locks, within teak_cache_size"),
    ("teak_rows::", "Teak: the session"),
    ("teak_", "Teak: the session"),
    ("dict_", "InnoDB's dictionary"),
];

/// What keeps the objects of a stack; `None`: nothing that is known.
pub fn keeper(frames: &[Frame]) -> Option<&'static str> {
    frames.iter().filter_map(|frame| frame.function.as_deref()).find_map(|name| {
        // Of a method of a trait Rust says in brackets whose it is.
        let name = name.trim_start_matches('<');
        KEEPERS.iter().find(|(beginning, _)| name.starts_with(beginning)).map(|(_, keeper)| *keeper)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_stack_tells_what_keeps_its_objects() {
        let frame = |name: &str| Frame { function: Some(name.into()), ..Frame::default() };
        let pool = [frame("my_malloc"), frame("lf_alloc_new"), frame("MDL_map::find_or_insert(LF_PINS*)")];
        assert!(keeper(&pool).is_some_and(|keeper| keeper.contains("pool")));
        assert!(keeper(&[frame("<teak_core::tree::Tree as Drop>::drop")]).is_some());
        assert_eq!(keeper(&[frame("planted_leak"), frame("dispatch_command(int)"), Frame::default()]), None);
    }
}
