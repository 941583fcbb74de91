//! Failures as gRPC statuses.

use std::time::Duration;

use prost::Message;
use tonic::metadata::{MetadataMap, MetadataValue};
use tonic::{Code, Status};

use crate::call::Trace;
use crate::failure::Failure;
use crate::pb;

/// Trailing metadata with the stable reason of a status.
pub(crate) const REASON: &str = "cbench-reason";
/// Trailing metadata with the whole failure.
const FAILURE: &str = "cbench-failure-bin";
const PUSHBACK: &str = "grpc-retry-pushback-ms";
// Peers refuse more than 8 kB of metadata, and text may triple on the way.
const MAX_DETAILS: usize = 500;
const MAX_STACK: usize = 2_500;
const MAX_REASON: usize = 200;

/// Makes a status of a failure, with the failure itself in the trailers.
pub(crate) fn status_of(failure: &Failure, origin: pb::FailureOrigin) -> Status {
    let mut message = failure.to_proto(origin);
    shorten(&mut message.message, MAX_DETAILS);
    shorten(&mut message.stack_trace, MAX_STACK);
    let mut trailers = MetadataMap::new();
    let mut reason = message.reason.clone();
    shorten(&mut reason, MAX_REASON);
    if let Ok(reason) = reason.parse() {
        trailers.insert(REASON, reason);
    }
    trailers.insert_bin(FAILURE, MetadataValue::from_bytes(&message.encode_to_vec()));
    if let Some(delay) = failure.retry_delay {
        trailers.insert(PUSHBACK, MetadataValue::from(delay.as_millis() as u64));
    }
    Status::with_metadata(code_of(failure), message.message, trailers)
}

/// Cuts a text to at most so many bytes, between characters.
pub(crate) fn shorten(text: &mut String, most: usize) {
    let end = (0..=most.min(text.len())).rev().find(|&end| text.is_char_boundary(end));
    text.truncate(end.unwrap_or(0));
}

fn code_of(failure: &Failure) -> Code {
    match failure.reason.as_str() {
        "UNKNOWN_SYSTEM" | "UNKNOWN_EVALUATOR" => Code::NotFound,
        "INVALID_ARGUMENT" => Code::InvalidArgument,
        "ALREADY_EXISTS" => Code::AlreadyExists,
        "RESOURCE_EXHAUSTED" => Code::ResourceExhausted,
        "FAILED_PRECONDITION" => Code::FailedPrecondition,
        "DEADLINE_EXCEEDED" => Code::DeadlineExceeded,
        "CANCELLED" => Code::Cancelled,
        "UNIMPLEMENTED" => Code::Unimplemented,
        "UNAVAILABLE" => Code::Unavailable,
        _ if failure.retryable => Code::Unavailable,
        _ => Code::Internal,
    }
}

/// Reads the W3C trace context of a unary call; empty if there is none.
pub(crate) fn trace_of(metadata: &MetadataMap) -> Trace {
    let told = |key| {
        let text = metadata.get(key).and_then(|text| text.to_str().ok());
        text.unwrap_or_default().to_string()
    };
    Trace { parent: told("traceparent"), state: told("tracestate") }
}

/// Reads how long the caller of a unary method waits.
pub(crate) fn timeout_of(metadata: &MetadataMap) -> Option<Duration> {
    let text = metadata.get("grpc-timeout")?.to_str().ok()?;
    let (digits, unit) = text.split_at_checked(text.len().checked_sub(1)?)?;
    let amount: u64 = digits.parse().ok()?;
    match unit {
        "H" => Some(Duration::from_secs(amount.checked_mul(3_600)?)),
        "M" => Some(Duration::from_secs(amount.checked_mul(60)?)),
        "S" => Some(Duration::from_secs(amount)),
        "m" => Some(Duration::from_millis(amount)),
        "u" => Some(Duration::from_micros(amount)),
        "n" => Some(Duration::from_nanos(amount)),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_failure_with_a_long_message_and_stack_stays_within_what_peers_accept() {
        let failure = Failure::exception("ü".repeat(100_000), "at ü\n".repeat(100_000));
        let status = status_of(&failure, pb::FailureOrigin::System);
        let told = status.metadata().get_bin(FAILURE).unwrap().to_bytes().unwrap();
        let text = status.message().len() * 3;
        assert!(text + told.len() * 4 / 3 < 8_000);
        assert_eq!(pb::Failure::decode(told).unwrap().reason, "EXCEPTION");
    }

    #[test]
    fn every_unit_of_a_timeout_is_read() {
        let read = |text: &str| {
            let mut metadata = MetadataMap::new();
            metadata.insert("grpc-timeout", text.parse().unwrap());
            timeout_of(&metadata)
        };
        assert_eq!(read("2H"), Some(Duration::from_secs(7_200)));
        assert_eq!(read("2M"), Some(Duration::from_secs(120)));
        assert_eq!(read("2S"), Some(Duration::from_secs(2)));
        assert_eq!(read("2m"), Some(Duration::from_millis(2)));
        assert_eq!(read("2u"), Some(Duration::from_micros(2)));
        assert_eq!(read("2n"), Some(Duration::from_nanos(2)));
        assert_eq!(read("S"), None);
        assert_eq!(read("2x"), None);
    }
}
