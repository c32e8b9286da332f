//! A leaf: an identity with a latch, and an immutable view that is swapped whole.
//!
//! ```text
//! view ── low, high       the keys it is responsible for
//!      ├─ base            block in memory | image on disk, in memory as it is there | image on disk | spilled
//!      ├─ delta           in memory | spilled, or in the leaf's patch, with a delta of what came since
//!      └─ history         what only snapshots older than `horizon` need
//! ```
//!
//! Readers load the view and go on without latch. Writers latch, push onto the live delta (which views share), or
//! publish another view. A leaf that was narrowed by a split or removed says so in its view; whoever came by a stale
//! path starts again.

pub(super) mod ahead;
mod base;
pub(super) mod care;
pub(super) mod changes;
pub(super) mod evict;
pub(super) mod image;
mod inner_view;
pub(super) mod lifecycle;
pub(super) mod node;
pub(super) mod packed;
pub(super) mod patch;
mod reading;
pub(super) mod shared;
pub(super) mod spill;
pub(super) mod vacancy;
pub(super) mod watched;

pub(crate) use self::base::{Base, SpilledBase};
use self::care::Marks;
use self::changes::{Backing, Changes};
pub(crate) use self::image::Image;
use self::lifecycle::{Copies, FileCopy};
use self::node::Node;
use self::patch::Covered;
use self::shared::{Resources, TreeShared};
use self::spill::SpilledHistory;
use self::vacancy::Vacancy;
use super::block::bound::Bound;
use super::block::{wide_head, Block};
use super::versions::birth::Birth;
use super::versions::delta::Delta;
use super::versions::history::History;
use super::versions::past::Counted;
use super::versions::visibility::Reader;
use crate::cache::Purpose;
use crate::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, Ordering};
use crate::sync::{Held, Published};
use crate::sync::{Mutex, MutexGuard};
use crate::types::Timestamp;
use std::sync::{Arc, Weak};

/// A consolidation costs about as much as passing this many delta entries in scans.
const MERGE_COST_LIMIT: u32 = 512;

/// What a leaf takes that stands for what is on disk: node, view, image, extent, bounds, and its entry in the page
/// above it, as the C library allocates them.
pub(crate) const LEAF_BYTES: usize = 572;

#[derive(Clone)]
pub(crate) enum Archive {
    Empty,
    Live(Arc<History>),
    Spilled(Arc<SpilledHistory>),
}

impl Archive {
    pub(crate) fn of(history: Option<Arc<History>>) -> Archive {
        history.map_or(Archive::Empty, Archive::Live)
    }

    pub(crate) fn is_empty(&self) -> bool {
        matches!(self, Archive::Empty)
    }

    /// What it adds to the sums.
    pub(super) fn counted(&self) -> Option<Counted> {
        match self {
            Archive::Empty => None,
            Archive::Live(history) => Some(Counted { shares: history.shares().clone(), spilled: false }),
            Archive::Spilled(spilled) => Some(Counted { shares: spilled.shares().clone(), spilled: true }),
        }
    }

    /// Whether it is this very object.
    pub(super) fn is_same(&self, other: &Archive) -> bool {
        match (self, other) {
            (Archive::Live(a), Archive::Live(b)) => Arc::ptr_eq(a, b),
            (Archive::Spilled(a), Archive::Spilled(b)) => Arc::ptr_eq(a, b),
            _ => false,
        }
    }
}

/// Keeps the sums true when a leaf's history changes.
fn count_past(context: &Resources, counted: &mut Option<Counted>, now: &Archive) {
    let new = now.counted();
    let same = match (&*counted, &new) {
        (None, None) => true,
        (Some(old), Some(new)) => old.is_same(new),
        _ => false,
    };
    if !same {
        context.past.replace(counted.as_ref(), new.as_ref());
        *counted = new;
    }
}

/// In the order of its fields what each look-up needs comes first, as in [`Leaf`].
#[derive(Clone)]
#[repr(C)]
pub(crate) struct LeafView {
    /// The leaf was removed from the tree.
    pub dead: bool,
    pub low: Bound,
    pub high: Option<Bound>,
    /// Who sees the rows of the base, if not everybody.
    pub birth: Option<Arc<Birth>>,
    pub base: Base,
    pub delta: Changes,
    /// Newest commit that was folded into the base: snapshots at or after it need no history.
    pub horizon: Timestamp,
    pub history: Archive,
}

