//! Examples: what systems get and give back.

use std::collections::BTreeSet;
use std::sync::atomic::{AtomicU64, Ordering};

use crate::usage::Usage;
use crate::value::{Fields, Value};

/// An example's id, which keeps its type: 1 and "1" are different ids.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum ExampleId {
    /// A textual id.
    Text(String),
    /// A numeric id.
    Number(i64),
}

/// Why a field could not be read. As any error, `?` makes a failure of it.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum FieldError {
    /// There is no field of that name.
    #[error("the example has no field \"{0}\"")]
    Missing(String),
    /// The field of that name is of another kind.
    #[error("field \"{0}\" is {1}, not text")]
    OfAnotherKind(String, &'static str),
}

/// One record of a dataset, or what a system made of it: values by name.
///
/// Start from the example that came in and change what differs: fields left
/// alone are then named on the wire, not sent.
///
/// ```
/// use cbench_client::{Example, Value};
///
/// let example = Example::new().with("context", "A. B.").with("choices", vec!["A", "B"]);
/// assert_eq!(example.context(), "A. B.");
/// assert_eq!(example.get("choices"), Some(&Value::from(vec!["A", "B"])));
/// let answered = example.with("response", "A");
/// assert_eq!(answered.text("response").unwrap(), "A");
/// ```
#[derive(Clone, Debug, Default)]
pub struct Example {
    fields: Fields,
    // Names of fields that are as they came, and with which example.
    untouched: BTreeSet<String>,
    source: u64,
}

/// Examples are equal if their fields are.
impl PartialEq for Example {
    fn eq(&self, other: &Self) -> bool {
        self.fields == other.fields
    }
}

impl Example {
    /// Makes an example without fields.
    pub fn new() -> Self {
        Self::default()
    }

    /// The id, if it has one.
    pub fn id(&self) -> Option<ExampleId> {
        match self.fields.get("id")? {
            Value::Text(text) => Some(ExampleId::Text(text.clone())),
            Value::Int(number) => Some(ExampleId::Number(*number)),
            _ => None,
        }
    }

    /// The name of the dataset it came from; empty if it does not say.
    pub fn dataset(&self) -> &str {
        self.text_or_empty("dataset")
    }

    /// The field `context`; empty if there is none.
    pub fn context(&self) -> &str {
        self.text_or_empty("context")
    }

    /// The field `question`; empty if there is none.
    pub fn question(&self) -> &str {
        self.text_or_empty("question")
    }

    /// The field `response`; empty if there is none.
    pub fn response(&self) -> &str {
        self.text_or_empty("response")
    }

    /// A field of any kind. The id and the dataset are fields, too.
    pub fn get(&self, name: &str) -> Option<&Value> {
        self.fields.get(name)
    }

    /// A field that has to be there and be text.
    pub fn text(&self, name: &str) -> Result<&str, FieldError> {
        match self.fields.get(name) {
            Some(Value::Text(text)) => Ok(text),
            Some(other) => Err(FieldError::OfAnotherKind(name.into(), other.kind())),
            None => Err(FieldError::Missing(name.into())),
        }
    }

    /// Every field, in the order of names.
    pub fn fields(&self) -> &Fields {
        &self.fields
    }

    /// Sets a field.
    pub fn with(mut self, name: impl Into<String>, value: impl Into<Value>) -> Self {
        self.set(name, value);
        self
    }

    /// Leaves a field out.
    pub fn without(mut self, name: &str) -> Self {
        self.untouched.remove(name);
        self.fields.remove(name);
        self
    }

    /// Reports what the call cost, in the field `api_usage`.
    pub fn with_usage(self, usage: &Usage) -> Self {
        self.with("api_usage", usage.to_fields())
    }

    /// Sets a field in place.
    pub fn set(&mut self, name: impl Into<String>, value: impl Into<Value>) {
        let name = name.into();
        self.untouched.remove(&name);
        self.fields.insert(name, value.into());
    }

    /// Takes the fields out.
    pub fn into_fields(self) -> Fields {
        self.fields
    }

    pub(crate) fn received(fields: Fields) -> Self {
        static NEXT_SOURCE: AtomicU64 = AtomicU64::new(1);
        let untouched = fields.keys().cloned().collect();
        let source = NEXT_SOURCE.fetch_add(1, Ordering::Relaxed);
        Self { fields, untouched, source }
    }

    pub(crate) fn source(&self) -> u64 {
        self.source
    }

    /// Splits into the fields to send and the names of those that are as they
    /// came with the example `source`. What a system kept from another call
    /// has another source, and is sent whole.
    pub(crate) fn into_changes(mut self, source: u64) -> (Fields, Vec<String>) {
        if self.source != source {
            return (self.fields, Vec::new());
        }
        self.fields.retain(|name, _| !self.untouched.contains(name));
        (self.fields, self.untouched.into_iter().collect())
    }

    fn text_or_empty(&self, name: &str) -> &str {
        self.fields.get(name).and_then(Value::as_str).unwrap_or_default()
    }
}

impl From<Fields> for Example {
    fn from(fields: Fields) -> Self {
        Self { fields, ..Self::default() }
    }
}

impl<N: Into<String>, V: Into<Value>> FromIterator<(N, V)> for Example {
    fn from_iter<I: IntoIterator<Item = (N, V)>>(entries: I) -> Self {
        let fields = entries.into_iter().map(|(name, value)| (name.into(), value.into()));
        Self::from(fields.collect::<Fields>())
    }
}
