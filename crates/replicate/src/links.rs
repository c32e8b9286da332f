//! The connections of a thread, for who has started it: what the thread waits for ends with them.

use std::sync::{Mutex, MutexGuard, PoisonError};
use teak_client::{Closer, Connection, Error};

/// The connections of a thread.
#[derive(Debug, Default)]
pub struct Links {
    state: Mutex<State>,
}

#[derive(Debug, Default)]
struct State {
    closers: Vec<Closer>,
    is_over: bool,
}

impl Links {
    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// One that was just made; it is of no use if the others were ended already.
    pub fn add(&self, connection: &Connection) -> Result<(), Error> {
        let closer = connection.closer()?;
        let mut state = self.lock();
        if state.is_over {
            closer.close();
        }
        state.closers.push(closer);
        Ok(())
    }

    /// Ends all of them, also those that are made later.
    pub fn close(&self) {
        let mut state = self.lock();
        state.is_over = true;
        state.closers.drain(..).for_each(|closer| closer.close());
    }

    /// Leaves them to the thread, which waits for nothing on them.
    pub fn leave(&self) {
        self.lock().closers.clear();
    }
}
