//! A service that counts, and remembers what it was told: every `POST /add/KEY` adds one, also the
//! second time it hears the same key. Whoever looks into its book knows what really happened.

use std::collections::BTreeMap;
use std::io::{BufRead, BufReader, Write};
use std::net::{IpAddr, SocketAddr, TcpListener, TcpStream};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};

/// Where it listens, at the address of each site.
pub(crate) const PORT: u16 = 8090;

#[derive(Default)]
struct Book {
    heard: Mutex<BTreeMap<String, u32>>,
    connections: AtomicUsize,
}

/// A running one. It ends with the test.
#[derive(Clone)]
pub(crate) struct Counter(Arc<Book>);

impl Counter {
    pub(crate) fn listen(host: IpAddr) -> Self {
        let listener = TcpListener::bind(SocketAddr::new(host, PORT)).unwrap();
        let book = Arc::new(Book::default());
        let of_listener = Arc::clone(&book);
        std::thread::spawn(move || {
            for stream in listener.incoming().flatten() {
                let book = Arc::clone(&of_listener);
                book.connections.fetch_add(1, Ordering::SeqCst);
                std::thread::spawn(move || {
                    let _ends = book.serve(stream);
                    book.connections.fetch_sub(1, Ordering::SeqCst);
                });
            }
        });
        Self(book)
    }

    /// How often each key was heard.
    pub(crate) fn heard(&self) -> BTreeMap<String, u32> {
        self.0.heard.lock().unwrap().clone()
    }

    pub(crate) fn times(&self, key: &str) -> u32 {
        self.0.heard.lock().unwrap().get(key).copied().unwrap_or_default()
    }

    /// The count.
    pub(crate) fn sum(&self) -> u64 {
        self.0.heard.lock().unwrap().values().map(|times| u64::from(*times)).sum()
    }

    /// Whether nobody is connected: then nothing is on its way either.
    pub(crate) fn is_alone(&self) -> bool {
        self.0.connections.load(Ordering::SeqCst) == 0
    }
}

impl Book {
    fn serve(&self, stream: TcpStream) -> std::io::Result<()> {
        stream.set_nodelay(true)?;
        let mut answers = stream.try_clone()?;
        let mut lines = BufReader::new(stream).lines();
        while let Some(request) = lines.next() {
            let request = request?;
            while lines.next().transpose()?.is_some_and(|header| !header.is_empty()) {}
            let key = request.split(' ').nth(1).and_then(|path| path.strip_prefix("/add/"));
            if let Some(key) = key {
                *self.heard.lock().unwrap().entry(key.to_owned()).or_default() += 1;
            }
            let status = if key.is_some() { "200 OK" } else { "404 Not Found" };
            write!(answers, "HTTP/1.1 {status}\r\ncontent-length: 0\r\n\r\n")?;
        }
        Ok(())
    }
}
