//! The handle of a stored block.

use std::path::Path;
use std::sync::Arc;

use super::{BlockAddress, BundleUse, Space, StoredParts};
use crate::slabs::Buffer;
use crate::Result;

/// How long a new extent stays allocated, from the moment its bytes are in the file. Until then it is free when
/// dropped.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Lifetime {
    /// Until it is superseded. Whoever drops it unsuperseded must have its address somewhere.
    Kept,
    /// Like `Kept` if that checkpoint becomes durable; free once unheld if it is abandoned. For what only this
    /// checkpoint's image names: never for an extent that memory goes on to use after a failed checkpoint.
    Checkpoint(u64),
    /// Until it is dropped, unless [`Extent::publish`] made it `Kept`. For what is written long before it is named (a
    /// bulk build, a transaction larger than memory): a crash or an error leaves nothing behind.
    Private,
}

/// An extent of a space that somebody in memory refers to: while one exists, its bytes stay readable.
///
/// An address may be adopted more than once; each `Extent` counts.
pub struct Extent {
    space: Arc<Space>,
    address: BlockAddress,
    born: u64,
}

impl Extent {
    /// The books of `space` have counted it as a holder.
    pub(super) fn new(space: Arc<Space>, address: BlockAddress, born: u64) -> Extent {
        Extent { space, address, born }
    }

    /// Its name in durable structures.
    pub fn address(&self) -> &BlockAddress {
        &self.address
    }

    /// Bytes that it takes in the file.
    pub fn occupied_bytes(&self) -> u64 {
        self.address.occupied_bytes(self.space.unit())
    }

    /// The file.
    pub fn path(&self) -> &Path {
        self.space.path()
    }

    /// The block as it was given to `prepare`, checked and decompressed. One disk read.
    pub fn read(&self) -> Result<Buffer> {
        self.space.read(&self.address)
    }

    /// Of a block in parts the first, decompressed, and the others as they are stored. Checked; one disk read.
    pub fn read_parts(&self) -> Result<(Buffer, StoredParts)> {
        self.space.read_parts(&self.address)
    }

    /// The same as [`Extent::read`] of a large value, beside which nothing is read.
    pub fn read_value(&self) -> Result<Buffer> {
        self.space.read_value(&self.address)
    }

    /// The images of checkpoint `generation` and all later ones do not name this extent: its bytes are reusable once
    /// `generation` is durable and nobody holds the extent; at once when dropped if no image can have named it.
    ///
    /// `generation` must be the *first image that is certain not to name it*: while a checkpoint runs whose image may
    /// already do so, that is the one after. A second call keeps the earlier generation.
    pub fn supersede(&self, generation: u64) {
        self.space.supersede(&self.address, self.born, generation);
    }

    /// The extent is a bundle whose values the image that is being written is the first to name.
    pub fn enter_bundle(&self, bundle: &BundleUse) -> Result<()> {
        self.space.enter_bundle(bundle)
    }

    /// The images of checkpoint `generation`, which is being written, and of all later ones do not name value `number`
    /// of the bundle that this extent is, `value_bytes` long, of so many values. When they name none, the extent is
    /// superseded.
    pub fn bury(&self, number: u8, of: u8, value_bytes: u64, generation: u64) -> Result<()> {
        self.space.bury(&self.address, self.born, (number, of), value_bytes, generation)
    }

    /// Whether a durable image names it, and none has been said not to: then nothing happens to it when it is dropped,
    /// and it may be adopted again.
    pub fn is_settled(&self) -> bool {
        self.space.is_settled(&self.address)
    }

    /// A private extent becomes part of the image of checkpoint `generation`, which is being written; it is private
    /// again if that is abandoned. Others are not changed.
    pub fn join(&self, generation: u64) {
        self.space.join(&self.address, generation);
    }

    /// A private extent is about to be named by durable structures; others are not changed.
    ///
    /// The first image that may name it must not have written its map yet.
    pub fn publish(&self) {
        self.space.publish(&self.address);
    }
}

impl Drop for Extent {
    fn drop(&mut self) {
        self.space.dropped(&self.address);
    }
}

impl std::fmt::Debug for Extent {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Extent({} of space {}: {:?})", self.address.offset, self.space.id(), self.address)
    }
}

/// A block that has its address but is not in the file yet. Dropped unwritten, its space is free again.
pub struct PreparedBlock {
    pub(super) extent: Arc<Extent>,
    /// The stored bytes.
    pub(super) stored: Buffer,
}

impl PreparedBlock {
    /// The extent; it can be read once the block has been written.
    pub fn extent(&self) -> &Arc<Extent> {
        &self.extent
    }

    /// Its name, known before it is written.
    pub fn address(&self) -> &BlockAddress {
        self.extent.address()
    }
}
