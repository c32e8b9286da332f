//! information_schema.TEAK_INDEXES: sizes and uses of the indexes of tables that are open. By option only: its series
//! are as many as the tables.

use crate::part::Missing;
use crate::session::Asking;
use teak_metrics::{Family, Kind};

const QUERY: &str =
    "SELECT TABLE_SCHEMA, TABLE_NAME, TREE, INDEX_NAME, ENTRIES, RAW_BYTES, DISK_BYTES, FILL, LOOK_UPS, \
    SCANS, INSERTS, LOCK_WAITS, LOCK_WAIT_SECONDS FROM information_schema.TEAK_INDEXES";
/// Names, kinds and meanings of what comes behind the labels.
const NUMBERS: [(&str, Kind, &str); 9] = [
    ("entries", Kind::Gauge, "Keys that are committed, about"),
    ("raw_bytes", Kind::Gauge, "Blocks before they are compressed, as of the last checkpoint"),
    ("disk_bytes", Kind::Gauge, "The same blocks on disk"),
    ("fill_ratio", Kind::Gauge, "What blocks have of what they could have"),
    ("look_ups_total", Kind::Counter, "Single keys that were looked up since the table was opened"),
    ("scans_total", Kind::Counter, "Ranges that were begun since the table was opened"),
    ("inserts_total", Kind::Counter, "Keys that were put in since the table was opened"),
    ("lock_waits_total", Kind::Counter, "Waits for its locks that have ended"),
    ("lock_wait_seconds_total", Kind::Counter, "How long these took"),
];
const LABELS: [&str; 4] = ["database", "table", "tree", "index"];

/// All of them.
pub fn families(asking: &mut Asking<'_>) -> Result<Vec<Family>, Missing> {
    let mut families: Vec<Family> = NUMBERS
        .iter()
        .map(|(name, kind, help)| Family::new(&format!("teak_index_{name}"), *kind, help))
        .collect();
    asking.each(QUERY, &mut |row| {
        let text = |at: usize| row.get(at).and_then(Option::as_deref).unwrap_or_default();
        let labels: Vec<(&str, &str)> =
            LABELS.iter().enumerate().map(|(at, name)| (*name, text(at))).collect();
        for (at, family) in families.iter_mut().enumerate() {
            // What is not known is NULL.
            if let Ok(value) = text(LABELS.len() + at).parse() {
                family.add(&labels, value);
            }
        }
    })?;
    Ok(families)
}
