//! Whether the image of a tree in its file is as it should be: what a start of the engine would find, and which extents
//! it names.
//!
//! Reads the pages from the root down, depth first, and knows nothing of trees in memory: an independent reading of
//! `docs/format.md`. Memory is bounded by one block a level. Several threads can look at one image ([`parts`]).

mod parts;

pub use parts::{check_image_shared, SharedVisitor};

use super::block::blob::{Blob, BlobAddress};
use super::block::{self, Block, Value};
use super::leaf::node::MAX_CHILDREN;
use super::leaf::patch::PatchBlock;
use crate::finding::{Finding, Findings};
use crate::slabs::Buffer;
use crate::store::{BlockAddress, ChildAddress, Space, TreeRoot};
use crate::types::TreeId;
use crate::Result;
use std::sync::Arc;

/// No tree is higher: a hundred levels would hold more leaves than there are bytes.
const HIGHEST: u32 = 24;

/// Who is told what an image consists of.
pub trait ImageVisitor {
    /// The image names this extent: a page or a leaf, which is read next.
    fn extent(&mut self, at: &BlockAddress) -> Result<()>;
    /// Likewise the patch of a leaf, which comes before that.
    fn patch(&mut self, at: &BlockAddress) -> Result<()> {
        self.extent(at)
    }
    /// The stored bytes of the extent that was named last, if the visitor has read them, and their checksum is right:
    /// they are not read again.
    fn take_stored(&mut self) -> Option<Vec<u8>> {
        None
    }
    /// Whether it is enough to know what leaves lead to: their rows, which take most of the time, are not looked at.
    fn passes_over_rows(&self) -> bool {
        false
    }
    /// The image names the extent of a large value, which is not read; that of a bundle once for each of its values.
    /// `false`: it is not as it should be.
    fn large_value(&mut self, at: &BlobAddress) -> Result<bool>;
    /// Whether the visitor knows the page or leaf and all that it leads to: then it is not looked at, and the sums of
    /// the tree are not compared.
    fn knows(&mut self, _at: &BlockAddress) -> bool {
        false
    }
    /// The page or leaf, and all that it leads to, was as it should be. `leads_on`: to anything but itself.
    fn whole(&mut self, _at: &BlockAddress, _leads_on: bool) {}
    /// The rows of one leaf; large values among them are not read.
    fn rows(&mut self, _block: &Block) -> Result<()> {
        Ok(())
    }
}

struct Walk<'a> {
    space: &'a Arc<Space>,
    tree: TreeId,
    findings: &'a mut Findings,
    visitor: &'a mut dyn ImageVisitor,
    sums: Sums,
}

/// What was read of an image.
#[derive(Debug, Clone, Copy, Default)]
struct Sums {
    leaves: u64,
    stored_bytes: u64,
    raw_bytes: u64,
    /// Some part of it was not read: the others say nothing.
    partial: bool,
}

/// The children of an inner page and the least key of each.
type Children = Vec<(Vec<u8>, ChildAddress)>;

/// Reads the image of `tree` in `space` that `root` leads to: bounds, levels, sums, checksums of pages and leaves.
/// Large values are named to the visitor, and not read.
pub fn check_image(
    space: &Arc<Space>,
    tree: TreeId,
    root: &TreeRoot,
    findings: &mut Findings,
    visitor: &mut dyn ImageVisitor,
) -> Result<()> {
    let mut walk = Walk { space, tree, findings, visitor, sums: Sums::default() };
    if walk.is_possible(root) {
        walk.node(&root.address.into(), root.height, &[], None)?;
        walk.compare(root);
    }
    Ok(())
}

impl Sums {
    fn add_leaf(&mut self, at: &BlockAddress) {
        self.leaves += 1;
        self.add_bytes(at);
    }

    fn add_bytes(&mut self, at: &BlockAddress) {
        self.stored_bytes += u64::from(at.stored_bytes);
        self.raw_bytes += u64::from(at.raw_bytes);
    }
}

