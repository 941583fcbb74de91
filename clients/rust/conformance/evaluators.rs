//! The evaluators that PROGRAM.md describes.

use std::io;

use cbench_client::{
    Assessment, Call, Evaluator, Example, Failure, Fields, Info, Offers, Value, evaluator,
};

use crate::probe::{conformance_panic, hold};
use crate::systems::text;

/// Offers them all.
pub fn offer(offers: Offers) -> Offers {
    let plain = Info::new("conformance-plain")
        .version("1.0")
        .description("Takes no options.")
        .score("one", "Always one.")
        .takes_no_options();
    offers.evaluator(Score).evaluator(evaluator(plain, |_original, _processed, _call| {
        Assessment::from([("one", 1.0)])
    }))
}

struct Score;

impl Evaluator for Score {
    fn info(&self) -> Info {
        Info::new("conformance-score")
            .version("1.0")
            .description("Scores as it is told.")
            .max_concurrency(16)
            .score("exact", "Whether the response is the answer.")
            .score_lower_is_better("distance", "How far it is.")
            .worst(100.0)
            .required_field("answer")
            .accepts_other_options()
    }

    async fn score(
        &self,
        original: Example,
        processed: Example,
        call: &Call,
    ) -> Result<Assessment, Failure> {
        match processed.get("command").and_then(Value::as_str) {
            Some("scores") => Ok(told(processed.get("scores").and_then(Value::as_map))),
            Some("fail") => {
                Err(Failure::new(processed.text("reason")?, processed.text("message")?))
            }
            Some("error") => Err(io::Error::other(text(&processed, "message")).into()),
            Some("panic") => {
                conformance_panic(&text(&processed, "message"));
                Ok(Assessment::new())
            }
            Some("hold") => {
                hold(processed.text("key")?, 60_000).await;
                Ok(Assessment::from([("exact", 1.0)]))
            }
            _ => Ok(compared(&original, &processed, call)),
        }
    }
}

fn told(scores: Option<&Fields>) -> Assessment {
    let scores = scores.into_iter().flatten();
    let numbers = scores.filter_map(|(name, value)| Some((name, value.as_f64()?)));
    numbers.fold(Assessment::new(), |assessment, (name, value)| assessment.with(name, value))
}

fn compared(original: &Example, processed: &Example, call: &Call) -> Assessment {
    let mut assessment = Assessment::new().with_detail("options", call.options().clone());
    if let (Some(parent), Some(state)) = (call.traceparent(), call.tracestate()) {
        assessment = assessment.with_detail("traceparent", parent).with_detail("tracestate", state);
    }
    if let Some(value) = processed.get("value") {
        assessment = assessment.with_detail("value", value.clone());
    }
    if let Some(id) = original.get("id") {
        assessment = assessment.with_detail("original_id", id.clone());
    }
    match original.get("answer") {
        None => assessment,
        Some(answer) => {
            let is_exact = processed.get("response") == Some(answer);
            assessment.with("exact", f64::from(is_exact)).explained("compared")
        }
    }
}
