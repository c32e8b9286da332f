//! What a server sends, each decoder as a function that takes any bytes at all: the feature `hostile`, for `fuzz/`. The
//! tests here attack them as those of the core are attacked (`crates/core/tests/hostile`), with a corpus
//! (`tests/hostile`) and mutations of it.
//!
//! What must hold: whatever the bytes are, nothing panics, and no more memory is asked for than 64 times as much, and
//! what does not depend on them.

#[cfg(test)]
#[path = "../../core/tests/hostile/attack.rs"]
mod attack;
#[cfg(test)]
#[path = "../../core/tests/hostile/counting.rs"]
mod counting;
#[cfg(test)]
#[path = "../../core/tests/hostile/mutate.rs"]
mod mutate;

use super::connection::Connection;
use super::packet::{Packets, Socket};
use super::settings::{Address, Tls, TlsPolicy};
use super::{authentication, handshake, Settings};
use std::io::Write;
use std::net::Shutdown;
use std::os::unix::net::UnixStream;
use std::path::PathBuf;

/// The answer to a statement, in packets as [`sent`] has them.
pub fn answer(bytes: &[u8]) {
    let Some((client, _server)) = sent(bytes, 1, |_| 1) else { return };
    let mut connection = Connection::new(Packets::new(Socket::Unix(client)), String::new());
    // With and without taking the rows; the second finds the end of the stream, or what the first has left.
    let _ = connection.query("x").map(drop);
    let _ = connection.execute("x").map(drop);
}

/// All that a server says until a connection stands, in packets as [`sent`] has them, and then the answer to a
/// statement.
pub fn handshake(bytes: &[u8]) {
    // To what says that the password was right there is no answer.
    let between = |packet: &[u8]| if packet == [1, 3] { 1 } else { 2 };
    let Some((client, _server)) = sent(bytes, 0, between) else { return };
    let settings = Settings {
        address: Address::Socket(PathBuf::new()),
        user: "user".into(),
        password: "password".into(),
        database: Some("database".into()),
        character_set: "utf8mb4".into(),
        connect_timeout: None,
        patience: None,
        several_statements: true,
        local_data: true,
        tls: Tls { policy: TlsPolicy::Never, ..Tls::default() },
    };
    if let Ok(mut connection) = handshake::perform(Packets::new(Socket::Unix(client)), &settings) {
        let _ = connection.query("x").map(drop);
    }
}

/// A socket from which `bytes` can be read, and its other end. Each packet of the input begins with its length in two
/// bytes; one of 0xffff bytes means that the rest comes as it is, headers and all. Packets are counted from `sequence`,
/// and on by what `step` says of each.
fn sent(bytes: &[u8], mut sequence: u8, step: impl Fn(&[u8]) -> u8) -> Option<(UnixStream, UnixStream)> {
    let (Ok((client, server)), mut rest) = (UnixStream::pair(), bytes) else { return None };
    let mut stream = Vec::new();
    while let Some((length, packet)) = rest.split_first_chunk::<2>() {
        let length = usize::from(u16::from_le_bytes(*length));
        if length == 0xffff {
            stream.extend_from_slice(packet);
            break;
        }
        let (packet, behind) = packet.split_at(length.min(packet.len()));
        stream.extend_from_slice(&(packet.len() as u32).to_le_bytes()[..3]);
        stream.push(sequence);
        stream.extend_from_slice(packet);
        sequence = sequence.wrapping_add(step(packet));
        rest = behind;
    }
    // It fits into the socket's buffer, so nobody has to read while this writes; nor does anybody read what the client
    // writes, which is told so once that buffer is full.
    let written = (&server).write_all(&stream[..stream.len().min(64 << 10)]);
    written
        .and_then(|()| server.shutdown(Shutdown::Write))
        .and_then(|()| client.set_nonblocking(true))
        .ok()?;
    Some((client, server))
}

/// The first packet of a connection, and the answer to what it asks for.
pub fn greeting(bytes: &[u8]) {
    let Ok((plugin, nonce)) = handshake::asked(bytes) else { return };
    let _ = authentication::answer(&plugin, b"password", &nonce);
    for plugin in [&b"mysql_native_password"[..], b"caching_sha2_password", b"client_ed25519"] {
        let _ = authentication::answer(plugin, b"password", &nonce);
    }
}

#[cfg(test)]
mod tests {
    use super::attack::{attack, Attacked};
    use super::{counting, *};
    use std::path::Path;

    /// A payload may announce 16 MiB before it comes.
    const FIXED_BYTES: usize = 20 << 20;

    #[global_allocator]
    static ALLOCATOR: counting::Counting = counting::Counting;

    fn attack_decoder(name: &str, decode: fn(&[u8])) {
        let corpus = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/hostile");
        attack(&corpus, &Attacked { name, decode, memory_for: &|input| 64 * input + FIXED_BYTES });
    }

    #[test]
    fn a_server_can_answer_anything() {
        attack_decoder("answer", answer);
    }

    #[test]
    fn a_server_can_greet_with_anything() {
        attack_decoder("greeting", greeting);
    }

    #[test]
    fn a_server_can_say_anything_until_a_connection_stands() {
        attack_decoder("handshake", handshake);
    }
}
