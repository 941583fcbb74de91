//! Options that a component declares: announced, checked, and filled in where a run sets none.

use crate::convert;
use crate::error::{Error, Result};
use crate::failure::Failure;
use crate::pb;
use crate::pb::OptionType;
use crate::value::{Fields, Value};

const MAX_NAME: usize = 200;

/// One option that a system, memory system or evaluator takes.
///
/// ```
/// use cbench_client::{Info, OptionInfo};
///
/// let info = Info::new("shortener")
///     .option(OptionInfo::number("ratio").default(0.5).range(0.0, 1.0).description("What to keep."))
///     .option(OptionInfo::text("mode").default("good").one_of(["fast", "good"]));
/// ```
///
/// It is checked before a run, shown by `cbench systems`, and read with
/// [`Call::number`](crate::Call::number) and its like, defaults included.
#[derive(Clone, Debug, PartialEq)]
pub struct OptionInfo {
    name: String,
    kind: OptionType,
    description: String,
    default: Option<Value>,
    is_required: bool,
    minimum: Option<f64>,
    maximum: Option<f64>,
    choices: Vec<Value>,
    is_nullable: bool,
}

impl OptionInfo {
    /// An option that is true or false.
    pub fn flag(name: impl Into<String>) -> Self {
        Self::new(name, OptionType::Bool)
    }

    /// An option that is an integer.
    pub fn integer(name: impl Into<String>) -> Self {
        Self::new(name, OptionType::Integer)
    }

    /// An option that is a number, whole or not.
    pub fn number(name: impl Into<String>) -> Self {
        Self::new(name, OptionType::Number)
    }

    /// An option that is text.
    pub fn text(name: impl Into<String>) -> Self {
        Self::new(name, OptionType::Text)
    }

    /// An option that is a list.
    pub fn list(name: impl Into<String>) -> Self {
        Self::new(name, OptionType::List)
    }

    /// An option that is a record.
    pub fn map(name: impl Into<String>) -> Self {
        Self::new(name, OptionType::Map)
    }

    /// An option of any kind.
    pub fn any(name: impl Into<String>) -> Self {
        Self::new(name, OptionType::Unspecified)
    }

    fn new(name: impl Into<String>, kind: OptionType) -> Self {
        Self {
            name: name.into(),
            kind,
            description: String::new(),
            default: None,
            is_required: false,
            minimum: None,
            maximum: None,
            choices: Vec::new(),
            is_nullable: false,
        }
    }

    /// What it is for, in one sentence.
    pub fn description(mut self, description: impl Into<String>) -> Self {
        self.description = description.into();
        self
    }

    /// What counts where a run does not set it.
    pub fn default(mut self, value: impl Into<Value>) -> Self {
        self.default = Some(value.into());
        self
    }

    /// A run has to set it.
    pub fn required(mut self) -> Self {
        self.is_required = true;
        self
    }

    /// The least and the largest number allowed, both included.
    pub fn range(self, minimum: f64, maximum: f64) -> Self {
        self.at_least(minimum).at_most(maximum)
    }

    /// The least number allowed, itself included.
    pub fn at_least(mut self, minimum: f64) -> Self {
        self.minimum = Some(minimum);
        self
    }

    /// The largest number allowed, itself included.
    pub fn at_most(mut self, maximum: f64) -> Self {
        self.maximum = Some(maximum);
        self
    }

    /// The only values allowed.
    pub fn one_of<V: Into<Value>>(mut self, values: impl IntoIterator<Item = V>) -> Self {
        self.choices = values.into_iter().map(Into::into).collect();
        self
    }

    /// Null is allowed besides.
    pub fn nullable(mut self) -> Self {
        self.is_nullable = true;
        self
    }

    fn to_proto(&self) -> Result<pb::OptionInfo> {
        let encoded = |value: &Value| {
            let fields = [(self.name.clone(), value.clone())].into();
            let encoded = convert::fields_to_proto(fields, "options.")?.into_values().next();
            Ok(encoded.unwrap_or_default())
        };
        Ok(pb::OptionInfo {
            name: self.name.clone(),
            r#type: self.kind.into(),
            description: self.description.clone(),
            default_value: self.default.as_ref().map(encoded).transpose()?,
            required: self.is_required,
            minimum: self.minimum,
            maximum: self.maximum,
            choices: self.choices.iter().map(encoded).collect::<Result<_>>()?,
            nullable: self.is_nullable,
        })
    }

    fn check(&self, owner: &str) -> Result<()> {
        let is_long = self.name.is_empty() || self.name.chars().count() > MAX_NAME;
        if is_long
            || self.name.contains(|letter: char| "=.".contains(letter) || letter.is_whitespace())
        {
            return Err(Error::NotServable(format!(
                "\"{owner}\" has an option called {:?}; a name is 1 to {MAX_NAME} characters without \
                 '=', '.' and white space.",
                self.name
            )));
        }
        let stated = self.default.iter().chain(&self.choices);
        for value in stated {
            if let Err(problem) = self.suited(value.clone()) {
                return Err(Error::NotServable(format!("\"{owner}\" declares that {problem}")));
            }
        }
        Ok(())
    }

