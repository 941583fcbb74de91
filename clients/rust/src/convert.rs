//! Values, examples and turns to messages and back, without loss.

use std::collections::BTreeMap;
use std::time::Duration;

use crate::error::{Error, Result};
use crate::example::Example;
use crate::pb;
use crate::pb::value::Kind;
use crate::turn::Turn;
use crate::value::{Fields, Value};

/// How deep values may nest, as the contract has it.
const MAX_DEPTH: usize = 30;

pub(crate) type Messages = BTreeMap<String, pb::Value>;

/// Encodes `fields`; refuses what cannot cross, by the name of its field.
pub(crate) fn fields_to_proto(fields: Fields, path: &str) -> Result<Messages> {
    fields
        .into_iter()
        .map(|(name, value)| {
            let message = value_to_proto(value, &|| format!("{path}{name}"), 0)?;
            Ok((name, message))
        })
        .collect()
}

// The path is made only when there is something to refuse.
fn value_to_proto(value: Value, path: &dyn Fn() -> String, depth: usize) -> Result<pb::Value> {
    let kind = match value {
        Value::Null => Kind::NullValue(true),
        Value::Bool(truth) => Kind::BoolValue(truth),
        Value::Int(number) => Kind::IntValue(number),
        Value::Double(number) => Kind::DoubleValue(number),
        Value::Text(text) => Kind::StringValue(text),
        Value::Bytes(data) => Kind::BytesValue(data),
        Value::List(items) => {
            check_depth(depth, path)?;
            let values = items.into_iter().enumerate().map(|(position, item)| {
                value_to_proto(item, &|| format!("{}[{position}]", path()), depth + 1)
            });
            Kind::ListValue(pb::ListValue { values: values.collect::<Result<_>>()? })
        }
        Value::Map(fields) => {
            check_depth(depth, path)?;
            let fields = fields.into_iter().map(|(name, item)| {
                let message = value_to_proto(item, &|| format!("{}.{name}", path()), depth + 1)?;
                Ok((name, message))
            });
            Kind::MapValue(pb::MapValue { fields: fields.collect::<Result<_>>()? })
        }
    };
    Ok(pb::Value { kind: Some(kind) })
}

fn check_depth(depth: usize, path: &dyn Fn() -> String) -> Result<()> {
    if depth < MAX_DEPTH {
        return Ok(());
    }
    let mut path = path();
    crate::status::shorten(&mut path, 80);
    Err(Error::Unencodable(format!(
        "field \"{path}\" nests more than {MAX_DEPTH} levels deep, the most that can cross the \
         wire. Flatten it, or send it as text."
    )))
}

/// Decodes a message map; refuses what the contract calls invalid.
pub(crate) fn fields_from_proto(messages: Messages, path: &str) -> Result<Fields> {
    messages
        .into_iter()
        .map(|(name, message)| {
            let value = value_from_proto(message, &|| format!("{path}{name}"))?;
            Ok((name, value))
        })
        .collect()
}

fn value_from_proto(message: pb::Value, path: &dyn Fn() -> String) -> Result<Value> {
    let refused = |why: &str| Err(Error::Unencodable(format!("field \"{}\" {why}", path())));
    match message.kind {
        Some(Kind::NullValue(true)) => Ok(Value::Null),
        Some(Kind::NullValue(false)) => {
            refused("has null_value set to false, which means nothing.")
        }
        Some(Kind::BoolValue(truth)) => Ok(Value::Bool(truth)),
        Some(Kind::IntValue(number)) => Ok(Value::Int(number)),
        Some(Kind::DoubleValue(number)) => Ok(Value::Double(number)),
        Some(Kind::StringValue(text)) => Ok(Value::Text(text)),
        Some(Kind::BytesValue(data)) => Ok(Value::Bytes(data)),
        Some(Kind::ListValue(list)) => {
            let items = list.values.into_iter().enumerate().map(|(position, item)| {
                value_from_proto(item, &|| format!("{}[{position}]", path()))
            });
            Ok(Value::List(items.collect::<Result<_>>()?))
        }
        Some(Kind::MapValue(map)) => {
            let entries = map.fields.into_iter().map(|(name, item)| {
                let value = value_from_proto(item, &|| format!("{}.{name}", path()))?;
                Ok((name, value))
            });
            Ok(Value::Map(entries.collect::<Result<_>>()?))
        }
        None => refused("is a Value with no kind set."),
    }
}

/// Encodes an example; `id` and `dataset` have their own fields.
pub(crate) fn example_to_proto(example: Example) -> Result<pb::Example> {
    let mut fields = example.into_fields();
    let id = match fields.remove("id") {
        None => None,
        Some(Value::Text(text)) => Some(pb::example_id::Kind::Text(text)),
        Some(Value::Int(number)) => Some(pb::example_id::Kind::Number(number)),
        Some(other) => {
            return Err(Error::Unencodable(format!(
                "field \"id\" holds {}; an id is text or an integer.",
                other.kind()
            )));
        }
    };
    let dataset = match fields.remove("dataset") {
        Some(Value::Text(name)) => Some(name),
        Some(other) => {
            fields.insert("dataset".into(), other);
            None
        }
        None => None,
    };
    Ok(pb::Example {
        id: id.map(|kind| pb::ExampleId { kind: Some(kind) }),
        dataset,
        fields: fields_to_proto(fields, "")?,
    })
}

