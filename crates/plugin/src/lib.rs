//! The Rust half of `ha_teak.so`. See docs/architecture.md.
