//! How the leaves of a tree are stored: which of their bytes by columns.
//!
//! What pays is not guessed from types, which this room does not know, but tried: now and then, ever more rarely, a
//! block is compressed with several numbers of columns, and the tree goes on with what has given least over the last
//! trials. Every block says itself how it is stored ([`columns`]), so nothing of this is durable.

use super::Encoding;
use crate::options::Compression;
use crate::store::{Lifetime, Packer, PreparedBlock};
use crate::tree::block::columns::{self, Columns, Stored};
use crate::tree::block::Block;
use crate::Result;

/// Numbers of columns that are tried, as far as the shortest key or value has so many bytes; the first is taken until
/// something is known.
const OF_KEYS: [usize; 4] = [usize::MAX, 16, 8, 0];
const OF_VALUES: [usize; 7] = [16, usize::MAX, 128, 64, 32, 8, 0];
/// Frames that are tried, in the smallest there may be; the first is a block without frames.
const OF_FRAMES: [usize; 3] = [usize::MAX, 2, 1];
/// Frames may take so much more than a block without, one part in so many.
const WORTH_ONE_PART_IN: u64 = 50;
/// A block with fewer bytes is stored as the others are: it tells little, and gains little.
const LEAST_BYTES: usize = 8 << 10;
/// So many bytes of values that are put together from columns cost a reader as much as a stored byte is worth: 4 ns for
/// 16 bytes (a quarter of a us for a KiB), and 8 ns for a byte to be read, to be decompressed, and to have a place in
/// memory.
const BYTES_PER_STORED: usize = 32;
/// One block of so many is tried, and a few more among the first.
const TRIED_EVERY: u64 = 512;

/// What is known of a tree's blocks.
#[derive(Debug, Clone, Default)]
pub(in crate::tree) struct Arrangement {
    /// Blocks stored since the tree was opened.
    blocks: u64,
    /// The dictionary of the last trial; sizes with another say nothing.
    dictionary: Option<u16>,
    keys: Scores<{ OF_KEYS.len() }>,
    values: Scores<{ OF_VALUES.len() }>,
    frames: Scores<{ OF_FRAMES.len() }>,
}

/// Bytes that blocks took with each number of columns, and what putting them together costs; those of earlier trials
/// count half as much each time.
#[derive(Debug, Clone)]
struct Scores<const N: usize>([u64; N]);

impl<const N: usize> Default for Scores<N> {
    fn default() -> Self {
        Scores([0; N])
    }
}

impl<const N: usize> Scores<N> {
    fn best(&self, candidates: &[usize; N]) -> usize {
        let best = (0..N).min_by_key(|&i| self.0[i]).unwrap_or(0);
        candidates[best]
    }

    /// Notes what `size` says of each candidate, of which those past `most` are all the same.
    fn note(
        &mut self,
        candidates: &[usize; N],
        most: usize,
        mut size: impl FnMut(usize) -> Result<usize>,
    ) -> Result<()> {
        let mut with_all = None;
        for (score, &columns) in self.0.iter_mut().zip(candidates) {
            let bytes = match with_all.filter(|_| columns >= most) {
                Some(bytes) => bytes,
                None => size(columns)?,
            };
            if columns >= most {
                with_all = Some(bytes);
            }
            *score = *score / 2 + bytes as u64;
        }
        Ok(())
    }
}

impl Arrangement {
    /// Counts a block; whether it is to be tried.
    fn is_due(&mut self, dictionary: Option<u16>) -> bool {
        if self.dictionary != dictionary {
            *self = Arrangement { dictionary, ..Arrangement::default() };
        }
        let blocks = self.blocks;
        self.blocks += 1;
        blocks.is_multiple_of(TRIED_EVERY) || matches!(blocks, 4 | 16 | 64)
    }

    fn columns(&self) -> Columns {
        Columns { keys: self.keys.best(&OF_KEYS), values: self.values.best(&OF_VALUES) }
    }

