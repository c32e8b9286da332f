/*
  ALTER TABLE in place: what its sources (ha_teak_alter.cc, ha_teak_rebuild.cc) share.
*/
#ifndef TEAK_INPLACE_ALTER_H
#define TEAK_INPLACE_ALTER_H

#include "ha_teak.h"
#include "online_indexes.h"
#include "rebuild.h"

namespace teak {

/* Constraints come and go with the definition: ha_teak_constraints.cc. */
constexpr alter_table_operations kConstraints = ALTER_ADD_FOREIGN_KEY | ALTER_DROP_FOREIGN_KEY;
/* Of virtual columns that no index has. */
constexpr alter_table_operations kVirtualColumns =
    ALTER_ADD_VIRTUAL_COLUMN | ALTER_DROP_VIRTUAL_COLUMN | ALTER_VIRTUAL_COLUMN_ORDER;
/* Rows are written anew. */
constexpr alter_table_operations kRebuilds = ALTER_RECREATE_TABLE | ALTER_ADD_PK_INDEX | ALTER_DROP_PK_INDEX |
                                             ALTER_COLUMN_NOT_NULLABLE | ALTER_STORED_COLUMN_TYPE;

inline const KEY& added_key(const Alter_inplace_info* info, uint i) {
    return info->key_info_buffer[info->index_add_buffer[i]];
}

inline bool same_name(const KEY& a, const KEY& b) { return TableMeta::name_of(a) == TableMeta::name_of(b); }

/* The key that rows are known by is the same before and after, unless the statement says otherwise. */
bool same_primary(const TABLE* a, const TABLE* b);

/* Whether options change that all blocks, or the null bits of all rows, depend on. */
bool changes_form(const TABLE* now, const HA_CREATE_INFO* then);

/* What prepare leaves for commit: of a partitioned table only the first part is asked to commit, for all of them. */
struct AlteredTable : public inplace_alter_handler_ctx {
    AlteredTable(ha_teak* part, ConstraintChange change) : handler(part), constraints(std::move(change)) {}
    ha_teak* const handler;
    const ConstraintChange constraints;
    std::unique_ptr<OnlineIndexes> added;
    std::unique_ptr<Rebuild> rebuild;
};

inline AlteredTable* context_of(inplace_alter_handler_ctx* context) { return static_cast<AlteredTable*>(context); }

} // namespace teak
#endif
