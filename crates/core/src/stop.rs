//! Named stop points: places where a race begins, at which a test can have something happen. They are there in unit
//! tests only.
//!
//! What happens runs on the thread that comes to the point, so nothing has to be waited for and the schedule is the
//! same each time:
//!
//! ```text
//! thread of the test:   on(point, act)   insert ... at(point): act, once ... the rest of the insert
//! ```

#[cfg(test)]
pub(crate) use points::{at, on};

/// Nothing, outside of unit tests.
#[cfg(not(test))]
#[inline(always)]
pub(crate) fn at(_point: &'static str) {}

#[cfg(test)]
mod points {
    use std::cell::RefCell;

    type Act = Box<dyn FnOnce()>;

    thread_local! {
        static ACTS: RefCell<Vec<(&'static str, Act)>> = const { RefCell::new(Vec::new()) };
    }

    /// When this thread comes to `point` the next time, `act` runs.
    pub(crate) fn on(point: &'static str, act: impl FnOnce() + 'static) {
        ACTS.with_borrow_mut(|acts| acts.push((point, Box::new(act))));
    }

    pub(crate) fn at(point: &'static str) {
        // Taken out first: what runs may come to points itself.
        let act = ACTS.with_borrow_mut(|acts| {
            let found = acts.iter().position(|(of, _)| *of == point)?;
            Some(acts.remove(found).1)
        });
        if let Some(act) = act {
            act();
        }
    }
}
