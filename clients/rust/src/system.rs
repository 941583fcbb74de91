//! Systems, which are benchmarked.

use std::marker::PhantomData;
use std::sync::Arc;
use std::time::Instant;

use crate::call::{Call, Ticket};
use crate::convert;
use crate::example::Example;
use crate::failure::Failure;
use crate::info::Info;
use crate::into_result::IntoResult;
use crate::pb;
use crate::trace;
use crate::turn::Turn;
use crate::usage::Usage;
use crate::value::Value;
use crate::work::{Answer, Reply, Served, Work, misdirected, unencodable, unreadable};

/// Turns one example into another.
///
/// ```
/// use cbench_client::{Call, Example, Failure, Info, System};
///
/// struct FirstHalf;
///
/// impl System for FirstHalf {
///     fn info(&self) -> Info {
///         Info::new("first-half").version("1")
///     }
///
///     async fn process(&self, example: Example, _call: &Call) -> Result<Example, Failure> {
///         let context = example.text("context")?;
///         let half = context.chars().take(context.chars().count() / 2).collect::<String>();
///         Ok(example.with("context", half))
///     }
/// }
/// ```
///
/// Work that keeps a processor busy for long belongs on a separate thread:
/// use [`system`], or `tokio::task::spawn_blocking` with a clone of the call.
pub trait System: Send + Sync + 'static {
    /// Says what it is called, and more. Asked once.
    fn info(&self) -> Info;

    /// Transforms one example. What is returned is scored and counted, whole.
    ///
    /// The future is dropped when the caller no longer waits for the answer.
    fn process(
        &self,
        example: Example,
        call: &Call,
    ) -> impl Future<Output = Result<Example, Failure>> + Send;

    /// Answers every user turn of a conversation, in order. Called only if the
    /// info says [`holds_conversations`](Info::holds_conversations).
    fn process_conversation(
        &self,
        turns: Vec<Turn>,
        example: Example,
        call: &Call,
    ) -> impl Future<Output = Result<Vec<Turn>, Failure>> + Send {
        let _ = (turns, example, call);
        async { Err(Failure::new("UNIMPLEMENTED", "the system has no process_conversation")) }
    }
}

/// Makes a system of a synchronous function, which is called on separate threads.
///
/// It may return an `Example`, or a `Result` with any error: a [`Failure`], an
/// error of a type of its own, an `anyhow::Error`, or a boxed one.
///
/// ```
/// use std::error::Error;
///
/// use cbench_client::{Call, Example, system};
///
/// fn count(example: Example, _call: &Call) -> Result<Example, Box<dyn Error>> {
///     let number: i64 = example.text("question")?.parse()?;
///     Ok(example.with("response", (number + 1).to_string()))
/// }
///
/// let counter = system("counter", count);
/// ```
pub fn system<F, R, K>(info: impl Into<Info>, function: F) -> impl System
where
    F: Fn(Example, &Call) -> R + Send + Sync + 'static,
    R: IntoResult<Example, K> + 'static,
    K: 'static,
{
    Function { info: info.into(), function: Arc::new(function), kind: PhantomData }
}

struct Function<F, K> {
    info: Info,
    function: Arc<F>,
    kind: PhantomData<fn() -> K>,
}

impl<F, R, K> System for Function<F, K>
where
    F: Fn(Example, &Call) -> R + Send + Sync + 'static,
    R: IntoResult<Example, K> + 'static,
    K: 'static,
{
    fn info(&self) -> Info {
        self.info.clone()
    }

    async fn process(&self, example: Example, call: &Call) -> Result<Example, Failure> {
        let (function, call) = (self.function.clone(), call.clone());
        on_a_thread(move || function(example, &call).into_result()).await
    }
}

/// Runs user code on a thread, where it may block.
pub(crate) async fn on_a_thread<T: Send + 'static>(
    user_code: impl FnOnce() -> Result<T, Failure> + Send + 'static,
) -> Result<T, Failure> {
    let running =
        tokio::task::spawn_blocking(move || trace::caught(user_code).and_then(|result| result));
    running.await.unwrap_or_else(|_| Err(Failure::shutting_down()))
}

/// A user's system, made to answer requests.
pub(crate) struct SystemAdapter<S> {
    pub system: S,
    pub info: Info,
}

impl<S: System> Served for SystemAdapter<S> {
    fn answer(self: Arc<Self>, work: Work, ticket: Ticket) -> Answer {
        match work {
            Work::Process(request) => Box::pin(self.process(request, ticket)),
            Work::Converse(request) => Box::pin(self.converse(request, ticket)),
            _ => Box::pin(async { Err(misdirected()) }),
        }
    }
}

impl<S: System> SystemAdapter<S> {
    async fn process(
        self: Arc<Self>,
        request: pb::ProcessRequest,
        ticket: Ticket,
    ) -> Result<Reply, Failure> {
        let example = convert::example_from_proto(request.example).map_err(unreadable)?;
        let options = self.info.options_of(request.options)?;
        let (source, call) = (example.source(), ticket.into_call(options, request.instruction));
        let started = Instant::now();
        let processed = self.system.process(example, &call).await?;
        let handler_time = Some(convert::duration_to_proto(started.elapsed()));
        let usage = processed.get("api_usage").and_then(Value::as_map).map(Usage::from_fields);
        let (changed, carried_fields) = processed.into_changes(source);
        let fields = convert::fields_to_proto(changed, "")
            .map_err(|error| unencodable("process()", error))?;
        let usage = usage.map(|usage| usage.to_proto());
        Ok(Reply::Process(pb::ProcessResponse { fields, carried_fields, usage, handler_time }))
    }

    async fn converse(
        self: Arc<Self>,
        request: pb::ProcessConversationRequest,
        ticket: Ticket,
    ) -> Result<Reply, Failure> {
        if !self.info.holds_conversations {
            let message = format!("system \"{}\" has no process_conversation", self.info.name);
            return Err(Failure::new("UNIMPLEMENTED", message));
        }
        let turns = convert::turns_from_proto(request.turns).map_err(unreadable)?;
        let example = convert::example_from_proto(request.example).map_err(unreadable)?;
        let options = self.info.options_of(request.options)?;
        let call = ticket.into_call(options, request.instruction);
        let started = Instant::now();
        let replies = self.system.process_conversation(turns, example, &call).await?;
        let handler_time = Some(convert::duration_to_proto(started.elapsed()));
        let replies = replies.into_iter().map(convert::turn_to_proto).collect::<Result<_, _>>();
        let replies = replies.map_err(|error| unencodable("process_conversation()", error))?;
        Ok(Reply::Converse(pb::ProcessConversationResponse { replies, usage: None, handler_time }))
    }
}
