//! Offers by name: the part that servers and attachments share.

use std::sync::Arc;
use std::time::Duration;

use tokio::sync::OwnedSemaphorePermit;
use tokio_util::sync::CancellationToken;

use crate::call::Trace;
use crate::error::{Error, Result};
use crate::evaluator::{Evaluator, EvaluatorAdapter};
use crate::failure::Failure;
use crate::memory::{MemoryAdapter, MemorySystem};
use crate::offer::{Claim, Offer};
use crate::pb;
use crate::system::{System, SystemAdapter};
use crate::work::{Kind, Reply, Served, Work};

/// The library, as daemons show it.
pub(crate) const SDK: &str = concat!("cbench-rust/", env!("CARGO_PKG_VERSION"));

/// What a process offers: any number of systems, memory systems and evaluators.
///
/// One system converts into it by itself, so `serve(system)` will do.
///
/// ```
/// use cbench_client::{Assessment, Offers, evaluator, system};
///
/// let offers = Offers::new()
///     .system(system("same", |example, _call| example))
///     .evaluator(evaluator("always-one", |_, _, _| Assessment::from([("one", 1.0)])));
/// ```
#[derive(Default)]
pub struct Offers {
    offers: Vec<Arc<Offer>>,
    systems: Vec<pb::SystemInfo>,
    memory_systems: Vec<pb::SystemInfo>,
    evaluators: Vec<pb::EvaluatorInfo>,
    // Reported when serving starts, so that offering reads as one expression.
    problem: Option<Error>,
}

impl Offers {
    /// Starts with nothing.
    pub fn new() -> Self {
        Self::default()
    }

    /// Adds a system.
    pub fn system(mut self, system: impl System) -> Self {
        let info = system.info();
        let mut capabilities = vec![pb::Capability::Stream];
        if info.holds_conversations {
            capabilities.push(pb::Capability::Conversation);
        }
        self.note(info.check_system());
        self.systems.push(info.system(&capabilities));
        let adapter = SystemAdapter { system, info: info.clone() };
        self.add(Offer::new(&info, Kind::System, Arc::new(adapter)))
    }

    /// Adds a memory system.
    pub fn memory_system(mut self, system: impl MemorySystem) -> Self {
        let info = system.info();
        self.note(info.check_system());
        self.memory_systems.push(info.system(&[]));
        let served: Arc<dyn Served> = Arc::new(MemoryAdapter::new(system, info.clone()));
        self.add(Offer::new(&info, Kind::Memory, served))
    }

    /// Adds an evaluator.
    pub fn evaluator(mut self, evaluator: impl Evaluator) -> Self {
        // One that says nothing of options takes none.
        let mut info = evaluator.info();
        info.declared.get_or_insert_default();
        self.note(info.check_evaluator());
        self.evaluators.push(info.evaluator());
        let adapter = EvaluatorAdapter { evaluator, info: info.clone() };
        self.add(Offer::new(&info, Kind::Evaluator, Arc::new(adapter)))
    }

    fn add(mut self, offer: Arc<Offer>) -> Self {
        if self.offers.iter().any(|other| other.kind == offer.kind && other.name == offer.name) {
            let (noun, name) = (offer.kind.noun(), &offer.name);
            self.note(Err(Error::NotServable(format!(
                "two {noun}s are called \"{name}\"; names must differ."
            ))));
        }
        self.offers.push(offer);
        self
    }

    fn note(&mut self, check: Result<()>) {
        if let Err(problem) = check {
            self.problem.get_or_insert(problem);
        }
    }

    pub(crate) fn into_host(self) -> Result<Arc<Host>> {
        if let Some(problem) = self.problem {
            return Err(problem);
        }
        if self.offers.is_empty() {
            let message = "there is nothing to serve; offer at least one system or evaluator.";
            return Err(Error::NotServable(message.into()));
        }
        Ok(Arc::new(Host {
            offers: self.offers,
            systems: self.systems,
            memory_systems: self.memory_systems,
            evaluators: self.evaluators,
            draining: CancellationToken::new(),
            given_up: CancellationToken::new(),
        }))
    }
}

