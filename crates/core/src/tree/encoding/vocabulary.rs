//! A tree's dictionary: how it comes about, and when it is durable.
//!
//! Blocks that are written are counted in until there are enough of them; whoever writes the last one trains the
//! dictionary (a twentieth of a second) and keeps it if blocks that were held back get smaller by it. Counting is dear
//! for a tree that has few words (it took a fifth of a build of nine indexes): an eighth of the sample is tried first.
//! From then on leaves and large values are encoded with it; those written before stay as they are. Inner pages are
//! not: they have no words.
//!
//! ```text
//! Small ──> Sampling ──> Useless
//!               └──────> Known ── join of its extent, row of the directory ── durable with the checkpoint
//! ```
//!
//! Its extent is private until a checkpoint saves it, which is the first that can name a block encoded with it: all its
//! blocks were written before.

use super::Encoding;
use crate::cache::{Cache, Purpose};
use crate::options::Packing;
use crate::store::{BlockAddress, Dictionary, Extent, Lifetime, Packer, Training};
use crate::Result;
use std::sync::Arc;

/// One block of so many is held back to see what the dictionary gains, up to a number.
const HELD_BACK_EVERY: usize = 16;
const MOST_HELD_BACK: usize = 8;
/// They have to get smaller by one in so many.
const LEAST_GAIN: usize = 30;
/// So little of the sample tells whether the rest is worth counting.
const TRIAL: usize = 8;

/// Where a tree stands with its dictionary.
#[derive(Default)]
pub(in crate::tree) enum Vocabulary {
    /// Nothing was counted yet.
    #[default]
    Unknown,
    /// Too few blocks to begin with: bytes of those written since the tree was opened.
    Small(usize),
    /// Counting.
    Sampling(Box<Sample>),
    /// Trained, and not worth it; or being trained.
    Useless,
    /// It has one.
    Known(Known),
}

/// A dictionary that blocks are encoded with.
pub(in crate::tree) struct Known {
    number: u16,
    extent: Arc<Extent>,
    durability: Durability,
    /// Bytes charged to the cache.
    charged: usize,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Durability {
    Private,
    /// Part of the image of the checkpoint that runs.
    Saving,
    Durable,
}

/// What a dictionary is made of. Charged to the cache while it exists.
pub(in crate::tree) struct Sample {
    training: Training,
    held_back: Vec<Vec<u8>>,
    blocks: usize,
    /// Whether the trial was passed.
    promising: bool,
    cache: Arc<Cache>,
    charged: usize,
}

impl Sample {
    fn new(cache: Arc<Cache>) -> Sample {
        let (training, held_back) = (Training::default(), Vec::new());
        Sample { training, held_back, blocks: 0, promising: false, cache, charged: 0 }
    }

    fn add(&mut self, block: &[u8]) {
        self.blocks += 1;
        if self.blocks % HELD_BACK_EVERY == 2 && self.held_back.len() < MOST_HELD_BACK {
            self.held_back.push(block.to_vec());
        } else {
            self.training.add(block);
        }
        let held_back: usize = self.held_back.iter().map(Vec::capacity).sum();
        let memory = self.training.memory() + held_back;
        if memory > self.charged {
            self.cache.charge(Purpose::Dictionaries, memory - self.charged);
            self.charged = memory;
        }
    }

    /// The dictionary, if the blocks that were held back say that it pays.
    fn dictionary(&self, number: u16, packing: Packing) -> Result<Option<Arc<Dictionary>>> {
        let Some(dictionary) = Dictionary::trained(&self.training, number).map(Arc::new) else {
            return Ok(None);
        };
        let (plain, encoded) = self.sizes(packing, &dictionary)?;
        Ok((encoded + plain / LEAST_GAIN < plain).then_some(dictionary))
    }

    /// Whether a dictionary of the whole sample may pay. That of a part has fewer words: it has to gain anything at
    /// all.
    fn is_promising(&self, packing: Packing) -> Result<bool> {
        let Some(dictionary) = Dictionary::trained(&self.training, 0) else { return Ok(false) };
        let (plain, encoded) = self.sizes(packing, &Arc::new(dictionary))?;
        Ok(encoded < plain)
    }

