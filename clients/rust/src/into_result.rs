//! Results of user functions, whatever their error is.

use std::error::Error as StdError;

use crate::evaluator::Assessment;
use crate::example::Example;
use crate::failure::Failure;

/// What a function may return as its result: `T`, or a `Result` of it.
///
/// `K` tells the implementations apart and is always inferred.
pub trait IntoResult<T, K> {
    /// Makes it a `Result`.
    fn into_result(self) -> Result<T, Failure>;
}

/// A result that cannot be an error.
pub struct Plain;
/// A result with an error that converts into a [`Failure`].
pub struct Fallible;
/// A result with an error that may not leave its thread.
pub struct Boxed;

impl IntoResult<Example, Plain> for Example {
    fn into_result(self) -> Result<Example, Failure> {
        Ok(self)
    }
}

impl IntoResult<Assessment, Plain> for Assessment {
    fn into_result(self) -> Result<Assessment, Failure> {
        Ok(self)
    }
}

impl<T, E: Into<Failure>> IntoResult<T, Fallible> for Result<T, E> {
    fn into_result(self) -> Result<T, Failure> {
        self.map_err(Into::into)
    }
}

impl<T> IntoResult<T, Boxed> for Result<T, Box<dyn StdError>> {
    fn into_result(self) -> Result<T, Failure> {
        self.map_err(|error| Failure::of(&*error))
    }
}
