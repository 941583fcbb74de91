//! Usage: the cost of a call.

use std::time::Duration;

use crate::convert;
use crate::pb;
use crate::value::{Fields, Value};

/// Resources consumed by a call. What is `None` is not reported.
///
/// ```
/// use cbench_client::Usage;
///
/// let usage = Usage::new().prompt_tokens(120).completion_tokens(8).cost_usd(0.0004);
/// ```
#[derive(Clone, Debug, Default, PartialEq)]
#[non_exhaustive]
pub struct Usage {
    /// Tokens sent to a model.
    pub prompt_tokens: Option<i64>,
    /// Tokens produced by a model.
    pub completion_tokens: Option<i64>,
    /// All tokens, where that is not the sum of the two above.
    pub total_tokens: Option<i64>,
    /// Those of `prompt_tokens` that the model had in its cache.
    pub cached_prompt_tokens: Option<i64>,
    /// Requests made to a model, further attempts included.
    pub requests: Option<i64>,
    /// Those of `requests` that were given up before an answer came.
    pub abandoned_requests: Option<i64>,
    /// Money spent, in US dollars.
    pub cost_usd: Option<f64>,
    /// Time the system itself spent, without network or queueing.
    pub compute_time: Option<Duration>,
}

impl Usage {
    /// Starts with nothing reported.
    pub fn new() -> Self {
        Self::default()
    }

    /// Reports tokens sent to a model.
    pub fn prompt_tokens(mut self, count: i64) -> Self {
        self.prompt_tokens = Some(count);
        self
    }

    /// Reports tokens produced by a model.
    pub fn completion_tokens(mut self, count: i64) -> Self {
        self.completion_tokens = Some(count);
        self
    }

    /// Reports all tokens, where that is not the sum of the two above.
    pub fn total_tokens(mut self, count: i64) -> Self {
        self.total_tokens = Some(count);
        self
    }

    /// Reports those of the prompt's tokens that the model had in its cache.
    pub fn cached_prompt_tokens(mut self, count: i64) -> Self {
        self.cached_prompt_tokens = Some(count);
        self
    }

    /// Reports requests made to a model, further attempts included.
    pub fn requests(mut self, count: i64) -> Self {
        self.requests = Some(count);
        self
    }

    /// Reports those of the requests that were given up before an answer came.
    pub fn abandoned_requests(mut self, count: i64) -> Self {
        self.abandoned_requests = Some(count);
        self
    }

    /// Reports money spent, in US dollars.
    pub fn cost_usd(mut self, dollars: f64) -> Self {
        self.cost_usd = Some(dollars);
        self
    }

    /// Reports time the system itself spent, without network or queueing.
    pub fn compute_time(mut self, time: Duration) -> Self {
        self.compute_time = Some(time);
        self
    }

    pub(crate) fn to_proto(&self) -> pb::Usage {
        pb::Usage {
            prompt_tokens: self.prompt_tokens,
            completion_tokens: self.completion_tokens,
            cost_usd: self.cost_usd,
            compute_time: self.compute_time.map(convert::duration_to_proto),
            total_tokens: self.total_tokens,
            cached_prompt_tokens: self.cached_prompt_tokens,
            requests: self.requests,
            abandoned_requests: self.abandoned_requests,
        }
    }

    /// Reads the OpenAI shape, plus `cost_usd` and `compute_seconds`.
    pub(crate) fn from_fields(fields: &Fields) -> Self {
        let count = |name: &str| fields.get(name).and_then(Value::as_i64);
        let number = |name: &str| fields.get(name).and_then(Value::as_f64);
        Self {
            prompt_tokens: count("prompt_tokens"),
            completion_tokens: count("completion_tokens"),
            total_tokens: count("total_tokens"),
            cached_prompt_tokens: count("cached_prompt_tokens"),
            requests: count("requests"),
            abandoned_requests: count("abandoned_requests"),
            cost_usd: number("cost_usd"),
            compute_time: number("compute_seconds")
                .and_then(|seconds| Duration::try_from_secs_f64(seconds).ok()),
        }
    }

    pub(crate) fn to_fields(&self) -> Fields {
        let seconds = self.compute_time.map(|span| span.as_secs_f64());
        let entries = [
            ("prompt_tokens", self.prompt_tokens.map(Value::from)),
            ("completion_tokens", self.completion_tokens.map(Value::from)),
            ("total_tokens", self.total_tokens.map(Value::from)),
            ("cached_prompt_tokens", self.cached_prompt_tokens.map(Value::from)),
            ("requests", self.requests.map(Value::from)),
            ("abandoned_requests", self.abandoned_requests.map(Value::from)),
            ("cost_usd", self.cost_usd.map(Value::from)),
            ("compute_seconds", seconds.map(Value::from)),
        ];
        let stated = entries.into_iter().filter_map(|(name, value)| Some((name.into(), value?)));
        stated.collect()
    }
}
