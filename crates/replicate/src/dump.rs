//! Logs that a server sends, as it sends them to a replica: the connection, and what its packets say.

use std::sync::Arc;
use std::time::Duration;
use teak_binlog::{Body, Checksum, Decoder, Error, Event, Family, Header, Limits, Place, Positions};
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
/// So often a server that has nothing to send says so, unless the settings tell how long it is waited for.
pub const HEARTBEAT: Duration = Duration::from_secs(10);
/// And so often in that time.
pub const HEARTBEATS: u32 = 3;
/// Random numbers of replicas are above the numbers that people give servers.
const RANDOM_IDS: u32 = 1 << 31;

/// Where to begin.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Beginning {
    /// With the first log that is there.
    Oldest,
    /// Of MariaDB: behind these transactions, the last one of each domain.
    MariaDb(String),
    /// Of MySQL: what is not in this set, as the server takes it.
    MySql(Vec<u8>),
    /// With this log.
    File(String),
}

/// What is asked of the server.
#[derive(Debug, Clone)]
pub struct Asked {
    /// Where to begin.
    pub beginning: Beginning,
    /// Whether to go on when all is sent, with what comes.
    pub follow: bool,
    /// As which replica to ask: none other of the server may have the number. None: a random one.
    pub server_id: Option<u32>,
}

/// Why nothing more of the log comes.
#[derive(Debug, thiserror::Error)]
pub enum DumpError {
    /// What was sent is damaged, or is not known.
    #[error("{0}")]
    Log(#[from] Error),
    /// The server.
    #[error("{0}")]
    Server(#[from] teak_client::Error),
    /// The server's checksums are of another kind.
    #[error("the server's checksums ({0}) are not known")]
    Checksums(String),
    /// GTIDs of one family were given, and the server is of the other.
    #[error("a server of {server} knows no GTIDs of {given}")]
    OtherFamily {
        /// Whose the server is.
        server: &'static str,
        /// Whose the GTIDs are.
        given: &'static str,
    },
}

/// A connection on which a server sends its log.
pub struct Dump {
    connection: Connection,
    /// What is known of the log so far.
    pub log: Log,
}

/// What is known of a log that is sent.
#[derive(Debug)]
pub struct Log {
    /// With the events in their order.
    pub decoder: Decoder,
    positions: Positions,
    file: Arc<str>,
}

/// An event, and where it is.
#[derive(Debug)]
pub struct Sent<'a> {
    /// What it says.
    pub event: Event<'a>,
    /// All its bytes.
    pub bytes: &'a [u8],
    /// The file it is in.
    pub file: Arc<str>,
    /// Where the next one begins: of an event that the server made up, the same as its own place.
    pub end: u64,
}

impl Dump {
    /// Asks a server over a new connection, as which replicas ask.
    pub fn begin(settings: &Settings, asked: &Asked) -> Result<Dump, DumpError> {
        let mut connection = settings.connect()?;
        let is_mariadb = family_of(&mut connection)? == Family::MariaDb;
        let (mariadb, mysql) = ("MariaDB", "MySQL");
        match &asked.beginning {
            Beginning::MySql(_) if is_mariadb => {
                return Err(DumpError::OtherFamily { server: mariadb, given: mysql })
            }
            Beginning::MariaDb(_) if !is_mariadb => {
                return Err(DumpError::OtherFamily { server: mysql, given: mariadb })
            }
            _ => (),
        }
        let heartbeat = settings.patience.map_or(HEARTBEAT, |patience| patience / HEARTBEATS);
        let checksum = agree_on_checksum(&mut connection, heartbeat)?;
        if let Beginning::MariaDb(state) = &asked.beginning {
            connection.execute(format!("SET @slave_connect_state = '{state}'"))?;
            connection.execute("SET @slave_gtid_strict_mode = 0, @slave_gtid_ignore_duplicates = 0")?;
        }
        if is_mariadb {
            connection.execute("SET @mariadb_slave_capability = 4")?;
        }
        register(&mut connection, asked)?;
        connection.command(&asked.command())?;
        let decoder = Decoder::of_server(checksum, Limits::default());
        Ok(Dump { connection, log: Log { decoder, positions: Positions::default(), file: "".into() } })
    }

    /// The connection, to wait for what it sends.
    pub fn connection(&mut self) -> &mut Connection {
        &mut self.connection
    }

    /// The file that it is in.
    pub fn file(&self) -> &str {
        &self.log.file
    }

    /// Where what came last ends, as a message has it.
    pub fn place(&self) -> String {
        let place = self.log.positions.current();
        place.map_or("the beginning".into(), |place| format!("{}:{}", place.file, place.position))
    }

