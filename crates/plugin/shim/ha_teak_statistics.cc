/*
  What the optimizer asks about tables: how many rows there are, how many have the same key, how many lie in a
  range. What it costs to read them is in ha_teak_costs.cc.

  Rows per distinct prefix of each index come from a sample of its tree's leaves. The sample is kept with the table
  (teak_table_keep_digest), so that neither a restart nor an opening that finds the server's share of the table gone
  reads a leaf:

    version 1 (1 byte) | rows when it was taken (8) | for each index: hash of its name (8, TableMeta::name_of) | number
    of parts (1) | rows per distinct prefix of 1..n parts (4 each, float)

  Integers and floats are little-endian. It is taken anew when an opening finds a tenth of the rows more or fewer, or
  that as many have got other keys, and by ANALYZE TABLE.
*/
#include "ha_teak.h"
#include <algorithm>
#include <cmath>

using namespace teak;

namespace {

constexpr size_t kSampledLeaves = 20;
constexpr uint32_t kToldAtOnce = 64;        /* changes of keys */
constexpr ha_rows kRowsOfUnreadable = 1000; /* at least, of an index that the snapshot cannot read */
constexpr uchar kDigestVersion = 1;
constexpr size_t kDigestHeadBytes = 9, kDigestIndexBytes = 9, kFloatBytes = 4;

/* Rows per distinct prefix of 1..n parts, from a sample of a tree's keys. */
std::vector<double> prefix_frequencies(const KeyCodec& codec, const teak_sample& sample, double rows, bool whole) {
    size_t parts = codec.parts().size();
    std::vector<double> distinct(parts, 0);
    double pairs = 0;
    size_t leaf = 0;
    for (size_t i = 0; i < sample.n_keys; i++) {
        bool first_of_leaf = i == 0;
        while (leaf < sample.n_leaves && i >= sample.leaf_ends[leaf]) {
            leaf++;
            first_of_leaf |= !whole;
        }
        if (first_of_leaf) continue;
        const teak_bytes &a = sample.keys[i - 1], &b = sample.keys[i];
        const uchar *p = a.data, *q = b.data;
        pairs++;
        size_t part = 0;
        for (; part < parts; part++) {
            const uchar* p_end = KeyCodec::skip_part(codec.parts()[part], p, a.data + a.len);
            const uchar* q_end = KeyCodec::skip_part(codec.parts()[part], q, b.data + b.len);
            if (!p_end || !q_end) break;
            if (p_end - p != q_end - q || memcmp(p, q, static_cast<size_t>(p_end - p)) != 0) break;
            p = p_end;
            q = q_end;
        }
        for (; part < parts; part++)
            distinct[part]++;
    }
    std::vector<double> result(parts, 1);
    for (size_t part = 0; part < parts; part++) {
        double n = rows;
        if (whole)
            n = rows / (distinct[part] + 1);
        else if (distinct[part] > 0)
            n = pairs / distinct[part];
        else /* each sampled leaf holds one value: at least the leaves' first keys may differ */
            n = rows / static_cast<double>(std::max<size_t>(sample.n_leaves, 1));
        result[part] = std::max(n, 1.0);
    }
    return result;
}

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

} // namespace

int ha_teak::info(uint flag) {
    if (!open_.table) return HA_ERR_NO_SUCH_TABLE;
    if (flag & HA_STATUS_ERRKEY) {
        const Session* session = session_of(ha_thd());
        errkey = session && session->duplicate.of == table ? session->duplicate.index : UINT_MAX;
    }
    if (flag & (HA_STATUS_VARIABLE | HA_STATUS_CONST | HA_STATUS_AUTO | HA_STATUS_TIME)) {
        teak_table_statistics now;
        teak_table_get_statistics(open_.table, &now);
        if (flag & HA_STATUS_AUTO) stats.auto_increment_value = std::max<ulonglong>(now.next_counter, 1);
        if (flag & HA_STATUS_TIME) stats.update_time = static_cast<my_time_t>(now.changed_at);
        if (flag & HA_STATUS_VARIABLE) {
            stats.records = rows_for(session_of(ha_thd()), open_.table, now.rows);
            stats.deleted = 0;
            /* The optimizer takes 0 for exact, in a LEFT JOIN, and others may just be writing the first row. Who asks
               for the time, too, shows the number to somebody; who opens, goes by whether a partition is empty. */
            if (stats.records == 0 && !(flag & (HA_STATUS_TIME | HA_STATUS_OPEN))) stats.records = 1;
            stats.data_file_length = now.data_bytes;
            stats.index_file_length = now.index_bytes;
            if (lives_in_memory(table->s->option_struct)) stats.data_file_length = teak_table_memory_bytes(open_.table);
            if (flag & HA_STATUS_VARIABLE_EXTRA) publish_space();
            /* What a row is to its reader: beside Data_length it shows what compression does. */
            stats.mean_rec_length = static_cast<ulong>(now.rows ? now.raw_bytes / now.rows : 0);
            stats.check_time = 0;
        }
        if (flag & HA_STATUS_CONST) {
            stats.block_size = kPageBytes;
            stats.create_time = time_of_definition(table->s);
            publish_usable_indexes();
            refresh_statistics(false);
        }
        if (open_.seen_statistics != share_->version.load()) publish_rec_per_key();
    }
    return 0;
}

