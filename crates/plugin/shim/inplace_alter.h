/*
  ALTER TABLE in place, of one table, or one partition: from the server's question whether it can be done to its end.

  inplace_alter.cc has the phases, inplace_indexes.cc indexes that are added while others write, inplace_rebuild.cc what
  has all rows written anew, altered_constraints.h foreign keys.
*/
#ifndef TEAK_INPLACE_ALTER_H
#define TEAK_INPLACE_ALTER_H

#include "altered_constraints.h"
#include "online_indexes.h"
#include "rebuild.h"

namespace teak {

/* Constraints come and go with the definition: altered_constraints.h. */
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

class InplaceAlter {
  public:
    /* `file` is known as the server knows it: rows are read by its scans, errors told by it. */
    InplaceAlter(ha_teak& file, OpenTable& open, TableUse& use, ConstraintKeeper& keeper)
        : file_(file), open_(open), use_(use), constraints_(file, open, use, keeper) {}
    InplaceAlter(const InplaceAlter&) = delete;
    InplaceAlter& operator=(const InplaceAlter&) = delete;

    /* The phases, as the server has them (handler.h); of those that return a bool true says that there is an error,
       which is set. */
    enum_alter_inplace_result check(TABLE* altered, Alter_inplace_info* info);
    bool prepare(TABLE* altered, Alter_inplace_info* info);
    bool run(TABLE* altered, Alter_inplace_info* info);
    /* Of a partitioned table the first part is asked, for all of them. */
    bool commit(TABLE* altered, Alter_inplace_info* info);
    bool give_up(Alter_inplace_info* info);

  private:
    /* What commit writes of this table. */
    struct Altered {
        std::vector<uint32_t> layout;
        std::vector<uchar> meta;
        uint64_t counter;
        bool is_guarded;
    };
    enum_alter_inplace_result check_without_rebuild(TABLE* altered, Alter_inplace_info* info);
    bool next_layouts(const TABLE* altered, const Alter_inplace_info* info, RowLayouts* layouts,
                      const char** reason) const;
    bool names_are_clear(const Alter_inplace_info* info) const;
    KeyEncoding altered_encoding(const TABLE* altered) const;
    TableMeta altered_meta(const TABLE* altered, const Alter_inplace_info* info) const;
    bool altered_state(const TABLE* altered, const Alter_inplace_info* info, Altered* state) const;
    int wanted_counter(const Alter_inplace_info* info, uint64_t* counter);
    int commit_altered(TABLE* altered, const Alter_inplace_info* info, inplace_alter_handler_ctx* const* parts);

    /* inplace_indexes.cc */
    std::unique_ptr<OnlineIndexes> make_online(const TABLE* altered, const Alter_inplace_info* info,
                                               std::vector<uint32_t>* trees) const;
    int begin_online(OnlineIndexes* added, const std::vector<uint32_t>& trees);
    int build_online(TABLE* altered, OnlineIndexes* added);
    int finish_online(TABLE* altered, OnlineIndexes* added);
    template <typename Action> int with_entries(const OnlineIndexes& added, const Action& action);
    void tell_online_error(TABLE* altered, const OnlineIndexes& added, int error);

    /* inplace_rebuild.cc */
    bool needs_rebuild(const TABLE* altered, const Alter_inplace_info* info) const;
    enum_alter_inplace_result check_rebuild(TABLE* altered, Alter_inplace_info* info);
    int begin_rebuild(TABLE* altered, const Alter_inplace_info* info, Rebuild* rebuild);
    int run_rebuild(TABLE* altered, Rebuild* rebuild);
    int finish_rebuild(TABLE* altered, Rebuild* rebuild);
    void tell_rebuild_error(TABLE* altered, Rebuild* rebuild, int error);
    template <typename Meets> void find_row(const Meets& meets);
    void tell_of_null(const Rebuild* rebuild);
    void tell_of_value(Rebuild* rebuild);
    int commit_rebuilt(TABLE* altered, const Alter_inplace_info* info, inplace_alter_handler_ctx* const* parts);

    ha_teak& file_;
    OpenTable& open_;
    TableUse& use_;
    AlteredConstraints constraints_;
};

/* What prepare leaves for the phases behind it, where the server keeps it. */
struct AlteredTable : public inplace_alter_handler_ctx {
    explicit AlteredTable(InplaceAlter* of) : alter(of) {}
    InplaceAlter* const alter;
    std::unique_ptr<OnlineIndexes> added;
    std::unique_ptr<Rebuild> rebuild;
};

inline AlteredTable* context_of(inplace_alter_handler_ctx* context) { return static_cast<AlteredTable*>(context); }

} // namespace teak
#endif