    /// Bytes of values in the smallest frames that take little more than none; `least` is the smallest there may be, 0
    /// if there are to be none.
    fn frame_bytes(&self, least: usize) -> Option<usize> {
        let whole = self.frames.0[0];
        let is_worth_it = |i: &usize| self.frames.0[*i] <= whole + whole / WORTH_ONE_PART_IN;
        let smallest = (1..OF_FRAMES.len()).rev().find(is_worth_it);
        smallest.map(|i| OF_FRAMES[i].saturating_mul(least)).filter(|bytes| *bytes > 0)
    }

    /// Keys first: that they are by columns does not depend on the values.
    fn try_on(&mut self, block: &Block, image: &[u8], packer: &Packer, least_frame: usize) -> Result<()> {
        let most = columns::most(block);
        let framed = |wanted, frame_bytes| {
            let Stored { bytes, cuts } = columns::pack(block, image, wanted, frame_bytes);
            packer.packed_bytes(&bytes, &cuts)
        };
        let size = |wanted| framed(wanted, None);
        let values = self.values.best(&OF_VALUES);
        self.keys.note(&OF_KEYS, most.keys, |keys| size(Columns { keys, values }))?;
        let keys = self.keys.best(&OF_KEYS);
        if most.values > 0 {
            let cost = |values: usize| block.len() * values.min(most.values) / BYTES_PER_STORED;
            self.values.note(&OF_VALUES, most.values, |values| {
                size(Columns { keys, values }).map(|bytes| bytes + cost(values))
            })?;
        }
        if let Some(most) = block.value_bytes().len().checked_div(least_frame) {
            let columns = self.columns();
            self.frames
                .note(&OF_FRAMES, most, |frames| framed(columns, Some(least_frame.saturating_mul(frames))))?;
        }
        Ok(())
    }
}

impl Encoding {
    /// A leaf's block, compressed, with an extent to be written to; in frames of `least_frame` bytes of values, or
    /// more, unless that is 0. Its large values are written here if they are not stored yet; whoever publishes the
    /// extent publishes them too.
    pub(in crate::tree) fn prepare(
        &self,
        lifetime: Lifetime,
        tree_bytes: u64,
        block: &Block,
        least_frame: usize,
    ) -> Result<PreparedBlock> {
        let packer = self.packer(tree_bytes, block.bytes())?;
        let image = block.image(&self.space, packer.clone())?;
        if packer.packing.compression == Compression::None {
            return self.space.prepare_for(lifetime, &image, packer);
        }
        let (columns, frame_bytes) = self.form_of(block, &image, &packer, least_frame)?;
        let Stored { bytes, cuts } = columns::pack(block, &image, columns, frame_bytes);
        self.space.prepare_in_parts(lifetime, &bytes, &cuts, packer)
    }

