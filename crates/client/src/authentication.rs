//! Proofs that the client knows the password, by the name of the server's plugin.

use super::Error;
use curve25519_dalek::edwards::EdwardsPoint;
use curve25519_dalek::scalar::{clamp_integer, Scalar};
use ring::digest::{digest, Context, SHA1_FOR_LEGACY_USE_ONLY, SHA256, SHA512};

/// What a plugin of the server expects as the answer to its `nonce`.
pub fn answer(plugin: &[u8], password: &[u8], nonce: &[u8]) -> Result<Vec<u8>, Error> {
    // The nonce is sent with a zero after it.
    let nonce =
        nonce.strip_suffix(&[0]).filter(|nonce| nonce.len() == 20 || nonce.len() == 32).unwrap_or(nonce);
    match plugin {
        b"mysql_native_password" | b"" => Ok(native(password, nonce)),
        b"caching_sha2_password" => Ok(caching_sha2(password, nonce)),
        b"client_ed25519" => Ok(ed25519(password, nonce)),
        other => Err(Error::Authentication(format!(
            "the server wants the authentication '{}', which teak does not have",
            String::from_utf8_lossy(other)
        ))),
    }
}

/// Whether `answer` knows this plugin.
pub fn is_known(plugin: &[u8]) -> bool {
    matches!(plugin, b"mysql_native_password" | b"" | b"caching_sha2_password" | b"client_ed25519")
}

/// SHA1(password) XOR SHA1(nonce, SHA1(SHA1(password)))
fn native(password: &[u8], nonce: &[u8]) -> Vec<u8> {
    if password.is_empty() {
        return Vec::new();
    }
    let once = digest(&SHA1_FOR_LEGACY_USE_ONLY, password);
    let twice = digest(&SHA1_FOR_LEGACY_USE_ONLY, once.as_ref());
    let mut context = Context::new(&SHA1_FOR_LEGACY_USE_ONLY);
    context.update(nonce);
    context.update(twice.as_ref());
    xor(once.as_ref(), context.finish().as_ref())
}

/// SHA256(password) XOR SHA256(SHA256(SHA256(password)), nonce)
fn caching_sha2(password: &[u8], nonce: &[u8]) -> Vec<u8> {
    if password.is_empty() {
        return Vec::new();
    }
    let once = digest(&SHA256, password);
    let mut context = Context::new(&SHA256);
    context.update(digest(&SHA256, once.as_ref()).as_ref());
    context.update(nonce);
    xor(once.as_ref(), context.finish().as_ref())
}

/// An Ed25519 signature of the nonce, with a key that comes from the SHA-512 of the password of any length.
fn ed25519(password: &[u8], nonce: &[u8]) -> Vec<u8> {
    let hash = digest(&SHA512, password);
    let mut secret = [0; 32];
    secret.copy_from_slice(&hash.as_ref()[..32]);
    let secret = Scalar::from_bytes_mod_order(clamp_integer(secret));
    let public = EdwardsPoint::mul_base(&secret).compress();
    let r = scalar(&[&hash.as_ref()[32..], nonce]);
    let commitment = EdwardsPoint::mul_base(&r).compress();
    let challenge = scalar(&[commitment.as_bytes(), public.as_bytes(), nonce]);
    let mut signature = commitment.as_bytes().to_vec();
    signature.extend_from_slice((r + challenge * secret).as_bytes());
    signature
}

fn scalar(parts: &[&[u8]]) -> Scalar {
    let mut context = Context::new(&SHA512);
    for part in parts {
        context.update(part);
    }
    let mut wide = [0; 64];
    wide.copy_from_slice(context.finish().as_ref());
    Scalar::from_bytes_mod_order_wide(&wide)
}

fn xor(a: &[u8], b: &[u8]) -> Vec<u8> {
    a.iter().zip(b).map(|(a, b)| a ^ b).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_server_can_check_a_native_answer() {
        let nonce = [7; 20];
        let answer = native(b"secret", &nonce);
        // What the server does: it stores SHA1(SHA1(password)) and recovers SHA1(password) from the answer.
        let stored = digest(&SHA1_FOR_LEGACY_USE_ONLY, digest(&SHA1_FOR_LEGACY_USE_ONLY, b"secret").as_ref());
        let mut context = Context::new(&SHA1_FOR_LEGACY_USE_ONLY);
        context.update(&nonce);
        context.update(stored.as_ref());
        let recovered = xor(&answer, context.finish().as_ref());
        assert_eq!(digest(&SHA1_FOR_LEGACY_USE_ONLY, &recovered).as_ref(), stored.as_ref());
        assert!(native(b"", &nonce).is_empty());
    }

    #[test]
    fn an_ed25519_answer_is_a_valid_signature() {
        for password in [&b"foo"[..], b"", b"a password that is longer than thirty-two bytes"] {
            let hash = digest(&SHA512, password);
            let mut secret = [0; 32];
            secret.copy_from_slice(&hash.as_ref()[..32]);
            let public = EdwardsPoint::mul_base_clamped(secret).compress();
            let nonce = [9; 32];
            let signature = ed25519(password, &nonce);
            let key = ring::signature::UnparsedPublicKey::new(&ring::signature::ED25519, public.as_bytes());
            key.verify(&nonce, &signature).unwrap();
        }
    }

    #[test]
    fn an_unknown_plugin_is_named() {
        let error = answer(b"dialog", b"x", &[0; 20]).unwrap_err().to_string();
        assert!(error.contains("'dialog'"), "{error}");
    }
}
