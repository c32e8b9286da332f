/*
  See row_entries.h.
*/
#include "row_entries.h"
#include "server_contracts.h"
#include <algorithm>

namespace teak {

void RowEntries::make_room() {
    const uint keys = open_.table->s->keys;
    buffers_ = std::make_unique<Buffers[]>(2 * size_t{keys});
    read.resize(keys);
    written.resize(keys);
}

bool RowEntries::has_virtual_values(const IndexCodec& index) const {
    const std::vector<uint>& columns = index.virtual_columns();
    if (columns.empty()) return true;
    return !applies_row_events(open_.thd()) && std::all_of(columns.begin(), columns.end(), [&](uint column) {
        return bitmap_is_set(open_.table->read_set, column) && !(open_.table->field[column]->flags & BLOB_FLAG);
    });
}

void RowEntries::compute_virtual(const IndexCodec& index, uchar* record, Image image) {
    if (index.virtual_columns().empty()) return;
    TABLE* const table = open_.table;
    /* update_virtual_field makes use of this set, by which the server may be reading. */
    my_bitmap_map columns[(MAX_FIELDS + 8 * sizeof(my_bitmap_map)) / (8 * sizeof(my_bitmap_map))];
    const size_t bytes = bitmap_buffer_size(table->tmp_set.n_bits);
    memcpy(columns, table->tmp_set.bitmap, bytes);
    const bool moved = record != table->record[0];
    if (moved) table->move_fields(table->field, record, table->record[0]);
    for (const uint column : index.virtual_columns()) {
        Field* const field = table->field[column];
        auto* const blob = field->flags & BLOB_FLAG ? static_cast<Field_blob*>(field) : nullptr;
        const bool aside = blob && image == Image::Read;
        if (aside) blob->swap_value_and_read_value();
        table->update_virtual_field(field, true);
        if (!aside) continue;
        if (blobs_.empty()) blobs_.resize(table->s->fields);
        std::string& value = blobs_[column];
        const uint32 length = field->is_null() ? 0 : blob->get_length();
        value.assign(reinterpret_cast<const char*>(length ? blob->get_ptr() : nullptr), length);
        blob->set_ptr(length, reinterpret_cast<uchar*>(value.data()));
        blob->swap_value_and_read_value();
    }
    if (moved) table->move_fields(table->field, table->record[0], record);
    memcpy(table->tmp_set.bitmap, columns, bytes);
}

} // namespace teak
