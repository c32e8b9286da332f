//! AUTO_INCREMENT: one atomic counter per table, holding the next value; 0 means that nothing was given out yet.
//!
//! No lock is taken. The counter never goes back except through [`set`], so values are unique however transactions end;
//! it is persisted with the transaction's next log write.

use std::sync::atomic::Ordering;

use crate::outcome::{Result, Stop};
use teak_core::server::{Table, Transaction};

/// The smallest value at or after `next` of the form `offset + k * increment`. An offset past the increment is ignored,
/// as the server documents it.
fn align(next: u64, offset: u64, increment: u64) -> Option<u64> {
    let increment = increment.max(1);
    let offset = if offset > increment { 0 } else { offset };
    let next = next.max(1);
    if next <= offset {
        return Some(offset);
    }
    let steps = (next - offset).div_ceil(increment);
    steps.checked_mul(increment)?.checked_add(offset)
}

/// Reserves `n` values and returns the first.
pub fn reserve(
    txn: Option<&mut Transaction>,
    table: &Table,
    offset: u64,
    increment: u64,
    n: u64,
) -> Result<u64> {
    let cell = table.counter_cell();
    let step = increment.max(1);
    let mut seen = cell.load(Ordering::SeqCst);
    let (first, next) = loop {
        let first =
            align(seen, offset, increment).filter(|v| *v != u64::MAX).ok_or(Stop::CounterExhausted)?;
        // Saturated, the counter stands at a value that is never given out.
        let next = first.saturating_add(step.saturating_mul(n.max(1)));
        match cell.compare_exchange_weak(seen, next, Ordering::SeqCst, Ordering::SeqCst) {
            Ok(_) => break (first, next),
            Err(now) => seen = now,
        }
    };
    if let Some(txn) = txn {
        txn.note_counter(table, next);
    }
    Ok(first)
}

/// An explicit value was stored: later ones are greater.
pub fn raise(txn: Option<&mut Transaction>, table: &Table, value: u64) {
    let next = value.saturating_add(1);
    if table.counter_cell().fetch_max(next, Ordering::SeqCst) < next {
        if let Some(txn) = txn {
            txn.note_counter(table, next);
        }
    }
}

/// Sets the next value, also downwards.
pub fn set(txn: &mut Transaction, table: &Table, value: u64) {
    txn.set_counter(table, value);
}

#[cfg(test)]
mod tests {
    use super::align;

    #[test]
    fn values_keep_to_offset_and_increment() {
        assert_eq!(align(0, 1, 1), Some(1));
        assert_eq!(align(5, 1, 1), Some(5));
        assert_eq!(align(0, 3, 10), Some(3));
        assert_eq!(align(3, 3, 10), Some(3));
        assert_eq!(align(4, 3, 10), Some(13));
        assert_eq!(align(13, 3, 10), Some(13));
        assert_eq!(align(1, 7, 5), Some(5), "an offset past the increment is ignored");
        assert_eq!(align(u64::MAX, 1, 10), None);
    }
}
