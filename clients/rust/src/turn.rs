//! One turn of a conversation.

use crate::value::{Fields, Value};

/// One turn of a conversation.
#[derive(Clone, Debug, Default, PartialEq)]
#[non_exhaustive]
pub struct Turn {
    /// Who speaks, as a model sees it: `user` or `assistant`.
    pub role: String,
    /// What is said.
    pub content: String,
    /// The speaker's own name; empty means unknown.
    pub speaker: String,
    /// When it was said; empty means unknown.
    pub time: String,
    /// The session it belongs to; empty means unknown.
    pub session: String,
    /// Anything else known about it.
    pub fields: Fields,
}

impl Turn {
    /// Makes a turn of the user.
    pub fn user(content: impl Into<String>) -> Self {
        Self { role: "user".into(), content: content.into(), ..Self::default() }
    }

    /// Makes a turn of the assistant.
    pub fn assistant(content: impl Into<String>) -> Self {
        Self { role: "assistant".into(), content: content.into(), ..Self::default() }
    }

    /// Says the speaker's own name.
    pub fn speaker(mut self, name: impl Into<String>) -> Self {
        self.speaker = name.into();
        self
    }

    /// Says when it was said.
    pub fn time(mut self, time: impl Into<String>) -> Self {
        self.time = time.into();
        self
    }

    /// Says which session it belongs to.
    pub fn session(mut self, session: impl Into<String>) -> Self {
        self.session = session.into();
        self
    }

    /// Adds something else known about it.
    pub fn with(mut self, name: impl Into<String>, value: impl Into<Value>) -> Self {
        self.fields.insert(name.into(), value.into());
        self
    }
}
