//! Memory systems: fed sessions, then asked about them.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use tokio::sync::RwLock;

use crate::call::{Call, Ticket};
use crate::convert;
use crate::declared::Declared;
use crate::failure::Failure;
use crate::info::Info;
use crate::pb;
use crate::turn::Turn;
use crate::usage::Usage;
use crate::value::{Fields, Value};
use crate::work::{Answer as Answering, Reply, Served, Work, misdirected, unencodable, unreadable};

/// Remembers what it is told, in scopes that do not see each other.
///
/// Within a scope `reset` and `ingest` run alone and queries run side by side.
/// A repeated ingest does not reach `ingest` until its scope is reset.
pub trait MemorySystem: Send + Sync + 'static {
    /// Says what it is called, and more. Asked once.
    fn info(&self) -> Info;

    /// Forgets everything in a scope, which it may never have seen.
    fn reset(&self, scope: &str, call: &Call) -> impl Future<Output = Result<(), Failure>> + Send;

    /// Stores turns, in order of time.
    fn ingest(
        &self,
        scope: &str,
        turns: Vec<Turn>,
        call: &Call,
    ) -> impl Future<Output = Result<Ingested, Failure>> + Send;

    /// Answers from what the scope holds, without changing it.
    fn query(
        &self,
        scope: &str,
        question: Question,
        call: &Call,
    ) -> impl Future<Output = Result<Answer, Failure>> + Send;
}

/// What ingesting cost.
#[derive(Clone, Debug, Default, PartialEq)]
#[non_exhaustive]
pub struct Ingested {
    /// Resources consumed.
    pub usage: Option<Usage>,
    /// Bytes the scope now occupies, where the system knows.
    pub stored_bytes: Option<i64>,
}

impl Ingested {
    /// Starts with nothing reported.
    pub fn new() -> Self {
        Self::default()
    }

    /// Reports resources consumed.
    pub fn usage(mut self, usage: Usage) -> Self {
        self.usage = Some(usage);
        self
    }

    /// Reports the bytes that the scope now occupies.
    pub fn stored_bytes(mut self, bytes: i64) -> Self {
        self.stored_bytes = Some(bytes);
        self
    }
}

/// What is asked.
#[derive(Clone, Debug, Default, PartialEq)]
#[non_exhaustive]
pub struct Question {
    /// The question.
    pub text: String,
    /// The most tokens of remembered text the system may hand to a model.
    pub budget: Option<i64>,
    /// When it is asked, in the notation of `Turn::time`; empty means unknown.
    pub asked_at: String,
}

/// An answer from memory, with what it was made from where the system says so.
#[derive(Clone, Debug, Default, PartialEq)]
#[non_exhaustive]
pub struct Answer {
    /// The answer; empty where the system only retrieves.
    pub response: String,
    /// What was retrieved to answer from.
    pub context: Option<String>,
    /// Tokens of that context, as the system counts them.
    pub context_tokens: Option<i64>,
    /// Bytes the scope occupies, where the system knows.
    pub stored_bytes: Option<i64>,
    /// Time spent finding the context, without answering.
    pub retrieval_time: Option<Duration>,
    /// What answering cost.
    pub usage: Option<Usage>,
    /// Anything to keep with the row.
    pub metadata: Fields,
}

impl Answer {
    /// Starts with the answer; empty where the system only retrieves.
    pub fn new(response: impl Into<String>) -> Self {
        Self { response: response.into(), ..Self::default() }
    }

    /// Says what was retrieved to answer from.
    pub fn context(mut self, context: impl Into<String>) -> Self {
        self.context = Some(context.into());
        self
    }

    /// Reports the tokens of that context, as the system counts them.
    pub fn context_tokens(mut self, count: i64) -> Self {
        self.context_tokens = Some(count);
        self
    }

    /// Reports the bytes that the scope occupies.
    pub fn stored_bytes(mut self, bytes: i64) -> Self {
        self.stored_bytes = Some(bytes);
        self
    }

    /// Reports the time spent finding the context, without answering.
    pub fn retrieval_time(mut self, time: Duration) -> Self {
        self.retrieval_time = Some(time);
        self
    }

    /// Reports what answering cost.
    pub fn usage(mut self, usage: Usage) -> Self {
        self.usage = Some(usage);
        self
    }

    /// Adds something to keep with the row.
    pub fn with_metadata(mut self, name: impl Into<String>, value: impl Into<Value>) -> Self {
        self.metadata.insert(name.into(), value.into());
        self
    }
}

