//! A leaf's block on disk, and the large values that it names.
//!
//! Whoever says which values an image no longer names compares objects: for a stored value there is one. The image
//! keeps them for that reason, from the first time its block is read; of a table of large values that is many times
//! what the block takes. So they go when the block leaves memory, if nobody else has one of them (then what comes of
//! the next reading are the only ones again), and if the value's extent is not bound to the object.

use super::shared::TreeShared;
use crate::store::Extent;
use crate::sync::Mutex;
use crate::tree::block::blob::{Blob, BlobAddress};
use crate::tree::block::Block;
use crate::{Error, Result};
use std::cell::Cell;
use std::sync::Arc;

/// The large values of an image, in the order in which its block names them, which is the same each time.
pub(crate) type Named = Arc<[Arc<Blob>]>;

/// What of them is in memory.
#[derive(Clone)]
enum Known {
    /// The block was not read in this run.
    Unread,
    Named(Named),
    /// Was, and is not any more; and of which of them [`Blob::is_seen`] was true.
    Forgotten(Arc<[bool]>),
}

/// A leaf's block on disk and the large values it names.
pub(crate) struct Image {
    pub extent: Arc<Extent>,
    known: Mutex<Known>,
}

impl Image {
    pub(crate) fn new(extent: Arc<Extent>) -> Arc<Image> {
        Arc::new(Image { extent, known: Mutex::new(Known::Unread) })
    }

    pub(crate) fn with_blobs(extent: Arc<Extent>, blobs: &[Arc<Blob>]) -> Arc<Image> {
        Arc::new(Image { extent, known: Mutex::new(Known::named(blobs)) })
    }

    /// Bytes of the block on disk, and before it was compressed.
    pub(crate) fn sizes(&self) -> (i64, i64) {
        let address = self.extent.address();
        (i64::from(address.stored_bytes), i64::from(address.raw_bytes))
    }

    /// Its large values as far as there are objects for them.
    pub(crate) fn known_blobs(&self) -> Named {
        match &*self.known.lock() {
            Known::Named(blobs) => blobs.clone(),
            Known::Unread | Known::Forgotten(_) => Named::default(),
        }
    }

    /// Whether it is known to have no large values.
    pub(in crate::tree) fn names_none(&self) -> bool {
        matches!(&*self.known.lock(), Known::Named(blobs) if blobs.is_empty())
    }

    /// Whether there are no objects for its large values, so that those of a new image will be the only ones.
    pub(in crate::tree) fn has_no_objects(&self) -> bool {
        match &*self.known.lock() {
            Known::Unread | Known::Forgotten(_) => true,
            Known::Named(blobs) => blobs.is_empty(),
        }
    }

    /// A block that has no large values was read.
    pub(super) fn learn_none(&self) {
        let mut known = self.known.lock();
        if matches!(&*known, Known::Unread) {
            *known = Known::Named(Named::default());
        }
    }

    /// Its large values, of which the block is read once more if they were forgotten; none of an image that nobody has
    /// read.
    pub(crate) fn blobs(&self, shared: &TreeShared) -> Result<Named> {
        let is_forgotten = matches!(&*self.known.lock(), Known::Forgotten(_));
        match is_forgotten {
            true => Ok(self.read(shared)?.blobs().into()),
            false => Ok(self.known_blobs()),
        }
    }

    /// The bytes of its large values leave memory; how many they were. All of them are on disk.
    pub(crate) fn forget_bytes(&self) -> usize {
        self.known_blobs().iter().map(|blob| blob.forget_bytes()).sum()
    }

    /// The objects of its large values leave memory, unless somebody else has one of them, or an extent would go with
    /// its object. Not for an image that the running checkpoint has written: what that names is compared with them.
    pub(crate) fn forget_blobs(&self) {
        let mut known = self.known.lock();
        let Known::Named(blobs) = &mut *known else { return };
        // Who has none can get one only from here, which the lock prevents; so what nobody else has stays that way.
        let Some(blobs) = Arc::get_mut(blobs).filter(|blobs| !blobs.is_empty()) else { return };
        if blobs.iter_mut().all(|blob| Arc::get_mut(blob).is_some_and(|blob| blob.is_settled())) {
            *known = Known::Forgotten(blobs.iter().map(|blob| blob.is_seen()).collect());
        }
    }

    /// The block, read and checked, with the objects of its large values that there are.
    pub(crate) fn read(&self, shared: &TreeShared) -> Result<Block> {
        let known = self.known.lock().clone();
        let next = Cell::new(0);
        let object = |at: BlobAddress| known.object(next.replace(next.get() + 1), at, shared);
        let raw = self.extent.read()?;
        if self.extent.address().dictionary != 0 {
            shared.encoding.charge_dictionary();
        }
        let corrupt = |detail: String| {
            Error::corrupt(shared.space.path(), self.extent.address().offset, format!("base block: {detail}"))
        };
        let block = Block::parse(raw, &object).map_err(corrupt)?;
        if matches!(&known, Known::Named(blobs) if blobs.len() != block.blobs().len()) {
            return Err(corrupt("another number of large values than is known".to_string()));
        }
        if !matches!(known, Known::Named(_)) && !self.learn(block.blobs()) {
            // Another reader was first: use its objects.
            drop(block);
            return self.read(shared);
        }
        Ok(block)
    }

    /// Takes what was read as its large values; false: it has others.
    fn learn(&self, blobs: &[Arc<Blob>]) -> bool {
        let mut known = self.known.lock();
        match &*known {
            Known::Named(others) => others.iter().zip(blobs).all(|(a, b)| Arc::ptr_eq(a, b)),
            Known::Unread | Known::Forgotten(_) => {
                *known = Known::named(blobs);
                true
            }
        }
    }
}

impl Known {
    /// Most blocks name none: then no memory is taken.
    fn named(blobs: &[Arc<Blob>]) -> Known {
        Known::Named(if blobs.is_empty() { Named::default() } else { blobs.into() })
    }

    /// The object of value `number`, which lies at `at`: that which there is, or a new one.
    fn object(&self, number: usize, at: BlobAddress, shared: &TreeShared) -> Arc<Blob> {
        if let Known::Named(blobs) = self {
            if let Some(blob) = blobs.get(number).filter(|blob| blob.address() == Some(at)) {
                return blob.clone();
            }
        }
        let blob = Blob::adopted(&shared.space, &at);
        if matches!(self, Known::Forgotten(seen) if seen.get(number) == Some(&true)) {
            blob.is_first_look();
        }
        Arc::new(blob)
    }
}