impl<S: System> From<S> for Offers {
    fn from(system: S) -> Self {
        Self::new().system(system)
    }
}

/// What is offered, ready to be called.
pub(crate) struct Host {
    offers: Vec<Arc<Offer>>,
    pub systems: Vec<pb::SystemInfo>,
    pub memory_systems: Vec<pb::SystemInfo>,
    pub evaluators: Vec<pb::EvaluatorInfo>,
    /// Cancelled when no more calls are taken.
    pub draining: CancellationToken,
    /// Cancelled when the calls in progress are given up.
    pub given_up: CancellationToken,
}

impl Host {
    /// The names of all that is offered.
    pub fn names(&self) -> String {
        let names: Vec<&str> = self.offers.iter().map(|offer| offer.name.as_str()).collect();
        names.join(", ")
    }

    /// How many calls may run at once over all that is offered.
    pub fn total_limit(&self) -> usize {
        self.offers.iter().map(|offer| offer.limit).sum()
    }

    /// Says to a daemon what is offered.
    pub fn hello(&self, max_in_flight: usize) -> pb::Hello {
        pb::Hello {
            systems: self.systems.clone(),
            evaluators: self.evaluators.clone(),
            sdk: SDK.into(),
            max_in_flight: Some(max_in_flight.try_into().unwrap_or(i32::MAX)),
            memory_systems: self.memory_systems.clone(),
        }
    }

    /// Takes a call on, if nothing speaks against it.
    pub fn accept(&self, work: &Work, call_id: &str) -> Result<Accepted, Failure> {
        if self.draining.is_cancelled() {
            return Err(Failure::shutting_down());
        }
        let offer = self.find(work.kind(), work.addressee())?;
        let claim = offer.claim(call_id)?;
        Ok(Accepted { offer, claim })
    }

    fn find(&self, kind: Kind, name: &str) -> Result<Arc<Offer>, Failure> {
        let of_kind = || self.offers.iter().filter(|offer| offer.kind == kind);
        if let Some(offer) = of_kind().find(|offer| offer.name == name) {
            return Ok(offer.clone());
        }
        let served: Vec<&str> = of_kind().map(|offer| offer.name.as_str()).collect();
        let (noun, list) = (kind.noun(), served.join(", "));
        match (name, served.len()) {
            ("", 1) => Ok(of_kind().next().expect("there is one").clone()),
            ("", 2..) => Err(Failure::invalid(format!(
                "several are served here; name the {noun}. Served: {list}"
            ))),
            _ => {
                let list = if served.is_empty() { "none" } else { &list };
                let message = format!("no {noun} \"{name}\" is served here. Served: {list}");
                Err(Failure::new(format!("UNKNOWN_{}", noun.to_uppercase()), message))
            }
        }
    }

    /// Makes one call and waits for its outcome. Dropped, it cancels the call.
    pub async fn run(
        &self,
        work: Work,
        timeout: Option<Duration>,
        trace: Trace,
    ) -> Result<Reply, Failure> {
        let accepted = self.accept(&work, work.call_id())?;
        let admitted = accepted.offer.admit().ok_or_else(|| accepted.offer.full())?;
        accepted.run(work, admitted, timeout, trace, self.given_up.child_token()).await
    }
}

/// A call that was taken on, and needs a place.
pub(crate) struct Accepted {
    pub offer: Arc<Offer>,
    claim: Claim,
}

impl Accepted {
    pub async fn run(
        self,
        work: Work,
        admitted: OwnedSemaphorePermit,
        timeout: Option<Duration>,
        trace: Trace,
        caller: CancellationToken,
    ) -> Result<Reply, Failure> {
        self.offer.run(work, self.claim, admitted, timeout, trace, caller).await
    }
}