impl LeafView {
    #[inline]
    pub(crate) fn holds(&self, key: &[u8]) -> bool {
        let head = wide_head(key);
        !self.dead
            && self.low.order(head, key).is_le()
            && self.high.as_ref().is_none_or(|high| high.order(head, key).is_gt())
    }

    /// Where a walk goes on behind it; `None`: it is the last leaf.
    pub(crate) fn next_key(&self) -> Option<Vec<u8>> {
        self.high.as_ref().map(|high| high.to_vec())
    }

    /// Whether `reader` sees the rows of the base, apart from what delta and history say.
    #[inline]
    pub(crate) fn shows_base(&self, reader: &Reader<'_>) -> bool {
        self.birth.as_ref().is_none_or(|birth| birth.shows(reader))
    }

    /// Whether there is anything besides base and history.
    pub(crate) fn has_changes(&self) -> bool {
        match &self.delta {
            Changes::Live(delta) => !delta.is_empty(),
            Changes::Spilled { .. } => true,
        }
    }

    /// Bytes, without those of large values, which account for themselves.
    fn memory(&self) -> u64 {
        let base = self.base.memory();
        let delta = self.delta.charge();
        let history = match &self.history {
            Archive::Live(history) => history.memory(),
            _ => 0,
        };
        (base + delta + history) as u64
    }
}

/// What the latch protects besides the view's replacement.
#[derive(Default)]
pub(crate) struct LeafState {
    /// What the file has of the leaf.
    pub copies: Copies,
    /// How often it was looked at while it waits for [`Care::WriteAhead`](care::Care::WriteAhead) and is undecided.
    pub looks: u8,
    /// Bytes charged to the cache; how many of them for the base.
    charged: u64,
    charged_base: u32,
    /// Bytes of the delta, as the context's sum has them.
    changes: u64,
    /// Of the view's delta, if it was read back from the spill file.
    pub backing: Option<Backing>,
    /// The view's delta, if a checkpoint has written all of it.
    pub covered: Option<Box<Covered>>,
    /// What the context's sums contain of it.
    counted: Option<Counted>,
    registered: bool,
    /// Deletions pushed since the last consolidation.
    pub deletions: usize,
    /// The next consolidation waits for more memory in the delta, or more versions, than these: what the last one could
    /// not fold (because it was undecided) is no reason to try again.
    pub fold_again_at: usize,
    pub deletions_again_at: usize,
}

impl LeafState {
    /// Whether it knows nothing of a delta or a history.
    fn has_nothing_else(&self) -> bool {
        self.backing.is_none() && self.covered.is_none() && self.counted.is_none()
    }
}

/// In the order of its fields what each look-up needs comes first: one cache line has it, as a rule.
#[repr(C)]
pub(crate) struct Leaf {
    view: Published<LeafView>,
    /// Rises with each published view: lets a cursor see cheaply that its view is stale.
    changes: AtomicU64,
    touched: AtomicBool,
    /// What it waits for.
    pub(in crate::tree) marks: Marks,
    /// What merging the delta has cost readers since the last consolidation, in entries looked at.
    merge_cost: AtomicU32,
    pub shared: Arc<TreeShared>,
    pub vacancy: Vacancy,
    latch: Mutex<LeafState>,
    /// Of its base.
    ahead: ahead::Mark,
}

/// The latch, held.
pub(crate) type Latched<'a> = MutexGuard<'a, LeafState>;

impl Leaf {
    fn with(shared: Arc<TreeShared>, view: LeafView, state: LeafState) -> Leaf {
        shared.context.leaves.add(LEAF_BYTES as i64);
        Leaf {
            shared,
            view: Published::new(view),
            latch: Mutex::new(state),
            touched: AtomicBool::new(false),
            marks: Marks::default(),
            ahead: ahead::Mark::default(),
            merge_cost: AtomicU32::new(0),
            changes: AtomicU64::new(0),
            vacancy: Vacancy::default(),
        }
    }

    /// A leaf of new content; it is charged to the cache when it is first published or adopted.
    pub(crate) fn new(shared: Arc<TreeShared>, view: LeafView) -> Leaf {
        let history = view.history.clone();
        let (changes, base, memory) = (view.delta.bytes() as u64, view.base.memory(), view.memory());
        let leaf = Leaf::with(shared, view, LeafState::default());
        {
            let mut state = leaf.latch();
            leaf.recharge(&mut state, base, memory);
            count_past(&leaf.shared.context, &mut state.counted, &history);
            leaf.count_changes(&mut state, changes);
        }
        leaf
    }

