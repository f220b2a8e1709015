//! Small pieces are written in one: the copy costs less than what the kernel does to look at each.

use std::io::{self, IoSlice};
use std::pin::Pin;
use std::task::{Context, Poll};

use hyper::rt::{Read, ReadBufCursor, Write};

/// A head with a small body. What is larger is not worth a copy.
const SMALL: usize = 1024;

/// A connection.
#[derive(Debug)]
pub struct Coalesced<S>(pub S);

impl<S: Read + Unpin> Read for Coalesced<S> {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: ReadBufCursor<'_>,
    ) -> Poll<io::Result<()>> {
        Pin::new(&mut self.0).poll_read(context, buffer)
    }
}

impl<S: Write + Unpin> Write for Coalesced<S> {
    fn poll_write(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.0).poll_write(context, bytes)
    }

    fn poll_flush(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.0).poll_flush(context)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.0).poll_shutdown(context)
    }

    fn is_write_vectored(&self) -> bool {
        self.0.is_write_vectored()
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        pieces: &[IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        let this = Pin::new(&mut self.0);
        if let [piece] = pieces {
            return this.poll_write(context, piece);
        }
        if pieces.iter().map(|piece| piece.len()).sum::<usize>() > SMALL {
            return this.poll_write_vectored(context, pieces);
        }
        let (mut whole, mut length) = ([0; SMALL], 0);
        for piece in pieces {
            whole[length..length + piece.len()].copy_from_slice(piece);
            length += piece.len();
        }
        this.poll_write(context, &whole[..length])
    }
}

#[cfg(test)]
mod tests {
    use hyper_util::rt::TokioIo;
    use tokio::io::AsyncReadExt;

    use super::*;

    #[tokio::test]
    async fn what_is_written_in_pieces_arrives_in_their_order_whatever_their_size() {
        for sizes in [vec![5], vec![200, 42], vec![0, 7, 0], vec![SMALL, 1], vec![3_000, 3_000]] {
            let (near, mut far) = tokio::io::duplex(1 << 16);
            let mut near = Coalesced(TokioIo::new(near));
            let pieces: Vec<Vec<u8>> =
                sizes.iter().zip(b'a'..).map(|(size, letter)| vec![letter; *size]).collect();
            let mut left: Vec<IoSlice<'_>> =
                pieces.iter().map(|piece| IoSlice::new(piece)).collect();
            let mut left = &mut left[..];
            while left.iter().any(|piece| !piece.is_empty()) {
                let written = std::future::poll_fn(|context| {
                    Pin::new(&mut near).poll_write_vectored(context, left)
                })
                .await;
                IoSlice::advance_slices(&mut left, written.unwrap());
            }
            drop(near);
            let mut heard = Vec::new();
            far.read_to_end(&mut heard).await.unwrap();
            assert_eq!(heard, pieces.concat(), "{sizes:?}");
        }
    }
}