    /// Returns the value as its kind has it, or says what it should have been.
    fn suited(&self, value: Value) -> Result<Value, String> {
        let wrong = |wanted: String| {
            Err(format!("option \"{}\" is {}; it must be {wanted}", self.name, shown(&value)))
        };
        if value == Value::Null && (self.is_nullable || self.kind == OptionType::Unspecified) {
            return Ok(value);
        }
        let suited = match (self.kind, &value) {
            (OptionType::Integer, Value::Double(number)) if number.fract() == 0.0 => {
                Value::Int(*number as i64)
            }
            (OptionType::Number, Value::Int(number)) => Value::Double(*number as f64),
            (OptionType::Unspecified, _)
            | (OptionType::Bool, Value::Bool(_))
            | (OptionType::Integer, Value::Int(_))
            | (OptionType::Number, Value::Double(_))
            | (OptionType::Text, Value::Text(_))
            | (OptionType::List, Value::List(_))
            | (OptionType::Map, Value::Map(_)) => value.clone(),
            _ => return wrong(wanted(self.kind).into()),
        };
        if let Some(number) = suited.as_f64() {
            if self.minimum.is_some_and(|least| number.is_nan() || number < least) {
                return wrong(format!("at least {}", self.minimum.unwrap_or_default()));
            }
            if self.maximum.is_some_and(|most| number.is_nan() || number > most) {
                return wrong(format!("at most {}", self.maximum.unwrap_or_default()));
            }
        }
        let is_it = |choice: &Value| match (choice.as_f64(), suited.as_f64()) {
            (Some(one), Some(other)) => one == other,
            _ => *choice == suited,
        };
        if !self.choices.is_empty() && !self.choices.iter().any(is_it) {
            let choices: Vec<String> = self.choices.iter().map(shown).collect();
            return wrong(format!("one of {}", choices.join(", ")));
        }
        Ok(suited)
    }
}

fn wanted(kind: OptionType) -> &'static str {
    match kind {
        OptionType::Unspecified => "a value",
        OptionType::Bool => "true or false",
        OptionType::Integer => "an integer",
        OptionType::Number => "a number",
        OptionType::Text => "text",
        OptionType::List => "a list",
        OptionType::Map => "a map",
    }
}

fn shown(value: &Value) -> String {
    match value {
        Value::Bool(truth) => truth.to_string(),
        Value::Int(number) => number.to_string(),
        Value::Double(number) => format!("{number:?}"),
        Value::Text(text) => format!("{text:?}"),
        other => other.kind().to_string(),
    }
}

/// All options that a component declares.
#[derive(Clone, Debug, Default)]
pub(crate) struct Declared {
    pub options: Vec<OptionInfo>,
    pub accepts_others: bool,
}

impl Declared {
    pub fn to_proto(&self) -> Result<pb::DeclaredOptions> {
        let options = self.options.iter().map(OptionInfo::to_proto).collect::<Result<_>>()?;
        Ok(pb::DeclaredOptions { options, accepts_others: self.accepts_others })
    }

    pub fn check(&self, owner: &str) -> Result<()> {
        for (position, option) in self.options.iter().enumerate() {
            option.check(owner)?;
            option.to_proto()?;
            if self.options[..position].iter().any(|other| other.name == option.name) {
                let name = &option.name;
                return Err(Error::NotServable(format!(
                    "\"{owner}\" declares two options called \"{name}\"; names must differ."
                )));
            }
        }
        Ok(())
    }

    /// Checks what a run sets, and adds the defaults of what it does not.
    pub fn filled(&self, mut given: Fields, owner: &str) -> Result<Fields, Failure> {
        let mut filled = Fields::new();
        for option in &self.options {
            let value = match given.remove(&option.name) {
                Some(value) => Some(option.suited(value).map_err(Failure::invalid)?),
                None if option.is_required => {
                    let message =
                        format!("option \"{}\" is missing, and has no default", option.name);
                    return Err(Failure::invalid(message));
                }
                None => option.default.clone(),
            };
            filled.extend(value.map(|value| (option.name.clone(), value)));
        }
        if self.accepts_others {
            filled.append(&mut given);
        }
        if given.is_empty() {
            return Ok(filled);
        }
        let unknown: Vec<&str> = given.keys().map(String::as_str).collect();
        let known: Vec<&str> = self.options.iter().map(|option| option.name.as_str()).collect();
        let takes = if known.is_empty() { "no options".into() } else { known.join(", ") };
        Err(Failure::invalid(format!("{owner} takes {takes}, and got: {}", unknown.join(", "))))
    }

    /// The defaults alone, for a call that brings no options.
    pub fn defaults(&self) -> Fields {
        let stated = self
            .options
            .iter()
            .filter_map(|option| Some((option.name.clone(), option.default.clone()?)));
        stated.collect()
    }
}

/// Why an option could not be read. As any error, `?` makes a failure of it.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum OptionError {
    /// The run does not set it, and it has no default.
    #[error("option \"{0}\" is not set")]
    Missing(String),
    /// It is of another kind.
    #[error("option \"{0}\" is {1}, not {2}")]
    OfAnotherKind(String, &'static str, &'static str),
}
