//! The SDK over real sockets. One program, because each would take as long to link.

mod attaching;
mod driving;
mod memory_and_evaluators;
mod security;
mod serving;
mod support;
