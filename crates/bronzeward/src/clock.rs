//! The machine's clocks: the one place where time is asked for.

use std::time::{Duration, Instant};

use bronzeward_reconcile::ports::Clock;
use jiff::Timestamp;

/// The machine's clocks.
#[derive(Debug)]
pub struct SystemClock {
    start: Instant,
    wall: Timestamp,
}

impl SystemClock {
    /// Starts counting.
    pub fn new() -> SystemClock {
        SystemClock { start: Instant::now(), wall: Timestamp::now() }
    }
}

impl Clock for SystemClock {
    fn now(&self) -> Timestamp {
        Timestamp::now()
    }

    /// The longer of two counts: `Instant` stands still while the machine is suspended, the time of day does not.
    fn monotonic(&self) -> Duration {
        let wall = Timestamp::now().duration_since(self.wall);
        self.start.elapsed().max(Duration::try_from(wall).unwrap_or_default())
    }
}
