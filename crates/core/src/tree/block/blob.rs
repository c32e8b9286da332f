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
//! 27  length  u32       bytes of the value
//! 31  number  u8        0; of one that shares its extent with others: which of them it is
//! 32  of      u8        0, and the length is that of the extent's raw bytes; or how many there are
//! 33          u16       0
//! ```
//!
//! Values that share an extent are a *bundle* ([`crate::values::bundle`]): one block, of which each has a part. They
//! are put together long after they were written (`storing/bundles.rs`).

use std::sync::{Arc, OnceLock};

use crate::sync::Mutex;

use crate::cache::{Cache, Charge, Purpose};
use crate::store::{BlockAddress, Extent, NamedExtent, Packer, Space, Unit};
use crate::sync::atomic::{AtomicBool, Ordering};
use crate::values::bundle::{self, MOST_MEMBERS};
use crate::{Error, Result};

/// Encoded size of a [`BlobAddress`].
pub const BLOB_ADDRESS_BYTES: usize = BlockAddress::ENCODED_BYTES + 8;

/// Which part of a bundle a value is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Member {
    /// From 0.
    pub number: u8,
    /// How many values are in the bundle.
    pub of: u8,
}

/// Where a stored blob lies and how long it is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct BlobAddress {
    /// Its extent.
    pub extent: BlockAddress,
    /// Length of the value in bytes.
    pub length: u64,
    /// `None`: it has its extent for itself.
    pub member: Option<Member>,
}

impl BlobAddress {
    /// What an image names that names it, in a file of that unit.
    pub fn named(&self, unit: Unit) -> NamedExtent {
        match self.member {
            None => NamedExtent::whole(&self.extent, unit),
            Some(Member { number, of }) => NamedExtent::part(&self.extent, unit, (number, of), self.length),
        }
    }

    /// The bytes in a block's table of blobs.
    pub fn encode(&self) -> [u8; BLOB_ADDRESS_BYTES] {
        let mut out = [0; BLOB_ADDRESS_BYTES];
        out[..BlockAddress::ENCODED_BYTES].copy_from_slice(&self.extent.encode());
        // The extent has as many bytes, in 32 bits, or more.
        let Member { number, of } = self.member.unwrap_or(Member { number: 0, of: 0 });
        let length = self.length | u64::from(number) << 32 | u64::from(of) << 40;
        out[BlockAddress::ENCODED_BYTES..].copy_from_slice(&length.to_le_bytes());
        out
    }

    /// Reads what [`BlobAddress::encode`] wrote.
    pub fn decode(row: &[u8]) -> Result<BlobAddress, String> {
        let (extent, length) =
            row.split_at_checked(BlockAddress::ENCODED_BYTES).ok_or("a blob address cut short")?;
        let extent = BlockAddress::decode(extent).ok_or("an impossible blob address")?;
        let length = u64::from_le_bytes(length.try_into().map_err(|_| "a blob address of a wrong length")?);
        if u64::from(extent.raw_bytes) == length {
            return Ok(BlobAddress { extent, length, member: None });
        }
        let [_, _, _, _, number, of, 0, 0] = length.to_le_bytes() else {
            return Err(format!("a blob of {length} bytes in an extent of {}", extent.raw_bytes));
        };
        if number >= of || usize::from(of) > MOST_MEMBERS {
            return Err(format!(
                "a blob that is value {number} of {of}, in an extent of {}",
                extent.raw_bytes
            ));
        }
        let length = length & u64::from(u32::MAX);
        Ok(BlobAddress { extent, length, member: Some(Member { number, of }) })
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
    /// Its part of the extent, if it has not the whole.
    member: Option<Member>,
    /// See [`Blob::is_first_look`].
    looked_at: AtomicBool,
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
        let charge = Charge::new(cache, Purpose::Values, bytes.len());
        Blob::of(Resident { bytes: bytes.into(), _charge: Some(charge) })
    }

    fn of(resident: Resident) -> Blob {
        Blob {
            length: resident.bytes.len() as u64,
            bytes: Mutex::new(Some(resident)),
            extent: OnceLock::new(),
            member: None,
            looked_at: AtomicBool::new(false),
            storing: Mutex::new(()),
        }
    }

    /// A blob of `length` bytes that lies in `extent`.
    pub fn stored(extent: Arc<Extent>, length: u64) -> Blob {
        Blob::part_of(extent, length, None)
    }

    /// The blob at `at` in `space`.
    pub fn adopted(space: &Arc<Space>, at: &BlobAddress) -> Blob {
        Blob::part_of(space.adopt(at.extent), at.length, at.member)
    }

    /// One that is as `member` says in `extent`.
    pub fn part_of(extent: Arc<Extent>, length: u64, member: Option<Member>) -> Blob {
        Blob {
            length,
            bytes: Mutex::new(None),
            extent: OnceLock::from(extent),
            member,
            looked_at: AtomicBool::new(false),
            storing: Mutex::new(()),
        }
    }

    /// Bytes of memory that an object takes besides the value: itself, its extent, and its place among the holders that
    /// the books of a space count.
    pub const OBJECT_BYTES: usize = {
        let counts = 4 * std::mem::size_of::<usize>();
        let holder = 3 * std::mem::size_of::<u64>();
        std::mem::size_of::<Blob>() + std::mem::size_of::<Extent>() + counts + holder
    };

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
        let address = |extent: &Arc<Extent>| BlobAddress {
            extent: *extent.address(),
            length: self.length,
            member: self.member,
        };
        self.extent().map(address)
    }

    /// Whether it has an extent that it shares with no other.
    pub fn is_alone(&self) -> bool {
        self.member.is_none() && self.extent().is_some()
    }

    /// Whether nothing is lost with the object: a durable image names its extent, see [`Extent::is_settled`].
    pub fn is_settled(&self) -> bool {
        self.extent().is_some_and(|extent| extent.is_settled())
    }

    /// Whether [`Blob::is_first_look`] was asked.
    pub fn is_seen(&self) -> bool {
        // Relaxed: nothing else depends on it.
        self.looked_at.load(Ordering::Relaxed)
    }

    /// Whether nobody has asked this before: who looks for values that are alike looks at each once.
    pub fn is_first_look(&self) -> bool {
        // Relaxed: nothing else depends on it.
        !self.looked_at.swap(true, Ordering::Relaxed)
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
        Ok(BlobAddress { extent: *extent.address(), length: self.length, member: None })
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

    /// The images of checkpoint `generation`, which is being written, and of later ones do not name this blob.
    pub fn supersede(&self, generation: u64) -> Result<()> {
        match (self.extent(), self.member) {
            (Some(extent), None) => extent.supersede(generation),
            (Some(extent), Some(Member { number, of })) => {
                extent.bury(number, of, self.length, generation)?
            }
            (None, _) => {}
        }
        Ok(())
    }

    /// The value: shared if it is in memory, else read and checked, and not kept.
    pub fn bytes(&self) -> Result<Arc<[u8]>> {
        if let Some(resident) = &*self.bytes.lock() {
            return Ok(resident.bytes.clone());
        }
        let Some(extent) = self.extent() else {
            unreachable!("the bytes of a blob go only after it is stored")
        };
        let stored = extent.read_value()?;
        let Some(Member { number, .. }) = self.member else { return Ok(Arc::from(&stored[..])) };
        let value = bundle::value(&stored, usize::from(number), self.length);
        value.map(Arc::from).map_err(|detail| Error::corrupt(extent.path(), extent.address().offset, detail))
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
