//! Asking for devices again and again, without ever holding up async code.
//!
//! The driver is asked on a thread for blocking work, one question at a time. When a device dies
//! the driver may not answer for minutes; the watch then says so, as [`DeviceError::Stuck`], once a
//! deadline, and goes on waiting: a second question beside the first would only hang as well.

use std::time::Duration;

use std::sync::Arc;
use tokio::sync::{Notify, mpsc};
use tokio::task::{JoinError, JoinHandle, spawn_blocking};
use tokio::time::{Instant, MissedTickBehavior, interval, timeout};

use super::{DeviceError, DeviceSource, Inventory};

/// Time that the driver may take to answer before it counts as stuck.
const DEADLINE: Duration = Duration::from_secs(5);

const SHORTEST_PERIOD: Duration = Duration::from_millis(1);

type DriverAnswer = Result<Inventory, DeviceError>;

/// Lists the devices of `source` now and then every `period`, until the receiver is dropped.
///
/// An error does not end the watch: the driver may come back. Only a source that panics does. A
/// receiver that falls behind is not flooded: no more than two answers wait for it, and asking
/// pauses meanwhile. Periods below 1 ms count as 1 ms.
///
/// A runtime that is dropped waits for its blocking threads, so while the driver is stuck end it
/// with `Runtime::shutdown_background`.
///
/// # Panics
/// Outside a tokio runtime with time enabled.
pub fn watch(source: impl DeviceSource + 'static, period: Duration) -> mpsc::Receiver<DriverAnswer> {
    watch_with_deadline(source, period, DEADLINE, Arc::default())
}

/// As [`watch()`], with a deadline other than 5 s, and asking also when `now` is notified.
pub(super) fn watch_with_deadline(
    source: impl DeviceSource + 'static,
    period: Duration,
    deadline: Duration,
    now: Arc<Notify>,
) -> mpsc::Receiver<DriverAnswer> {
    let (answers, receiver) = mpsc::channel(1);
    tokio::spawn(async move {
        let ended = answers.clone();
        tokio::select! {
            () = ended.closed() => {}
            () = ask_forever(source, period, deadline, &now, answers) => {}
        }
    });
    receiver
}

async fn ask_forever<S: DeviceSource + 'static>(
    mut source: S,
    period: Duration,
    deadline: Duration,
    now: &Notify,
    answers: mpsc::Sender<DriverAnswer>,
) {
    let mut ticks = interval(period.max(SHORTEST_PERIOD));
    // After a slow answer the driver gets a whole period of rest, and no burst of questions.
    ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
    loop {
        tokio::select! {
            _ = ticks.tick() => {}
            () = now.notified() => {}
        }
        let question = spawn_blocking(move || {
            let answer = source.list();
            (source, answer)
        });
        let Ok((returned, answer)) = wait(question, deadline, &answers).await else {
            let _ = answers.send(Err(DeviceError::SourcePanicked)).await;
            return;
        };
        source = returned;
        if answers.send(answer).await.is_err() {
            return;
        }
    }
}

/// Waits for an answer as long as it takes, and says so once a `deadline`.
async fn wait<T>(
    mut question: JoinHandle<T>,
    deadline: Duration,
    answers: &mpsc::Sender<DriverAnswer>,
) -> Result<T, JoinError> {
    let asked = Instant::now();
    loop {
        match timeout(deadline, &mut question).await {
            Ok(answered) => return answered,
            Err(_) => {
                let stuck = DeviceError::Stuck { waited: asked.elapsed() };
                let _ = answers.send(Err(stuck)).await;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::mpsc as blocking;

    use super::*;

    const SOON: Duration = Duration::from_millis(1);
    const NEVER: Duration = Duration::from_secs(3600);

    /// Answers with a function of the number of questions before this one.
    struct Fake<F> {
        asked: u32,
        answer: F,
    }

    impl<F: FnMut(u32) -> DriverAnswer + Send> DeviceSource for Fake<F> {
        fn list(&mut self) -> DriverAnswer {
            self.asked += 1;
            (self.answer)(self.asked - 1)
        }
    }

    fn fake(answer: impl FnMut(u32) -> DriverAnswer + Send) -> impl DeviceSource {
        Fake { asked: 0, answer }
    }

    fn numbered(number: u32) -> Inventory {
        Inventory { driver_version: Some(number.to_string()), ..Inventory::default() }
    }

    #[tokio::test]
    async fn answers_come_in_order_and_an_error_does_not_end_them() {
        let source = fake(|asked| if asked == 1 { Err(DeviceError::DriverNotLoaded) } else { Ok(numbered(asked)) });
        let mut answers = watch(source, SOON);
        assert_eq!(answers.recv().await.unwrap().unwrap(), numbered(0));
        assert!(matches!(answers.recv().await.unwrap(), Err(DeviceError::DriverNotLoaded)));
        assert_eq!(answers.recv().await.unwrap().unwrap(), numbered(2));
    }

    #[tokio::test]
    async fn the_source_is_let_go_when_nobody_listens() {
        let (held, released) = blocking::channel::<()>();
        let source = fake(move |asked| {
            let _ = &held;
            Ok(numbered(asked))
        });
        let mut answers = watch(source, NEVER);
        assert!(answers.recv().await.unwrap().is_ok());
        drop(answers);
        let gone = spawn_blocking(move || released.recv()).await.unwrap();
        assert!(gone.is_err(), "the watch sleeps for an hour, and yet its source was dropped");
    }

    #[tokio::test]
    async fn a_driver_that_hangs_is_reported_and_waited_for() {
        let (release, released) = blocking::channel::<()>();
        let source = fake(move |asked| {
            let _ = released.recv();
            Ok(numbered(asked))
        });
        let mut answers = watch_with_deadline(source, SOON, SOON, Arc::default());
        for _ in 0..2 {
            let answer = answers.recv().await.unwrap();
            assert!(matches!(answer, Err(DeviceError::Stuck { waited }) if waited >= SOON));
        }
        release.send(()).unwrap();
        let answered = loop {
            match answers.recv().await.unwrap() {
                Err(DeviceError::Stuck { .. }) => {}
                answer => break answer.unwrap(),
            }
        };
        assert_eq!(answered, numbered(0), "the question that hung was asked once");
    }

    #[tokio::test]
    async fn who_is_in_a_hurry_need_not_wait_for_the_next_turn() {
        let now = Arc::new(Notify::new());
        let mut answers = watch_with_deadline(fake(|asked| Ok(numbered(asked))), NEVER, NEVER, Arc::clone(&now));
        assert_eq!(answers.recv().await.unwrap().unwrap(), numbered(0));
        now.notify_one();
        assert_eq!(answers.recv().await.unwrap().unwrap(), numbered(1));
    }

    #[tokio::test]
    async fn a_source_that_panics_ends_the_watch() {
        let mut answers = watch(fake(|_| panic!("on purpose")), SOON);
        assert!(matches!(answers.recv().await, Some(Err(DeviceError::SourcePanicked))));
        assert!(answers.recv().await.is_none());
    }
}
