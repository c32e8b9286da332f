/*
  Reading many ranges at once, sorted: the server's DS-MRR (sql/multi_range_read.h), on which BKA joins are built.

  The server sorts the keys that are to be looked up, or the rows' keys that an index gave, and asks for the rows in
  that order. It needs two handlers for the second: this one reads the rows, a clone the index.
*/
#include "ha_teak.h"

using namespace teak;

void ha_teak::prepare_sorted_ranges(uint* flags) {
    sorted_ranges_.init(this, table);
    /* Rows are locked in the order in which their index has them. */
    if (use_.held.rows != RowLock::None) *flags |= HA_MRR_USE_DEFAULT_IMPL;
}

ha_rows ha_teak::multi_range_read_info(uint index, uint ranges, uint rows, uint parts, uint* buffer_bytes, uint* flags,
                                       Cost_estimate* cost) {
    prepare_sorted_ranges(flags);
    return sorted_ranges_.dsmrr_info(index, ranges, rows, parts, buffer_bytes, flags, cost);
}

/* The server's ranges, with an eye on what is taken of them: keys that are sorted are looked up once all that there is
   room for are there. */
struct WantedRanges {
    static range_seq_t init(void* arg, uint count, uint flags) {
        auto* reader = static_cast<ha_teak*>(arg);
        reader->wanted_.server_at = reader->wanted_.server.init(reader->wanted_.server_arg, count, flags);
        return reader;
    }
    static void key_info(void* arg, uint* length, key_part_map* parts) {
        auto* reader = static_cast<ha_teak*>(arg);
        reader->wanted_.server.get_key_info(reader->wanted_.server_arg, length, parts);
    }
    static bool next(range_seq_t at, KEY_MULTI_RANGE* range) {
        auto* reader = static_cast<ha_teak*>(at);
        if (reader->wanted_.server.next(reader->wanted_.server_at, range)) return true;
        reader->note_wanted(range->start_key);
        return false;
    }
    static bool skip_record(range_seq_t at, range_id_t range, uchar* row) {
        auto* reader = static_cast<ha_teak*>(at);
        return reader->wanted_.server.skip_record(reader->wanted_.server_at, range, row);
    }
    static bool skip_tuple(range_seq_t at, range_id_t range) {
        auto* reader = static_cast<ha_teak*>(at);
        return reader->wanted_.server.skip_index_tuple(reader->wanted_.server_at, range);
    }
};

int ha_teak::multi_range_read_init(RANGE_SEQ_IF* ranges, void* ranges_arg, uint count, uint mode,
                                   HANDLER_BUFFER* buffer) {
    sorted_ranges_.init(this, table);
    if (active_index < MAX_KEY) wanted_.index = active_index;
    wanted_.coming_entries.clear();
    wanted_.coming_rows.clear();
    wanted_.makes_reader = true;
    int error;
    if ((mode & HA_MRR_SINGLE_POINT) && !(mode & (HA_MRR_USE_DEFAULT_IMPL | HA_MRR_SORTED)) &&
        (ha_thd()->variables.optimizer_switch & OPTIMIZER_SWITCH_MRR_SORT_KEYS)) {
        wanted_.server = *ranges;
        wanted_.server_arg = ranges_arg;
        RANGE_SEQ_IF seen{WantedRanges::key_info, WantedRanges::init, WantedRanges::next,
                          ranges->skip_record ? WantedRanges::skip_record : nullptr,
                          ranges->skip_index_tuple ? WantedRanges::skip_tuple : nullptr};
        error = sorted_ranges_.dsmrr_init(this, &seen, this, count, mode, buffer);
    } else
        error = sorted_ranges_.dsmrr_init(this, ranges, ranges_arg, count, mode, buffer);
    wanted_.makes_reader = false;
    return error;
}

/* A range that begins with this key is going to be read, together with others. */
void ha_teak::note_wanted(const key_range& range) {
    if (!range.key || wanted_.index == MAX_KEY) return;
    const KeyCodec& codec = open_.key_codec(wanted_.index);
    const size_t before = wanted_.coming_entries.size();
    wanted_.coming_entries.resize(before + 2 + codec.max_size());
    uchar* to = wanted_.coming_entries.data() + before + 2;
    uint done;
    bool has_null;
    const size_t length = static_cast<size_t>(codec.encode_tuple(to, range.key, range.length, &done, &has_null) - to);
    int2store(wanted_.coming_entries.data() + before, length);
    wanted_.coming_entries.resize(before + 2 + length);
}

/* Tells the tree's cursor which keys it is going to be asked for; one alone is the one that it is asked for now. */
void ha_teak::expect(std::vector<uchar>* keys, uint32_t tree) {
    if (keys->empty()) return;
    teak_cursor* cursor = keys->size() > 2U + uint2korr(keys->data()) ? open_.cursor_of(tree) : nullptr;
    if (cursor) teak_cursor_expect(cursor, bytes_of(keys->data(), keys->size()));
    keys->clear();
}

int ha_teak::multi_range_read_next(range_id_t* range) { return sorted_ranges_.dsmrr_next(range); }

int ha_teak::multi_range_read_explain_info(uint mode, char* text, size_t size) {
    return sorted_ranges_.dsmrr_explain_info(mode, text, size);
}
