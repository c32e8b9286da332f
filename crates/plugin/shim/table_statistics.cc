/*
  See table_statistics.h.
*/
#include "table_statistics.h"
#include "cardinality.h"
#include <algorithm>
#include <cmath>

namespace teak {

namespace {

constexpr ha_rows kRowsOfUnreadable = 1000; /* at least, of an index that the snapshot cannot read */

/* As many rows as were committed, and what the session's own transaction has added. */
ha_rows rows_for(const Session* session, const teak_table* table, uint64_t committed) {
    if (!session) return committed;
    return static_cast<ha_rows>(
        std::max<int64_t>(static_cast<int64_t>(committed) + teak_txn_rows_added(session->handle, table), 0));
}

/* When the server wrote the table's definition, which is what InnoDB gives for its creation; 0: it has none. */
time_t time_of_definition(const TABLE_SHARE* share) {
    char path[FN_REFLEN];
    if (share->tmp_table != NO_TMP_TABLE) return 0;
    fn_format(path, share->normalized_path.str, mysql_data_home, reg_ext, MY_UNPACK_FILENAME | MY_APPEND_EXT);
    MY_STAT found;
    return my_stat(path, &found, MYF(0)) ? found.st_ctime : 0;
}

/* About what a row takes of which no checkpoint has written any. */
ulong guessed_row_length(const TABLE_SHARE* share) {
    constexpr uint32 kText = 32; /* of what may be longer */
    ulong length = 0;
    for (Field** field = share->field; *field; field++)
        length += ((*field)->flags & BLOB_FLAG) || (*field)->type() == MYSQL_TYPE_VARCHAR
                      ? std::min((*field)->field_length, kText)
                      : (*field)->pack_length();
    return length;
}

} // namespace

void TableStatistics::tell(uint flag, ha_statistics* to) {
    if (!(flag & (HA_STATUS_VARIABLE | HA_STATUS_CONST | HA_STATUS_AUTO | HA_STATUS_TIME))) return;
    teak_table_statistics now;
    teak_table_get_statistics(open_.core, &now);
    if (flag & HA_STATUS_AUTO) to->auto_increment_value = std::max<ulonglong>(now.next_counter, 1);
    if (flag & HA_STATUS_TIME) to->update_time = static_cast<my_time_t>(now.changed_at);
    if (flag & HA_STATUS_VARIABLE) {
        to->records = rows_for(session_of(open_.thd()), open_.core, now.rows);
        to->deleted = 0;
        /* The optimizer takes 0 for exact, in a LEFT JOIN, and others may just be writing the first row. Who asks for
           the time, too, shows the number to somebody; who opens, goes by whether a partition is empty. */
        if (to->records == 0 && !(flag & (HA_STATUS_TIME | HA_STATUS_OPEN))) to->records = 1;
        to->data_file_length = now.data_bytes;
        to->index_file_length = now.index_bytes;
        if (lives_in_memory(open_.table->s->option_struct)) to->data_file_length = teak_table_memory_bytes(open_.core);
        if (flag & HA_STATUS_VARIABLE_EXTRA) tell_space(to);
        /* What a row is to its reader: beside Data_length it shows what compression does. Never 0 if there are rows: a
           head of Spider multiplies by it what a scan costs. */
        to->mean_rec_length = static_cast<ulong>(now.rows ? now.raw_bytes / now.rows : 0);
        if (now.rows && !to->mean_rec_length) to->mean_rec_length = guessed_row_length(open_.table->s);
        to->check_time = 0;
    }
    if (flag & HA_STATUS_CONST) {
        to->block_size = kPageBytes;
        to->create_time = time_of_definition(open_.table->s);
        tell_usable_indexes();
        refresh(false);
    }
    if (open_.seen_statistics != open_.share->version.load()) tell_rec_per_key();
}

/* What information_schema asks for beyond the rest, which takes a look at the file. Large values have extents of their
   own there, which are data as rows are. */
void TableStatistics::tell_space(ha_statistics* to) const {
    teak_table_space space;
    teak_table_get_space(open_.core, &space);
    to->delete_length = space.free_bytes;
    if (space.used_bytes > to->index_file_length)
        to->data_file_length = std::max(to->data_file_length, space.used_bytes - to->index_file_length);
    if (to->records) to->mean_rec_length = std::max(to->mean_rec_length, ulong(to->data_file_length / to->records));
}

/* Tells the server which indexes are not disabled. Others may be looking at the share: nothing is written that it has
   already. */
void TableStatistics::tell_usable_indexes() const {
    key_map usable;
    usable.set_prefix(open_.table->s->keys);
    for (uint i = 0; i < open_.table->s->keys; i++)
        if (open_.disabled_indexes & 1ULL << i) usable.clear_bit(i);
    if (open_.table->s->keys_in_use == usable) return;
    open_.table->s->keys_in_use = usable;
    open_.table->s->keys_for_keyread.intersect(usable);
}

/* The statistics in the share, to be kept with the table. The share's latch is held. */
StatisticsDigest TableStatistics::digest() const {
    StatisticsDigest digest;
    digest.rows = open_.share->sampled_rows;
    for (uint i = 0; i < open_.table->s->keys; i++)
        digest.indexes.push_back({TableMeta::name_of(open_.table->key_info[i]), open_.share->rec_per_key[i]});
    return digest;
}

/* Puts what was kept into the share, if it tells of each index as it is now. The share's latch is held. */
void TableStatistics::recall(teak_bytes kept) {
    StatisticsDigest digest;
    if (!digest.parse(kept)) return;
    std::vector<std::vector<double>> recalled(open_.table->s->keys);
    uint found = 0;
    for (StatisticsDigest::Index& index : digest.indexes)
        for (uint i = 0; i < open_.table->s->keys; i++) {
            if (!recalled[i].empty() || open_.key_codec(i).parts().size() != index.rows_per_prefix.size() ||
                TableMeta::name_of(open_.table->key_info[i]) != index.name)
                continue;
            recalled[i].swap(index.rows_per_prefix);
            found++;
            break;
        }
    if (found != open_.table->s->keys) return;
    open_.share->sampled_rows = digest.rows;
    open_.share->rec_per_key.swap(recalled);
    open_.share->version++;
}

/* Whether the sample is to be taken now, since there is none or it has aged. */
bool TableStatistics::begin_sampling(uint64_t rows, bool force) {
    std::lock_guard<std::mutex> hold(open_.share->latch);
    if (open_.share->sampled_rows == UINT64_MAX && !force)
        teak_table_get_digest(
            open_.core,
            [](void* statistics, teak_bytes digest) { static_cast<TableStatistics*>(statistics)->recall(digest); },
            this);
    const uint64_t seen = open_.share->sampled_rows;
    if (!force && seen != UINT64_MAX) {
        const uint64_t moved = rows > seen ? rows - seen : seen - rows;
        if (!has_aged(std::max(moved, open_.share->changed_keys))) return false;
    }
    open_.share->sampled_rows = rows;
    open_.share->changed_keys = 0;
    open_.share->aged = false;
    return true;
}

void TableStatistics::refresh(bool force) {
    teak_table_statistics now;
    teak_table_get_statistics(open_.core, &now);
    if (!begin_sampling(now.rows, force)) return;
    std::vector<std::vector<double>> fresh(open_.table->s->keys);
    for (uint i = 0; i < open_.table->s->keys; i++)
        if (Cardinality(open_, i).estimate(&fresh[i]) != TEAK_OK) return;
    std::lock_guard<std::mutex> hold(open_.share->latch);
    open_.share->rec_per_key.swap(fresh);
    open_.share->version++;
    if (open_.temporary || now.rows == 0) return;
    /* What is too long, for very many indexes, is sampled again. */
    const std::vector<uchar> kept = digest().encode();
    teak_table_keep_digest(open_.core, bytes_of(kept.data(), kept.size()));
}

void TableStatistics::tell_changed_keys() {
    if (!open_.share || !changed_keys_) return;
    std::lock_guard<std::mutex> hold(open_.share->latch);
    open_.share->changed_keys += changed_keys_;
    changed_keys_ = 0;
    if (open_.temporary || open_.share->aged || !has_aged(open_.share->changed_keys)) return;
    /* Nor is it to be found by who opens the table next, when the share may be gone. */
    open_.share->aged = true;
    teak_table_keep_digest(open_.core, {nullptr, 0});
}

void TableStatistics::tell_rec_per_key() {
    std::lock_guard<std::mutex> hold(open_.share->latch);
    open_.seen_statistics = open_.share->version.load();
    for (uint i = 0; i < open_.table->s->keys && i < open_.share->rec_per_key.size(); i++) {
        KEY* key = &open_.table->key_info[i];
        const std::vector<double>& frequencies = open_.share->rec_per_key[i];
        for (uint part = 0; part < key->ext_key_parts; part++) {
            double n = part < frequencies.size() ? frequencies[part] : 1;
            bool is_unique = (key->flags & HA_NOSAME) && part + 1 >= key->user_defined_key_parts;
            /* Half of it, as InnoDB says: the optimizer otherwise favours table scans too much. */
            key->rec_per_key[part] = is_unique ? 1 : std::max<ulong>(1, static_cast<ulong>(n / 2));
        }
    }
}

ha_rows TableStatistics::upper_bound() const {
    teak_table_statistics now;
    teak_table_get_statistics(open_.core, &now);
    return now.rows + now.rows / 4 + 10;
}

ha_rows TableStatistics::in_range(uint index, const key_range* from, const key_range* to, ha_rows rows) {
    const KeyCodec& codec = open_.key_codec(index);
    teak_bound lower = bound_of(codec, from, &from_);
    teak_bound upper = bound_of(codec, to, &to_);
    if (from && from->flag == HA_READ_AFTER_KEY) lower.kind = TEAK_BOUND_EXCLUDE;
    if (to && to->flag == HA_READ_BEFORE_KEY) upper.kind = TEAK_BOUND_EXCLUDE;
    uint64_t found;
    const Session* const session = session_of(open_.thd());
    const teak_session* const whose = session ? session->handle : nullptr;
    const teak_status status = teak_estimate_range(whose, open_.core, open_.tree_of(index), &lower, &upper, &found);
    /* An index that is younger than the snapshot is none to choose, as all ways that do without it are better. Without
       a number the optimizer would go by the average, where it looks for one value. */
    if (status == TEAK_TABLE_CHANGED) return std::max(rows, kRowsOfUnreadable);
    if (status != TEAK_OK) return HA_POS_ERROR;
    return std::max<ha_rows>(found, 1);
}

teak_bound bound_of(const KeyCodec& codec, const key_range* range, Buffer* buffer) {
    if (!range) return {{nullptr, 0}, TEAK_BOUND_NONE};
    uchar* to = buffer->room(codec.max_size());
    if (!to) return {{nullptr, 0}, TEAK_BOUND_NONE};
    uint done;
    bool has_null;
    uchar* end = codec.encode_tuple(to, range->key, range->length, &done, &has_null);
    return {{to, static_cast<size_t>(end - to)}, TEAK_BOUND_INCLUDE};
}

} // namespace teak
