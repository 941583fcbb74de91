//! The call that user code answers, and what it may know about it.

use std::sync::Arc;
use std::time::{Duration, Instant};

use tokio::sync::OwnedSemaphorePermit;
use tokio_util::sync::CancellationToken;

use crate::declared::OptionError;
use crate::value::{Fields, Value};

/// The call being answered: its id, its options, its deadline, and whether
/// the caller still waits for the answer.
///
/// When it no longer does, asynchronous code is dropped at its next `await`.
/// Nothing can interrupt a thread, so long synchronous work looks at
/// [`is_cancelled`](Call::is_cancelled) now and then. A call occupies one of
/// the places that `max_concurrency` gives until its last clone is dropped.
#[derive(Clone, Debug)]
pub struct Call(Arc<Inner>);

#[derive(Debug)]
struct Inner {
    ticket: Ticket,
    options: Fields,
    instruction: String,
}

impl Call {
    /// The same for every retry of this call, and unique otherwise.
    pub fn id(&self) -> &str {
        &self.0.ticket.id
    }

    /// Settings of this run, such as a target compression rate.
    pub fn options(&self) -> &Fields {
        &self.0.options
    }

    /// One of the settings.
    pub fn option(&self, name: &str) -> Option<&Value> {
        self.0.options.get(name)
    }

    /// An option that is a number, whole or not; defaults that were declared count.
    pub fn number(&self, name: &str) -> Result<f64, OptionError> {
        self.read(name, "a number", Value::as_f64)
    }

    /// An option that is an integer.
    pub fn integer(&self, name: &str) -> Result<i64, OptionError> {
        self.read(name, "an integer", Value::as_i64)
    }

    /// An option that is text.
    pub fn text(&self, name: &str) -> Result<&str, OptionError> {
        self.read(name, "text", Value::as_str)
    }

    /// An option that is true or false.
    pub fn flag(&self, name: &str) -> Result<bool, OptionError> {
        self.read(name, "a truth value", Value::as_bool)
    }

    fn read<'a, T>(
        &'a self,
        name: &str,
        wanted: &'static str,
        taken: impl FnOnce(&'a Value) -> Option<T>,
    ) -> Result<T, OptionError> {
        let value = self.option(name).ok_or_else(|| OptionError::Missing(name.into()))?;
        taken(value).ok_or_else(|| OptionError::OfAnotherKind(name.into(), value.kind(), wanted))
    }

    /// The W3C trace context of this call, for the spans that user code makes.
    /// `None` means that nobody traces it.
    pub fn traceparent(&self) -> Option<&str> {
        Some(self.0.ticket.trace.parent.as_str()).filter(|told| !told.is_empty())
    }

    /// What vendors add to `traceparent`; `None` means nothing.
    pub fn tracestate(&self) -> Option<&str> {
        Some(self.0.ticket.trace.state.as_str()).filter(|told| !told.is_empty())
    }

    /// What the dataset asks of whoever answers: the task, its labels and the
    /// form of an answer. It may be empty, and counts in no token ratio.
    pub fn instruction(&self) -> &str {
        &self.0.instruction
    }

    /// When the caller stops waiting; `None` means never.
    pub fn deadline(&self) -> Option<Instant> {
        self.0.ticket.deadline
    }

    /// The time left, not below zero; `None` means no limit.
    pub fn remaining(&self) -> Option<Duration> {
        self.deadline().map(|at| at.saturating_duration_since(Instant::now()))
    }

    /// Whether the caller no longer waits for the answer.
    pub fn is_cancelled(&self) -> bool {
        self.0.ticket.gone.is_cancelled()
    }

    /// Waits until the caller no longer waits for the answer.
    pub async fn cancelled(&self) {
        self.0.ticket.gone.cancelled().await;
    }
}

/// The W3C trace context of a call; empty if nobody traces it.
#[derive(Debug, Default)]
pub(crate) struct Trace {
    pub parent: String,
    pub state: String,
}

/// A call on its way to user code.
#[derive(Debug)]
pub(crate) struct Ticket {
    pub id: String,
    pub deadline: Option<Instant>,
    pub gone: CancellationToken,
    pub trace: Trace,
    /// Given back when user code has ended, which may be after the outcome.
    pub places: Vec<OwnedSemaphorePermit>,
}

impl Ticket {
    pub fn into_call(self, options: Fields, instruction: String) -> Call {
        Call(Arc::new(Inner { ticket: self, options, instruction }))
    }
}
