//! Kinds of calls, and their results.

use std::pin::Pin;
use std::sync::Arc;

use prost::Message;

use crate::call::Ticket;
use crate::failure::Failure;
use crate::pb;

/// What is asked for.
pub(crate) enum Work {
    Process(pb::ProcessRequest),
    Converse(pb::ProcessConversationRequest),
    Score(pb::ScoreRequest),
    Reset(pb::ResetRequest),
    Ingest(pb::IngestRequest),
    Query(pb::QueryRequest),
}

/// What comes back.
pub(crate) enum Reply {
    Process(pb::ProcessResponse),
    Converse(pb::ProcessConversationResponse),
    Score(pb::ScoreResponse),
    Reset(pb::ResetResponse),
    Ingest(pb::IngestResponse),
    Query(pb::QueryResponse),
}

/// What kind of thing is asked.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    System,
    Memory,
    Evaluator,
}

impl Kind {
    /// What a person calls it; a memory system is a system.
    pub fn noun(self) -> &'static str {
        if self == Kind::Evaluator { "evaluator" } else { "system" }
    }

    /// Who is to blame for its failures.
    pub fn origin(self) -> pb::FailureOrigin {
        match self {
            Kind::Evaluator => pb::FailureOrigin::Evaluator,
            Kind::System | Kind::Memory => pb::FailureOrigin::System,
        }
    }
}

impl Work {
    pub fn kind(&self) -> Kind {
        match self {
            Work::Process(_) | Work::Converse(_) => Kind::System,
            Work::Score(_) => Kind::Evaluator,
            Work::Reset(_) | Work::Ingest(_) | Work::Query(_) => Kind::Memory,
        }
    }

    /// The name of whom it is for; empty means the only one.
    pub fn addressee(&self) -> &str {
        match self {
            Work::Process(request) => &request.system,
            Work::Converse(request) => &request.system,
            Work::Score(request) => &request.evaluator,
            Work::Reset(request) => &request.system,
            Work::Ingest(request) => &request.system,
            Work::Query(request) => &request.system,
        }
    }

    pub fn call_id(&self) -> &str {
        match self {
            Work::Process(request) => &request.call_id,
            Work::Converse(request) => &request.call_id,
            Work::Ingest(request) => &request.call_id,
            Work::Query(request) => &request.call_id,
            Work::Score(_) | Work::Reset(_) => "",
        }
    }
}

impl Reply {
    pub fn encoded_len(&self) -> usize {
        match self {
            Reply::Process(reply) => reply.encoded_len(),
            Reply::Converse(reply) => reply.encoded_len(),
            Reply::Score(reply) => reply.encoded_len(),
            Reply::Reset(reply) => reply.encoded_len(),
            Reply::Ingest(reply) => reply.encoded_len(),
            Reply::Query(reply) => reply.encoded_len(),
        }
    }
}

/// The answer of any component.
pub(crate) type Answer = Pin<Box<dyn Future<Output = Result<Reply, Failure>> + Send>>;

/// A user's object, ready to answer.
pub(crate) trait Served: Send + Sync {
    fn answer(self: Arc<Self>, work: Work, ticket: Ticket) -> Answer;
}

/// Says that a result cannot be sent, and why.
pub(crate) fn unencodable(method: &str, error: crate::Error) -> Failure {
    Failure::new("UNENCODABLE_VALUE", format!("what {method} returned cannot be sent: {error}"))
}

/// Says that a request cannot be read.
pub(crate) fn unreadable(error: crate::Error) -> Failure {
    Failure::invalid(error.to_string())
}

/// Says that a call reached somebody who does not take its kind.
pub(crate) fn misdirected() -> Failure {
    Failure::new("INTERNAL", "a call reached an object of another kind")
}
