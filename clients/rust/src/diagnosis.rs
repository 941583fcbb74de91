//! Why a connection was not made or not kept, in a sentence with a way out.

use std::error::Error as StdError;
use std::io;

use rustls::Error as TlsError;
use tonic::Status;

use crate::channel::{causes, chain, short};
use crate::trust::IS_AUTHORITY;

/// Says what keeps calls from `target`, over a connection with TLS or without.
pub(crate) fn unreachable(target: &str, status: &Status, has_tls: bool) -> String {
    use io::ErrorKind::{BrokenPipe, ConnectionRefused, ConnectionReset, NotFound, UnexpectedEof};

    if let Some(error) = chain(status).find_map(tls_error) {
        return handshake(target, error);
    }
    if status.message() == "dns error" {
        return format!("the host of {target} cannot be found. Check the name.");
    }
    let failed = chain(status).find_map(|cause| cause.downcast_ref::<io::Error>());
    match failed.map(io::Error::kind) {
        Some(ConnectionRefused | NotFound) => {
            format!("nothing listens at {target}. Is it running? Start it, or check the address.")
        }
        Some(UnexpectedEof) if has_tls => format!(
            "{target} does not finish a TLS handshake. Leave out tls(...), or check the port."
        ),
        Some(BrokenPipe | ConnectionReset | UnexpectedEof) if !has_tls => format!(
            "something listens at {target}, but hangs up on a connection without TLS. If it speaks \
             TLS, set tls(Tls::new()), or Tls::new().ca_pem(...) for a certificate of your own; \
             else check the port, and whether it is shutting down."
        ),
        _ => format!("{target} cannot be reached: {}. Check the address.", short(status)),
    }
}

fn handshake(target: &str, error: &TlsError) -> String {
    match error {
        TlsError::InvalidCertificate(why) => {
            let why = why.to_string();
            let why = if why.contains(IS_AUTHORITY) { "it is self-signed" } else { &why };
            format!(
                "the certificate of {target} is not accepted: {why}. Trust its authority with \
                 Tls::new().ca_pem(...), or give the name in it as server_name(...)."
            )
        }
        TlsError::AlertReceived(alert) => format!(
            "{target} refused the TLS handshake ({alert:?}). If it asks for a client certificate, \
             set a valid one with identity_pem(...)."
        ),
        TlsError::InvalidMessage(_) => format!(
            "{target} does not speak TLS and this connection does. Leave out tls(...), or check the \
             port."
        ),
        other => format!("{target} cannot be reached over TLS: {}.", causes(other)),
    }
}

/// The error of rustls in a cause; an `io::Error` does not count what it holds among its sources.
fn tls_error<'a>(cause: &'a (dyn StdError + 'static)) -> Option<&'a TlsError> {
    let held = cause.downcast_ref::<io::Error>().and_then(io::Error::get_ref);
    held.and_then(|held| held.downcast_ref()).or_else(|| cause.downcast_ref())
}