    pub(crate) fn empty(shared: Arc<TreeShared>) -> Leaf {
        let view = LeafView {
            low: Bound::from(&[][..]),
            high: None,
            base: Base::Loaded(Arc::new(Block::empty())),
            delta: Changes::Live(Arc::new(Delta::new())),
            history: Archive::Empty,
            horizon: 0,
            birth: None,
            dead: false,
        };
        Leaf::new(shared, view)
    }

    /// A leaf whose base is on disk. Neighbours share the bound between them.
    pub(crate) fn stored(shared: Arc<TreeShared>, low: Bound, high: Option<Bound>, copy: FileCopy) -> Leaf {
        let view = LeafView {
            low,
            high,
            base: Base::Stored(copy.image.clone()),
            delta: match &copy.patch {
                Some(patch) => Changes::in_patch(patch, &shared.no_delta),
                None => Changes::Live(shared.no_delta.clone()),
            },
            history: Archive::Empty,
            horizon: 0,
            birth: None,
            dead: false,
        };
        let (base, memory) = (view.base.memory(), view.memory());
        let leaf =
            Leaf::with(shared, view, LeafState { copies: Copies::stored(copy), ..LeafState::default() });
        leaf.recharge(&mut leaf.latch(), base, memory);
        leaf
    }

    #[inline]
    pub(crate) fn view(&self) -> Held<LeafView> {
        self.view.load()
    }

    /// It is used; its view was loaded before. `true` if the base in that was read ahead, and this is its first use.
    #[inline]
    pub(crate) fn touch(&self) -> bool {
        // Relaxed: a hint to the eviction clock; tested first so that hot leaves do not bounce the line.
        let is_first = !self.touched.load(Ordering::Relaxed);
        if is_first {
            self.touched.store(true, Ordering::Relaxed);
        }
        is_first && self.note_used()
    }

    pub(crate) fn take_touched(&self) -> bool {
        // Relaxed: a hint.
        self.touched.swap(false, Ordering::Relaxed)
    }

    #[inline]
    pub(crate) fn changes(&self) -> u64 {
        // Acquire: pairs with the Release in `publish`.
        self.changes.load(Ordering::Acquire)
    }

    /// Adds to what readers paid for the delta; true when consolidating would have been cheaper.
    pub(crate) fn charge_merge(&self, entries: u32) -> bool {
        // Relaxed, and not one atomic step: a lost addition only delays a consolidation.
        let cost = self.merge_cost.load(Ordering::Relaxed).saturating_add(entries);
        let due = cost > MERGE_COST_LIMIT;
        self.merge_cost.store(if due { 0 } else { cost }, Ordering::Relaxed);
        due
    }

