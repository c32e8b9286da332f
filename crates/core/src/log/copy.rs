//! Copies a part of a log that is being written.

use std::ops::Range;
use std::path::Path;

use super::reader::Segments;
use super::segment::{segment_path, Segment, HEADER_BYTES};
use super::Lsn;
use crate::file::{FileSystem, OpenMode};
use crate::Result;

/// How much is copied at once.
const CHUNK_BYTES: usize = 1 << 20;

/// Copies `range` into segments as they are, and makes them durable, but for their names; what the first of them has
/// before the range is a hole there. Nothing of the range may be released meanwhile, and all of it is durable. `wrote`
/// is told of bytes that were written.
pub fn copy_segments(
    (source, from): (&dyn FileSystem, &Path),
    (target, to): (&dyn FileSystem, &Path),
    range: Range<Lsn>,
    wrote: &mut dyn FnMut(u64) -> Result<()>,
) -> Result<()> {
    let mut chunk = Vec::new();
    for (start, limit) in Segments::list(source, from, range.start)?.bounds() {
        if start > range.start && start >= range.end {
            break;
        }
        let segment = Segment::open(source, from, start, OpenMode::ReadOnly)?;
        let end = limit.unwrap_or(range.end).min(range.end).max(start);
        let bytes = HEADER_BYTES + (end - start);
        let file = target.open(&segment_path(to, start), OpenMode::Create)?;
        file.set_len(0)?;
        // Where nothing follows, no record begins at the range's start either, and who reads the copy comes there from
        // the records before.
        let first = match range.is_empty() {
            true => HEADER_BYTES,
            false => HEADER_BYTES + range.start.saturating_sub(start),
        };
        for piece in [0..HEADER_BYTES, first..bytes] {
            for offset in piece.clone().step_by(CHUNK_BYTES) {
                chunk.resize((piece.end - offset).min(CHUNK_BYTES as u64) as usize, 0);
                // The file is shorter if the log ends with records that found no space: they are void, and have a
                // header only. That all others are there is seen when the copy is read.
                let found = segment.file.read_at(offset, &mut chunk)?;
                file.write_at(offset, &chunk[..found])?;
                wrote(found as u64)?;
            }
        }
        file.set_len(bytes)?;
        file.sync()?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::file::SimulatedFileSystem;
    use crate::log::tests::{create, record};
    use crate::log::Log;
    use crate::CommitFlush;

    #[test]
    fn a_copy_is_read_from_its_start_also_if_nothing_follows_there() {
        let (fs, dir, copy) = (SimulatedFileSystem::new(1), Path::new("/log"), Path::new("/copy"));
        let log = create(&fs);
        let mut ends = Vec::new();
        for number in 1..8 {
            log.commit(record(number, 500), CommitFlush::Sync, |_| ()).unwrap();
            ends.push(log.end());
        }
        fs.create_dir(copy).unwrap();
        for (at, from) in ends.iter().enumerate() {
            for (later, to) in ends.iter().enumerate().skip(at) {
                let fs: &dyn FileSystem = &fs;
                for name in fs.list(copy).unwrap() {
                    fs.remove(&copy.join(name)).unwrap();
                }
                copy_segments((fs, dir), (fs, copy), *from..*to, &mut |_| Ok(())).unwrap();
                let mut found = 0;
                let end = Log::scan(fs, copy, *from, &mut |_, _| {
                    found += 1;
                    Ok(())
                });
                assert!(end.is_ok(), "{from}..{to}: {end:?}");
                assert_eq!(found, later - at, "{from}..{to}");
            }
        }
    }
}
