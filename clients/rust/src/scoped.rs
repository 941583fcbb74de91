//! Memory systems made of one object for each scope.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};

use tokio::sync::RwLock;

use crate::call::Call;
use crate::failure::Failure;
use crate::info::Info;
use crate::memory::{Answer, Ingested, MemorySystem, Question};
use crate::turn::Turn;

/// What one scope remembers.
pub trait Memory: Send + Sync + 'static {
    /// Stores turns, in order of time.
    fn ingest(
        &mut self,
        turns: Vec<Turn>,
        call: &Call,
    ) -> impl Future<Output = Result<Ingested, Failure>> + Send;

    /// Answers from what is remembered, without changing it.
    fn query(
        &self,
        question: Question,
        call: &Call,
    ) -> impl Future<Output = Result<Answer, Failure>> + Send;
}

/// Makes a memory system that has an object for each scope, made by `new` with
/// the scope's name, and dropped when the scope is reset.
///
/// ```
/// use cbench_client::{Answer, Call, Failure, Ingested, Memory, Offers, Question, Turn, memory};
///
/// #[derive(Default)]
/// struct Last(String);
///
/// impl Memory for Last {
///     async fn ingest(&mut self, turns: Vec<Turn>, _call: &Call) -> Result<Ingested, Failure> {
///         self.0 = turns.into_iter().last().map(|turn| turn.content).unwrap_or_default();
///         Ok(Ingested::new())
///     }
///
///     async fn query(&self, _question: Question, _call: &Call) -> Result<Answer, Failure> {
///         Ok(Answer::new(&self.0))
///     }
/// }
///
/// let offers = Offers::new().memory_system(memory("last", |_scope| Last::default()));
/// ```
pub fn memory<M: Memory>(
    info: impl Into<Info>,
    new: impl Fn(&str) -> M + Send + Sync + 'static,
) -> impl MemorySystem {
    Scoped { info: info.into(), new, scopes: Mutex::default() }
}

struct Scoped<M, F> {
    info: Info,
    new: F,
    scopes: Mutex<HashMap<String, Arc<RwLock<M>>>>,
}

impl<M: Memory, F: Fn(&str) -> M + Send + Sync + 'static> Scoped<M, F> {
    fn scope(&self, name: &str) -> Arc<RwLock<M>> {
        let known = self.scopes.lock().unwrap_or_else(PoisonError::into_inner).get(name).cloned();
        // User code may panic, so it is not called under the lock.
        known.unwrap_or_else(|| {
            let made = Arc::new(RwLock::new((self.new)(name)));
            let mut scopes = self.scopes.lock().unwrap_or_else(PoisonError::into_inner);
            scopes.entry(name.to_string()).or_insert(made).clone()
        })
    }
}

impl<M: Memory, F: Fn(&str) -> M + Send + Sync + 'static> MemorySystem for Scoped<M, F> {
    fn info(&self) -> Info {
        self.info.clone()
    }

    async fn reset(&self, scope: &str, _call: &Call) -> Result<(), Failure> {
        self.scopes.lock().unwrap_or_else(PoisonError::into_inner).remove(scope);
        Ok(())
    }

    async fn ingest(
        &self,
        scope: &str,
        turns: Vec<Turn>,
        call: &Call,
    ) -> Result<Ingested, Failure> {
        self.scope(scope).write().await.ingest(turns, call).await
    }

    async fn query(&self, scope: &str, question: Question, call: &Call) -> Result<Answer, Failure> {
        self.scope(scope).read().await.query(question, call).await
    }
}
