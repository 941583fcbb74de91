//! Run specifications, written briefly.
//!
//! ```
//! use cbench_client::pb::{DatasetRef, RunSpec, SystemRef};
//!
//! let spec = RunSpec::new()
//!     .system(SystemRef::target("127.0.0.1:50061"))
//!     .system(SystemRef::builtin("identity"))
//!     .dataset(DatasetRef::named("mini-qa").first(20));
//! ```

use crate::convert;
use crate::error::Result;
use crate::pb::{DatasetRef, EvaluatorRef, RunSpec, SystemRef, evaluator_ref, system_ref};
use crate::value::Fields;

impl RunSpec {
    /// Makes a specification that names nothing yet; set the other fields directly.
    pub fn new() -> Self {
        Self::default()
    }

    /// Adds a system to compare.
    pub fn system(mut self, system: SystemRef) -> Self {
        self.systems.push(system);
        self
    }

    /// Adds a dataset to draw from.
    pub fn dataset(mut self, dataset: DatasetRef) -> Self {
        self.datasets.push(dataset);
        self
    }

    /// Adds an evaluator to those the datasets ask for.
    pub fn evaluator(mut self, evaluator: EvaluatorRef) -> Self {
        self.evaluators.push(evaluator);
        self
    }
}

impl SystemRef {
    /// Every system served at a target such as `127.0.0.1:50061`.
    pub fn target(target: impl Into<String>) -> Self {
        Self::at(system_ref::Location::Target(target.into()))
    }

    /// A system attached to the daemon under this name.
    pub fn attached(name: impl Into<String>) -> Self {
        Self::at(system_ref::Location::Attached(name.into()))
    }

    /// A system built into the daemon.
    pub fn builtin(name: impl Into<String>) -> Self {
        Self::at(system_ref::Location::Builtin(name.into()))
    }

    /// Sends these settings with every call.
    pub fn with_options(mut self, options: Fields) -> Result<Self> {
        self.options = convert::fields_to_proto(options, "options.")?;
        Ok(self)
    }

    fn at(location: system_ref::Location) -> Self {
        Self { location: Some(location), ..Self::default() }
    }
}

impl DatasetRef {
    /// A registered dataset.
    pub fn named(name: impl Into<String>) -> Self {
        Self { name: name.into(), ..Self::default() }
    }

    /// Examples uploaded before, by their digest, under a name to show.
    pub fn uploaded(digest: impl Into<String>, name: impl Into<String>) -> Self {
        Self { upload: digest.into(), ..Self::named(name) }
    }

    /// At most this many examples.
    pub fn first(mut self, count: i64) -> Self {
        self.max_examples = Some(count);
        self
    }
}

impl EvaluatorRef {
    /// An evaluator built into the daemon.
    pub fn named(name: impl Into<String>) -> Self {
        Self { name: name.into(), ..Self::default() }
    }

    /// An evaluator served at a target.
    pub fn target(name: impl Into<String>, target: impl Into<String>) -> Self {
        let location = Some(evaluator_ref::Location::Target(target.into()));
        Self { location, ..Self::named(name) }
    }

    /// An evaluator attached to the daemon.
    pub fn attached(name: impl Into<String>) -> Self {
        let name = name.into();
        let location = Some(evaluator_ref::Location::Attached(name.clone()));
        Self { location, ..Self::named(name) }
    }
}
