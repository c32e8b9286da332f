/*
  ALTER TABLE: indexes that are added while others write.

    prepare    the new trees are there, writes are followed from here on                   (exclusive lock)
    alter      the entries of a snapshot; then, until little is left, of what was          (no lock)
               written between it and the next
    commit     what is left; no key is there twice                                         (exclusive lock)

  What is written meanwhile the engine only notes the keys of (teak_online_new): the writers' definition knows nothing
  of the new indexes. Their entries are made here, by the altered definition, of rows as of snapshots.
*/
#include "ha_teak.h"
#include "inplace_alter.h"

using namespace teak;

namespace {

/* Entries of rows in whose columns the server has to compute some: in its TABLE, and so on its thread. */
class RecordEntries {
  public:
    RecordEntries(THD* thd, TABLE* table, const EntryPlan& plan)
        : progress{thd, 1}, table_(table), plan_(plan), whole_(table, whole_rows_) {
        for (Field** field = table->vfield; field && *field; field++)
            if (!(*field)->stored_in_db() && bitmap_is_set(plan.columns, (*field)->field_index))
                keyed_.push_back(*field);
        keyed_.push_back(nullptr);
    }

    Progress progress;

    static void* begin(void* context) { return context; }
    static uint32_t row(void* maker, teak_feed* feed, teak_bytes pk, teak_bytes row) {
        return static_cast<RecordEntries*>(maker)->take(feed, pk, row);
    }
    static void end(void*) {}
    static int watch(void* context, uint64_t rows) {
        return Progress::report(&static_cast<RecordEntries*>(context)->progress, rows);
    }

  private:
    teak_status take(teak_feed* feed, teak_bytes pk, teak_bytes row) {
        uchar* const record = table_->record[0];
        if (!plan_.rows->unpack(row, record, &blobs_, nullptr)) return TEAK_CORRUPT;
        if (!plan_.primary->hidden() && !plan_.primary->decode(pk, record)) return TEAK_CORRUPT;
        if (!compute_columns(table_, &keyed_)) return TEAK_INTERRUPTED;
        for (uint32_t part = 0; part < plan_.indexes->size(); part++) {
            teak_entry entry;
            if (!(*plan_.indexes)[part]->encode(record, pk, &key_, &value_, &entry)) return TEAK_OUT_OF_MEMORY;
            if (teak_status status = teak_feed_add(feed, part, entry.key, entry.value)) return status;
        }
        return TEAK_OK;
    }

    TABLE* const table_;
    const EntryPlan plan_;
    std::vector<Field*> keyed_;
    bool whole_rows_ = false;
    const WholeRows whole_;
    Buffer blobs_, key_, value_;
};

/* Makes entries of rows: what the engine is given for a build. */
class EntryReader {
  public:
    EntryReader(THD* thd, TABLE* table, const EntryPlan& plan)
        : scan_{{thd, 1}, plan}, records_(thd, table, plan), computes_(table->vfield != nullptr) {}

    RowReading reading() {
        if (!computes_)
            return {{RowScan::begin, RowScan::row, RowScan::end, RowScan::watch}, &scan_, &scan_.progress, false};
        return {{RecordEntries::begin, RecordEntries::row, RecordEntries::end, RecordEntries::watch},
                &records_,
                &records_.progress,
                true};
    }

  private:
    RowScan scan_;
    RecordEntries records_;
    const bool computes_;
};

} // namespace

bool OnlineIndexes::init(const TABLE* altered, const std::vector<uint>& which, KeyEncoding encoding) {
    if (!primary_.init(altered, encoding)) return false;
    codecs_.resize(which.size());
    for (size_t i = 0; i < which.size(); i++) {
        if (!codecs_[i].init(altered, which[i], &primary_)) return false;
        indexes_.push_back(&codecs_[i]);
        keys_.push_back(&altered->key_info[which[i]]);
    }
    return true;
}

/* The indexes that are added, and their trees; nullptr: they cannot be built. */
std::unique_ptr<OnlineIndexes> InplaceAlter::make_online(const TABLE* altered, const Alter_inplace_info* info,
                                                         std::vector<uint32_t>* trees) const {
    std::vector<uint> which;
    for (uint i = 0; i < info->index_add_count; i++) {
        uint index = 0;
        while (index < altered->s->keys && !same_name(altered->key_info[index], added_key(info, i)))
            index++;
        if (index == altered->s->keys) return nullptr;
        which.push_back(index);
        trees->push_back(open_.meta.tree_of(added_key(info, i)));
    }
    auto added = std::make_unique<OnlineIndexes>();
    return added->init(altered, which, altered_encoding(altered)) ? std::move(added) : nullptr;
}

/* Follows the rows from here on. Nobody else has the table. */
int InplaceAlter::begin_online(OnlineIndexes* added, const std::vector<uint32_t>& trees) {
    if (int error = use_.ready()) return error;
    return added->build.begin(open_.thd(), open_.core, open_.core, trees);
}

/* Fills the trees, and goes on until few rows are left that were changed meanwhile. The error is set. */
int InplaceAlter::build_online(TABLE* altered, OnlineIndexes* added) {
    int error = use_.ready();
    if (!error)
        error = with_entries(*added, [&](const RowReading& reading) {
            return added->build.run(open_.thd(), use_.session(), reading, file_.estimate_rows_upper_bound(),
                                    {stages::building_indexes, stages::applying_changes_to_indexes});
        });
    if (error) tell_online_error(altered, *added, error);
    return error;
}

/* What is left when nobody else has the table. The error is set. */
int InplaceAlter::finish_online(TABLE* altered, OnlineIndexes* added) {
    int error =
        with_entries(*added, [&](const RowReading& reading) { return added->build.finish(open_.thd(), reading); });
    if (error) tell_online_error(altered, *added, error);
    return error;
}

template <typename Action> int InplaceAlter::with_entries(const OnlineIndexes& added, const Action& action) {
    MY_BITMAP columns;
    if (my_bitmap_init(&columns, nullptr, open_.table->s->fields)) return HA_ERR_OUT_OF_MEM;
    open_.note_columns(added.indexes(), &columns);
    EntryReader entries(open_.thd(), open_.table,
                        {&open_.rows, &open_.primary, &added.indexes(), &columns, open_.table->s->rec_buff_length});
    int error = action(entries.reading());
    my_bitmap_free(&columns);
    return error;
}

/* Of two rows with one key the values are those that one of them had in the snapshot in which they were met. */
void InplaceAlter::tell_online_error(TABLE* altered, const OnlineIndexes& added, int error) {
    if (open_.thd()->is_error()) return;
    uint part;
    const teak_entry_view entry = added.build.duplicate(&part);
    teak_bytes row, pk{nullptr, 0};
    std::vector<uchar> scratch(open_.primary.max_size());
    if (error == HA_ERR_FOUND_DUPP_KEY) pk = added.indexes()[part]->primary_of(entry, scratch.data(), scratch.size());
    Buffer blobs;
    if (!pk.len || !added.build.row(pk, &row) || !open_.show_row(pk, row, &file_, &blobs)) {
        file_.print_error(error, MYF(0));
        return;
    }
    memcpy(altered->record[0], open_.table->record[0], altered->s->reclength);
    print_keydup_error(altered, added.key(part), MYF(0));
}
