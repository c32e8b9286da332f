//! Whether an engine's structures are whole, in memory and on disk.

use crate::subject;
use teak_core::Result;

/// Looks at everything. The engine has no background threads, and nobody else uses it. `disturbed`: file operations may
/// have failed, and a file that could not be removed is left lying (the engine said so).
pub fn assert_sound(engine: &subject::Engine, when: &str, disturbed: bool) -> Result<()> {
    let findings = engine.check_everything(&mut |_| Ok(()))?;
    let left_lying =
        findings.iter().filter(|finding| finding.detail == "the file is of no table").count() as u64;
    let counts = if disturbed { findings.count() - left_lying } else { findings.count() };
    assert!(counts == 0, "{when}, the checkers found:\n{findings}");
    Ok(())
}
