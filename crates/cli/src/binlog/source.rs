//! Logs that a server sends, as it sends them to a replica.

use super::event_json::Where;
use super::printer::Printer;
use super::start::Start;
use super::BinlogError;
use std::sync::Arc;
use teak_binlog::{Body, Checksum, Decoder, Error, Header, Limits, Place, Positions};
use teak_client::{Connection, Settings};

const COM_BINLOG_DUMP: u8 = 18;
const COM_REGISTER_SLAVE: u8 = 21;
/// MySQL's, from a set of GTIDs on.
const COM_BINLOG_DUMP_GTID: u8 = 30;
/// End, when all is sent.
const NON_BLOCKING: u16 = 1;
/// To MariaDB: annotate events, without which positions would not be the sums of what is sent. To MySQL: heartbeats
/// that tell positions beyond 4 GiB.
const WHOLE_POSITIONS: u16 = 2;
/// To MySQL: the set of GTIDs counts.
const THROUGH_GTID: u16 = 4;
/// The first event of a log is there.
const BEGINNING: u32 = 4;
/// So often a server that has nothing to send says so, in billionths of a second.
const HEARTBEAT: u64 = 10_000_000_000;
/// Random numbers of replicas are above the numbers that people give servers.
const RANDOM_IDS: u32 = 1 << 31;

/// What is asked of the server.
pub struct Asked {
    pub start: Option<Start>,
    pub follow: bool,
    pub server_id: Option<u32>,
}

/// Where the server is: the URL over the other options.
pub fn settings(url: &str, arguments: &teak_client::Arguments) -> Result<Settings, BinlogError> {
    let mut arguments = arguments.clone();
    // The URL is not repeated: it may have a password.
    let wrong = |why: &str| BinlogError::Usage(format!("--source: {why}"));
    let rest = ["mariadb://", "mysql://"].iter().find_map(|scheme| url.strip_prefix(scheme));
    let rest = rest.ok_or_else(|| wrong("the URL is not mariadb://[USER@][HOST[:PORT]], or mysql://"))?;
    let rest = rest.strip_suffix('/').unwrap_or(rest);
    let (user, address) = rest.rsplit_once('@').map_or((None, rest), |(user, address)| (Some(user), address));
    if user.is_some_and(|user| user.contains(':')) {
        return Err(wrong(
            "a password does not belong into the URL, where others see it: an option file, $MYSQL_PWD or -p has it",
        ));
    }
    if address.contains(['/', '?', '#']) {
        return Err(wrong("there is more than host and port"));
    }
    let (host, port) = match address.rsplit_once(':') {
        Some((host, port)) if !port.ends_with(']') => {
            let number = port.parse().map_err(|_| wrong("the port is no number"))?;
            (host, Some(number))
        }
        _ => (address, None),
    };
    let host = host.strip_prefix('[').and_then(|host| host.strip_suffix(']')).unwrap_or(host);
    if let Some(user) = user.filter(|user| !user.is_empty()) {
        arguments.user = Some(user.to_string());
    }
    if !host.is_empty() {
        arguments.host = Some(host.to_string());
    }
    arguments.port = port.or(arguments.port);
    Ok(Settings::read(&arguments)?)
}

/// Shows what the server has, or sends.
pub fn show(settings: &Settings, asked: Asked, printer: &mut Printer<'_>) -> Result<(), BinlogError> {
    let mut connection = settings.connect()?;
    let is_mariadb = connection.value("SELECT @@version")?.is_some_and(|version| version.contains("MariaDB"));
    let checksum = agree_on_checksum(&mut connection)?;
    let command = match &asked.start {
        Some(start) if is_mariadb => {
            let state = start.connect_state()?;
            connection.execute(format!("SET @slave_connect_state = '{state}'"))?;
            connection.execute("SET @slave_gtid_strict_mode = 0, @slave_gtid_ignore_duplicates = 0")?;
            dump(&asked)
        }
        Some(start) => dump_behind(&asked, &start.set()?.to_bytes()),
        None => dump(&asked),
    };
    if is_mariadb {
        connection.execute("SET @mariadb_slave_capability = 4")?;
    }
    register(&mut connection, &asked)?;
    connection.command(&command)?;
    receive(&mut connection, checksum, asked.follow, printer)
}

/// Tells the server that checksums are understood, and how often it is to say that it is there. Names that only one
/// family reads do no harm to the other.
fn agree_on_checksum(connection: &mut Connection) -> Result<Checksum, BinlogError> {
    let checksum = match connection.value("SELECT @@GLOBAL.binlog_checksum")?.as_deref() {
        Some("CRC32") => Checksum::Crc32,
        Some("NONE") => Checksum::None,
        other => {
            let other = other.unwrap_or("NULL");
            return Err(BinlogError::Usage(format!(
                "--source: the server's checksums ({other}) are not known"
            )));
        }
    };
    for who in ["master", "source"] {
        connection.execute(format!("SET @{who}_binlog_checksum = @@GLOBAL.binlog_checksum"))?;
        connection.execute(format!("SET @{who}_heartbeat_period = {HEARTBEAT}"))?;
    }
    Ok(checksum)
}

