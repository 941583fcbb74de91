//! Memory systems and evaluators served over real sockets.

use std::collections::HashMap;
use std::sync::Mutex;

use crate::support::{channel, failure_of, soon, started, text};
use cbench_client::pb::evaluator_client::EvaluatorClient;
use cbench_client::pb::memory_system_client::MemorySystemClient;
use cbench_client::{
    Answer, Assessment, Call, Failure, Info, Ingested, MemorySystem, Offers, Question, Turn,
    evaluator, pb,
};
use tonic::Code;

#[derive(Default)]
struct Count(Mutex<HashMap<String, i64>>);

impl MemorySystem for Count {
    fn info(&self) -> Info {
        Info::new("count")
    }

    async fn reset(&self, scope: &str, _call: &Call) -> Result<(), Failure> {
        self.0.lock().unwrap().remove(scope);
        Ok(())
    }

    async fn ingest(
        &self,
        scope: &str,
        turns: Vec<Turn>,
        _call: &Call,
    ) -> Result<Ingested, Failure> {
        if turns.is_empty() {
            return Err(Failure::new("EMPTY", "there is nothing to remember"));
        }
        let mut counts = self.0.lock().unwrap();
        let count = counts.entry(scope.to_string()).or_default();
        *count += turns.len() as i64;
        Ok(Ingested::new().stored_bytes(*count))
    }

    async fn query(
        &self,
        scope: &str,
        _question: Question,
        _call: &Call,
    ) -> Result<Answer, Failure> {
        let count = self.0.lock().unwrap().get(scope).copied().unwrap_or_default();
        Ok(Answer::from(count.to_string()).with_metadata("count", count))
    }
}

fn ingest(scope: &str, call_id: &str, turns: usize) -> pb::IngestRequest {
    let turns = vec![pb::Turn { content: "x".into(), ..Default::default() }; turns];
    pb::IngestRequest { scope: scope.into(), call_id: call_id.into(), turns, ..Default::default() }
}

#[tokio::test]
async fn an_ingest_is_made_once_until_its_scope_is_reset() {
    let server = started(Offers::new().memory_system(Count::default())).await;
    let mut client = MemorySystemClient::new(channel(&server).await);
    let asked = |scope: &str| pb::QueryRequest { scope: scope.into(), ..Default::default() };
    for (scope, call_id, stored) in
        [("a", "1", 2), ("a", "1", 2), ("b", "1", 2), ("a", "2", 4), ("a", "", 6), ("a", "", 8)]
    {
        let reply = soon(client.ingest(ingest(scope, call_id, 2))).await.unwrap().into_inner();
        assert_eq!(reply.stored_bytes, Some(stored), "{scope} {call_id}");
    }
    let answer = soon(client.query(asked("a"))).await.unwrap().into_inner();
    assert_eq!(answer.response, "8");
    let reset = pb::ResetRequest { scope: "a".into(), ..Default::default() };
    soon(client.reset(reset)).await.unwrap();
    let reply = soon(client.ingest(ingest("a", "1", 2))).await.unwrap().into_inner();
    assert_eq!(reply.stored_bytes, Some(2));
    let answer = soon(client.query(asked("b"))).await.unwrap().into_inner();
    assert_eq!(answer.response, "2");
}

#[tokio::test]
async fn an_ingest_that_failed_is_made_again() {
    let server = started(Offers::new().memory_system(Count::default())).await;
    let mut client = MemorySystemClient::new(channel(&server).await);
    let status = soon(client.ingest(ingest("a", "1", 0))).await.unwrap_err();
    assert_eq!(failure_of(&status).reason, "EMPTY");
    let reply = soon(client.ingest(ingest("a", "1", 3))).await.unwrap().into_inner();
    assert_eq!(reply.stored_bytes, Some(3));
}

#[tokio::test]
async fn scores_and_their_explanation_arrive_and_minus_zero_keeps_its_sign() {
    let info = Info::new("length").score_lower_is_better("length", "How long it is.");
    let server =
        started(Offers::new().evaluator(evaluator(info, |_original, processed, _call| {
            let length = processed.response().len() as f64;
            Assessment::from([("length", length), ("zero", -0.0)]).explained("counted")
        })))
        .await;
    let mut client = EvaluatorClient::new(channel(&server).await);
    let fields = [("response".to_string(), text("abc"))].into();
    let processed = Some(pb::Example { fields, ..Default::default() });
    let request = pb::ScoreRequest { processed, ..Default::default() };
    let reply = soon(client.score(request)).await.unwrap().into_inner();
    let scores: Vec<_> = reply.scores.iter().map(|one| (one.key.as_str(), one.value)).collect();
    assert_eq!(scores, [("length", 3.0), ("zero", 0.0)]);
    assert!(scores[1].1.is_sign_negative());
    assert_eq!(reply.explanation, "counted");
    let told = soon(client.describe(pb::EvaluatorDescribeRequest {})).await.unwrap().into_inner();
    assert!(!told.evaluators[0].scores[0].higher_is_better);
}

#[tokio::test]
async fn options_that_an_evaluator_does_not_take_are_refused_by_name() {
    let one = |info: Info| evaluator(info, |_, _, _| Assessment::from([("one", 1.0)]));
    let offers = Offers::new()
        .evaluator(one(Info::new("none").takes_no_options()))
        .evaluator(one(Info::new("some").takes_options(["model"])));
    let server = started(offers).await;
    let mut client = EvaluatorClient::new(channel(&server).await);
    let request = |evaluator: &str, option: &str| pb::ScoreRequest {
        evaluator: evaluator.into(),
        options: [(option.to_string(), text("x"))].into(),
        ..Default::default()
    };
    let status = soon(client.score(request("none", "model"))).await.unwrap_err();
    assert_eq!(status.code(), Code::InvalidArgument);
    assert_eq!(status.message(), "evaluator \"none\" takes no options, and got: model");
    soon(client.score(request("some", "model"))).await.unwrap();
    let status = soon(client.score(request("some", "rate"))).await.unwrap_err();
    assert_eq!(failure_of(&status).origin(), pb::FailureOrigin::Evaluator);
    let status = soon(client.score(request("other", "rate"))).await.unwrap_err();
    assert_eq!(
        (status.code(), failure_of(&status).reason),
        (Code::NotFound, "UNKNOWN_EVALUATOR".into())
    );
}

#[tokio::test]
async fn an_evaluator_with_a_name_in_capitals_is_refused() {
    let offers = Offers::new().evaluator(evaluator("Upper", |_, _, _| Assessment::new()));
    let error = cbench_client::Server::new(offers).start().await.err().unwrap();
    assert!(error.to_string().contains("\"Upper\""), "{error}");
}
