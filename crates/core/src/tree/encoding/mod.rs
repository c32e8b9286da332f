//! What picks how a tree's blocks are stored: compression, dictionary, columns. Knows blocks and the file, no leaf.

pub(super) mod arrangement;
pub(super) mod vocabulary;

use self::arrangement::Arrangement;
use self::vocabulary::Vocabulary;
use crate::cache::Cache;
use crate::options::Packing;
use crate::store::Space;
use crate::sync::Mutex;
use std::sync::Arc;

/// How one tree's blocks are stored. Every block says itself how it was, so that all of this may change at any time.
pub(crate) struct Encoding {
    space: Arc<Space>,
    cache: Arc<Cache>,
    /// Blocks that a dictionary is trained on, in bytes; 0: none are trained.
    sample_bytes: usize,
    /// Compression and level.
    packing: Mutex<Packing>,
    /// The dictionary, if the tree has one.
    vocabulary: Mutex<Vocabulary>,
    /// Which bytes of leaves are stored by columns.
    arrangement: Mutex<Arrangement>,
}

impl Encoding {
    /// For the blocks of one tree of `space`; `sample_bytes` as `dictionary_sample_bytes` in [`crate::Options`].
    pub(in crate::tree) fn new(
        packing: Packing,
        space: Arc<Space>,
        cache: Arc<Cache>,
        sample_bytes: usize,
    ) -> Encoding {
        Encoding {
            space,
            cache,
            sample_bytes,
            packing: Mutex::new(packing),
            vocabulary: Mutex::default(),
            arrangement: Mutex::default(),
        }
    }

    /// How blocks are to be compressed.
    pub(in crate::tree) fn packing(&self) -> Packing {
        *self.packing.lock()
    }

    /// How blocks are compressed from now on.
    pub(in crate::tree) fn set_packing(&self, packing: Packing) {
        *self.packing.lock() = packing;
    }

    /// A checkpoint is durable.
    pub(in crate::tree) fn checkpoint_durable(&self) {
        self.vocabulary.lock().saved();
    }

    /// A checkpoint was abandoned.
    pub(in crate::tree) fn checkpoint_abandoned(&self) {
        self.vocabulary.lock().not_saved();
    }

    /// The tree is dropped: images of `generation` and later name nothing of it.
    pub(in crate::tree) fn supersede(&self, generation: u64) {
        self.vocabulary.lock().supersede(generation);
    }
}
