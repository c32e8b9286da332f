//! What a server sends, whatever it is: for [`crate::hostile`].

use super::connection::Connection;
use super::packet::{Packets, Socket};
use super::{authentication, handshake};
use std::io::{Read, Write};
use std::os::unix::net::UnixStream;

/// The answer to a statement. Each packet of the input begins with its length in two bytes; one of 0xffff bytes means
/// that the rest comes as it is, headers and all.
pub fn answer(bytes: &[u8]) {
    let (Ok((client, server)), mut rest) = (UnixStream::pair(), bytes) else { return };
    let (mut stream, mut sequence) = (Vec::new(), 1u8);
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
        sequence = sequence.wrapping_add(1);
        rest = behind;
    }
    // It fits into the socket's buffer, so nobody has to read while this writes.
    let sent = (&server).write_all(&stream[..stream.len().min(64 << 10)]);
    if sent.and_then(|()| server.shutdown(std::net::Shutdown::Write)).is_err() {
        return;
    }
    let mut connection = Connection::new(Packets::new(Socket::Unix(client)), String::new());
    // With and without taking the rows; the second finds the end of the stream, or what the first has left.
    let _ = connection.query("x").map(drop);
    let _ = connection.execute("x").map(drop);
    drop(connection);
    let _ = (&server).read(&mut [0; 64]);
}

/// The first packet of a connection, and the answer to what it asks for.
pub fn greeting(bytes: &[u8]) {
    let Ok((plugin, nonce)) = handshake::asked(bytes) else { return };
    let _ = authentication::answer(&plugin, b"password", &nonce);
    for plugin in [&b"mysql_native_password"[..], b"caching_sha2_password", b"client_ed25519"] {
        let _ = authentication::answer(plugin, b"password", &nonce);
    }
}