/* What information_schema asks for beyond the rest, which takes a look at the file. Large values have extents of their
   own there, which are data as rows are. */
void ha_teak::publish_space() {
    teak_table_space space;
    teak_table_get_space(open_.table, &space);
    stats.delete_length = space.free_bytes;
    if (space.used_bytes > stats.index_file_length)
        stats.data_file_length = std::max(stats.data_file_length, space.used_bytes - stats.index_file_length);
    if (stats.records)
        stats.mean_rec_length = std::max(stats.mean_rec_length, ulong(stats.data_file_length / stats.records));
}

/* Tells the server which indexes are not disabled. Others may be looking at the share: nothing is written that it has
   already. */
void ha_teak::publish_usable_indexes() {
    key_map usable;
    usable.set_prefix(table->s->keys);
    for (uint i = 0; i < table->s->keys; i++)
        if (open_.disabled_indexes & 1ULL << i) usable.clear_bit(i);
    if (table->s->keys_in_use == usable) return;
    table->s->keys_in_use = usable;
    table->s->keys_for_keyread.intersect(usable);
}

/* The statistics in the share, to be kept with the table. The share's latch is held. */
std::vector<uchar> ha_teak::statistics_digest() const {
    std::vector<uchar> digest(kDigestHeadBytes);
    digest[0] = kDigestVersion;
    int8store(digest.data() + 1, share_->sampled_rows);
    for (uint i = 0; i < table->s->keys; i++) {
        const std::vector<double>& frequencies = share_->rec_per_key[i];
        uchar bytes[kDigestIndexBytes];
        int8store(bytes, TableMeta::name_of(table->key_info[i]));
        bytes[8] = static_cast<uchar>(frequencies.size());
        digest.insert(digest.end(), bytes, bytes + sizeof bytes);
        for (double rows : frequencies) {
            const auto n = static_cast<float>(rows);
            float4store(bytes, n);
            digest.insert(digest.end(), bytes, bytes + kFloatBytes);
        }
    }
    return digest;
}

/* Puts what was kept into the share, if it tells of each index as it is now. The share's latch is held. */
void ha_teak::recall_statistics(teak_bytes digest) {
    if (digest.len < kDigestHeadBytes || digest.data[0] != kDigestVersion) return;
    std::vector<std::vector<double>> recalled(table->s->keys);
    const uchar *at = digest.data + kDigestHeadBytes, *const end = digest.data + digest.len;
    uint found = 0;
    while (static_cast<size_t>(end - at) >= kDigestIndexBytes) {
        const ulonglong name = uint8korr(at);
        const size_t parts = at[8];
        at += kDigestIndexBytes;
        if (static_cast<size_t>(end - at) < parts * kFloatBytes) return;
        for (uint i = 0; i < table->s->keys; i++) {
            if (!recalled[i].empty() || key_codec(i).parts().size() != parts ||
                TableMeta::name_of(table->key_info[i]) != name)
                continue;
            for (size_t part = 0; part < parts; part++) {
                float n;
                float4get(n, at + part * kFloatBytes);
                recalled[i].push_back(n >= 1 ? n : 1);
            }
            found++;
            break;
        }
        at += parts * kFloatBytes;
    }
    if (at != end || found != table->s->keys) return;
    share_->sampled_rows = uint8korr(digest.data + 1);
    share_->rec_per_key.swap(recalled);
    share_->version++;
}

/* Whether a sample is of no use after so many changes. The share's latch is held. */
bool ha_teak::has_aged(uint64_t changes) const { return changes > share_->sampled_rows / 10; }

/* Whether the sample is to be taken now, since there is none or it has aged. */
bool ha_teak::begin_sampling(uint64_t rows, bool force) {
    std::lock_guard<std::mutex> hold(share_->latch);
    if (share_->sampled_rows == UINT64_MAX && !force)
        teak_table_get_digest(
            open_.table,
            [](void* handler, teak_bytes digest) { static_cast<ha_teak*>(handler)->recall_statistics(digest); }, this);
    const uint64_t seen = share_->sampled_rows;
    if (!force && seen != UINT64_MAX) {
        const uint64_t moved = rows > seen ? rows - seen : seen - rows;
        if (!has_aged(std::max(moved, share_->changed_keys))) return false;
    }
    share_->sampled_rows = rows;
    share_->changed_keys = 0;
    share_->aged = false;
    return true;
}

