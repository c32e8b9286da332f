//! SHOW GLOBAL VARIABLES, by the names that prometheus-mysqld-exporter has.

use crate::part::Missing;
use crate::server_status::is_well_named;
use crate::session::Asking;
use crate::value::number;
use std::collections::BTreeMap;
use std::path::PathBuf;
use teak_metrics::{Family, Kind};

/// All that are numbers, the version, and where the data are.
pub fn families(asking: &mut Asking<'_>) -> Result<(Vec<Family>, Option<PathBuf>), Missing> {
    let (mut numbers, mut texts) = (BTreeMap::new(), BTreeMap::new());
    asking.each("SHOW GLOBAL VARIABLES", &mut |row| {
        if let [Some(name), Some(text)] = row {
            let name = name.to_ascii_lowercase();
            match number(text).filter(|_| is_well_named(&name)) {
                Some(value) => drop(numbers.insert(name, value)),
                None => drop(texts.insert(name, text.clone())),
            }
        }
    })?;
    let help = "The server's variable of this name";
    let family =
        |(name, value)| Family::of(&format!("mysql_global_variables_{name}"), Kind::Gauge, help, value);
    let mut families: Vec<Family> = numbers.into_iter().map(family).collect();
    let text = |name: &str| texts.get(name).map_or("", String::as_str);
    let mut version = Family::new("mysql_version_info", Kind::Gauge, "The server's version");
    let labels = ["innodb_version", "version", "version_comment"].map(|name| (name, text(name)));
    version.add(&labels, 1.0);
    families.push(version);
    let isolation = [text("transaction_isolation"), text("tx_isolation")];
    if let Some(level) = isolation.into_iter().find(|level| !level.is_empty()) {
        let mut family = Family::new("mysql_transaction_isolation", Kind::Gauge, "The isolation of sessions");
        family.add(&[("level", level)], 1.0);
        families.push(family);
    }
    Ok((families, texts.get("datadir").map(PathBuf::from)))
}