impl From<String> for Answer {
    fn from(response: String) -> Self {
        Self { response, ..Self::default() }
    }
}

impl From<&str> for Answer {
    fn from(response: &str) -> Self {
        Self::from(response.to_string())
    }
}

/// What was ingested in one scope, by call id, with the answer it got.
type Scope = Arc<RwLock<HashMap<String, pb::IngestResponse>>>;

/// A user's memory system, made to answer requests.
pub(crate) struct MemoryAdapter<M> {
    system: M,
    info: Info,
    scopes: Mutex<HashMap<String, Scope>>,
}

impl<M: MemorySystem> Served for MemoryAdapter<M> {
    fn answer(self: Arc<Self>, work: Work, ticket: Ticket) -> Answering {
        match work {
            Work::Reset(request) => Box::pin(self.reset(request, ticket)),
            Work::Ingest(request) => Box::pin(self.ingest(request, ticket)),
            Work::Query(request) => Box::pin(self.query(request, ticket)),
            _ => Box::pin(async { Err(misdirected()) }),
        }
    }
}

impl<M: MemorySystem> MemoryAdapter<M> {
    pub fn new(system: M, info: Info) -> Self {
        Self { system, info, scopes: Mutex::default() }
    }

    async fn reset(
        self: Arc<Self>,
        request: pb::ResetRequest,
        ticket: Ticket,
    ) -> Result<Reply, Failure> {
        let scope = self.scope(&request.scope);
        let mut ingested = scope.write().await;
        let options = self.info.declared.as_ref().map(Declared::defaults).unwrap_or_default();
        let call = ticket.into_call(options, String::new());
        self.system.reset(&request.scope, &call).await?;
        ingested.clear();
        drop(ingested);
        // Two holders: the table and this call. With more, somebody waits to use it.
        let mut scopes = self.scopes();
        if Arc::strong_count(&scope) == 2 {
            scopes.remove(&request.scope);
        }
        Ok(Reply::Reset(pb::ResetResponse {}))
    }

    async fn ingest(
        self: Arc<Self>,
        request: pb::IngestRequest,
        ticket: Ticket,
    ) -> Result<Reply, Failure> {
        let turns = convert::turns_from_proto(request.turns).map_err(unreadable)?;
        let options = self.info.options_of(request.options)?;
        let scope = self.scope(&request.scope);
        let mut ingested = scope.write().await;
        if let Some(earlier) = ingested.get(&request.call_id) {
            return Ok(Reply::Ingest(*earlier));
        }
        let call = ticket.into_call(options, String::new());
        let started = Instant::now();
        let done = self.system.ingest(&request.scope, turns, &call).await?;
        let reply = pb::IngestResponse {
            usage: done.usage.map(|usage| usage.to_proto()),
            stored_bytes: done.stored_bytes,
            handler_time: Some(convert::duration_to_proto(started.elapsed())),
        };
        if !request.call_id.is_empty() {
            ingested.insert(request.call_id, reply);
        }
        Ok(Reply::Ingest(reply))
    }

    async fn query(
        self: Arc<Self>,
        request: pb::QueryRequest,
        ticket: Ticket,
    ) -> Result<Reply, Failure> {
        let options = self.info.options_of(request.options)?;
        let scope = self.scope(&request.scope);
        let _shared = scope.read().await;
        let question =
            Question { text: request.question, budget: request.budget, asked_at: request.asked_at };
        let call = ticket.into_call(options, request.instruction);
        let started = Instant::now();
        let answer = self.system.query(&request.scope, question, &call).await?;
        let handler_time = Some(convert::duration_to_proto(started.elapsed()));
        let metadata = convert::fields_to_proto(answer.metadata, "metadata.")
            .map_err(|error| unencodable("query()", error))?;
        Ok(Reply::Query(pb::QueryResponse {
            response: answer.response,
            usage: answer.usage.map(|usage| usage.to_proto()),
            metadata,
            context: answer.context,
            context_tokens: answer.context_tokens,
            stored_bytes: answer.stored_bytes,
            retrieval_time: answer.retrieval_time.map(convert::duration_to_proto),
            handler_time,
        }))
    }

    fn scope(&self, name: &str) -> Scope {
        self.scopes().entry(name.to_string()).or_default().clone()
    }

    fn scopes(&self) -> MutexGuard<'_, HashMap<String, Scope>> {
        // No user code runs while it is held, so it is whole even after a panic.
        self.scopes.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
