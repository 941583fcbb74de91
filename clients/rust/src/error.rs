//! Errors at this end of the wire.

use std::fmt;

use tonic::Code;

/// Why something could not be served, attached or asked for.
///
/// Its text is a sentence for a person. It is shown the same way by `{:?}`,
/// so that `fn main() -> cbench_client::Result<()>` ends with that sentence.
#[derive(thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// What is offered lacks something, such as a valid name.
    #[error("{0}")]
    NotServable(String),
    /// The address cannot be served on.
    #[error("{0}")]
    CannotServe(String),
    /// A certificate or key cannot be used.
    #[error("{0}")]
    Tls(String),
    /// A token would travel in the clear.
    #[error("{0}")]
    InsecureToken(String),
    /// A value cannot cross the wire without loss.
    #[error("{0}")]
    Unencodable(String),
    /// Nothing answers at that address, or not what was expected.
    #[error("{0}")]
    Unreachable(String),
    /// The daemon declined a request.
    #[error("{message}")]
    Refused {
        /// Why, for a person.
        message: String,
        /// The gRPC status.
        code: Code,
        /// The stable reason, such as `UNKNOWN_DATASET`; branch on this.
        reason: String,
    },
}

impl fmt::Debug for Error {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, formatter)
    }
}

/// What functions of this crate return.
pub type Result<T, E = Error> = std::result::Result<T, E>;
