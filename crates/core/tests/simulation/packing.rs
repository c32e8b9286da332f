//! Tables are packed, in whole or up to an interruption, while transactions are open.

use super::{Session, Step};
use crate::backups::Backup;
use crate::plan;
use crate::seeds::tell;
use teak_core::Error;

impl Session<'_> {
    /// Nothing is different afterwards, but that a checkpoint was made.
    pub(super) fn pack(&mut self) -> Step {
        let Some((name, _)) = self.any_table() else { return Step::Done };
        tell(0, || format!("pack {name}"));
        let table = attempt!(self.engine.open_table(&name));
        if let Some(fault) = self.fault.filter(|_| self.errors == 0 && self.random.percent(40)) {
            plan(self.fs, fault, self.random.below(80) as u64);
        }
        let mut looks = self.random.pick(&[0, 2, 10, usize::MAX, usize::MAX]);
        let mut watch = |_| {
            looks = looks.checked_sub(1).ok_or(Error::Interrupted)?;
            Ok(())
        };
        match self.engine.pack_table(&table, &mut watch) {
            Ok(()) => {
                self.expected.checkpointed();
                Step::Done
            }
            Err(Error::CheckpointsPaused) if self.backup.as_ref().is_some_and(Backup::pauses) => Step::Done,
            Err(Error::Interrupted) => Step::Done,
            Err(error) => Step::Failed(error),
        }
    }
}
