//! Identifiers of XA transactions as people write them. The shim packs them: format (4 bytes, little-endian), length of
//! the global part, length of the branch part, both parts.

/// What XA COMMIT takes for the transaction: `'trx'`, or `X'00ff',X'01',7`.
pub fn text(packed: &[u8]) -> String {
    let unknown = || format!("'{}'", packed.escape_ascii());
    let Some((head, parts)) = packed.split_first_chunk::<6>() else { return unknown() };
    let format = i32::from_le_bytes([head[0], head[1], head[2], head[3]]);
    let (global, branch) = (usize::from(head[4]), usize::from(head[5]));
    if parts.len() != global + branch {
        return unknown();
    }
    let (global, branch) = parts.split_at(global);
    match (branch.is_empty(), format) {
        (true, 1) => literal(global),
        (false, 1) => format!("{},{}", literal(global), literal(branch)),
        _ => format!("{},{},{format}", literal(global), literal(branch)),
    }
}

fn literal(part: &[u8]) -> String {
    let is_plain = |byte: &u8| byte.is_ascii_graphic() && !matches!(byte, b'\'' | b'\\');
    match part.iter().all(is_plain) {
        true => format!("'{}'", part.escape_ascii()),
        false => part.iter().fold("X'".to_string(), |text, byte| text + &format!("{byte:02x}")) + "'",
    }
}

#[cfg(test)]
mod tests {
    use super::text;

    fn packed(format: i32, global: &[u8], branch: &[u8]) -> Vec<u8> {
        let lengths = [global.len() as u8, branch.len() as u8];
        [&format.to_le_bytes()[..], &lengths, global, branch].concat()
    }

    #[test]
    fn identifiers_are_shown_as_they_are_written() {
        assert_eq!(text(&packed(1, b"trx", b"")), "'trx'");
        assert_eq!(text(&packed(1, b"a", b"b")), "'a','b'");
        assert_eq!(text(&packed(7, &[0, 255], b"b")), "X'00ff','b',7");
        assert_eq!(text(&packed(1, b"it's", b"")), "X'69742773'");
        assert_eq!(text(b"?"), "'?'");
        assert_eq!(text(&packed(1, b"trx", b"")[..7]), "'\\x01\\x00\\x00\\x00\\x03\\x00t'");
    }
}
