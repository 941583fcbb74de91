//! Errors at this end of the wire.

use std::error::Error as StdError;
use std::fmt;
use std::sync::Arc;

use tonic::Code;

use crate::violation::FieldViolation;

/// Why something could not be served, attached or asked for.
///
/// Its text is a sentence for a person. `{:?}` shows the same, so that
/// `fn main() -> cbench_client::Result<()>` ends with that sentence; `{:#?}`
/// shows which error it is.
#[derive(Clone, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// What is offered lacks something, such as a valid name.
    #[error("{0}")]
    NotServable(String),
    /// The address cannot be served on, or not with that certificate and key.
    #[error("{0}")]
    CannotServe(String),
    /// A token would travel in the clear.
    #[error("{0}")]
    InsecureToken(String),
    /// A value cannot cross the wire without loss.
    #[error("{0}")]
    Unencodable(String),
    /// Nothing answers at that address, or not what was expected, or not with these certificates.
    #[error("{message}")]
    #[non_exhaustive]
    Unreachable {
        /// Why, for a person.
        message: String,
        /// What the transport said.
        source: Option<Arc<dyn StdError + Send + Sync>>,
    },
    /// The daemon declined a request.
    #[error("{message}")]
    #[non_exhaustive]
    Refused {
        /// Why, for a person.
        message: String,
        /// The gRPC status.
        code: Code,
        /// The stable reason, such as `UNKNOWN_DATASET`; branch on this.
        reason: String,
        /// The fields of the request that are to blame; empty where the daemon does not say.
        violations: Vec<FieldViolation>,
    },
}

impl Error {
    /// A stable UPPER_SNAKE_CASE identifier, the same in every SDK.
    pub fn reason(&self) -> &str {
        match self {
            Error::NotServable(_) => "NOT_SERVABLE",
            Error::CannotServe(_) => "CANNOT_SERVE",
            Error::InsecureToken(_) => "INSECURE_TOKEN",
            Error::Unencodable(_) => "UNENCODABLE_VALUE",
            Error::Unreachable { .. } => "UNREACHABLE",
            Error::Refused { reason, .. } => reason,
        }
    }

    fn name(&self) -> &'static str {
        match self {
            Error::NotServable(_) => "NotServable",
            Error::CannotServe(_) => "CannotServe",
            Error::InsecureToken(_) => "InsecureToken",
            Error::Unencodable(_) => "Unencodable",
            Error::Unreachable { .. } => "Unreachable",
            Error::Refused { .. } => "Refused",
        }
    }

    pub(crate) fn unreachable(message: impl Into<String>) -> Self {
        Self::Unreachable { message: message.into(), source: None }
    }
}

impl fmt::Debug for Error {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        if !formatter.alternate() {
            return fmt::Display::fmt(self, formatter);
        }
        let mut shown = formatter.debug_struct(self.name());
        shown.field("message", &self.to_string()).field("reason", &self.reason());
        match self {
            Error::Refused { code, violations, .. } => {
                shown.field("code", code).field("violations", violations).finish()
            }
            Error::Unreachable { source, .. } => shown.field("source", source).finish(),
            _ => shown.finish(),
        }
    }
}

/// What functions of this crate return.
pub type Result<T, E = Error> = std::result::Result<T, E>;
