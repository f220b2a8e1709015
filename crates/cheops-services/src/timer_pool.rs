//! Limits of time that are hardly ever reached.
//!
//! Setting a timer and taking it back costs more than most of what happens to a request in between.
//! So a timer stays set after whatever it was for has come in time, and is there for the next:
//! when it goes off too early, it is set to what is then the limit.

use std::pin::Pin;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll, ready};
use std::time::{Duration, Instant};

use tokio::time::Sleep;

/// As many as there may be requests at once on a busy thread; more are made when they are needed.
const KEPT: usize = 1024;

/// The timers that nobody uses. They are for limits of one length, and for one runtime.
#[derive(Debug, Clone, Default)]
pub struct TimerPool(Arc<Mutex<Vec<Pin<Box<Sleep>>>>>);

/// Ends at its time, or somewhat later.
#[derive(Debug)]
pub struct Until {
    end: Instant,
    timer: Option<Pin<Box<Sleep>>>,
    kept: TimerPool,
}

impl TimerPool {
    /// Ends at that time.
    pub fn until(&self, end: Instant) -> Until {
        Until { end, timer: None, kept: self.clone() }
    }

    fn unused(&self) -> MutexGuard<'_, Vec<Pin<Box<Sleep>>>> {
        // Nothing here leaves it half changed.
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Until {
    /// Ends at another time than was said before.
    pub fn change(&mut self, end: Instant) {
        self.end = end;
    }
}

impl Future for Until {
    type Output = ();

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<()> {
        let this = &mut *self;
        let end = this.end.into();
        let kept = &this.kept;
        let timer = this.timer.get_or_insert_with(|| {
            kept.unused().pop().unwrap_or_else(|| Box::pin(tokio::time::sleep_until(end)))
        });
        if timer.deadline() > end {
            timer.as_mut().reset(end);
        }
        loop {
            ready!(timer.as_mut().poll(context));
            if tokio::time::Instant::now() >= end {
                return Poll::Ready(());
            }
            timer.as_mut().reset(end);
        }
    }
}

impl Drop for Until {
    fn drop(&mut self) {
        let Some(timer) = self.timer.take() else { return };
        let mut timers = self.kept.unused();
        if timers.len() < KEPT {
            timers.push(timer);
        }
    }
}

impl hyper::rt::Sleep for Until {}

impl hyper::rt::Timer for TimerPool {
    fn sleep(&self, duration: Duration) -> Pin<Box<dyn hyper::rt::Sleep>> {
        self.sleep_until(self.now() + duration)
    }

    fn sleep_until(&self, deadline: Instant) -> Pin<Box<dyn hyper::rt::Sleep>> {
        Box::pin(self.until(deadline))
    }

    fn now(&self) -> Instant {
        tokio::time::Instant::now().into_std()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const LIMIT: Duration = Duration::from_millis(30);
    const FAR_OFF: Duration = Duration::from_secs(3_600);

    fn after(duration: Duration) -> Instant {
        Instant::now() + duration
    }

    async fn is_over(until: &mut Until) -> bool {
        std::future::poll_fn(|context| Poll::Ready(Pin::new(&mut *until).poll(context).is_ready()))
            .await
    }

    /// A timer that was set for something that came in time.
    async fn kept(timers: &TimerPool, end: Duration) {
        assert!(!is_over(&mut timers.until(after(end))).await);
        assert_eq!(timers.unused().len(), 1);
    }

    #[tokio::test]
    async fn a_limit_ends_when_it_is_reached_and_not_before() {
        let (timers, end) = (TimerPool::default(), after(LIMIT));
        timers.until(end).await;
        assert!(Instant::now() >= end);
    }

    #[tokio::test]
    async fn a_timer_that_was_set_for_something_earlier_does_not_end_what_comes_later() {
        let timers = TimerPool::default();
        kept(&timers, LIMIT).await;

        let end = after(LIMIT * 3);
        let mut next = timers.until(end);
        assert!(!is_over(&mut next).await);
        assert_eq!(timers.unused().len(), 0, "the same timer is used again");
        next.await;
        assert!(Instant::now() >= end);
    }

    #[tokio::test]
    async fn a_timer_that_was_set_for_something_later_is_set_back() {
        let timers = TimerPool::default();
        kept(&timers, FAR_OFF).await;
        timers.until(after(LIMIT)).await;
    }

    #[tokio::test]
    async fn a_timer_that_has_gone_off_is_good_for_another_time() {
        let timers = TimerPool::default();
        timers.until(after(LIMIT)).await;
        let end = after(LIMIT);
        timers.until(end).await;
        assert!(Instant::now() >= end);
    }

    #[tokio::test]
    async fn a_limit_can_be_put_off() {
        let timers = TimerPool::default();
        let mut until = timers.until(after(LIMIT));
        assert!(!is_over(&mut until).await);
        let end = after(LIMIT * 3);
        until.change(end);
        until.await;
        assert!(Instant::now() >= end);
    }
}
