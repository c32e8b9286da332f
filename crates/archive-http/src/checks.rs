//! Whether bytes that come are those that were meant: by Content-MD5 (RFC 1864), Digest (RFC 3230), Content-Digest and
//! Repr-Digest (RFC 9530), and by the name of the data. They are compared at the end of the bytes, before anything of
//! them is to be seen.

use crate::asked::Asked;
use crate::problem::Problem;
use ring::digest;
use std::io::{Error, Read};
use teak_archive::Digest;

/// A hash that is being made, where it is said, and what it is to be.
struct Check {
    said: &'static str,
    algorithm: &'static str,
    hash: Hash,
    meant: Vec<u8>,
}

enum Hash {
    Md5(md5::Context),
    Sha(digest::Context),
    Blake3(Box<blake3::Hasher>),
}

impl Hash {
    /// By its name in the registry of digests.
    fn of_name(name: &str) -> Option<(&'static str, Hash)> {
        Some(match name.to_ascii_lowercase().as_str() {
            "md5" => ("md5", Hash::Md5(md5::Context::new())),
            "sha-256" => ("sha-256", Hash::Sha(digest::Context::new(&digest::SHA256))),
            "sha-512" => ("sha-512", Hash::Sha(digest::Context::new(&digest::SHA512))),
            _ => return None,
        })
    }

    fn update(&mut self, bytes: &[u8]) {
        match self {
            Hash::Md5(context) => context.consume(bytes),
            Hash::Sha(context) => context.update(bytes),
            Hash::Blake3(hasher) => drop(hasher.update(bytes)),
        }
    }

    fn finish(&self) -> Vec<u8> {
        match self {
            Hash::Md5(context) => context.clone().finalize().0.to_vec(),
            Hash::Sha(context) => context.clone().finish().as_ref().to_vec(),
            Hash::Blake3(hasher) => hasher.finalize().as_bytes().to_vec(),
        }
    }
}

/// Bytes whose end is an error if they are others than was said.
pub(crate) struct Checked<R> {
    source: R,
    checks: Vec<Check>,
    /// Which of them do not hold.
    pub(crate) refused: Option<Problem>,
}

impl<R: Read> Checked<R> {
    pub(crate) fn new(source: R, checks: Checks) -> Checked<R> {
        Checked { source, checks: checks.0, refused: None }
    }

    pub(crate) fn source(&self) -> &R {
        &self.source
    }
}

impl<R: Read> Read for Checked<R> {
    fn read(&mut self, into: &mut [u8]) -> Result<usize, Error> {
        let count = self.source.read(into)?;
        self.checks.iter_mut().for_each(|check| check.hash.update(&into[..count]));
        if count == 0 && !into.is_empty() {
            if let Some(wrong) = self.checks.iter().find(|check| check.hash.finish() != check.meant) {
                let text = format!("the bytes that came have another {}: nothing was kept", wrong.algorithm);
                self.refused = Some(Problem::of_field(wrong.said, text));
                return Err(Error::other("other bytes than were said"));
            }
        }
        Ok(count)
    }
}

/// What a request says of its bytes.
pub(crate) struct Checks(Vec<Check>);

impl Checks {
    pub(crate) fn of(asked: &Asked) -> Result<Checks, Problem> {
        let mut checks = Vec::new();
        for value in asked.headers.get_all("content-md5") {
            let meant = value.to_str().ok().and_then(from_base64).filter(|hash| hash.len() == 16);
            let meant =
                meant.ok_or_else(|| Problem::of_field("Content-MD5", "16 bytes in base64 are expected"))?;
            let hash = Hash::Md5(md5::Context::new());
            checks.push(Check { said: "Content-MD5", algorithm: "md5", hash, meant });
        }
        for said in ["Digest", "Content-Digest", "Repr-Digest"] {
            for value in asked.headers.get_all(said) {
                let before = checks.len();
                for part in value.to_str().unwrap_or_default().split(',') {
                    let wrong = || {
                        Problem::of_field(said, "algorithm=base64 is expected, with : around it by RFC 9530")
                    };
                    let (name, hash) = part.trim().split_once('=').ok_or_else(wrong)?;
                    let Some((algorithm, hash_of)) = Hash::of_name(name) else { continue };
                    let hash = match said {
                        "Digest" => Some(hash),
                        _ => hash.strip_prefix(':').and_then(|hash| hash.strip_suffix(':')),
                    };
                    let meant = hash.and_then(from_base64).ok_or_else(wrong)?;
                    checks.push(Check { said, algorithm, hash: hash_of, meant });
                }
                if checks.len() == before {
                    let text = "no algorithm is known of it: md5, sha-256 and sha-512 are";
                    return Err(Problem::of_field(said, text));
                }
            }
        }
        if let Some(data) = asked.read::<Digest>("data")? {
            let hash = Hash::Blake3(Box::default());
            checks.push(Check { said: "data", algorithm: "blake3", hash, meant: data.0.to_vec() });
        }
        // Whoever says more makes work, and nothing else.
        match checks.len() > 8 {
            true => Err(Problem::bad("more than 8 digests of one body")),
            false => Ok(Checks(checks)),
        }
    }
}

/// Bytes of a text in base64 (RFC 4648), with all of its padding.
pub(crate) fn from_base64(text: &str) -> Option<Vec<u8>> {
    let digit = |byte: u8| {
        Some(u32::from(match byte {
            b'A'..=b'Z' => byte - b'A',
            b'a'..=b'z' => byte - b'a' + 26,
            b'0'..=b'9' => byte - b'0' + 52,
            b'+' => 62,
            b'/' => 63,
            _ => return None,
        }))
    };
    if !text.len().is_multiple_of(4) {
        return None;
    }
    let body = text.strip_suffix("==").or(text.strip_suffix('=')).unwrap_or(text);
    let mut bytes = Vec::with_capacity(body.len() / 4 * 3 + 2);
    for group in body.as_bytes().chunks(4) {
        let mut bits = 0;
        for byte in group {
            bits = bits << 6 | digit(*byte)?;
        }
        bits <<= 6 * (4 - group.len());
        let whole = &bits.to_be_bytes()[1..];
        if whole[group.len() - 1..].iter().any(|byte| *byte != 0) && group.len() < 4 {
            return None;
        }
        bytes.extend(&whole[..group.len() - 1]);
    }
    Some(bytes)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn base64_is_read_with_its_padding_and_nothing_else_is() {
        for (text, meant) in [("", ""), ("Zg==", "f"), ("Zm8=", "fo"), ("Zm9v", "foo"), ("Zm9vYmE=", "fooba")]
        {
            assert_eq!(from_base64(text).as_deref(), Some(meant.as_bytes()), "{text}");
        }
        for wrong in ["Z", "Zg", "Zg=", "Zh==", "Zm9=", "====", "=", "Zg==Zg==", "Zm9v\n", "é=="] {
            assert_eq!(from_base64(wrong), None, "{wrong}");
        }
    }
}
