//! Whether the tables agree with each other after a run: counts with visible links, and the indexes of the links.

use super::session::number;
use crate::Error;
use std::collections::BTreeMap;
use teak_client::{Connection, Rows};

/// Nodes that are compared at once.
const IDS: u64 = 20_000;
/// Differences that are named; the others are counted.
const NAMED: usize = 5;

/// What is wrong, in sentences; nothing if all is well. `nodes` is the largest id that was loaded.
pub fn verify(connection: &mut Connection, nodes: u64) -> Result<Vec<String>, Error> {
    let mut wrong = counts(connection, nodes)?;
    let index = |connection: &mut Connection, name: &str, condition: &str| {
        connection.query(format!(
            "SELECT COUNT(*), SUM(CRC32(CONCAT_WS('|', id1, id2, link_type, visibility, data, time, version))) \
             FROM linktable FORCE INDEX ({name}) WHERE {condition}"
        ))
    };
    let primary = index(connection, "PRIMARY", "link_type >= 0")?;
    let secondary = index(connection, "id1_type", "id1 >= 0")?;
    if primary != secondary {
        let rows = [&primary, &secondary].map(|rows| number(rows, 0, 0).unwrap_or(0));
        wrong.push(format!(
            "the indexes of linktable differ: {} rows by PRIMARY, {} by id1_type",
            rows[0], rows[1]
        ));
    }
    Ok(wrong)
}

/// Compares each count with the number of visible links.
fn counts(connection: &mut Connection, nodes: u64) -> Result<Vec<String>, Error> {
    let mut wrong = Vec::new();
    let mut unnamed = 0;
    for first in (1..=nodes).step_by(IDS as usize) {
        let last = first + IDS - 1;
        let links = connection.query(format!(
            "SELECT id1, link_type, COUNT(*) FROM linktable FORCE INDEX (id1_type) \
             WHERE id1 BETWEEN {first} AND {last} AND visibility = 1 GROUP BY id1, link_type"
        ))?;
        let counts = connection.query(format!(
            "SELECT id, link_type, count FROM counttable WHERE id BETWEEN {first} AND {last} AND count > 0"
        ))?;
        for (key, visible, counted) in differences(&links, &counts) {
            if wrong.len() < NAMED {
                wrong.push(format!(
                    "node {} has {visible} visible links of type {}, and the count says {counted}",
                    key.0, key.1
                ));
            } else {
                unnamed += 1;
            }
        }
    }
    if unnamed > 0 {
        wrong.push(format!("{unnamed} more counts are wrong"));
    }
    Ok(wrong)
}

/// Node and type, visible links and count, where they differ.
fn differences(links: &Rows, counts: &Rows) -> Vec<((u64, u64), u64, u64)> {
    let mut both: BTreeMap<(u64, u64), (u64, u64)> = BTreeMap::new();
    let value = |rows: &Rows, row, column| number(rows, row, column).unwrap_or(0);
    for row in 0..links.len() {
        both.entry((value(links, row, 0), value(links, row, 1))).or_default().0 = value(links, row, 2);
    }
    for row in 0..counts.len() {
        both.entry((value(counts, row, 0), value(counts, row, 1))).or_default().1 = value(counts, row, 2);
    }
    both.into_iter()
        .filter(|(_, (visible, counted))| visible != counted)
        .map(|(key, (a, b))| (key, a, b))
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn differences_are_found_on_both_sides() {
        let rows = |values: &[[u64; 3]]| -> Rows {
            values
                .iter()
                .map(|row| row.iter().map(|value| Some(value.to_string().into_bytes())).collect())
                .collect()
        };
        let links = rows(&[[1, 5, 2], [2, 5, 1], [2, 6, 3]]);
        assert!(differences(&links, &links).is_empty());
        let counts = rows(&[[1, 5, 2], [2, 6, 4], [9, 5, 1]]);
        assert_eq!(differences(&links, &counts), [((2, 5), 1, 0), ((2, 6), 3, 4), ((9, 5), 0, 1)]);
    }
}