void ha_teak::refresh_statistics(bool force) {
    teak_table_statistics now;
    teak_table_get_statistics(open_.table, &now);
    if (!begin_sampling(now.rows, force)) return;
    std::vector<std::vector<double>> fresh(table->s->keys);
    for (uint i = 0; i < table->s->keys; i++) {
        teak_tree_statistics tree;
        teak_sample sample;
        if (teak_tree_get_statistics(open_.table, tree_of(i), &tree) != TEAK_OK ||
            teak_tree_sample(open_.table, tree_of(i), kSampledLeaves, &sample) != TEAK_OK)
            return;
        double rows = static_cast<double>(std::max<uint64_t>(tree.entries, sample.n_keys));
        fresh[i] = prefix_frequencies(key_codec(i), sample, rows, sample.n_leaves >= tree.leaves);
        teak_sample_free(&sample);
    }
    std::lock_guard<std::mutex> hold(share_->latch);
    share_->rec_per_key.swap(fresh);
    share_->version++;
    if (temporary_ || now.rows == 0) return;
    /* What is too long, for very many indexes, is sampled again. */
    const std::vector<uchar> digest = statistics_digest();
    teak_table_keep_digest(open_.table, bytes_of(digest.data(), digest.size()));
}

/* Keys of a row have changed: the sample ages. The share is told of many at a time, as all sessions write to it. */
void ha_teak::note_changed_keys() {
    if (++changed_keys_ >= kToldAtOnce) tell_changed_keys();
}

void ha_teak::tell_changed_keys() {
    if (!share_ || !changed_keys_) return;
    std::lock_guard<std::mutex> hold(share_->latch);
    share_->changed_keys += changed_keys_;
    changed_keys_ = 0;
    if (temporary_ || share_->aged || !has_aged(share_->changed_keys)) return;
    /* Nor is it to be found by who opens the table next, when the share may be gone. */
    share_->aged = true;
    teak_table_keep_digest(open_.table, {nullptr, 0});
}

void ha_teak::publish_rec_per_key() {
    std::lock_guard<std::mutex> hold(share_->latch);
    open_.seen_statistics = share_->version.load();
    for (uint i = 0; i < table->s->keys && i < share_->rec_per_key.size(); i++) {
        KEY* key = &table->key_info[i];
        const std::vector<double>& frequencies = share_->rec_per_key[i];
        for (uint part = 0; part < key->ext_key_parts; part++) {
            double n = part < frequencies.size() ? frequencies[part] : 1;
            bool is_unique = (key->flags & HA_NOSAME) && part + 1 >= key->user_defined_key_parts;
            /* Half of it, as InnoDB says: the optimizer otherwise favours table scans too much. */
            key->rec_per_key[part] = is_unique ? 1 : std::max<ulong>(1, static_cast<ulong>(n / 2));
        }
    }
}

ha_rows ha_teak::estimate_rows_upper_bound() {
    teak_table_statistics now;
    teak_table_get_statistics(open_.table, &now);
    return now.rows + now.rows / 4 + 10;
}

teak_bound ha_teak::estimate_bound(uint index, const key_range* range, Buffer* buffer) {
    if (!range) return {{nullptr, 0}, TEAK_BOUND_NONE};
    const KeyCodec& codec = key_codec(index);
    uchar* to = buffer->room(codec.max_size());
    if (!to) return {{nullptr, 0}, TEAK_BOUND_NONE};
    uint done;
    bool has_null;
    uchar* end = codec.encode_tuple(to, range->key, range->length, &done, &has_null);
    return {{to, static_cast<size_t>(end - to)}, TEAK_BOUND_INCLUDE};
}

ha_rows ha_teak::records_in_range(uint index, const key_range* from, const key_range* to, page_range*) {
    teak_bound lower = estimate_bound(index, from, &seek_key_);
    teak_bound upper = estimate_bound(index, to, &end_key_);
    if (from && from->flag == HA_READ_AFTER_KEY) lower.kind = TEAK_BOUND_EXCLUDE;
    if (to && to->flag == HA_READ_BEFORE_KEY) upper.kind = TEAK_BOUND_EXCLUDE;
    uint64_t rows;
    const Session* const session = session_of(ha_thd());
    const teak_session* const whose = session ? session->handle : nullptr;
    const teak_status status = teak_estimate_range(whose, open_.table, tree_of(index), &lower, &upper, &rows);
    /* An index that is younger than the snapshot is none to choose, as all ways that do without it are better. Without
       a number the optimizer would go by the average, where it looks for one value. */
    if (status == TEAK_TABLE_CHANGED) return std::max(stats.records, kRowsOfUnreadable);
    if (status != TEAK_OK) return HA_POS_ERROR;
    return std::max<ha_rows>(rows, 1);
}

int ha_teak::analyze(THD*, HA_CHECK_OPT*) {
    refresh_statistics(true);
    return info(HA_STATUS_VARIABLE | HA_STATUS_CONST) ? HA_ADMIN_FAILED : HA_ADMIN_OK;
}