/// Decodes an example, which then knows that all its fields are as they came.
pub(crate) fn example_from_proto(message: Option<pb::Example>) -> Result<Example> {
    let message = message.unwrap_or_default();
    let mut fields = Fields::new();
    if let Some(id) = message.id {
        fields.insert("id".into(), id_from_proto(id)?);
    }
    if let Some(dataset) = message.dataset {
        fields.insert("dataset".into(), Value::Text(dataset));
    }
    fields.append(&mut fields_from_proto(message.fields, "")?);
    Ok(Example::received(fields))
}

fn id_from_proto(id: pb::ExampleId) -> Result<Value> {
    match id.kind {
        Some(pb::example_id::Kind::Text(text)) => Ok(Value::Text(text)),
        Some(pb::example_id::Kind::Number(number)) => Ok(Value::Int(number)),
        None => Err(Error::Unencodable("field \"id\" is an ExampleId with no kind set.".into())),
    }
}

/// Decodes the turns of a conversation.
pub(crate) fn turns_from_proto(turns: Vec<pb::Turn>) -> Result<Vec<Turn>> {
    let decoded = turns.into_iter().map(|turn| {
        Ok(Turn {
            role: turn.role,
            content: turn.content,
            speaker: turn.speaker,
            time: turn.time,
            session: turn.session,
            fields: fields_from_proto(turn.fields, "turn.")?,
        })
    });
    decoded.collect()
}

/// Encodes one turn.
pub(crate) fn turn_to_proto(turn: Turn) -> Result<pb::Turn> {
    Ok(pb::Turn {
        role: turn.role,
        content: turn.content,
        fields: fields_to_proto(turn.fields, "turn.")?,
        speaker: turn.speaker,
        time: turn.time,
        session: turn.session,
    })
}

/// Encodes a span; one beyond what the message can hold becomes the longest it can.
pub(crate) fn duration_to_proto(span: Duration) -> prost_types::Duration {
    prost_types::Duration::try_from(span)
        .unwrap_or(prost_types::Duration { seconds: i64::MAX, nanos: 999_999_999 })
}

/// Decodes a span; a negative one is over at once.
pub(crate) fn duration_from_proto(span: prost_types::Duration) -> Duration {
    Duration::try_from(span).unwrap_or(Duration::ZERO)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn nested(levels: usize) -> Value {
        (1..levels).fold(Value::List(Vec::new()), |inner, _| Value::List(vec![inner]))
    }

    fn round_trip(example: Example) -> Example {
        example_from_proto(Some(example_to_proto(example).unwrap())).unwrap()
    }

    #[test]
    fn what_goes_out_comes_back() {
        let inner = Fields::from([("ü".into(), Value::Null), ("".into(), true.into())]);
        let example = Example::new()
            .with("id", "7")
            .with("dataset", "d")
            .with("least", i64::MIN)
            .with("most", i64::MAX)
            .with("double", 1.0)
            .with("infinite", f64::NEG_INFINITY)
            .with("bytes", Value::Bytes(vec![0, 255]))
            .with("list", vec![Value::Map(inner), Value::from("x"), nested(20)])
            .with("none", None::<i64>);
        assert_eq!(round_trip(example.clone()), example);
        let strange = round_trip(Example::new().with("nan", f64::NAN).with("zero", -0.0));
        assert!(strange.get("nan").unwrap().as_f64().unwrap().is_nan());
        assert!(strange.get("zero").unwrap().as_f64().unwrap().is_sign_negative());
    }

    #[test]
    fn an_id_keeps_its_type() {
        use crate::example::ExampleId;

        let id = |example: Example| round_trip(example).id();
        assert_eq!(id(Example::new().with("id", 1)), Some(ExampleId::Number(1)));
        assert_eq!(id(Example::new().with("id", "1")), Some(ExampleId::Text("1".into())));
        assert_eq!(id(Example::new()), None);
    }

    #[test]
    fn thirty_levels_cross_and_more_are_refused_by_name() {
        round_trip(Example::new().with("deep", nested(30)));
        let error = example_to_proto(Example::new().with("deep", nested(31))).unwrap_err();
        assert!(error.to_string().starts_with("field \"deep[0][0]"), "{error}");
    }

    #[test]
    fn values_that_mean_nothing_are_refused_by_name() {
        for (kind, why) in [(None, "no kind"), (Some(Kind::NullValue(false)), "null_value")] {
            let bad = pb::ListValue { values: vec![pb::Value { kind }] };
            let list = pb::Value { kind: Some(Kind::ListValue(bad)) };
            let error = fields_from_proto([("l".to_string(), list)].into(), "").unwrap_err();
            assert!(error.to_string().starts_with("field \"l[0]\""), "{error}");
            assert!(error.to_string().contains(why), "{error}");
        }
    }

    #[test]
    fn integers_beyond_64_bits_are_refused_with_their_value() {
        assert_eq!(Value::try_from(i64::MAX as u64).unwrap(), Value::Int(i64::MAX));
        let error = Value::try_from(u64::MAX).unwrap_err();
        assert!(error.to_string().contains("18446744073709551615"), "{error}");
    }

    #[test]
    fn spans_beyond_what_a_message_holds_are_cut() {
        assert_eq!(duration_to_proto(Duration::MAX).seconds, i64::MAX);
        let past = prost_types::Duration { seconds: -1, nanos: 0 };
        assert_eq!(duration_from_proto(past), Duration::ZERO);
    }
}