impl Walk<'_> {
    /// Whether the tree is one that can be looked at.
    fn is_possible(&mut self, root: &TreeRoot) -> bool {
        if root.height > HIGHEST {
            self.fault(&root.address, format!("a tree of {} levels", root.height));
        }
        root.height <= HIGHEST
    }

    /// What was read is what the root says.
    fn compare(&mut self, root: &TreeRoot) {
        if self.sums.partial {
            return;
        }
        // Its entries are those of the capture, not of the image: whoever replays the log makes up for it.
        let sums = [
            ("leaves", root.leaves, self.sums.leaves),
            ("bytes on disk", root.stored_bytes, self.sums.stored_bytes),
            ("bytes before compression", root.raw_bytes, self.sums.raw_bytes),
        ];
        for (what, told, found) in sums {
            if told != found {
                self.fault(&root.address, format!("its root tells of {told} {what}, there are {found}"));
            }
        }
    }

    fn fault(&mut self, at: &BlockAddress, detail: impl Into<String>) {
        let finding = Finding::new(self.space.path(), detail).at(at.offset).of_tree(self.tree);
        self.findings.add(finding);
    }

    fn read(&mut self, at: &BlockAddress) -> Result<Option<Block>> {
        let space = self.space;
        let blob = |at: BlobAddress| Arc::new(Blob::adopted(space, &at));
        self.read_as(at, &|raw| Block::parse(raw, &blob))
    }

    /// What `parse` makes of a block; `None` if it is damaged.
    fn read_as<T>(
        &mut self,
        at: &BlockAddress,
        parse: &dyn Fn(Buffer) -> std::result::Result<T, String>,
    ) -> Result<Option<T>> {
        let raw = match self.visitor.take_stored() {
            Some(stored) => self.space.unpacked(at, &stored),
            None => self.space.adopt(*at).read(),
        };
        let corrupt = |detail| crate::Error::corrupt(self.space.path(), at.offset, detail);
        let parsed = raw.and_then(|raw| parse(raw).map_err(corrupt));
        let parsed = self.findings.absorb(Some(self.tree), parsed)?;
        self.sums.partial |= parsed.is_none();
        Ok(parsed)
    }

    /// Whether all was as it should be.
    fn node(&mut self, at: &ChildAddress, height: u32, low: &[u8], high: Option<&[u8]>) -> Result<bool> {
        let ChildAddress { block, patch, has_no_large } = at;
        let fits = height == 0 || !has_no_large;
        if !fits {
            self.fault(block, "a patch of an inner page");
        }
        let whole = match patch {
            Some(patch) if height == 0 => self.patched_leaf(block, patch, low, high)?,
            _ => self.block(block, height, low, high, None)?,
        };
        Ok(whole && fits)
    }

    /// The patch comes first: the rows of the leaf are those of both.
    fn patched_leaf(
        &mut self,
        block: &BlockAddress,
        patch: &BlockAddress,
        low: &[u8],
        high: Option<&[u8]>,
    ) -> Result<bool> {
        let mut changes = None;
        let mut whole = true;
        match self.visitor.knows(patch) {
            true => self.sums.partial = true,
            false => {
                self.visitor.patch(patch)?;
                changes = self.read_as(patch, &|raw| PatchBlock::parse(raw))?;
                whole = changes.as_ref().is_some_and(|changes| self.patch(patch, changes, low, high));
                if whole {
                    self.visitor.whole(patch, false);
                }
            }
        }
        Ok(self.block(block, 0, low, high, changes.as_ref())? && whole)
    }

    /// Whether the changes are those of a leaf of these keys.
    fn patch(&mut self, at: &BlockAddress, changes: &PatchBlock, low: &[u8], high: Option<&[u8]>) -> bool {
        self.sums.add_bytes(at);
        let (least, greatest) = changes.bounds();
        let fits = *least >= *low && high.is_none_or(|high| *greatest < *high);
        if !fits {
            self.fault(at, "a patch has keys outside of the bounds of its leaf");
        }
        fits
    }

    /// The same of a page, or of a leaf with these changes.
    fn block(
        &mut self,
        at: &BlockAddress,
        height: u32,
        low: &[u8],
        high: Option<&[u8]>,
        changes: Option<&PatchBlock>,
    ) -> Result<bool> {
        if self.visitor.knows(at) {
            self.sums.partial = true;
            return Ok(true);
        }
        self.visitor.extent(at)?;
        if height == 0 && self.visitor.passes_over_rows() {
            return self.leaf_without_rows(at);
        }
        let Some(block) = self.read(at)? else { return Ok(false) };
        let (whole, leads_on) = match height {
            0 => (self.leaf(at, &block, low, high, changes)?, !block.blobs().is_empty()),
            _ => (self.page(at, &block, height, low, high)?, true),
        };
        if whole {
            self.visitor.whole(at, leads_on);
        }
        Ok(whole)
    }

    fn page(
        &mut self,
        at: &BlockAddress,
        page: &Block,
        height: u32,
        low: &[u8],
        high: Option<&[u8]>,
    ) -> Result<bool> {
        let Some((children, mut whole)) = self.children(at, page, low, high) else { return Ok(false) };
        for (i, (low, address)) in children.iter().enumerate() {
            let high = children.get(i + 1).map(|(key, _)| &key[..]).or(high);
            whole &= self.node(address, height - 1, low, high)?;
        }
        Ok(whole)
    }

    /// The children of a page, and whether it has the bounds that its parent says; `None` if it is none.
    fn children(
        &mut self,
        at: &BlockAddress,
        page: &Block,
        low: &[u8],
        high: Option<&[u8]>,
    ) -> Option<(Children, bool)> {
        let mut children = Children::with_capacity(page.len().min(MAX_CHILDREN));
        let mut fence = None;
        for i in 0..page.len() {
            let mut key = Vec::new();
            page.key_into(i, &mut key);
            match page.value(i) {
                Value::Inline([]) if i > 0 && i + 1 == page.len() => fence = Some(key),
                Value::Inline(bytes) => match ChildAddress::decode(bytes) {
                    Some(address) => children.push((key, address)),
                    None => return self.broken(at, "an inner page with an impossible address"),
                },
                Value::Blob(_) => return self.broken(at, "an inner page with a large value"),
            }
        }
        let Some((first, _)) = children.first() else {
            return self.broken(at, "an inner page without children");
        };
        if first != low {
            self.fault(at, "an inner page begins elsewhere than its parent says");
        }
        if fence.as_deref() != high {
            self.fault(at, "an inner page ends elsewhere than its parent says");
        }
        let fits = first == low && fence.as_deref() == high;
        Some((children, fits))
    }

    fn broken<T>(&mut self, at: &BlockAddress, detail: &str) -> Option<T> {
        self.sums.partial = true;
        self.fault(at, detail);
        None
    }

    fn leaf_without_rows(&mut self, at: &BlockAddress) -> Result<bool> {
        let Some(named) = self.read_as(at, &|raw| block::large_values(&raw))? else { return Ok(false) };
        self.sums.add_leaf(at);
        let mut whole = true;
        for value in &named {
            whole &= self.visitor.large_value(value)?;
        }
        if whole {
            self.visitor.whole(at, !named.is_empty());
        }
        Ok(whole)
    }

    fn leaf(
        &mut self,
        at: &BlockAddress,
        block: &Block,
        low: &[u8],
        high: Option<&[u8]>,
        changes: Option<&PatchBlock>,
    ) -> Result<bool> {
        let mut whole = true;
        self.sums.add_leaf(at);
        if let Some(last) = block.len().checked_sub(1) {
            let (mut first_key, mut last_key) = (Vec::new(), Vec::new());
            block.key_into(0, &mut first_key);
            block.key_into(last, &mut last_key);
            if *first_key < *low || high.is_some_and(|high| *last_key >= *high) {
                self.fault(at, "a leaf has keys outside of its bounds");
                whole = false;
            }
        }
        for blob in block.blobs() {
            match blob.address() {
                Some(address) => whole &= self.visitor.large_value(&address)?,
                None => return Ok(self.broken(at, "a large value without an address").unwrap_or(false)),
            }
        }
        match changes {
            Some(changes) => self.visitor.rows(&changes.applied_to(block))?,
            None => self.visitor.rows(block)?,
        }
        Ok(whole)
    }
}

/// The rows of a leaf, with their large values.
pub fn each_row(block: &Block, take: &mut dyn FnMut(&[u8], &[u8])) -> Result<()> {
    let mut key = Vec::new();
    for at in 0..block.len() {
        block.key_into(at, &mut key);
        match block.value(at) {
            Value::Inline(value) => take(&key, value),
            Value::Blob(blob) => take(&key, &blob.bytes()?),
        }
    }
    Ok(())
}
