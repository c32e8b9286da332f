//! Large values: in memory until they are stored, then in one extent of their table's space, of exact size.
//!
//! A blob is immutable and shared: by the version that wrote it, by the base block it was folded into, by the blocks
//! that consolidation makes of that one, by history. It is written once, when the first of them goes to disk or has to
//! leave memory, whether its transaction is decided or not: until an image names it the extent is private, so a
//! rollback, a crash or a later version leave nothing behind. As many leaves may share a blob, it accounts for its
//! bytes itself. It knows the store's extents, not the trees. What a block keeps of a blob:
//!
//! ```text
//! 0   extent  27 bytes  `BlockAddress`
//! 27  length  u64       bytes of the value, equal to the extent's raw bytes
//! ```

use std::sync::{Arc, OnceLock};

use crate::sync::Mutex;

use crate::cache::{Cache, Charge};
use crate::store::{BlockAddress, Extent, Packer, Space};
use crate::Result;

/// Encoded size of a [`BlobAddress`].
pub const BLOB_ADDRESS_BYTES: usize = BlockAddress::ENCODED_BYTES + 8;

/// Where a stored blob lies and how long it is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct BlobAddress {
    /// Its extent.
    pub extent: BlockAddress,
    /// Length of the value in bytes.
    pub length: u64,
}

impl BlobAddress {
    /// The bytes in a block's table of blobs.
    pub fn encode(&self) -> [u8; BLOB_ADDRESS_BYTES] {
        let mut out = [0; BLOB_ADDRESS_BYTES];
        out[..BlockAddress::ENCODED_BYTES].copy_from_slice(&self.extent.encode());
        out[BlockAddress::ENCODED_BYTES..].copy_from_slice(&self.length.to_le_bytes());
        out
    }

    /// Reads what [`BlobAddress::encode`] wrote.
    pub fn decode(row: &[u8]) -> Result<BlobAddress, String> {
        let (extent, length) =
            row.split_at_checked(BlockAddress::ENCODED_BYTES).ok_or("a blob address cut short")?;
        let extent = BlockAddress::decode(extent).ok_or("an impossible blob address")?;
        let length = u64::from_le_bytes(length.try_into().map_err(|_| "a blob address of a wrong length")?);
        if u64::from(extent.raw_bytes) != length {
            return Err(format!("a blob of {length} bytes in an extent of {}", extent.raw_bytes));
        }
        Ok(BlobAddress { extent, length })
    }
}

/// The bytes of a blob in memory.
struct Resident {
    bytes: Arc<[u8]>,
    /// `None`: whoever made the blob accounts for it.
    _charge: Option<Charge>,
}

/// An immutable large value.
pub struct Blob {
    length: u64,
    bytes: Mutex<Option<Resident>>,
    /// Set once; from then on `bytes` is a copy that may go.
    extent: OnceLock<Arc<Extent>>,
    /// Held by the one who writes the extent; readers never take it.
    storing: Mutex<()>,
}

impl std::fmt::Debug for Blob {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Blob({} bytes, at {:?})", self.length, self.address())
    }
}

impl Blob {
    /// A blob in memory only, for which the caller accounts.
    pub fn new(bytes: impl Into<Arc<[u8]>>) -> Blob {
        Blob::of(Resident { bytes: bytes.into(), _charge: None })
    }

    /// A blob in memory only; its bytes are charged to `cache` until they go.
    pub fn charged(bytes: &[u8], cache: &Arc<Cache>) -> Blob {
        // Before the copy is made: others then make room for it at once.
        let charge = Charge::new(cache, bytes.len());
        Blob::of(Resident { bytes: bytes.into(), _charge: Some(charge) })
    }

    fn of(resident: Resident) -> Blob {
        Blob {
            length: resident.bytes.len() as u64,
            bytes: Mutex::new(Some(resident)),
            extent: OnceLock::new(),
            storing: Mutex::new(()),
        }
    }

    /// A blob that lies in `extent`.
    pub fn stored(extent: Arc<Extent>, length: u64) -> Blob {
        Blob { length, bytes: Mutex::new(None), extent: OnceLock::from(extent), storing: Mutex::new(()) }
    }

    /// Length of the value in bytes.
    pub fn len(&self) -> u64 {
        self.length
    }

    /// Where it is stored, if it is.
    pub fn extent(&self) -> Option<&Arc<Extent>> {
        self.extent.get()
    }

    /// Its row in the blob table of a block, if it is stored.
    pub fn address(&self) -> Option<BlobAddress> {
        self.extent().map(|extent| BlobAddress { extent: *extent.address(), length: self.length })
    }

    /// Makes sure that it is written, once whoever calls; durable with the next sync of the space. The bytes stay in
    /// memory until [`Blob::forget_bytes`]. Until [`Blob::publish`] or [`Blob::join`], the extent goes with the blob.
    pub fn store(&self, space: &Arc<Space>, packer: impl Into<Packer>) -> Result<BlobAddress> {
        if let Some(address) = self.address() {
            return Ok(address);
        }
        let _storing = self.storing.lock();
        if let Some(address) = self.address() {
            return Ok(address);
        }
        let bytes = self.bytes()?;
        let block = space.prepare_value(&bytes, &packer.into())?;
        space.write(&block)?;
        let extent = self.extent.get_or_init(|| block.extent().clone());
        Ok(BlobAddress { extent: *extent.address(), length: self.length })
    }

    /// A durable structure is about to name this blob: its extent no longer goes with it. Must come before the map of
    /// the first image that may name it is written. No effect on a blob that is not stored.
    pub fn publish(&self) {
        if let Some(extent) = self.extent() {
            extent.publish();
        }
    }

    /// The image of checkpoint `generation`, which is being written, names this blob: its extent goes with the blob
    /// again only if that is abandoned. No effect on a blob that is not stored, or that an earlier image names.
    pub fn join(&self, generation: u64) {
        if let Some(extent) = self.extent() {
            extent.join(generation);
        }
    }

    /// The value: shared if it is in memory, else read and checked, and not kept.
    pub fn bytes(&self) -> Result<Arc<[u8]>> {
        if let Some(resident) = &*self.bytes.lock() {
            return Ok(resident.bytes.clone());
        }
        match self.extent() {
            Some(extent) => Ok(extent.read_value()?.into()),
            None => unreachable!("the bytes of a blob go only after it is stored"),
        }
    }

    /// Gives up the copy in memory of a stored blob; returns the bytes that this blob no longer holds.
    pub fn forget_bytes(&self) -> usize {
        if self.extent().is_none() {
            return 0;
        }
        self.bytes.lock().take().map_or(0, |resident| resident.bytes.len())
    }

    /// Has the bytes leave memory, after storing them if they are nowhere else; how many they were.
    pub fn evict(&self, space: &Arc<Space>, packer: &Packer) -> Result<usize> {
        if self.memory() > 0 {
            self.store(space, packer.clone())?;
        }
        Ok(self.forget_bytes())
    }

    /// Bytes of the value that are in memory: all or none.
    pub fn memory(&self) -> usize {
        self.bytes.lock().as_ref().map_or(0, |resident| resident.bytes.len())
    }
}

#[cfg(test)]
mod tests;
