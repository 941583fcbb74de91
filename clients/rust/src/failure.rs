//! Failures: why one call gave no result.

use std::backtrace::Backtrace;
use std::error::Error as StdError;
use std::fmt;
use std::time::Duration;

use crate::convert;
use crate::pb;
use crate::trace;

/// Why one example got no result. It is stored with the row, and the run goes on.
///
/// Whatever converts into a `Box<dyn Error + Send + Sync>` converts into a
/// failure with the reason `EXCEPTION` and a stack trace: errors, text, and
/// `anyhow::Error`. So `?` just works in user code; for that to be possible, a
/// `Failure` is not itself a `std::error::Error`. What is neither `Send` nor
/// `Sync` goes through [`of`](Failure::of).
///
/// ```
/// use std::time::Duration;
/// use cbench_client::Failure;
///
/// let failure = Failure::new("NOT_READY", "the index is still loading")
///     .retry_after(Duration::from_secs(2));
/// assert!(failure.retryable);
/// ```
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct Failure {
    /// A stable UPPER_SNAKE_CASE identifier.
    pub reason: String,
    /// One sentence for a person.
    pub message: String,
    /// Whether the same call may succeed if made again unchanged.
    pub retryable: bool,
    /// The least time to wait before that.
    pub retry_delay: Option<Duration>,
    /// Where it happened.
    pub stack_trace: String,
}

impl Failure {
    /// Makes a failure with a stable reason and a sentence for a person.
    pub fn new(reason: impl Into<String>, message: impl Into<String>) -> Self {
        Self {
            reason: reason.into(),
            message: message.into(),
            retryable: false,
            retry_delay: None,
            stack_trace: String::new(),
        }
    }

    /// Makes a failure of an error that may not leave its thread, such as a `Box<dyn Error>`.
    ///
    /// ```
    /// use cbench_client::Failure;
    ///
    /// fn count(text: &str) -> Result<usize, Box<dyn std::error::Error>> {
    ///     Ok(text.parse()?)
    /// }
    ///
    /// let failure = count("many").map_err(|error| Failure::of(&*error)).unwrap_err();
    /// assert_eq!(failure.message, "invalid digit found in string");
    /// ```
    pub fn of(error: &dyn StdError) -> Self {
        let mut message = error.to_string();
        let mut cause = error.source();
        while let Some(inner) = cause {
            message = format!("{message}: {inner}");
            cause = inner.source();
        }
        Self::exception(message, trace::of_error(&Backtrace::force_capture()))
    }

    /// Says that the same call may succeed later.
    pub fn retryable(mut self) -> Self {
        self.retryable = true;
        self
    }

    /// Says that the same call may succeed after a pause.
    pub fn retry_after(mut self, delay: Duration) -> Self {
        self.retry_delay = Some(delay);
        self.retryable()
    }

    pub(crate) fn exception(message: String, stack_trace: String) -> Self {
        Self { stack_trace, ..Self::new("EXCEPTION", message) }
    }

    pub(crate) fn shutting_down() -> Self {
        Self::new("UNAVAILABLE", "shutting down").retryable()
    }

    pub(crate) fn invalid(message: impl Into<String>) -> Self {
        Self::new("INVALID_ARGUMENT", message)
    }

    pub(crate) fn to_proto(&self, origin: pb::FailureOrigin) -> pb::Failure {
        pb::Failure {
            origin: origin.into(),
            reason: self.reason.clone(),
            message: self.message.clone(),
            retryable: self.retryable,
            retry_delay: self.retry_delay.map(convert::duration_to_proto),
            stack_trace: self.stack_trace.clone(),
            attempts: 0,
            field: String::new(),
        }
    }
}

impl fmt::Display for Failure {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "{}: {}", self.reason, self.message)
    }
}

impl<E: Into<Box<dyn StdError + Send + Sync>>> From<E> for Failure {
    fn from(error: E) -> Self {
        Self::of(&*error.into())
    }
}