    /// Bytes of the blocks that were held back, stored without and with `dictionary`.
    fn sizes(&self, packing: Packing, dictionary: &Arc<Dictionary>) -> Result<(usize, usize)> {
        let with = Packer { packing, dictionary: Some(dictionary.clone()) };
        let (mut plain, mut encoded) = (0, 0);
        for block in &self.held_back {
            plain += Packer::from(packing).packed_bytes(block, &[])?;
            encoded += with.packed_bytes(block, &[])?;
        }
        Ok((plain, encoded))
    }
}

impl Drop for Sample {
    fn drop(&mut self) {
        self.cache.discharge(Purpose::Dictionaries, self.charged);
    }
}

impl Vocabulary {
    /// Counts `block`; the sample once there is enough of it to be tried or made a dictionary of, which the caller
    /// does.
    fn count(&mut self, encoding: &Encoding, tree_bytes: u64, block: &[u8]) -> Option<Box<Sample>> {
        let wanted = encoding.sample_bytes;
        if let Vocabulary::Unknown = self {
            *self = Vocabulary::Small(tree_bytes as usize);
        }
        match self {
            // Most trees stay small: they shall not hold a sample in memory.
            Vocabulary::Small(bytes) if *bytes < wanted / 8 => *bytes += block.len(),
            Vocabulary::Small(_) => {
                let mut sample = Box::new(Sample::new(encoding.cache.clone()));
                sample.add(block);
                *self = Vocabulary::Sampling(sample);
            }
            Vocabulary::Sampling(sample) => {
                sample.add(block);
                let enough = if sample.promising { wanted } else { wanted / TRIAL };
                if sample.training.sampled() >= enough && !sample.held_back.is_empty() {
                    if let Vocabulary::Sampling(sample) = std::mem::replace(self, Vocabulary::Useless) {
                        return Some(sample);
                    }
                }
            }
            Vocabulary::Unknown | Vocabulary::Useless | Vocabulary::Known(_) => {}
        }
        None
    }

    /// A checkpoint is durable.
    pub(in crate::tree) fn saved(&mut self) {
        self.after_checkpoint(Durability::Durable);
    }

    /// A checkpoint was abandoned.
    pub(in crate::tree) fn not_saved(&mut self) {
        self.after_checkpoint(Durability::Private);
    }

    fn after_checkpoint(&mut self, durability: Durability) {
        match self {
            Vocabulary::Known(known) if known.durability == Durability::Saving => {
                known.durability = durability
            }
            _ => {}
        }
    }

    /// The tree is dropped: images of `generation` and later do not name the dictionary.
    pub(in crate::tree) fn supersede(&self, generation: u64) {
        if let Vocabulary::Known(known) = self {
            known.extent.supersede(generation);
        }
    }
}

impl Encoding {
    /// How to store a leaf's block, and the large values it names. May train the dictionary. `tree_bytes`: about what
    /// the tree takes in memory.
    pub(in crate::tree) fn packer(&self, tree_bytes: u64, block: &[u8]) -> Result<Packer> {
        let packing = self.packing();
        if !packing.compression.is_zstd() {
            return Ok(packing.into());
        }
        let sample = {
            let mut vocabulary = self.vocabulary.lock();
            match &*vocabulary {
                Vocabulary::Known(known) => {
                    let number = known.number;
                    drop(vocabulary);
                    return Ok(Packer { packing, dictionary: self.space.dictionary(number)? });
                }
                _ if self.sample_bytes == 0 => None,
                _ => vocabulary.count(self, tree_bytes, block),
            }
        };
        let Some(sample) = sample else { return Ok(packing.into()) };
        let dictionary = self.judge(sample, packing).inspect_err(|_| {
            // Another sample may meet a disk that is not full.
            *self.vocabulary.lock() = Vocabulary::Unknown;
        })?;
        Ok(Packer { packing, dictionary })
    }

