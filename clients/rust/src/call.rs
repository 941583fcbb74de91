//! The call that user code answers, and what it may know about it.

use std::sync::Arc;
use std::time::{Duration, Instant};

use tokio::sync::OwnedSemaphorePermit;
use tokio_util::sync::CancellationToken;

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

/// A call on its way to user code.
#[derive(Debug)]
pub(crate) struct Ticket {
    pub id: String,
    pub deadline: Option<Instant>,
    pub gone: CancellationToken,
    /// Given back when user code has ended, which may be after the outcome.
    pub places: Vec<OwnedSemaphorePermit>,
}

impl Ticket {
    pub fn into_call(self, options: Fields, instruction: String) -> Call {
        Call(Arc::new(Inner { ticket: self, options, instruction }))
    }
}
