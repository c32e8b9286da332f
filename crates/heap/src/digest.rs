//! Statements without their values, made without an allocation.
//!
//! Numbers and quoted texts become `?`, lists of them one, comments and spaces one space, letters outside of quotes
//! small. The text is cut at [`TEXT_BYTES`]; the hash is of all of it. It is not `performance_schema`'s digest, which
//! the server's parser makes, and only if that schema is on.

/// Bytes of a digest's text that are kept.
pub const TEXT_BYTES: usize = 240;

/// A statement without its values.
pub struct Digest {
    /// Of all of it; never 0.
    pub hash: u64,
    text: [u8; TEXT_BYTES],
    len: usize,
    last: [u8; 3],
}

impl Digest {
    /// The digest of a statement.
    pub fn of(query: &[u8]) -> Digest {
        let mut digest = Digest { hash: 0xcbf2_9ce4_8422_2325, text: [0; TEXT_BYTES], len: 0, last: *b"   " };
        let mut at = 0;
        while at < query.len() {
            at = digest.take(query, at);
        }
        digest.hash |= 1;
        digest
    }

    /// The text, perhaps cut.
    pub fn text(&self) -> &[u8] {
        let text = &self.text[..self.len];
        // A character that was cut in two is left out.
        let whole = match std::str::from_utf8(text) {
            Err(error) if error.error_len().is_none() => error.valid_up_to(),
            _ => self.len,
        };
        text[..whole].trim_ascii_end()
    }

    /// What the text lies in.
    pub fn room(&self) -> &[u8; TEXT_BYTES] {
        &self.text
    }

    /// Takes what begins at `at`; where the next thing does.
    fn take(&mut self, query: &[u8], at: usize) -> usize {
        let rest = &query[at..];
        let next = rest.get(1).copied().unwrap_or(0);
        match rest[0] {
            quote @ (b'\'' | b'"') => {
                self.value();
                at + quoted(rest, quote)
            }
            b'`' => {
                let len = quoted(rest, b'`');
                rest[..len].iter().for_each(|&byte| self.push(byte));
                at + len
            }
            b'#' => at + line(rest),
            b'-' if next == b'-' && rest.get(2).is_none_or(u8::is_ascii_whitespace) => at + line(rest),
            // What is in /*! ... */ is carried out.
            b'/' if next == b'*' && rest.get(2) != Some(&b'!') => {
                self.space();
                at + rest
                    .windows(2)
                    .skip(2)
                    .position(|two| two == b"*/")
                    .map_or(rest.len(), |place| place + 4)
            }
            byte if byte.is_ascii_whitespace() => {
                self.space();
                at + 1
            }
            byte if byte.is_ascii_digit() && !self.in_word() => {
                self.value();
                at + rest.iter().take_while(|c| c.is_ascii_alphanumeric() || **c == b'.').count()
            }
            byte => {
                self.push(byte.to_ascii_lowercase());
                at + 1
            }
        }
    }

    fn in_word(&self) -> bool {
        let last = self.last[2];
        last.is_ascii_alphanumeric() || last == b'_' || last == b'$' || last == b'@' || last >= 0x80
    }

    fn space(&mut self) {
        if self.last[2] != b' ' {
            self.push(b' ');
        }
    }

    /// A value; one that follows another by a comma alone is left out with it.
    fn value(&mut self) {
        match self.last {
            [b'?', b',', b' '] => self.take_back(2),
            [_, b'?', b','] => self.take_back(1),
            _ => self.push(b'?'),
        }
    }

    fn take_back(&mut self, bytes: usize) {
        self.len = self.len.saturating_sub(bytes);
        self.last = [b' ', b' ', b'?'];
    }

    fn push(&mut self, byte: u8) {
        self.last = [self.last[1], self.last[2], byte];
        if let Some(place) = self.text.get_mut(self.len) {
            *place = byte;
            self.len += 1;
        }
        // What is taken back stays in the hash, so that of lists only the first two values are.
        if !matches!(self.last, [b'?', b',', _] | [_, b'?', b',']) {
            self.hash = (self.hash ^ u64::from(byte)).wrapping_mul(0x0000_0100_0000_01b3);
        }
    }
}

/// Bytes of a quoted text, with its quotes: doubled ones, and those behind a backslash, are of the text.
fn quoted(rest: &[u8], quote: u8) -> usize {
    let mut at = 1;
    while at < rest.len() {
        match rest[at] {
            b'\\' if quote != b'`' => at += 2,
            byte if byte == quote && rest.get(at + 1) == Some(&quote) => at += 2,
            byte if byte == quote => return at + 1,
            _ => at += 1,
        }
    }
    rest.len()
}

fn line(rest: &[u8]) -> usize {
    rest.iter().position(|&byte| byte == b'\n').unwrap_or(rest.len())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn text(query: &str) -> String {
        String::from_utf8(Digest::of(query.as_bytes()).text().to_vec()).unwrap()
    }

    #[test]
    fn values_and_spaces_do_not_matter() {
        assert_eq!(
            text("SELECT  a1, `B`\n FROM t WHERE x=5 and y = 'it''s'"),
            "select a1, `B` from t where x=? and y = ?"
        );
        assert_eq!(text("insert into t values (1,'a\\'',3), (0x1F, 2.5e1)"), "insert into t values (?), (?)");
        assert_eq!(text("select /* no */ 1 -- behind\n+ @v2 # end"), "select ? + @v2");
        assert_eq!(text("set @a = \"unended"), "set @a = ?");
    }

    #[test]
    fn the_hash_is_that_of_the_statement_without_values() {
        let of = |query: &str| Digest::of(query.as_bytes()).hash;
        assert_eq!(of("select * from t where a in (1, 2, 3)"), of("select * from t where a in (4)"));
        assert_eq!(of("SELECT 1"), of("select  'x'"));
        assert_ne!(of("select 1"), of("select 1 from t"));
    }

    #[test]
    fn any_bytes_have_a_digest() {
        // What begins something, and what may end it, in any order.
        let parts: [&[u8]; 14] =
            [b"'", b"\"", b"`", b"\\", b"/*", b"*/", b"--", b" ", b"#", b"\n", b"1", b"a", b",", b"\xff"];
        let mut random = 1u64;
        for _ in 0..100_000 {
            let mut query = Vec::new();
            for _ in 0..12 {
                random = random.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
                query.extend_from_slice(parts[(random >> 33) as usize % parts.len()]);
            }
            assert!(Digest::of(&query).text().len() <= query.len());
        }
    }

    #[test]
    fn a_long_statement_is_cut_between_characters() {
        let long = format!("select {}", "ä".repeat(300));
        assert!(Digest::of(long.as_bytes()).text().len() <= TEXT_BYTES);
        assert!(std::str::from_utf8(Digest::of(long.as_bytes()).text()).is_ok());
        assert_eq!(Digest::of(b"").text(), b"");
    }
}
