//! What a restore tells: where everything is, and which statements make of it what it may be wanted for.

use super::move_in::PRIVILEGES;
use super::partial;
use crate::backup::layout::{Description, Position, Primary, Server};
use std::path::Path;
use teak_console::amounts::bytes;

const USER: &str = "MASTER_USER = '...', MASTER_PASSWORD = '...'";

/// Of the restore of `backup` to `datadir`, which wrote so many bytes in so many seconds; `given`: the files belong to
/// whose the directory is.
pub fn of(backup: &Description, datadir: &Path, (written, seconds): (u64, f64), given: bool) -> String {
    let Description { position, server, .. } = backup;
    let mut text =
        format!("restored to {}: {} in {seconds:.1} s\n", datadir.display(), bytes(written as f64));
    if !given {
        text += "the files belong to who ran this: a server that runs as another user needs chown -R\n";
    }
    if let Some(selection) = &backup.selection {
        text += &partial::advice(selection, &datadir.join(PRIVILEGES));
    }
    match (&position.binlog_file, position.binlog_position) {
        (Some(file), Some(at)) => text += &format!("position in the binary log: {file}, {at}\n"),
        _ => text += "the server that was backed up had no binary log\n",
    }
    if backup.selection.is_none() {
        text += &of_replica(position, server);
        text += &instead(position);
        text += &position.primaries.iter().map(of_primary).collect::<String>();
    }
    text
}

/// The statements by which the server becomes a replica of the one that was backed up.
fn of_replica(position: &Position, server: &Server) -> String {
    let (Some(file), Some(at)) = (&position.binlog_file, position.binlog_position) else {
        return String::new();
    };
    // 0: it does not listen for now.
    let port = if server.port == 0 { 3306 } else { server.port };
    let host = format!("MASTER_HOST = '{}', MASTER_PORT = {port}", server.host);
    let mut text = String::from("to make a replica of it:\n");
    match one_line(&position.gtid_current_pos) {
        gtid if gtid.is_empty() => {
            text += &format!(
                "  CHANGE MASTER TO {host}, {USER}, MASTER_LOG_FILE = '{file}', MASTER_LOG_POS = {at};\n"
            );
        }
        gtid => {
            text += &format!("  SET GLOBAL gtid_slave_pos = '{gtid}';\n");
            text += &format!("  CHANGE MASTER TO {host}, {USER}, MASTER_USE_GTID = slave_pos;\n");
        }
    }
    text + "  START SLAVE;\n"
}

/// The statement by which it goes on with the GTIDs of the one that was backed up, and gives none of them out again.
fn instead(position: &Position) -> String {
    match one_line(&position.gtid_binlog_state) {
        state if state.is_empty() => String::new(),
        state => format!(
            "if it takes the place of that server, with log_bin, before anything is written to it:\n  \
             SET GLOBAL gtid_binlog_state = '{state}';\n"
        ),
    }
}

/// The statements by which it takes the place of a replica. Where a replica is by GTID, a table says that is in the
/// backup, as of the same moment as all others: it is not to be set.
fn of_primary(primary: &Primary) -> String {
    let Primary { name, host, port, file, position, using_gtid } = primary;
    let (channel, of) = match name.is_empty() {
        true => (String::new(), String::new()),
        false => (format!("'{name}' "), format!(", connection '{name}'")),
    };
    let to = match using_gtid == "No" {
        false => "MASTER_USE_GTID = slave_pos".to_string(),
        true => format!("MASTER_LOG_FILE = '{file}', MASTER_LOG_POS = {position}"),
    };
    format!(
        "to replicate from its primary as that server did{of}:\n  \
         CHANGE MASTER {channel}TO MASTER_HOST = '{host}', MASTER_PORT = {port}, {USER}, {to};\n  \
         START SLAVE {channel};\n"
    )
    .replace(" ;", ";")
}

fn one_line(gtids: &str) -> String {
    gtids.replace(['\n', ' '], "")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_replica_is_told_where_its_primary_is() {
        let mut primary = Primary {
            name: String::new(),
            host: "primary".into(),
            port: 3307,
            file: "master.000007".into(),
            position: 4711,
            using_gtid: "Slave_Pos".into(),
        };
        let by_gtid = of_primary(&primary);
        assert!(by_gtid.contains("MASTER_HOST = 'primary', MASTER_PORT = 3307"), "{by_gtid}");
        assert!(
            by_gtid.contains("MASTER_USE_GTID = slave_pos") && by_gtid.ends_with("START SLAVE;\n"),
            "{by_gtid}"
        );
        primary.using_gtid = "No".into();
        primary.name = "east".into();
        let by_file = of_primary(&primary);
        assert!(by_file.contains("MASTER_LOG_FILE = 'master.000007', MASTER_LOG_POS = 4711"), "{by_file}");
        assert!(
            by_file.contains("CHANGE MASTER 'east' TO") && by_file.ends_with("START SLAVE 'east';\n"),
            "{by_file}"
        );
    }

    #[test]
    fn a_server_in_the_place_of_another_is_told_its_gtids() {
        assert_eq!(instead(&Position::default()), "");
        let told = instead(&Position { gtid_binlog_state: "0-1-7,\n1-1-3".into(), ..Position::default() });
        assert!(told.contains("SET GLOBAL gtid_binlog_state = '0-1-7,1-1-3';"), "{told}");
    }
}
