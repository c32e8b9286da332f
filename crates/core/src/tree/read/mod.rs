//! What reads a tree: cursors, the windows of their scans, what they read ahead, estimates, parts for parallel scans.

pub(super) mod cursor;
pub(super) mod estimate;
pub(super) mod expected;
pub(super) mod listing;
pub(super) mod partition;
pub(super) mod pass_over;
pub(super) mod run;
pub(super) mod sample;
pub(super) mod window;
