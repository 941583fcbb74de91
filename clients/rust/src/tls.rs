//! Certificates and tokens.

use std::fs;
use std::path::Path;

use tonic::metadata::{Ascii, MetadataValue};
use tonic::service::Interceptor;
use tonic::transport::{Certificate, ClientTlsConfig, Endpoint, Identity, ServerTlsConfig};
use tonic::{Request, Status};

use crate::address::Address;
use crate::error::{Error, Result};
use crate::trust;

type BoxError = Box<dyn std::error::Error + Send + Sync>;

/// How to secure a connection to a daemon.
///
/// Nothing set means the authorities that this machine trusts.
#[derive(Clone, Debug, Default)]
pub struct Tls {
    ca_pem: Option<Vec<u8>>,
    identity: Option<(Vec<u8>, Vec<u8>)>,
    server_name: Option<String>,
}

impl Tls {
    /// Trusts what this machine trusts.
    pub fn new() -> Self {
        Self::default()
    }

    /// Trusts these PEM certificates, and only them.
    pub fn ca_pem(mut self, pem: impl Into<Vec<u8>>) -> Self {
        self.ca_pem = Some(pem.into());
        self
    }

    /// Shows this certificate, in PEM, to a daemon that asks for one.
    pub fn identity_pem(mut self, cert: impl Into<Vec<u8>>, key: impl Into<Vec<u8>>) -> Self {
        self.identity = Some((cert.into(), key.into()));
        self
    }

    /// Expects this name in the certificate, where it differs from the target's.
    pub fn server_name(mut self, name: impl Into<String>) -> Self {
        self.server_name = Some(name.into());
        self
    }

    /// Has an endpoint dial with it.
    pub(crate) fn secure(&self, endpoint: Endpoint) -> Result<Endpoint, BoxError> {
        let mut config = ClientTlsConfig::new();
        if let Some((cert, key)) = &self.identity {
            config = config.identity(Identity::from_pem(cert, key));
        }
        if let Some(name) = &self.server_name {
            config = config.domain_name(name);
        }
        Ok(match &self.ca_pem {
            Some(pem) => endpoint.tls_config_with_verifier(config, trust::in_these(pem)?)?,
            None => endpoint.tls_config(config.with_native_roots())?,
        })
    }
}

/// The certificate a server shows, and whose certificates it demands.
#[derive(Clone, Debug)]
pub struct ServerTls {
    cert: Vec<u8>,
    key: Vec<u8>,
    client_ca: Option<Vec<u8>>,
}

impl ServerTls {
    /// Shows this certificate, in PEM.
    pub fn from_pem(cert: impl Into<Vec<u8>>, key: impl Into<Vec<u8>>) -> Self {
        Self { cert: cert.into(), key: key.into(), client_ca: None }
    }

    /// Reads certificate and key from PEM files.
    pub fn from_files(cert: impl AsRef<Path>, key: impl AsRef<Path>) -> Result<Self> {
        Ok(Self::from_pem(read(cert.as_ref())?, read(key.as_ref())?))
    }

    /// Demands certificates from callers, signed by this PEM authority.
    pub fn client_ca_pem(mut self, pem: impl Into<Vec<u8>>) -> Self {
        self.client_ca = Some(pem.into());
        self
    }

    pub(crate) fn config(&self) -> ServerTlsConfig {
        let config = ServerTlsConfig::new().identity(Identity::from_pem(&self.cert, &self.key));
        match &self.client_ca {
            Some(pem) => config.client_ca_root(Certificate::from_pem(pem)),
            None => config,
        }
    }
}

fn read(path: &Path) -> Result<Vec<u8>> {
    fs::read(path)
        .map_err(|error| Error::CannotServe(format!("cannot read {}: {error}.", path.display())))
}

/// Refuses to send a token in the clear over a network.
pub(crate) fn check_token(target: &str, tls: Option<&Tls>, token: Option<&str>) -> Result<()> {
    if token.is_some() && tls.is_none() && !Address::parse(target).is_loopback() {
        return Err(Error::InsecureToken(format!(
            "a token for {target} would travel unencrypted over the network. Set tls(Tls::new()), \
             or Tls::new().ca_pem(...) for a certificate of your own."
        )));
    }
    Ok(())
}

/// Refuses calls without the token.
#[derive(Clone)]
pub(crate) struct TokenCheck {
    expected: Option<String>,
}

impl TokenCheck {
    pub fn new(token: Option<&str>) -> Self {
        Self { expected: token.map(|token| format!("Bearer {token}")) }
    }
}

impl Interceptor for TokenCheck {
    fn call(&mut self, request: Request<()>) -> Result<Request<()>, Status> {
        let Some(expected) = &self.expected else { return Ok(request) };
        let given = request.metadata().get("authorization").map(MetadataValue::as_bytes);
        if given.is_some_and(|given| is_equal(given, expected.as_bytes())) {
            return Ok(request);
        }
        Err(Status::unauthenticated("a bearer token is needed in `authorization`"))
    }
}

/// Compares without telling, by its time, how much is equal.
fn is_equal(left: &[u8], right: &[u8]) -> bool {
    let differences = left.iter().zip(right).fold(0, |seen, (one, other)| seen | (one ^ other));
    left.len() == right.len() && std::hint::black_box(differences) == 0
}

/// Sends the token with every call.
#[derive(Clone)]
pub(crate) struct TokenSender {
    header: Option<MetadataValue<Ascii>>,
}

impl TokenSender {
    pub fn new(token: Option<&str>) -> Result<Self> {
        let header = token.map(|token| format!("Bearer {token}").parse()).transpose();
        let header = header.map_err(|_| {
            Error::InsecureToken("the token has characters that no header can hold.".into())
        })?;
        Ok(Self { header })
    }
}

impl Interceptor for TokenSender {
    fn call(&mut self, mut request: Request<()>) -> Result<Request<()>, Status> {
        if let Some(header) = &self.header {
            request.metadata_mut().insert("authorization", header.clone());
        }
        Ok(request)
    }
}
