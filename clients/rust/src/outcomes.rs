//! Messages in which streams carry the outcome of one call.

use crate::lane::Outcome;
use crate::pb;
use crate::work::Reply;

fn of_another_kind(origin: pb::FailureOrigin) -> pb::Failure {
    crate::work::misdirected().to_proto(origin)
}

impl Outcome for pb::ProcessOutcome {
    fn of(call_id: String, result: Result<Reply, pb::Failure>) -> Self {
        use pb::process_outcome::Result as Kind;
        let result = match result {
            Ok(Reply::Process(reply)) => Kind::Response(reply),
            Ok(_) => Kind::Failure(of_another_kind(pb::FailureOrigin::System)),
            Err(failure) => Kind::Failure(failure),
        };
        Self { call_id, result: Some(result) }
    }
}

impl Outcome for pb::ScoreOutcome {
    fn of(call_id: String, result: Result<Reply, pb::Failure>) -> Self {
        use pb::score_outcome::Result as Kind;
        let result = match result {
            Ok(Reply::Score(reply)) => Kind::Response(reply),
            Ok(_) => Kind::Failure(of_another_kind(pb::FailureOrigin::Evaluator)),
            Err(failure) => Kind::Failure(failure),
        };
        Self { call_id, result: Some(result) }
    }
}

/// One outcome on an attachment is one message; `AttachRequest`s merge.
impl Outcome for pb::AttachRequest {
    fn of(call_id: String, result: Result<Reply, pb::Failure>) -> Self {
        use pb::call_result::Result as Kind;
        let result = match result {
            Ok(Reply::Process(reply)) => Kind::Process(reply),
            Ok(Reply::Converse(reply)) => Kind::Converse(reply),
            Ok(Reply::Score(reply)) => Kind::Score(reply),
            Ok(Reply::Reset(reply)) => Kind::Reset(reply),
            Ok(Reply::Ingest(reply)) => Kind::Ingest(reply),
            Ok(Reply::Query(reply)) => Kind::Query(reply),
            Err(failure) => Kind::Failure(failure),
        };
        let results = vec![pb::CallResult { call_id, result: Some(result) }];
        Self { results, ..Self::default() }
    }
}
