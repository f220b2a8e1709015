//! Whether whoever started this process is still there: it holds the other end of our input.

use std::future::Future;
use std::io::Read;

/// Ends when standard input does, if that is asked for, and else never.
pub(crate) fn gone(is_asked_for: bool) -> impl Future<Output = ()> {
    let (gone, hears) = tokio::sync::oneshot::channel::<()>();
    if is_asked_for {
        // A thread, since there is no other way to wait for any kind of input.
        std::thread::spawn(move || {
            let mut buffer = [0; 64];
            while matches!(std::io::stdin().read(&mut buffer), Ok(read) if read > 0) {}
            drop(gone);
        });
    } else {
        std::mem::forget(gone);
    }
    async {
        let _closed = hears.await;
    }
}