    /// The next event, and what is known with it; None at the end of what the server has to send. Waits for it.
    pub fn receive(&mut self) -> Result<Option<(Sent<'_>, &mut Log)>, DumpError> {
        let payload = self.connection.receive()?;
        let event = match payload {
            [0, event @ ..] => event,
            [0xfe, ..] if payload.len() < 9 => return Ok(None),
            _ => {
                let what = "what the server sends is neither an event nor the end".to_string();
                return Err(teak_client::Error::Protocol(what).into());
            }
        };
        let sent = self.log.decode(event)?;
        Ok(Some((sent, &mut self.log)))
    }
}

impl Log {
    fn decode<'a>(&mut self, bytes: &'a [u8]) -> Result<Sent<'a>, Error> {
        let header = Header::of(bytes).map_err(|problem| Error::new(Place::default(), problem))?;
        let (position, end) = self.positions.of(&header).unwrap_or_default();
        let event = self.decoder.decode(position, bytes)?;
        let file = self.file.clone();
        match &event.body {
            Body::Rotate(rotate) => {
                self.file = String::from_utf8_lossy(rotate.file).into();
                self.positions.rotate(&self.file, rotate.position);
                self.decoder.set_file(self.file.clone());
            }
            _ => self.positions.pass(&event.header),
        }
        Ok(Sent { event, bytes, file, end })
    }
}

/// Whose server it is.
pub fn family_of(connection: &mut Connection) -> Result<Family, teak_client::Error> {
    let version = connection.value("SELECT @@version")?.unwrap_or_default();
    Ok(if version.contains("MariaDB") { Family::MariaDb } else { Family::MySql })
}

/// The same as its greeting says it.
pub fn greeted(connection: &Connection) -> Family {
    if connection.version().contains("MariaDB") {
        Family::MariaDb
    } else {
        Family::MySql
    }
}

/// What a server's log has up to now, as GTIDs; None if it says nothing.
pub fn newest(connection: &mut Connection, family: Family) -> Result<Option<String>, teak_client::Error> {
    let query = match family {
        Family::MariaDb => "SELECT @@GLOBAL.gtid_binlog_pos",
        Family::MySql => "SELECT @@GLOBAL.gtid_executed",
    };
    // MySQL begins a line for each UUID.
    Ok(connection.value(query)?.map(|text| text.replace(['\n', ' '], "")))
}

/// Tells the server that checksums are understood, and how often it is to say that it is there. Names that only one
/// family reads do no harm to the other.
fn agree_on_checksum(connection: &mut Connection, heartbeat: Duration) -> Result<Checksum, DumpError> {
    let checksum = match connection.value("SELECT @@GLOBAL.binlog_checksum")?.as_deref() {
        Some("CRC32") => Checksum::Crc32,
        Some("NONE") => Checksum::None,
        other => return Err(DumpError::Checksums(other.unwrap_or("NULL").into())),
    };
    for who in ["master", "source"] {
        connection.execute(format!("SET @{who}_binlog_checksum = @@GLOBAL.binlog_checksum"))?;
        connection.execute(format!("SET @{who}_heartbeat_period = {}", heartbeat.as_nanos()))?;
    }
    Ok(checksum)
}

/// Tells the server who asks.
fn register(connection: &mut Connection, asked: &Asked) -> Result<(), DumpError> {
    let mut command = vec![COM_REGISTER_SLAVE];
    command.extend_from_slice(&asked.server_id().to_le_bytes());
    // Host, user, password, port, rank, and the master: what SHOW SLAVE HOSTS shows.
    command.extend_from_slice(&[0; 3 + 2 + 4 + 4]);
    connection.command(&command)?;
    connection.receive()?;
    Ok(())
}

impl Asked {
    fn command(&self) -> Vec<u8> {
        let flags = WHOLE_POSITIONS | if self.follow { 0 } else { NON_BLOCKING };
        let Beginning::MySql(set) = &self.beginning else {
            let mut command = vec![COM_BINLOG_DUMP];
            command.extend_from_slice(&BEGINNING.to_le_bytes());
            command.extend_from_slice(&flags.to_le_bytes());
            command.extend_from_slice(&self.server_id().to_le_bytes());
            if let Beginning::File(file) = &self.beginning {
                command.extend_from_slice(file.as_bytes());
            }
            return command;
        };
        let mut command = vec![COM_BINLOG_DUMP_GTID];
        command.extend_from_slice(&(flags | THROUGH_GTID).to_le_bytes());
        command.extend_from_slice(&self.server_id().to_le_bytes());
        // A file's name of no length.
        command.extend_from_slice(&0u32.to_le_bytes());
        command.extend_from_slice(&u64::from(BEGINNING).to_le_bytes());
        command.extend_from_slice(&(set.len() as u32).to_le_bytes());
        command.extend_from_slice(set);
        command
    }

    /// The same at each call, and for all servers that are asked.
    fn server_id(&self) -> u32 {
        use std::hash::{BuildHasher, RandomState};
        use std::sync::OnceLock;
        static RANDOM: OnceLock<u32> = OnceLock::new();
        // The standard library's hashes have random keys.
        let random = || RandomState::new().hash_one(std::process::id()) as u32 | RANDOM_IDS;
        self.server_id.unwrap_or_else(|| *RANDOM.get_or_init(random))
    }
}
