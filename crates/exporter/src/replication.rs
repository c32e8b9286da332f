//! SHOW ALL SLAVES STATUS, by the names that prometheus-mysqld-exporter has.

use crate::part::Missing;
use crate::server_status::is_well_named;
use crate::session::Asking;
use crate::value::number;
use std::collections::BTreeMap;
use teak_metrics::{Family, Kind};

/// All numbers of all connections to other servers.
pub fn families(asking: &mut Asking<'_>) -> Result<Vec<Family>, Missing> {
    Ok(of_rows(&asking.named("SHOW ALL SLAVES STATUS")?))
}

fn of_rows(rows: &[Vec<(String, String)>]) -> Vec<Family> {
    let mut families = BTreeMap::new();
    for row in rows {
        let text =
            |wanted: &str| row.iter().find(|(name, _)| name == wanted).map_or("", |(_, text)| text.as_str());
        let labels = [
            ("master_host", text("Master_Host")),
            ("master_uuid", ""),
            ("channel_name", ""),
            ("connection_name", text("Connection_name")),
        ];
        for (name, text) in row {
            let name = name.to_ascii_lowercase();
            if let Some(value) = number(text).filter(|_| is_well_named(&name)) {
                let help = "What SHOW ALL SLAVES STATUS has by this name";
                let name = format!("mysql_slave_status_{name}");
                let family = || Family::new(&name, Kind::Untyped, help);
                families.entry(name.clone()).or_insert_with(family).add(&labels, value);
            }
        }
    }
    families.into_values().collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_connection_has_its_numbers_and_what_is_null_is_not_there() {
        let row = |name: &str, behind: &str| {
            [
                ("Connection_name", name),
                ("Master_Host", "db1"),
                ("Seconds_Behind_Master", behind),
                ("X", "No"),
            ]
            .map(|(name, text)| (name.to_string(), text.to_string()))
            .to_vec()
        };
        let text: String = of_rows(&[row("a", "5"), row("b", "")]).iter().map(Family::to_string).collect();
        let labels = |name| {
            format!("{{master_host=\"db1\",master_uuid=\"\",channel_name=\"\",connection_name=\"{name}\"}}")
        };
        assert!(text.contains(&format!("seconds_behind_master{} 5\n", labels("a"))), "{text}");
        assert!(!text.contains(&format!("seconds_behind_master{}", labels("b"))), "{text}");
        assert!(text.contains(&format!("mysql_slave_status_x{} 0\n", labels("b"))), "{text}");
    }
}
