//! Evaluators, which score.

use std::collections::BTreeMap;
use std::marker::PhantomData;
use std::sync::Arc;

use crate::call::{Call, Ticket};
use crate::convert;
use crate::example::Example;
use crate::failure::Failure;
use crate::info::Info;
use crate::into_result::IntoResult;
use crate::pb;
use crate::system::on_a_thread;
use crate::value::{Fields, Value};
use crate::work::{Answer, Reply, Served, Work, misdirected, unencodable, unreadable};

/// Scores by name, and what led to them.
///
/// A score that does not apply is left out rather than set to zero, so that
/// means are taken over the rows it applies to.
#[derive(Clone, Debug, Default, PartialEq)]
#[non_exhaustive]
pub struct Assessment {
    /// Values by score name.
    pub scores: BTreeMap<String, f64>,
    /// Why, for a person reading one row.
    pub explanation: String,
    /// What led to the scores, such as the extracted answer.
    pub details: Fields,
}

impl Assessment {
    /// Makes an assessment without scores.
    pub fn new() -> Self {
        Self::default()
    }

    /// Adds a score.
    pub fn with(mut self, name: impl Into<String>, value: f64) -> Self {
        self.scores.insert(name.into(), value);
        self
    }

    /// Says why.
    pub fn explained(mut self, explanation: impl Into<String>) -> Self {
        self.explanation = explanation.into();
        self
    }

    /// Adds a detail.
    pub fn with_detail(mut self, name: impl Into<String>, value: impl Into<Value>) -> Self {
        self.details.insert(name.into(), value.into());
        self
    }

    pub(crate) fn into_proto(self) -> Result<pb::ScoreResponse, Failure> {
        let details = convert::fields_to_proto(self.details, "details.")
            .map_err(|error| unencodable("score()", error))?;
        let scores = self.scores.into_iter();
        let scores = scores.map(|(key, value)| pb::score_response::ScoresEntry { key, value });
        let (scores, explanation) = (scores.collect(), self.explanation);
        Ok(pb::ScoreResponse { scores, explanation, details })
    }

    pub(crate) fn from_proto(message: pb::ScoreResponse) -> crate::Result<Self> {
        Ok(Self {
            scores: message.scores.into_iter().map(|entry| (entry.key, entry.value)).collect(),
            explanation: message.explanation,
            details: convert::fields_from_proto(message.details, "details.")?,
        })
    }
}

impl<N: Into<String>, const COUNT: usize> From<[(N, f64); COUNT]> for Assessment {
    fn from(scores: [(N, f64); COUNT]) -> Self {
        let scores = scores.into_iter().map(|(name, value)| (name.into(), value)).collect();
        Self { scores, ..Self::default() }
    }
}

/// Scores what a system made of an example.
pub trait Evaluator: Send + Sync + 'static {
    /// Says what it is called, which scores it gives, and more. Asked once.
    fn info(&self) -> Info;

    /// Compares `processed` with `original`. An example that lacks a field the
    /// evaluator reads gives no scores. Options are in the call.
    fn score(
        &self,
        original: Example,
        processed: Example,
        call: &Call,
    ) -> impl Future<Output = Result<Assessment, Failure>> + Send;
}

/// Makes an evaluator of a synchronous function, which is called on separate threads.
///
/// It may return an `Assessment`, or a `Result` with any error.
pub fn evaluator<F, R, K>(info: impl Into<Info>, function: F) -> impl Evaluator
where
    F: Fn(Example, Example, &Call) -> R + Send + Sync + 'static,
    R: IntoResult<Assessment, K> + 'static,
    K: 'static,
{
    Function { info: info.into(), function: Arc::new(function), kind: PhantomData }
}

struct Function<F, K> {
    info: Info,
    function: Arc<F>,
    kind: PhantomData<fn() -> K>,
}

impl<F, R, K> Evaluator for Function<F, K>
where
    F: Fn(Example, Example, &Call) -> R + Send + Sync + 'static,
    R: IntoResult<Assessment, K> + 'static,
    K: 'static,
{
    fn info(&self) -> Info {
        self.info.clone()
    }

    async fn score(
        &self,
        original: Example,
        processed: Example,
        call: &Call,
    ) -> Result<Assessment, Failure> {
        let (function, call) = (self.function.clone(), call.clone());
        on_a_thread(move || function(original, processed, &call).into_result()).await
    }
}

/// A user's evaluator, made to answer requests.
pub(crate) struct EvaluatorAdapter<E> {
    pub evaluator: E,
    pub info: Info,
}

impl<E: Evaluator> Served for EvaluatorAdapter<E> {
    fn answer(self: Arc<Self>, work: Work, ticket: Ticket) -> Answer {
        match work {
            Work::Score(request) => Box::pin(self.score(request, ticket)),
            _ => Box::pin(async { Err(misdirected()) }),
        }
    }
}

impl<E: Evaluator> EvaluatorAdapter<E> {
    async fn score(
        self: Arc<Self>,
        request: pb::ScoreRequest,
        ticket: Ticket,
    ) -> Result<Reply, Failure> {
        let original = convert::example_from_proto(request.original).map_err(unreadable)?;
        let processed = convert::example_from_proto(request.processed).map_err(unreadable)?;
        let options =
            convert::fields_from_proto(request.options, "options.").map_err(unreadable)?;
        let owner = format!("evaluator \"{}\"", self.info.name);
        let options = match &self.info.declared {
            Some(declared) => declared.filled(options, &owner)?,
            None => options,
        };
        let call = ticket.into_call(options, String::new());
        let assessment = self.evaluator.score(original, processed, &call).await?;
        Ok(Reply::Score(assessment.into_proto()?))
    }
}
