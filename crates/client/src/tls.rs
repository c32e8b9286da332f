//! Encryption of a connection.
//!
//! As in the `mariadb` client, a certificate is checked only if the options say against what: `--ssl-ca` or
//! `--ssl-capath` must have signed it, and with `--ssl-verify-server-cert` it must name the host (against the system's
//! authorities if no other is given). Without these, encryption keeps out listeners but not somebody who answers in the
//! server's place.

use super::settings::Address;
use super::settings::{Settings, Tls};
use super::Error;
use rustls::client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier};
use rustls::client::WebPkiServerVerifier;
use rustls::crypto::{ring, verify_tls12_signature, verify_tls13_signature, CryptoProvider};
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer, ServerName, UnixTime};
use rustls::{
    CertificateError, ClientConfig, ClientConnection, DigitallySignedStruct, RootCertStore, SignatureScheme,
};
use std::path::Path;
use std::sync::Arc;

/// Where Debian keeps the certificates of the authorities it trusts.
const SYSTEM_AUTHORITIES: &str = "/etc/ssl/certs/ca-certificates.crt";

/// A session that can begin its handshake.
pub fn session(settings: &Settings) -> Result<ClientConnection, Error> {
    let tls = &settings.tls;
    let host = match &settings.address {
        Address::Tcp { host, .. } => host.as_str(),
        Address::Socket(_) => "localhost",
    };
    let provider = Arc::new(ring::default_provider());
    let verifier = Verifier {
        chain: chain_verifier(tls, &provider)?,
        verify_host: tls.verify_host,
        provider: provider.clone(),
    };
    let builder = ClientConfig::builder_with_provider(provider)
        .with_protocol_versions(&versions(tls)?)
        .map_err(failed)?
        .dangerous()
        .with_custom_certificate_verifier(Arc::new(verifier));
    let config = match (&tls.cert, &tls.key) {
        (Some(cert), key) => {
            // A file may hold both.
            let key_file = key.as_deref().unwrap_or(cert);
            let key = PrivateKeyDer::from_pem_file(key_file).map_err(|error| unreadable(key_file, error))?;
            builder.with_client_auth_cert(certificates(cert)?, key).map_err(failed)?
        }
        (None, _) => builder.with_no_client_auth(),
    };
    let name = ServerName::try_from(host.to_string()).map_err(failed)?;
    ClientConnection::new(Arc::new(config), name).map_err(failed)
}

fn failed(error: impl std::fmt::Display) -> Error {
    Error::Tls(error.to_string())
}

fn unreadable(file: &Path, error: impl std::fmt::Display) -> Error {
    Error::Tls(format!("cannot read {}: {error}", file.display()))
}

fn versions(tls: &Tls) -> Result<Vec<&'static rustls::SupportedProtocolVersion>, Error> {
    let Some(names) = &tls.versions else {
        return Ok(vec![&rustls::version::TLS13, &rustls::version::TLS12]);
    };
    let version = |name: &str| match name.trim() {
        "TLSv1.3" => Ok(&rustls::version::TLS13),
        "TLSv1.2" => Ok(&rustls::version::TLS12),
        other => Err(Error::Settings(format!("tls-version '{other}' is neither TLSv1.2 nor TLSv1.3"))),
    };
    names.split(',').map(version).collect()
}

fn certificates(file: &Path) -> Result<Vec<CertificateDer<'static>>, Error> {
    let found: Result<Vec<_>, _> =
        CertificateDer::pem_file_iter(file).map_err(|error| unreadable(file, error))?.collect();
    let found = found.map_err(|error| unreadable(file, error))?;
    if found.is_empty() {
        return Err(unreadable(file, "there is no certificate in it"));
    }
    Ok(found)
}

/// Checks against the authorities the options name; `None` if they name none.
fn chain_verifier(
    tls: &Tls,
    provider: &Arc<CryptoProvider>,
) -> Result<Option<Arc<WebPkiServerVerifier>>, Error> {
    let mut files = Vec::from_iter(tls.ca.clone());
    if let Some(dir) = &tls.capath {
        for entry in std::fs::read_dir(dir).map_err(|error| unreadable(dir, error))? {
            files.push(entry.map_err(|error| unreadable(dir, error))?.path());
        }
    }
    if files.is_empty() {
        if !tls.verify_host {
            return Ok(None);
        }
        files.push(SYSTEM_AUTHORITIES.into());
    }
    let mut roots = RootCertStore::empty();
    for file in &files {
        roots.add_parsable_certificates(certificates(file)?);
    }
    let verifier = WebPkiServerVerifier::builder_with_provider(Arc::new(roots), provider.clone());
    verifier.build().map(Some).map_err(failed)
}

#[derive(Debug)]
struct Verifier {
    chain: Option<Arc<WebPkiServerVerifier>>,
    verify_host: bool,
    provider: Arc<CryptoProvider>,
}

impl ServerCertVerifier for Verifier {
    fn verify_server_cert(
        &self,
        certificate: &CertificateDer<'_>,
        intermediates: &[CertificateDer<'_>],
        name: &ServerName<'_>,
        ocsp: &[u8],
        now: UnixTime,
    ) -> Result<ServerCertVerified, rustls::Error> {
        let Some(chain) = &self.chain else {
            return Ok(ServerCertVerified::assertion());
        };
        let other_name = |error: &rustls::Error| {
            use CertificateError::{NotValidForName, NotValidForNameContext};
            matches!(
                error,
                rustls::Error::InvalidCertificate(NotValidForName | NotValidForNameContext { .. })
            )
        };
        match chain.verify_server_cert(certificate, intermediates, name, ocsp, now) {
            // The name is checked after the chain, so the chain is good.
            Err(error) if !self.verify_host && other_name(&error) => Ok(ServerCertVerified::assertion()),
            result => result,
        }
    }

    fn verify_tls12_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signed: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        verify_tls12_signature(message, certificate, signed, &self.provider.signature_verification_algorithms)
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signed: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        verify_tls13_signature(message, certificate, signed, &self.provider.signature_verification_algorithms)
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.provider.signature_verification_algorithms.supported_schemes()
    }
}