    /// How many columns, and how many bytes a frame is to have, if there are to be any.
    fn form_of(
        &self,
        block: &Block,
        image: &[u8],
        packer: &Packer,
        least_frame: usize,
    ) -> Result<(Columns, Option<usize>)> {
        let dictionary = packer.dictionary.as_ref().map(|dictionary| dictionary.number());
        let mut tried = {
            let mut arrangement = self.arrangement.lock();
            if image.len() < LEAST_BYTES || !arrangement.is_due(dictionary) {
                return Ok((arrangement.columns(), arrangement.frame_bytes(least_frame)));
            }
            arrangement.clone()
        };
        // Not under the mutex: others store their blocks meanwhile.
        tried.try_on(block, image, packer, least_frame)?;
        let form = (tried.columns(), tried.frame_bytes(least_frame));
        let mut arrangement = self.arrangement.lock();
        if arrangement.dictionary == tried.dictionary {
            let Arrangement { keys, values, frames, .. } = tried;
            *arrangement = Arrangement { keys, values, frames, ..*arrangement };
        }
        Ok(form)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tree::block::builder::BlockBuilder;
    use crate::tree::block::Value;

    fn block(row: impl Fn(u32) -> Vec<u8>) -> Block {
        let mut builder = BlockBuilder::new();
        (0..400u32).for_each(|i| builder.push(&i.to_be_bytes(), Value::Inline(&row(i))));
        builder.finish()
    }

    /// Numbers that grow slowly, with noise between them.
    fn numbers(i: u32) -> Vec<u8> {
        let time = 1_700_000_000_000 + u64::from(i) * 977;
        let field = |n: u32| {
            [
                (time + u64::from(n)).to_le_bytes(),
                u64::from(i.wrapping_mul(2_654_435_761 + 2 * n)).to_le_bytes(),
            ]
            .concat()
        };
        (0..4).flat_map(field).collect()
    }

    /// Sentences, which a compressor finds again as they are and not letter by letter.
    fn text(i: u32) -> Vec<u8> {
        let sentences =
            ["rows in a table, ", "the quick brown fox ", "sphinx of black quartz ", "jived over it; "];
        (0..9).flat_map(|n| sentences[((i >> n) ^ (i / 7)) as usize % 4].bytes()).take(120).collect()
    }

    #[test]
    fn numbers_go_by_columns_and_sentences_do_not() {
        let packer = Packer::from(Compression::Zstd);
        for (block, by_columns) in [(block(numbers), true), (block(text), false)] {
            let mut arrangement = Arrangement::default();
            arrangement.try_on(&block, block.bytes(), &packer, 8 << 10).unwrap();
            let chosen = arrangement.columns();
            assert_eq!(chosen.values > 16, by_columns, "{chosen:?}");
            let size = |columns| {
                let stored = columns::pack(&block, block.bytes(), columns, None);
                packer.packed_bytes(&stored.bytes, &[]).unwrap()
            };
            let other = Columns { values: if by_columns { 0 } else { usize::MAX }, ..chosen };
            assert!(size(chosen) < size(other) * 3 / 4, "{} and {} bytes", size(chosen), size(other));
            assert!(size(chosen) <= packer.packed_bytes(block.bytes(), &[]).unwrap());
        }
    }

    /// Noise, which no arrangement makes smaller, behind four bytes that are the same in all rows.
    fn noise(i: u32) -> Vec<u8> {
        let random = |n: u32| {
            // The end of SplitMix64: neighbours have nothing in common.
            let mixed = u64::from(150 * i + n).wrapping_mul(0x9e37_79b9_7f4a_7c15);
            let mixed = (mixed ^ mixed >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
            let mixed = (mixed ^ mixed >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
            (mixed ^ mixed >> 31) as u8
        };
        (0..150).map(|n| if n < 4 { 7 } else { random(n) }).collect()
    }

    #[test]
    fn columns_that_gain_little_are_not_worth_the_time() {
        let packer = Packer::from(Compression::Zstd);
        let block = block(noise);
        let mut arrangement = Arrangement::default();
        arrangement.try_on(&block, block.bytes(), &packer, 8 << 10).unwrap();
        assert!(arrangement.columns().values <= 16, "{:?}", arrangement.columns());
    }

    #[test]
    fn a_tree_whose_rows_change_follows() {
        let packer = Packer::from(Compression::Zstd);
        let (before, after) = (block(numbers), block(text));
        let mut arrangement = Arrangement::default();
        for _ in 0..20 {
            arrangement.try_on(&before, before.bytes(), &packer, 8 << 10).unwrap();
        }
        let chosen = arrangement.columns();
        for _ in 0..4 {
            arrangement.try_on(&after, after.bytes(), &packer, 8 << 10).unwrap();
        }
        assert_ne!(arrangement.columns().values, chosen.values);
    }

    #[test]
    fn trials_are_rare_and_begin_anew_with_a_dictionary() {
        let mut arrangement = Arrangement::default();
        let due = |arrangement: &mut Arrangement, dictionary| {
            (0..5000).filter(|_| arrangement.is_due(dictionary)).count()
        };
        assert_eq!(due(&mut arrangement, None), 13);
        assert!(arrangement.is_due(Some(1)));
        assert!(!arrangement.is_due(Some(1)));
    }
}
