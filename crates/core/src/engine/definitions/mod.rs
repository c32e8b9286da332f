//! Tables by name: who may change one; creating, changing and dropping them; relations; what is left over.
//!
//! | file | what |
//! |---|---|
//! | `names.rs` | whose turn it is with a name |
//! | `ddl.rs` | creating, dropping, renaming, truncating, altering |
//! | `links.rs` | relations of tables by name |
//! | `temporary.rs` | definitions that the catalog has not |
//! | `orphans.rs` | files of no table that could not be removed |
//! | `left_out.rs` | tables that a partial copy has not |

pub(super) mod ddl;
pub(super) mod left_out;
pub(super) mod links;
pub(super) mod names;
pub(super) mod orphans;
pub(super) mod temporary;
