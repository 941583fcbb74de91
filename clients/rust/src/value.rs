//! Dynamically typed values, as datasets have them.

use std::collections::BTreeMap;

use crate::error::Error;

/// Named values: the fields of an example, the options of a call, a nested record.
pub type Fields = BTreeMap<String, Value>;

/// One value. Integers and doubles are different kinds: 1 is not 1.0.
///
/// Most values are made with `into()`: from text, integers that fit an
/// `i64`, lengths, floats, booleans, vectors, maps and options. Larger integer
/// types convert with `try_into()`, which refuses what does not fit. Binary
/// data is `Value::Bytes`.
#[derive(Clone, Debug, PartialEq)]
pub enum Value {
    /// The null value.
    Null,
    /// A truth value.
    Bool(bool),
    /// An integer.
    Int(i64),
    /// A floating-point number; NaN and the infinities cross the wire, too.
    Double(f64),
    /// Unicode text.
    Text(String),
    /// Binary data.
    Bytes(Vec<u8>),
    /// An ordered sequence.
    List(Vec<Value>),
    /// A record.
    Map(Fields),
}

impl Value {
    /// Returns the text, if it is text.
    pub fn as_str(&self) -> Option<&str> {
        match self {
            Value::Text(text) => Some(text),
            _ => None,
        }
    }

    /// Returns the integer, if it is one.
    pub fn as_i64(&self) -> Option<i64> {
        match self {
            Value::Int(number) => Some(*number),
            _ => None,
        }
    }

    /// Returns the number, integer or not, as a double.
    pub fn as_f64(&self) -> Option<f64> {
        match self {
            Value::Int(number) => Some(*number as f64),
            Value::Double(number) => Some(*number),
            _ => None,
        }
    }

    /// Returns the truth value, if it is one.
    pub fn as_bool(&self) -> Option<bool> {
        match self {
            Value::Bool(truth) => Some(*truth),
            _ => None,
        }
    }

    /// Returns the bytes, if it is binary data.
    pub fn as_bytes(&self) -> Option<&[u8]> {
        match self {
            Value::Bytes(data) => Some(data),
            _ => None,
        }
    }

    /// Returns the items, if it is a list.
    pub fn as_list(&self) -> Option<&[Value]> {
        match self {
            Value::List(items) => Some(items),
            _ => None,
        }
    }

    /// Returns the entries, if it is a record.
    pub fn as_map(&self) -> Option<&Fields> {
        match self {
            Value::Map(fields) => Some(fields),
            _ => None,
        }
    }

    /// Whether it is null.
    pub fn is_null(&self) -> bool {
        matches!(self, Value::Null)
    }

    pub(crate) fn kind(&self) -> &'static str {
        match self {
            Value::Null => "null",
            Value::Bool(_) => "a truth value",
            Value::Int(_) => "an integer",
            Value::Double(_) => "a double",
            Value::Text(_) => "text",
            Value::Bytes(_) => "bytes",
            Value::List(_) => "a list",
            Value::Map(_) => "a map",
        }
    }
}

macro_rules! value_from {
    ($($source:ty => $kind:ident),* $(,)?) => {
        $(impl From<$source> for Value {
            fn from(value: $source) -> Self {
                Value::$kind(value.into())
            }
        })*
    };
}

value_from!(
    bool => Bool, i64 => Int, i32 => Int, i16 => Int, u32 => Int, u16 => Int,
    f64 => Double, f32 => Double, String => Text, &str => Text, &String => Text,
    Fields => Map,
);

macro_rules! value_try_from {
    ($($source:ty),*) => {
        $(impl TryFrom<$source> for Value {
            type Error = Error;

            fn try_from(value: $source) -> Result<Self, Error> {
                i64::try_from(value).map(Value::Int).map_err(|_| Error::Unencodable(format!(
                    "the integer {value} does not fit into 64 bits with a sign. Send it as text."
                )))
            }
        })*
    };
}

value_try_from!(u64, u128, i128);

/// A length, or another number of this machine's size.
///
/// # Panics
///
/// If it does not fit into 64 bits with a sign, which no length does.
impl From<usize> for Value {
    fn from(value: usize) -> Self {
        i64::try_from(value).map(Value::Int).expect("a usize that fits into 64 bits with a sign")
    }
}

impl<T: Into<Value>> From<Vec<T>> for Value {
    fn from(items: Vec<T>) -> Self {
        Value::List(items.into_iter().map(Into::into).collect())
    }
}

impl<T: Into<Value>> From<Option<T>> for Value {
    fn from(value: Option<T>) -> Self {
        value.map_or(Value::Null, Into::into)
    }
}
