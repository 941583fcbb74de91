//! Fields of a request that are to blame, as `google.rpc.BadRequest` has them.

use prost::Message;
use prost_types::Any;
use tonic::Status;

/// A field of a request that is to blame.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct FieldViolation {
    /// Its path, such as `spec.systems[1].options["ratio"]`.
    pub field: String,
    /// Why, for a person.
    pub description: String,
}

/// The parts of `google.rpc.Status` that are read here.
#[derive(Clone, PartialEq, Message)]
struct Details {
    #[prost(message, repeated, tag = "3")]
    details: Vec<Any>,
}

#[derive(Clone, PartialEq, Message)]
struct BadRequest {
    #[prost(message, repeated, tag = "1")]
    field_violations: Vec<Violation>,
}

#[derive(Clone, PartialEq, Message)]
struct Violation {
    #[prost(string, tag = "1")]
    field: String,
    #[prost(string, tag = "2")]
    description: String,
}

/// Reads what a status says of fields; nothing where it cannot be read.
pub(crate) fn violations_in(status: &Status) -> Vec<FieldViolation> {
    let details = Details::decode(status.details()).unwrap_or_default().details;
    let requests =
        details.into_iter().filter(|any| any.type_url.ends_with("/google.rpc.BadRequest"));
    let found = requests.filter_map(|any| BadRequest::decode(any.value.as_slice()).ok());
    found
        .flat_map(|request| request.field_violations)
        .map(|each| FieldViolation { field: each.field, description: each.description })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use tonic::Code;

    // As the daemon encodes them: a google.rpc.Status with an ErrorInfo and a BadRequest.
    const DETAILS: &[u8] = b"\x08\x03\x12\x19keep must not be negative\x1aR\x0a(type.googleapis.com/google.\
        rpc.ErrorInfo\x12&\x0a\x10INVALID_ARGUMENT\x12\x06cbench\x1a\x0a\x0a\x05flags\x12\x01x\x1aP\x0a)typ\
        e.googleapis.com/google.rpc.BadRequest\x12#\x0a!\x0a\x04keep\x12\x19keep must \
        not be negative";

    #[test]
    fn the_fields_that_a_status_blames_are_read() {
        let status = Status::with_details(Code::InvalidArgument, "no", DETAILS.into());
        let description = "keep must not be negative".to_string();
        let wanted = FieldViolation { field: "keep".into(), description };
        assert_eq!(violations_in(&status), [wanted]);
        let garbled =
            Status::with_details(Code::InvalidArgument, "no", b"\xff\xff".as_slice().into());
        assert_eq!(violations_in(&garbled), []);
        assert_eq!(violations_in(&Status::not_found("no")), []);
    }
}
