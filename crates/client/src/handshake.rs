//! The beginning of a connection: greeting, TLS, authentication.
//!
//! ```text
//! server: protocol 10 | version\0 | id 4 | nonce 8 | 0 | capabilities 2 | collation 1 | status 2 | capabilities 2 |
//!         length of the nonce 1 | 10 bytes | rest of the nonce | plugin\0
//! client: capabilities 4 | longest packet 4 | collation 1 | 23 zeros | user\0 | length 1, answer | database\0 | plugin\0
//! ```
//!
//! With TLS the client sends the first 32 bytes of its packet, then encrypts and sends the whole.

use super::connection::{server_error, Connection};
use super::packet::{Fields, Packets};
use super::settings::{Settings, TlsPolicy};
use super::{authentication, tls, Error};

const LONG_PASSWORD: u32 = 1;
const CONNECT_WITH_DB: u32 = 1 << 3;
const LOCAL_FILES: u32 = 1 << 7;
const PROTOCOL_41: u32 = 1 << 9;
const SSL: u32 = 1 << 11;
const TRANSACTIONS: u32 = 1 << 13;
const SECURE_CONNECTION: u32 = 1 << 15;
const MULTI_STATEMENTS: u32 = 1 << 16;
const MULTI_RESULTS: u32 = 1 << 17;
const PLUGIN_AUTH: u32 = 1 << 19;
/// utf8mb4_general_ci
const COLLATION: u8 = 45;
const LONGEST_PACKET: u32 = 1 << 30;

/// What every connection of this program agrees on.
const ABILITIES: u32 =
    LONG_PASSWORD | PROTOCOL_41 | TRANSACTIONS | SECURE_CONNECTION | MULTI_RESULTS | PLUGIN_AUTH;
/// The last packet of a login that succeeded.
pub(super) const ADMITTED: &[u8] = &[0, 0, 0, 2, 0, 0, 0];

struct Greeting {
    version: String,
    capabilities: u32,
    plugin: Vec<u8>,
    nonce: Vec<u8>,
}

/// Makes a connection of a fresh socket.
pub fn perform(mut packets: Packets, settings: &Settings) -> Result<Connection, Error> {
    let mut payload = Vec::new();
    packets.receive(&mut payload)?;
    let greeting = greeting(&payload)?;
    let mut flags = ABILITIES;
    if settings.database.is_some() {
        flags |= CONNECT_WITH_DB;
    }
    if settings.several_statements {
        flags |= MULTI_STATEMENTS;
    }
    if settings.local_data {
        flags |= LOCAL_FILES;
    }
    if wants_tls(settings, &packets, greeting.capabilities)? {
        flags |= SSL;
        packets.send(&beginning(flags), b"")?;
        packets.encrypt(tls::session(settings)?)?;
    }

    let known = authentication::is_known(&greeting.plugin);
    let plugin = if known { &greeting.plugin[..] } else { b"mysql_native_password" };
    // What an unknown plugin sent is no nonce of ours; the server then asks to switch.
    let answer = if known {
        authentication::answer(plugin, settings.password.as_bytes(), &greeting.nonce)?
    } else {
        Vec::new()
    };
    let mut reply = beginning(flags).to_vec();
    reply.extend_from_slice(settings.user.as_bytes());
    reply.push(0);
    reply.push(
        u8::try_from(answer.len())
            .map_err(|_| Error::Authentication("an answer of over 255 bytes".into()))?,
    );
    reply.extend_from_slice(&answer);
    if let Some(database) = &settings.database {
        reply.extend_from_slice(database.as_bytes());
        reply.push(0);
    }
    reply.extend_from_slice(plugin);
    reply.push(0);
    packets.send(&reply, b"")?;
    authenticate(&mut packets, settings, plugin.to_vec())?;
    Ok(Connection::new(packets, greeting.version))
}

fn beginning(flags: u32) -> [u8; 32] {
    let mut packet = [0; 32];
    packet[..4].copy_from_slice(&flags.to_le_bytes());
    packet[4..8].copy_from_slice(&LONGEST_PACKET.to_le_bytes());
    packet[8] = COLLATION;
    packet
}

fn wants_tls(settings: &Settings, packets: &Packets, offered: u32) -> Result<bool, Error> {
    let offered = offered & SSL != 0;
    match settings.tls.policy {
        TlsPolicy::Never => Ok(false),
        TlsPolicy::IfOffered => Ok(offered && !packets.is_local()),
        TlsPolicy::Required if offered => Ok(true),
        TlsPolicy::Required => Err(Error::Tls("the server has no TLS, and the options demand it".into())),
    }
}

