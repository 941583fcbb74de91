//! Serve systems, memory systems and evaluators to cbench, and drive its daemon.
//!
//! A system is a function, or anything that implements [`System`]:
//!
//! ```no_run
//! use cbench_client::{serve, system};
//!
//! fn main() -> cbench_client::Result<()> {
//!     serve(system("first-half", |example, _call| {
//!         let context = example.context();
//!         let half = context.chars().take(context.chars().count() / 2).collect::<String>();
//!         example.with("context", half)
//!     }))
//! }
//! ```
//!
//! [`serve`] and [`attach`] block and make their own runtime. [`Server`] and
//! [`Attachment`] have all that can be set, and asynchronous forms; [`Bench`]
//! drives a daemon.

mod address;
mod attachment;
mod bench;
mod call;
mod chance;
mod channel;
mod codec;
mod convert;
mod declared;
mod diagnosis;
mod error;
mod evaluator;
mod example;
mod failure;
mod follow;
mod host;
mod info;
mod into_result;
mod lane;
mod memory;
mod offer;
mod outcomes;
mod pieces;
mod runtime;
mod scoped;
mod server;
mod services;
mod session;
mod several;
mod spec;
mod status;
mod system;
mod tls;
mod trace;
mod trust;
mod turn;
mod usage;
mod value;
mod violation;
mod work;

/// The protocol's own messages and stubs, generated from `protos/cbench/v1`.
#[allow(missing_docs, clippy::all, rustdoc::all, reason = "generated code")]
#[rustfmt::skip]
pub mod pb {
    include!("gen/cbench.v1.rs");

    /// The contract itself, as a `FileDescriptorSet`.
    pub const DESCRIPTORS: &[u8] = include_bytes!("gen/descriptors.bin");
}

pub use attachment::{Attachment, RunningAttachment, attach};
pub use bench::{Bench, BenchBuilder};
pub use call::Call;
pub use declared::{OptionError, OptionInfo};
pub use error::{Error, Result};
pub use evaluator::{Assessment, Evaluator, evaluator};
pub use example::{Example, ExampleId, FieldError};
pub use failure::Failure;
pub use follow::Events;
pub use host::Offers;
pub use info::Info;
pub use into_result::IntoResult;
pub use memory::{Answer, Ingested, MemorySystem, Question};
pub use pieces::Pieces;
pub use scoped::{Memory, memory};
pub use server::{RunningServer, Server, serve};
pub use system::{System, system};
pub use tls::{ServerTls, Tls};
/// The status of a refusal, as tonic has it.
pub use tonic::Code;
pub use turn::Turn;
pub use usage::Usage;
pub use value::{Fields, Value};
pub use violation::FieldViolation;