    /// How to store a large value apart from a leaf.
    pub(in crate::tree) fn value_packer(&self) -> Result<Packer> {
        let packing = self.packing();
        let known = match &*self.vocabulary.lock() {
            Vocabulary::Known(known) if packing.compression.is_zstd() => Some(known.number),
            _ => None,
        };
        let dictionary = known.map_or(Ok(None), |number| self.space.dictionary(number))?;
        Ok(Packer { packing, dictionary })
    }

    /// Has a small sample grow if it promises something, makes the dictionary of a whole one.
    fn judge(&self, mut sample: Box<Sample>, packing: Packing) -> Result<Option<Arc<Dictionary>>> {
        if sample.promising {
            return self.train(&sample, packing);
        }
        if sample.is_promising(packing)? {
            sample.promising = true;
            *self.vocabulary.lock() = Vocabulary::Sampling(sample);
        }
        Ok(None)
    }

    /// Where the dictionary of a block is, if no durable checkpoint says so yet.
    pub(in crate::tree) fn unsaved_dictionary(&self, number: u16) -> Option<Arc<Extent>> {
        match &*self.vocabulary.lock() {
            Vocabulary::Known(known) if known.number == number && known.durability != Durability::Durable => {
                Some(known.extent.clone())
            }
            _ => None,
        }
    }

    /// Makes the dictionary and writes it; it is durable with the next checkpoint.
    fn train(&self, sample: &Sample, packing: Packing) -> Result<Option<Arc<Dictionary>>> {
        let Some(number) = self.space.new_dictionary_number() else { return Ok(None) };
        let Some(dictionary) = sample.dictionary(number, packing)? else { return Ok(None) };
        let block = self.space.prepare_for(Lifetime::Private, dictionary.stored(), packing)?;
        self.space.write(&block)?;
        self.space.know_dictionary(number, *block.address(), Some(dictionary.clone()));
        let extent = block.extent().clone();
        let known = Known { number, extent, durability: Durability::Private, charged: 0 };
        *self.vocabulary.lock() = Vocabulary::Known(known);
        self.charge_dictionary();
        Ok(Some(dictionary))
    }

    /// The dictionary is in memory: it counts in the budget, once.
    pub(in crate::tree) fn charge_dictionary(&self) {
        let mut vocabulary = self.vocabulary.lock();
        let Vocabulary::Known(known) = &mut *vocabulary else { return };
        if known.charged == 0 {
            if let Ok(Some(dictionary)) = self.space.dictionary(known.number) {
                known.charged = dictionary.memory();
                self.cache.charge(Purpose::Dictionaries, known.charged);
            }
        }
    }
}

impl Drop for Encoding {
    fn drop(&mut self) {
        if let Vocabulary::Known(known) = self.vocabulary.get_mut() {
            self.cache.discharge(Purpose::Dictionaries, known.charged);
        }
    }
}

impl Encoding {
    /// The tree has a dictionary since an earlier checkpoint. No I/O; to be called before the tree is used.
    pub(in crate::tree) fn adopt_dictionary(&self, number: u16, address: BlockAddress) {
        self.space.know_dictionary(number, address, None);
        let extent = self.space.adopt(address);
        let known = Known { number, extent, durability: Durability::Durable, charged: 0 };
        *self.vocabulary.lock() = Vocabulary::Known(known);
    }

    /// Has the image of checkpoint `generation`, which is being written, contain the dictionary. What the directory is
    /// to say of it, if that is new.
    pub(in crate::tree) fn save_dictionary(&self, generation: u64) -> Option<(u16, BlockAddress)> {
        let mut vocabulary = self.vocabulary.lock();
        match &mut *vocabulary {
            Vocabulary::Known(known) if known.durability == Durability::Private => {
                known.extent.join(generation);
                known.durability = Durability::Saving;
                Some((known.number, *known.extent.address()))
            }
            _ => None,
        }
    }

    /// Bytes that its dictionary takes on disk.
    pub(in crate::tree) fn dictionary_bytes(&self) -> u64 {
        match &*self.vocabulary.lock() {
            Vocabulary::Known(known) => known.extent.address().occupied_bytes(self.space.unit()),
            _ => 0,
        }
    }
}