    pub(crate) fn latch(&self) -> Latched<'_> {
        self.latch.lock()
    }

    pub(crate) fn try_latch(&self) -> Option<Latched<'_>> {
        self.latch.try_lock()
    }

    /// Replaces the view and accounts for the difference.
    pub(crate) fn publish(&self, state: &mut LeafState, view: LeafView) {
        debug_assert!(self.vacancy.is_occupied() || view.is_vacant(), "content without `Tree::occupy`");
        debug_assert!(view.high.as_ref().is_none_or(|high| view.low < *high), "a leaf of no keys");
        self.check_successor(&view);
        state.backing = state.backing.take().filter(|backing| backing.is_of(&view.delta));
        state.covered = state.covered.take().filter(|covered| covered.is_of(&view.delta));
        let memory = view.memory() + state.backing.as_ref().map_or(0, |backing| backing.charge() as u64);
        count_past(&self.shared.context, &mut state.counted, &view.history);
        let changes = if view.dead { 0 } else { state.unwritten_bytes(&view.delta) as u64 };
        self.count_changes(state, changes);
        let base = view.base.memory();
        self.view.store(view);
        // Release: a cursor that sees the old number may use its old view, one that sees the new number reloads.
        self.changes.fetch_add(1, Ordering::Release);
        self.recharge(state, base, memory);
    }

    /// What must hold between a view and the next.
    fn check_successor(&self, next: &LeafView) {
        if cfg!(debug_assertions) {
            let now = self.view();
            assert!(!now.dead || next.dead, "a leaf that was removed comes back");
            assert!(next.low <= now.low || next.dead, "a leaf gives keys away at its upper end only");
            assert!(
                now.horizon <= next.horizon,
                "the horizon goes back: {} to {}",
                now.horizon,
                next.horizon
            );
        }
    }

    /// It takes `memory` bytes now, of which the base has `base`.
    fn recharge(&self, state: &mut LeafState, base: usize, memory: u64) {
        let base = u32::try_from(base).unwrap_or(u32::MAX);
        let changes = |memory: u64, base: u32| (memory - u64::from(base)) as i64;
        let more = changes(memory, base) - changes(state.charged, state.charged_base);
        self.charge(Purpose::Rows, more);
        self.charge(Purpose::Blocks, i64::from(base) - i64::from(state.charged_base));
        (state.charged, state.charged_base) = (memory, base);
    }

    /// Charges `bytes`, or takes them off.
    fn charge(&self, purpose: Purpose, bytes: i64) {
        let cache = &self.shared.context.cache;
        let amount = bytes.unsigned_abs() as usize;
        match bytes.signum() {
            1 => cache.charge(purpose, amount),
            -1 => cache.discharge(purpose, amount),
            _ => {}
        }
    }

    /// Its delta has so many bytes now. Of trees that checkpoints write.
    fn count_changes(&self, state: &mut LeafState, bytes: u64) {
        if bytes != state.changes && self.shared.is_logged() {
            self.shared.context.changes.add(bytes as i64 - state.changes as i64);
            state.changes = bytes;
        }
    }

    /// Something was pushed onto a delta that is spilled in part. Readers have copies of such a one, which are stale
    /// now.
    pub(crate) fn pushed_unseen(&self) {
        // Release: as in `publish`; the version was pushed before.
        self.changes.fetch_add(1, Ordering::Release);
    }

    /// What is to be pushed onto as well, if the delta has a backing.
    pub(crate) fn backing_delta(&self, state: &mut LeafState) -> Option<Arc<Delta>> {
        let backing = state.backing.as_mut()?;
        if Arc::ptr_eq(&backing.fresh, &self.shared.no_delta) {
            backing.fresh = Arc::new(Delta::new());
        }
        Some(backing.fresh.clone())
    }

    /// Accounts for a delta that grew by `changes`, and by `bytes` with what goes with it.
    pub(crate) fn grew(&self, state: &mut LeafState, bytes: u64, changes: u64) {
        if bytes != 0 {
            state.charged += bytes;
            self.shared.context.cache.charge(Purpose::Rows, bytes as usize);
            self.count_changes(state, state.changes + changes);
        }
    }

    pub(crate) fn charged(&self, state: &LeafState) -> u64 {
        state.charged
    }

    /// Makes the leaf known to the eviction clock, if it is not; but for one that never leaves memory. Whoever gives a
    /// leaf content calls it.
    pub(crate) fn register(&self, state: &mut LeafState, node: &Arc<Node>) {
        if !state.registered && !self.shared.is_in_memory() {
            state.registered = true;
            let node: Arc<Node> = node.clone();
            let weak: Weak<Node> = Arc::downgrade(&node);
            self.shared.context.cache.register(weak);
        }
    }

    /// Whether the clock forgets the leaf, as an eviction would free nothing: what is in memory of it is small.
    /// Reading its base or its delta and writing to it make it known again.
    fn leaves_clock(&self) -> bool {
        // Relaxed: a hint.
        if self.touched.load(Ordering::Relaxed) {
            return false;
        }
        let Some(mut state) = self.try_latch() else { return false };
        let view = self.view();
        let has_base = matches!(view.base, Base::Loaded(_) | Base::Packed(_));
        let leaves = !has_base && view.history.is_empty() && evict::delta_stays(&view.delta);
        state.registered &= !leaves;
        leaves
    }

    /// Whether `view` has a delta that a writer may push onto.
    #[inline]
    pub(crate) fn has_own_delta(&self, view: &LeafView) -> bool {
        !Arc::ptr_eq(view.delta.newest(), &self.shared.no_delta)
    }

    /// Gives the leaf a delta to push onto; the latch is held.
    #[cold]
    pub(crate) fn make_delta(&self, state: &mut LeafState) {
        let view = self.view();
        let delta = view.delta.with_newest(Arc::new(Delta::new()));
        self.publish(state, LeafView { delta, ..(*view).clone() });
    }
}

impl Drop for Leaf {
    fn drop(&mut self) {
        self.end_guess();
        let state = self.latch.get_mut();
        let base = state.charged_base as usize;
        self.shared.context.cache.discharge(Purpose::Blocks, base);
        self.shared.context.cache.discharge(Purpose::Rows, state.charged as usize - base);
        self.shared.context.changes.add(-(state.changes as i64));
        self.shared.context.leaves.add(-(LEAF_BYTES as i64));
        self.shared.context.past.replace(state.counted.as_ref(), None);
    }
}