/// Tells the server who asks.
fn register(connection: &mut Connection, asked: &Asked) -> Result<(), BinlogError> {
    let mut command = vec![COM_REGISTER_SLAVE];
    command.extend_from_slice(&server_id(asked).to_le_bytes());
    // Host, user, password, port, rank, and the master: what SHOW SLAVE HOSTS shows.
    command.extend_from_slice(&[0; 3 + 2 + 4 + 4]);
    connection.command(&command)?;
    connection.receive()?;
    Ok(())
}

fn flags(asked: &Asked) -> u16 {
    WHOLE_POSITIONS | if asked.follow { 0 } else { NON_BLOCKING }
}

/// Asks for the log from its first file on, or from where variables of the session say.
fn dump(asked: &Asked) -> Vec<u8> {
    let mut command = vec![COM_BINLOG_DUMP];
    command.extend_from_slice(&BEGINNING.to_le_bytes());
    command.extend_from_slice(&flags(asked).to_le_bytes());
    command.extend_from_slice(&server_id(asked).to_le_bytes());
    command
}

/// Asks MySQL for what is not in a set of GTIDs.
fn dump_behind(asked: &Asked, set: &[u8]) -> Vec<u8> {
    let mut command = vec![COM_BINLOG_DUMP_GTID];
    command.extend_from_slice(&(flags(asked) | THROUGH_GTID).to_le_bytes());
    command.extend_from_slice(&server_id(asked).to_le_bytes());
    // A file's name of no length.
    command.extend_from_slice(&0u32.to_le_bytes());
    command.extend_from_slice(&u64::from(BEGINNING).to_le_bytes());
    command.extend_from_slice(&(set.len() as u32).to_le_bytes());
    command.extend_from_slice(set);
    command
}

/// The same at each call.
fn server_id(asked: &Asked) -> u32 {
    use std::hash::{BuildHasher, RandomState};
    use std::sync::OnceLock;
    static RANDOM: OnceLock<u32> = OnceLock::new();
    // The standard library's hashes have random keys.
    let random = || RandomState::new().hash_one(std::process::id()) as u32 | RANDOM_IDS;
    asked.server_id.unwrap_or_else(|| *RANDOM.get_or_init(random))
}

fn receive(
    connection: &mut Connection,
    checksum: Checksum,
    follow: bool,
    printer: &mut Printer<'_>,
) -> Result<(), BinlogError> {
    let mut decoder = Decoder::of_server(checksum, Limits::default());
    let mut positions = Positions::default();
    let mut name: Arc<str> = "".into();
    loop {
        let payload = connection.receive()?;
        let event = match payload {
            [0, event @ ..] => event,
            [0xfe, ..] if payload.len() < 9 => return Ok(()),
            _ => {
                let what = "what the server sends is neither an event nor the end".to_string();
                return Err(teak_client::Error::Protocol(what).into());
            }
        };
        let header = Header::of(event).map_err(|problem| Error::new(Place::default(), problem))?;
        let (position, end) = positions.of(&header).unwrap_or_default();
        let event = decoder.decode(position, event)?;
        printer.event(&Where { file: &name, end: Some(end) }, &event, &mut decoder)?;
        match &event.body {
            Body::Rotate(rotate) => {
                name = String::from_utf8_lossy(rotate.file).into();
                positions.rotate(&name, rotate.position);
                decoder.set_file(name.clone());
            }
            _ => positions.pass(&event.header),
        }
        if follow {
            printer.flush()?;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use teak_client::Address;

    fn address(url: &str) -> Result<(Address, String), String> {
        let arguments =
            teak_client::Arguments { no_defaults: true, user: Some("me".into()), ..Default::default() };
        settings(url, &arguments).map(|found| (found.address, found.user)).map_err(|error| error.to_string())
    }

    #[test]
    fn a_url_has_user_host_and_port_and_no_password() {
        let tcp = |host: &str, port| Address::Tcp { host: host.into(), port };
        assert_eq!(address("mariadb://repl@db1:3307/"), Ok((tcp("db1", 3307), "repl".into())));
        assert_eq!(address("mariadb://[::1]:3307"), Ok((tcp("::1", 3307), "me".into())));
        assert!(matches!(address("mariadb://localhost"), Ok((Address::Socket(_), _))));
        assert!(matches!(address("mariadb://"), Ok((Address::Socket(_), _))));
        assert_eq!(address("mysql://db1"), Ok((tcp("db1", 3306), "me".into())));
        for url in ["http://db1", "db1", "mariadb://db1:x", "mariadb://db1/shop", "mariadb://db1:3306/?x=y"] {
            assert!(address(url).is_err(), "{url}");
        }
        for url in [
            "mariadb://me:secret@db1",
            "mysql://me:secret@db1/",
            "me:secret@db1",
            "mysql://me:secret/x@db1:y",
        ] {
            let error = address(url).unwrap_err();
            assert!(!error.contains("secret"), "{error}");
        }
        assert!(address("mariadb://me:secret@db1").unwrap_err().contains("$MYSQL_PWD"));
    }
}
