//! A part of a leaf's view, or what stands in for it.

use std::ops::Deref;
use std::ptr::NonNull;
use std::sync::Arc;

/// What a cursor reads of a leaf it has pinned. Parts of the view are kept by the view: a count of their own would be
/// two more writes to memory that all readers of the leaf share, and each would wait for a cache miss that could go on
/// beside others.
pub(in crate::tree) struct Kept<T> {
    part: NonNull<T>,
    /// Has it, if the view does not.
    _own: Option<Arc<T>>,
}

// SAFETY: as an `Arc<T>`, which it is or which the view that keeps it is.
unsafe impl<T> Send for Kept<T> where Arc<T>: Send {}
// SAFETY: likewise.
unsafe impl<T> Sync for Kept<T> where Arc<T>: Sync {}

impl<T> Kept<T> {
    /// A part of a view.
    ///
    /// # Safety
    /// Something that has `part` stays where it is, unchanged, for as long as the result is used.
    #[inline]
    pub(super) unsafe fn by_view(part: &Arc<T>) -> Kept<T> {
        Kept { part: NonNull::from(&**part), _own: None }
    }
}

impl<T> From<Arc<T>> for Kept<T> {
    fn from(own: Arc<T>) -> Kept<T> {
        Kept { part: NonNull::from(&*own), _own: Some(own) }
    }
}

impl<T> Deref for Kept<T> {
    type Target = T;

    #[inline]
    fn deref(&self) -> &T {
        // SAFETY: `_own`, or by the contract of `by_view` something else, has it.
        unsafe { self.part.as_ref() }
    }
}
