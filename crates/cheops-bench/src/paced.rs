//! Requests at a fixed rate, whether or not the answers keep up. How long one takes is counted from
//! when it was due, so that a pause counts for all that it delayed. This has a thread of its own:
//! the runtime's timers go by whole milliseconds, which is more than what is measured.

use std::collections::VecDeque;
use std::io::{self, ErrorKind, Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::time::{Duration, Instant};

use rustix::buffer::spare_capacity;
use rustix::event::{PollFd, PollFlags, Timespec, epoll, poll};
use rustix::fd::OwnedFd;

/// No answer takes longer.
const PATIENCE: Duration = Duration::from_secs(10);

/// What is asked, and what is heard then.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Question {
    pub(crate) request: &'static [u8],
    /// How every answer ends, and nothing before its end.
    pub(crate) answer_end: &'static [u8],
}

/// Connections to one address, which stay open from one time that a rate is kept to the next.
pub(crate) struct Paced {
    question: Question,
    streams: Vec<TcpStream>,
    answers: Answers,
}

/// What one connection is at.
struct PacedConnection {
    due: Instant,
    heard: Vec<u8>,
}

impl Paced {
    pub(crate) fn connect(
        to: SocketAddr,
        connections: usize,
        question: Question,
    ) -> io::Result<Self> {
        let open = |_| {
            let stream = TcpStream::connect(to)?;
            stream.set_nodelay(true)?;
            stream.set_nonblocking(true)?;
            Ok(stream)
        };
        let streams: Vec<_> = (0..connections).map(open).collect::<io::Result<_>>()?;
        Ok(Self { question, answers: Answers::of(&streams)?, streams })
    }

    /// How long each request took. Blocks the thread.
    pub(crate) fn keep(&self, per_second: f64, time: Duration) -> io::Result<Vec<Duration>> {
        let Self { question, streams, answers } = self;
        let mut heard = Vec::with_capacity(streams.len());
        let count = (per_second * time.as_secs_f64()) as usize;
        let (start, gap) = (Instant::now(), Duration::from_secs_f64(1.0 / per_second));
        let due = |n: usize| start + gap.mul_f64(n as f64);
        let mut asked: Vec<_> =
            streams.iter().map(|_| PacedConnection { due: start, heard: Vec::new() }).collect();
        // The one that rested longest is next, so that all are used.
        let mut free: VecDeque<_> = (0..streams.len()).collect();
        let (mut sent, mut times) = (0, Vec::with_capacity(count));
        while times.len() < count {
            let now = Instant::now();
            if now > due(count) + PATIENCE {
                return Err(ErrorKind::TimedOut.into());
            }
            while sent < count && due(sent) <= now {
                let Some(at) = free.pop_front() else { break };
                asked[at].due = due(sent);
                (&streams[at]).write_all(question.request)?;
                sent += 1;
            }
            let can_send = sent < count && !free.is_empty();
            let wait = if can_send { due(sent).saturating_duration_since(now) } else { PATIENCE };
            answers.wait(wait, &mut heard)?;
            for at in heard.drain(..) {
                if question.hear(&streams[at], &mut asked[at].heard)? {
                    times.push(asked[at].due.elapsed());
                    free.push_back(at);
                }
            }
        }
        Ok(times)
    }
}

impl Question {
    /// Reads what is there. Is it all of an answer?
    fn hear(&self, mut stream: &TcpStream, heard: &mut Vec<u8>) -> io::Result<bool> {
        let mut buffer = [0; 4096];
        let read = stream.read(&mut buffer)?;
        if read == 0 {
            return Err(ErrorKind::UnexpectedEof.into());
        }
        heard.extend_from_slice(&buffer[..read]);
        if !heard.ends_with(self.answer_end) {
            return Ok(false);
        }
        if !heard.starts_with(b"HTTP/1.1 200") {
            return Err(io::Error::other(String::from_utf8_lossy(heard).into_owned()));
        }
        heard.clear();
        Ok(true)
    }
}

/// Which connections have something to say. By `poll` alone, to look at all of them would cost the
/// client more than the request, on the processors that it shares with what it measures.
struct Answers(OwnedFd);

impl Answers {
    fn of(streams: &[TcpStream]) -> io::Result<Self> {
        let all = epoll::create(epoll::CreateFlags::CLOEXEC)?;
        for (at, stream) in streams.iter().enumerate() {
            let at = epoll::EventData::new_u64(at as u64);
            epoll::add(&all, stream, at, epoll::EventFlags::IN)?;
        }
        Ok(Self(all))
    }

    /// Waits for some, at most so long; `epoll` alone would wait for whole milliseconds.
    fn wait(&self, at_most: Duration, which: &mut Vec<usize>) -> io::Result<()> {
        let at_most = Timespec::try_from(at_most).map_err(io::Error::other)?;
        if poll(&mut [PollFd::new(&self.0, PollFlags::IN)], Some(&at_most))? == 0 {
            return Ok(());
        }
        let mut events = Vec::with_capacity(which.capacity());
        epoll::wait(&self.0, spare_capacity(&mut events), Some(&Timespec::default()))?;
        which.extend(events.iter().map(|event| event.data.u64() as usize));
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use std::net::{Ipv4Addr, TcpListener};

    use super::*;

    const ANSWER: &[u8] = b"HTTP/1.1 200 OK\r\ncontent-length: 4\r\n\r\nend\n";

    fn keep(to: SocketAddr) -> io::Result<Vec<Duration>> {
        let question = Question { request: b"GET / HTTP/1.1\r\n\r\n", answer_end: b"end\n" };
        Paced::connect(to, 1, question)?.keep(100.0, Duration::from_millis(100))
    }

    /// A service of one connection that gives these answers, one to each request.
    fn service(answers: Vec<&'static [u8]>) -> SocketAddr {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
        let address = listener.local_addr().unwrap();
        std::thread::spawn(move || {
            let (mut stream, _) = listener.accept().unwrap();
            for answer in answers {
                let _read = stream.read(&mut [0; 512]).unwrap();
                stream.write_all(answer).unwrap();
            }
        });
        address
    }

    #[test]
    fn every_request_that_is_due_is_sent_and_answered() {
        let times = keep(service(vec![ANSWER; 10])).unwrap();
        assert_eq!(times.len(), 10);
    }

    #[test]
    fn an_answer_other_than_200_is_an_error() {
        let refused = b"HTTP/1.1 502 Bad Gateway\r\n\r\nend\n";
        assert!(keep(service(vec![ANSWER, refused])).is_err());
    }
}
