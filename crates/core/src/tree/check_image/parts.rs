//! One image, looked at by several threads: it is cut below its upper pages, and each thread takes the next part.
//!
//! Threads meet when they take a part and when they have done it, and nowhere else: each part has a visitor and
//! findings of its own. An upper page is whole when all parts below it are, which is known at the end.

use super::{ImageVisitor, Sums, Walk};
use crate::finding::Findings;
use crate::store::{BlockAddress, ChildAddress, Space, TreeRoot};
use crate::sync::Mutex;
use crate::threads::share_out;
use crate::types::TreeId;
use crate::Result;
use std::sync::Arc;

/// So many parts for each thread: one that takes longer than the others keeps them waiting for a fraction of the whole.
const PARTS_A_THREAD: usize = 16;

/// A visitor of which several work at a time, each on a part of the image.
pub trait SharedVisitor: ImageVisitor + Sized + Send + Sync {
    /// Another, for a part.
    fn part(&self) -> Self;
    /// The part was looked at; called by the thread that did it.
    fn end(&mut self) -> Result<()>;
    /// Takes what the visitor of a part has gathered. In any order.
    fn join(&mut self, part: Self);
}

/// A node that is yet to be looked at, with all below it.
struct Part {
    at: ChildAddress,
    height: u32,
    low: Vec<u8>,
    high: Option<Vec<u8>>,
    /// Its page among those above all parts.
    parent: Option<usize>,
}

/// A page that was looked at.
struct Upper {
    at: BlockAddress,
    parent: Option<usize>,
    whole: bool,
}

/// A part that was looked at.
struct Done<V> {
    parent: Option<usize>,
    whole: bool,
    sums: Sums,
    findings: Findings,
    visitor: V,
}

/// As [`check_image`](super::check_image), by so many threads, called `name` and a number.
pub fn check_image_shared<V: SharedVisitor>(
    space: &Arc<Space>,
    (tree, root): (TreeId, &TreeRoot),
    (threads, name): (usize, &str),
    findings: &mut Findings,
    visitor: &mut V,
) -> Result<()> {
    let mut walk = Walk { space, tree, findings, visitor, sums: Sums::default() };
    if !walk.is_possible(root) {
        return Ok(());
    }
    let (mut uppers, parts) = walk.cut(root, threads.saturating_mul(PARTS_A_THREAD))?;
    let mut sums = walk.sums;
    let (shared, done) = (&*visitor, Mutex::new(Vec::with_capacity(parts.len())));
    share_out(&parts, threads, name, |part| {
        let (mut visitor, mut findings, sums) = (shared.part(), Findings::default(), Sums::default());
        let mut walk = Walk { space, tree, findings: &mut findings, visitor: &mut visitor, sums };
        let whole = walk.node(&part.at, part.height, &part.low, part.high.as_deref())?;
        let (parent, sums) = (part.parent, walk.sums);
        visitor.end()?;
        done.lock().push(Done { parent, whole, sums, findings, visitor });
        Ok(())
    })?;
    for part in done.into_inner() {
        sums.add(&part.sums);
        findings.append(part.findings);
        visitor.join(part.visitor);
        fail_unless(part.whole, part.parent, &mut uppers);
    }
    // Those below before those above.
    while let Some(upper) = uppers.pop() {
        if upper.whole {
            visitor.whole(&upper.at, true);
        }
        fail_unless(upper.whole, upper.parent, &mut uppers);
    }
    Walk { space, tree, findings, visitor, sums }.compare(root);
    Ok(())
}

/// A page is not whole if something below it is not.
fn fail_unless(whole: bool, parent: Option<usize>, uppers: &mut [Upper]) {
    if let Some(parent) = parent.and_then(|parent| uppers.get_mut(parent)) {
        parent.whole &= whole;
    }
}

impl Sums {
    fn add(&mut self, more: &Sums) {
        self.leaves += more.leaves;
        self.stored_bytes += more.stored_bytes;
        self.raw_bytes += more.raw_bytes;
        self.partial |= more.partial;
    }
}

impl Walk<'_> {
    /// Looks at upper pages, level by level, until there are so many parts below them; each page behind its parent.
    fn cut(&mut self, root: &TreeRoot, wanted: usize) -> Result<(Vec<Upper>, Vec<Part>)> {
        let whole =
            Part { at: root.address.into(), height: root.height, low: Vec::new(), high: None, parent: None };
        let (mut uppers, mut parts) = (Vec::new(), vec![whole]);
        while parts.len() < wanted && parts.first().is_some_and(|part| part.height > 0) {
            for part in std::mem::take(&mut parts) {
                self.divide(part, &mut uppers, &mut parts)?;
            }
        }
        Ok((uppers, parts))
    }

    /// Looks at the page of a part: what is below it are parts then.
    fn divide(&mut self, part: Part, uppers: &mut Vec<Upper>, parts: &mut Vec<Part>) -> Result<()> {
        let Part { at: ChildAddress { block: at, .. }, height, low, high, parent } = part;
        if self.visitor.knows(&at) {
            self.sums.partial = true;
            return Ok(());
        }
        self.visitor.extent(&at)?;
        let page = self.read(&at)?;
        let children = page.and_then(|page| self.children(&at, &page, &low, high.as_deref()));
        let whole = children.as_ref().is_some_and(|(_, fits)| *fits);
        uppers.push(Upper { at, parent, whole });
        let parent = uppers.len().checked_sub(1);
        let mut children = children.map(|(children, _)| children).unwrap_or_default().into_iter().peekable();
        while let Some((low, at)) = children.next() {
            let high = children.peek().map(|(key, _)| key).or(high.as_ref()).cloned();
            parts.push(Part { at, height: height - 1, low, high, parent });
        }
        Ok(())
    }
}
