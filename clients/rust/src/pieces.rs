//! Files of a daemon, in pieces as they come.

use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};

use tokio_stream::{Stream, StreamExt};
use tonic::Status;

use crate::channel::Dial;
use crate::error::Result;

/// A file in pieces: a report, or an export. Made by [`Bench::report`](crate::Bench::report)
/// and [`Bench::export`](crate::Bench::export). A `Stream`, too.
pub struct Pieces {
    dial: Arc<Dial>,
    pieces: Pin<Box<dyn Stream<Item = Result<Vec<u8>, Status>> + Send>>,
}

impl Pieces {
    pub(crate) fn new(
        dial: Arc<Dial>,
        pieces: impl Stream<Item = Result<Vec<u8>, Status>> + Send + 'static,
    ) -> Self {
        Self { dial, pieces: Box::pin(pieces) }
    }

    /// Gives the next piece; `None` at the end.
    pub async fn next(&mut self) -> Result<Option<Vec<u8>>> {
        StreamExt::next(self).await.transpose()
    }

    /// Gives all that is left.
    pub async fn bytes(mut self) -> Result<Vec<u8>> {
        let mut all = Vec::new();
        while let Some(mut piece) = Pieces::next(&mut self).await? {
            all.append(&mut piece);
        }
        Ok(all)
    }
}

impl Stream for Pieces {
    type Item = Result<Vec<u8>>;

    fn poll_next(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        let piece = ready!(self.pieces.as_mut().poll_next(context));
        Poll::Ready(piece.map(|piece| piece.map_err(|status| self.dial.explain(&status))))
    }
}
