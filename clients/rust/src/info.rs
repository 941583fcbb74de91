//! Descriptions that a system, memory system or evaluator gives of itself.

use crate::convert::{self, Messages};
use crate::declared::{Declared, OptionInfo};
use crate::error::{Error, Result};
use crate::failure::Failure;
use crate::pb;
use crate::value::Fields;
use crate::work::unreadable;

const MAX_NAME: usize = 200;

/// How something served presents itself. Only the name is needed.
///
/// ```
/// use cbench_client::Info;
///
/// let info = Info::new("shortener").version("2").max_concurrency(4);
/// ```
#[derive(Clone, Debug)]
pub struct Info {
    pub(crate) name: String,
    pub(crate) version: String,
    pub(crate) description: String,
    pub(crate) max_concurrency: Option<u32>,
    pub(crate) holds_conversations: bool,
    pub(crate) scores: Vec<pb::ScoreInfo>,
    pub(crate) required_fields: Vec<String>,
    pub(crate) declared: Option<Declared>,
}

impl Info {
    /// Starts with the name that rows and reports show: at most 200 characters
    /// without `/`; for an evaluator lowercase letters, digits and dashes.
    pub fn new(name: impl Into<String>) -> Self {
        Self {
            name: name.into(),
            version: String::new(),
            description: String::new(),
            max_concurrency: None,
            holds_conversations: false,
            scores: Vec::new(),
            required_fields: Vec::new(),
            declared: None,
        }
    }

    /// The version under test. Stored answers are known by it: change it when
    /// answers may change.
    pub fn version(mut self, version: impl Into<String>) -> Self {
        self.version = version.into();
        self
    }

    /// One sentence for `cbench systems` or `cbench evaluators`.
    pub fn description(mut self, description: impl Into<String>) -> Self {
        self.description = description.into();
        self
    }

    /// How many calls may run at once. Without it the daemon decides.
    pub fn max_concurrency(mut self, limit: u32) -> Self {
        self.max_concurrency = Some(limit);
        self
    }

    /// Announces that a system implements `process_conversation`.
    pub fn holds_conversations(mut self) -> Self {
        self.holds_conversations = true;
        self
    }

    /// Announces a score of an evaluator, of which more is better.
    pub fn score(self, name: impl Into<String>, description: impl Into<String>) -> Self {
        self.with_score(name.into(), description.into(), true)
    }

    /// Announces a score of an evaluator, of which less is better.
    pub fn score_lower_is_better(
        self,
        name: impl Into<String>,
        description: impl Into<String>,
    ) -> Self {
        self.with_score(name.into(), description.into(), false)
    }

    /// Says what a row counts whose system failed, in the score announced last.
    ///
    /// Without it that is 0 where larger is better and all values lie between 0
    /// and 1; any other score has no mean over rows of which some failed.
    pub fn worst(mut self, value: f64) -> Self {
        if let Some(last) = self.scores.last_mut() {
            last.worst = Some(value);
        }
        self
    }

    /// Names a field that an evaluator reads from the original example.
    pub fn required_field(mut self, name: impl Into<String>) -> Self {
        self.required_fields.push(name.into());
        self
    }

    /// Declares an option; those that are not declared are then refused by name.
    ///
    /// A system that declares none gets whatever the run sets, unchecked. A
    /// memory system and an evaluator get none.
    pub fn option(mut self, option: OptionInfo) -> Self {
        self.declared.get_or_insert_default().options.push(option);
        self
    }

    /// Says that there are no options; those it gets are refused by name.
    pub fn takes_no_options(mut self) -> Self {
        self.declared.get_or_insert_default();
        self
    }

    /// Names options of any kind; others are refused by name.
    pub fn takes_options<N: Into<String>>(mut self, names: impl IntoIterator<Item = N>) -> Self {
        let declared = self.declared.get_or_insert_default();
        declared.options.extend(names.into_iter().map(OptionInfo::any));
        self
    }

    /// Says that options of any other name are taken as well, unchecked.
    pub fn accepts_other_options(mut self) -> Self {
        self.declared.get_or_insert_default().accepts_others = true;
        self
    }

    fn with_score(mut self, name: String, description: String, higher_is_better: bool) -> Self {
        let direction = match higher_is_better {
            true => pb::ScoreDirection::HigherIsBetter,
            false => pb::ScoreDirection::LowerIsBetter,
        };
        self.scores.push(pb::ScoreInfo {
            name,
            description,
            higher_is_better,
            worst: None,
            direction: direction.into(),
        });
        self
    }

    pub(crate) fn system(&self, capabilities: &[pb::Capability]) -> pb::SystemInfo {
        pb::SystemInfo {
            name: self.name.clone(),
            version: self.version.clone(),
            description: self.description.clone(),
            capabilities: capabilities.iter().map(|&item| item.into()).collect(),
            max_concurrency: self.announced_limit(),
            location: String::new(),
            declared_options: self.announced_options(),
        }
    }

    pub(crate) fn evaluator(&self) -> pb::EvaluatorInfo {
        pb::EvaluatorInfo {
            name: self.name.clone(),
            description: self.description.clone(),
            scores: self.scores.clone(),
            required_fields: self.required_fields.clone(),
            version: self.version.clone(),
            max_concurrency: self.announced_limit(),
            location: String::new(),
            declared_options: self.announced_options(),
        }
    }

    // What cannot be announced is refused when it is checked.
    fn announced_options(&self) -> Option<pb::DeclaredOptions> {
        self.declared.as_ref().and_then(|declared| declared.to_proto().ok())
    }

    fn announced_limit(&self) -> Option<i32> {
        self.max_concurrency.map(|limit| limit.try_into().unwrap_or(i32::MAX))
    }

    /// Reads the options of a call, checked and with defaults where they are declared.
    pub(crate) fn options_of(&self, given: Messages) -> Result<Fields, Failure> {
        let given = convert::fields_from_proto(given, "options.").map_err(unreadable)?;
        match &self.declared {
            Some(declared) => declared.filled(given, &format!("system \"{}\"", self.name)),
            None => Ok(given),
        }
    }

    pub(crate) fn check_system(&self) -> Result<()> {
        let length = self.name.chars().count();
        if length == 0 || length > MAX_NAME || self.name.contains('/') {
            return Err(Error::NotServable(format!(
                "a system has the name {:?}; a name is 1 to {MAX_NAME} characters without '/'.",
                self.name
            )));
        }
        self.check_limit()
    }

    pub(crate) fn check_evaluator(&self) -> Result<()> {
        let is_valid = |letter: char| matches!(letter, 'a'..='z' | '0'..='9' | '-');
        let length = self.name.len();
        if length == 0 || length > MAX_NAME || !self.name.chars().all(is_valid) {
            return Err(Error::NotServable(format!(
                "an evaluator has the name {:?}; an evaluator's name is made of lowercase letters, \
                 digits and dashes.",
                self.name
            )));
        }
        self.check_limit()
    }

    fn check_limit(&self) -> Result<()> {
        if let Some(declared) = &self.declared {
            declared.check(&self.name)?;
        }
        if self.max_concurrency == Some(0) {
            return Err(Error::NotServable(format!(
                "the max_concurrency of \"{}\" is 0; it must be at least 1.",
                self.name
            )));
        }
        Ok(())
    }
}

impl From<&str> for Info {
    fn from(name: &str) -> Self {
        Self::new(name)
    }
}

impl From<String> for Info {
    fn from(name: String) -> Self {
        Self::new(name)
    }
}