fn greeting(payload: &[u8]) -> Result<Greeting, Error> {
    let mut fields = Fields(payload);
    match fields.u8()? {
        10 => {}
        0xff => return Err(server_error(payload)),
        other => return Err(Error::Protocol(format!("protocol version {other}; this knows 10"))),
    }
    let version = String::from_utf8_lossy(fields.until_zero()).into_owned();
    fields.u32()?;
    let mut nonce = fields.bytes(8)?.to_vec();
    fields.bytes(1)?;
    let mut capabilities = u32::from(fields.u16()?);
    fields.bytes(3)?;
    capabilities |= u32::from(fields.u16()?) << 16;
    let length = usize::from(fields.u8()?);
    fields.bytes(10)?;
    let rest = length.saturating_sub(8).max(13).min(fields.0.len());
    nonce.extend_from_slice(fields.bytes(rest)?);
    let plugin = fields.until_zero().to_vec();
    if capabilities & PROTOCOL_41 == 0 {
        return Err(Error::Protocol("a server older than 4.1".into()));
    }
    Ok(Greeting { version, capabilities, plugin, nonce })
}

/// The greeting of a server of this version which takes any password, for a client on whose behalf a connection of this
/// program works.
pub(super) fn invitation(version: &str) -> Vec<u8> {
    let (low, high) = (ABILITIES as u16, (ABILITIES >> 16) as u16);
    let nonce = [b'.'; 20];
    // Clients take what begins so for MariaDB's.
    let mut packet = [&[10][..], b"5.5.5-", version.as_bytes(), b"\0", &[0; 4], &nonce[..8], &[0]].concat();
    packet.extend_from_slice(&low.to_le_bytes());
    packet.push(COLLATION);
    packet.extend_from_slice(&2u16.to_le_bytes());
    packet.extend_from_slice(&high.to_le_bytes());
    packet.push(nonce.len() as u8 + 1);
    packet.extend_from_slice(&[0; 10]);
    packet.extend_from_slice(&nonce[8..]);
    packet.extend_from_slice(b"\0mysql_native_password\0");
    packet
}

/// The plugin and the nonce of a greeting.
#[cfg(any(test, feature = "hostile"))]
pub(super) fn asked(payload: &[u8]) -> Result<(Vec<u8>, Vec<u8>), Error> {
    greeting(payload).map(|greeting| (greeting.plugin, greeting.nonce))
}

/// Goes on after the first answer until the server accepts or refuses.
fn authenticate(packets: &mut Packets, settings: &Settings, mut plugin: Vec<u8>) -> Result<(), Error> {
    let mut payload = Vec::new();
    loop {
        packets.receive(&mut payload)?;
        match (payload.first().copied(), &plugin[..]) {
            (Some(0), _) => return Ok(()),
            (Some(0xff), _) => return Err(server_error(&payload)),
            (Some(0xfe), _) if payload.len() > 1 => {
                let mut fields = Fields(&payload[1..]);
                plugin = fields.until_zero().to_vec();
                let answer = authentication::answer(&plugin, settings.password.as_bytes(), fields.0)?;
                packets.send(&answer, b"")?;
            }
            (Some(1), b"caching_sha2_password") => match payload.get(1) {
                // The server had the password in its cache; its OK follows.
                Some(3) => {}
                Some(4) => {
                    may_tell_password(packets, settings)?;
                    packets.send(settings.password.as_bytes(), b"\0")?;
                }
                _ => return Err(Error::Protocol("an unknown packet during authentication".into())),
            },
            _ => return Err(Error::Protocol("an unknown packet during authentication".into())),
        }
    }
}

/// Whether the password itself may go over this connection: to a process of this machine, or to a server that has
/// proved who it is. Encryption alone would tell it to whoever answers in the server's place.
fn may_tell_password(packets: &Packets, settings: &Settings) -> Result<(), Error> {
    let encrypted = packets.is_encrypted();
    if packets.is_local() || (encrypted && settings.tls.checks_certificate()) {
        return Ok(());
    }
    let why = match encrypted {
        true => "over TLS to a server whose certificate was not checked",
        false => "over a connection without TLS",
    };
    Err(Error::Authentication(format!(
        "the server wants the password itself, which is not sent {why}: name the authority of its certificate with --ssl-ca=FILE, or connect through its \
         socket (or log in once with another client, so that the server remembers a digest of the password)"
    )))
}
