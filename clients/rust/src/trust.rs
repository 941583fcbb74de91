//! Whose certificates a client trusts where it was told.

use std::sync::Arc;

use rustls::client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier};
use rustls::client::{VerifierBuilderError, WebPkiServerVerifier, verify_server_name};
use rustls::crypto::{CryptoProvider, ring};
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, ServerName, UnixTime};
use rustls::server::ParsedCertificate;
use rustls::{CertificateError, DigitallySignedStruct, Error, RootCertStore, SignatureScheme};

/// What webpki says of a server that shows the certificate of an authority.
pub(crate) const IS_AUTHORITY: &str = "CaUsedAsEndEntity";

/// Trusts these PEM certificates: what they signed, and a server that shows one of them.
///
/// `openssl req -x509` makes authorities, and webpki takes none for a server; the TLS
/// libraries of other languages take one that they were told to trust.
pub(crate) fn in_these(pem: &[u8]) -> Result<Arc<dyn ServerCertVerifier>, VerifierBuilderError> {
    let given: Vec<_> = CertificateDer::pem_slice_iter(pem).filter_map(Result::ok).collect();
    let mut roots = RootCertStore::empty();
    roots.add_parsable_certificates(given.iter().cloned());
    let provider = CryptoProvider::get_default();
    let provider = provider.cloned().unwrap_or_else(|| Arc::new(ring::default_provider()));
    let usual = WebPkiServerVerifier::builder_with_provider(Arc::new(roots), provider).build()?;
    Ok(Arc::new(Given { given, usual }))
}

#[derive(Debug)]
struct Given {
    given: Vec<CertificateDer<'static>>,
    usual: Arc<WebPkiServerVerifier>,
}

impl ServerCertVerifier for Given {
    fn verify_server_cert(
        &self,
        shown: &CertificateDer<'_>,
        intermediates: &[CertificateDer<'_>],
        name: &ServerName<'_>,
        ocsp_response: &[u8],
        now: UnixTime,
    ) -> Result<ServerCertVerified, Error> {
        let verdict = self.usual.verify_server_cert(shown, intermediates, name, ocsp_response, now);
        match &verdict {
            // webpki says so after it has looked at the dates, and before it looks at the name.
            Err(Error::InvalidCertificate(CertificateError::Other(why)))
                if why.0.to_string() == IS_AUTHORITY && self.given.contains(shown) =>
            {
                verify_server_name(&ParsedCertificate::try_from(shown)?, name)?;
                Ok(ServerCertVerified::assertion())
            }
            _ => verdict,
        }
    }

    fn verify_tls12_signature(
        &self,
        message: &[u8],
        shown: &CertificateDer<'_>,
        signed: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        self.usual.verify_tls12_signature(message, shown, signed)
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        shown: &CertificateDer<'_>,
        signed: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        self.usual.verify_tls13_signature(message, shown, signed)
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.usual.supported_verify_schemes()
    }
}
