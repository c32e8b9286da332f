#include "decoder.h"
#include "row_codec.h"
#include "statistics_digest.h"
#include "table_meta.h"
#include <memory>

using namespace teak;

namespace {

/* A record that is larger is no table's. */
constexpr size_t kMostRecordBytes = 1 << 20;

/* What a row's CHARs are filled with spaces by. */
CHARSET_INFO* one_byte_spaces() {
    static struct charset_info_st cs {};
    cs.mbminlen = 1;
    cs.mbmaxlen = 3;
    return &cs;
}

void must(bool holds, const char* what) {
    if (holds) return;
    fprintf(stderr, "it does not hold: %s\n", what);
    abort();
}

/* A table whose rows the newest layout describes. */
struct Table {
    std::vector<ColumnCodec> columns;
    std::vector<uchar> nulls;
    size_t record = 0;

    /* False: no table has so large a record, or such null bits. */
    bool init(const RowLayout& newest) {
        nulls.assign(newest.null_bytes, 0);
        record = nulls.size();
        for (const LayoutColumn& from : newest.columns) {
            ColumnCodec to{};
            to.kind = from.kind;
            if (from.kind == ColumnKind::Signed || from.kind == ColumnKind::Unsigned) to.kind = ColumnKind::Fixed;
            to.kind_in_layout = from.kind;
            to.length_bytes = from.length_bytes;
            to.bytes = from.bytes;
            if (from.kind == ColumnKind::Varchar) to.bytes = from.length_bytes + 40;
            if (from.kind == ColumnKind::Blob) to.bytes = from.length_bytes + sizeof(uchar*);
            if (from.may_be_null()) {
                to.null_offset = from.null_bit / 8;
                to.null_mask = static_cast<uint8_t>(1 << from.null_bit % 8);
            }
            to.charset = one_byte_spaces();
            to.fieldnr = static_cast<uint>(columns.size());
            to.offset = static_cast<uint>(record);
            if (to.bytes > kMostRecordBytes - record) return false;
            record += to.bytes;
            columns.push_back(to);
        }
        return true;
    }
};

/* Reads bytes as a row of each layout; into memory of just the size, so that what is beyond it is found. */
void translate(const RowLayouts& layouts, const uchar* bytes, size_t length) {
    Table table;
    if (!table.init(layouts.newest())) return;
    const std::unique_ptr<uchar[]> row(new uchar[length]), record(new uchar[table.record]), blobs(new uchar[length]);
    if (length) memcpy(row.get(), bytes, length);
    for (size_t i = 0; i + 1 < layouts.layouts.size(); i++) {
        RowTranslation translation;
        if (!translation.init(layouts, layouts.layouts[i], table.columns, table.nulls)) continue;
        std::vector<size_t> null_bytes{translation.null_bytes()};
        const ColumnTail& tail = layouts.tail;
        if (i == 0)
            null_bytes = {tail.null_bytes(tail.columns, translation.null_bytes()),
                          tail.null_bytes(tail.base_columns, translation.null_bytes()),
                          tail.null_bytes(tail.columns + 9u, translation.null_bytes())};
        for (const size_t nulls : null_bytes) {
            if (nulls == SIZE_MAX) continue;
            memset(record.get(), 0, table.record);
            if (!translation.unpack({row.get(), length}, nulls, record.get(), blobs.get(), nullptr)) continue;
            /* What it has put there may be packed again. */
            std::vector<uchar> packed;
            for (const ColumnCodec& column : table.columns) {
                if (column.is_null(record.get()) || column.kind == ColumnKind::PaddedChar) continue;
                packed.resize(column.packed_size(record.get()));
                must(column.pack(packed.data(), record.get()) == packed.data() + packed.size(), "its packed size");
            }
        }
    }
}

LayoutColumn column(uint16_t id, ColumnKind kind, uint8_t length_bytes, uint32_t bytes, uint16_t null_bit) {
    return {id, kind, length_bytes, bytes, null_bit};
}

/* id INT, a VARCHAR(20), t TEXT, c CHAR(5) of several bytes; then a BIGINT and NULL-able ones; then fewer. */
RowLayouts sample_layouts() {
    constexpr uint16_t never = LayoutColumn::kNeverNull;
    RowLayouts layouts;
    layouts.tail = {5, 4, 2, true};
    RowLayout first;
    first.null_bytes = 1;
    first.columns = {column(1, ColumnKind::Signed, 0, 4, never), column(2, ColumnKind::Varchar, 1, 0, 0),
                     column(3, ColumnKind::Blob, 2, 0, 1), column(4, ColumnKind::PaddedChar, 2, 15, never)};
    RowLayout second = first;
    second.null_bytes = 2;
    second.columns[0].bytes = 8;
    second.columns[1].length_bytes = 2;
    second.columns[2].length_bytes = 3;
    second.columns.push_back(column(5, ColumnKind::Fixed, 0, 3, 4));
    second.columns.push_back(column(6, ColumnKind::Varchar, 2, 0, 9));
    RowLayout third = second;
    third.columns.erase(third.columns.begin() + 2);
    std::swap(third.columns[0], third.columns[3]);
    layouts.layouts = {first, second, third};
    layouts.defaults = {{5, true, {}}, {6, false, {3, 0, 'a', 'b', 'c'}}};
    return layouts;
}

TableMeta sample_meta() {
    TableMeta meta;
    memcpy(meta.definition, "sixteen bytes...", sizeof meta.definition);
    meta.indexes = {{0x1234567890abcdefULL, false}, {42, true}};
    return meta;
}

/* Two indexes, one without statistics yet. */
StatisticsDigest sample_statistics() {
    StatisticsDigest digest;
    digest.rows = 1000;
    digest.indexes = {{0x1234567890abcdefULL, {250, 10.5, 1}}, {42, {}}, {43, {1}}};
    return digest;
}

/* Reads bytes as statistics, in memory of just their size. */
void recall(teak_bytes bytes) {
    const std::vector<uchar> own(bytes.data, bytes.data + bytes.len);
    StatisticsDigest digest, again;
    if (!digest.parse({own.data(), own.size()})) return;
    for (const StatisticsDigest::Index& index : digest.indexes)
        for (const double rows : index.rows_per_prefix)
            must(rows >= 1 && rows < 0x1p63, "rows of a prefix are a number of rows");
    const std::vector<uchar> encoded = digest.encode();
    must(encoded.size() == own.size() && again.parse({encoded.data(), encoded.size()}), "statistics can be kept again");
    must(again.encode() == encoded, "statistics stay the same");
}

std::vector<uint8_t> input(const TableMeta& meta, const std::vector<uchar>& row) {
    const std::vector<uchar> encoded = meta.encode();
    std::vector<uint8_t> bytes(2);
    int2store(bytes.data(), encoded.size());
    bytes.insert(bytes.end(), encoded.begin(), encoded.end());
    bytes.insert(bytes.end(), row.begin(), row.end());
    return bytes;
}

} // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* bytes, size_t length) {
    recall({bytes, length});
    if (length < 2) return 0;
    const size_t meta_length = std::min<size_t>(uint2korr(bytes), length - 2);
    /* In memory of its own, as what follows is not its. */
    const std::vector<uchar> own(bytes + 2, bytes + 2 + meta_length);
    TableMeta meta;
    if (!meta.parse({own.data(), own.size()})) return 0;
    const std::vector<uchar> encoded = meta.encode();
    TableMeta again;
    must(again.parse({encoded.data(), encoded.size()}), "what was parsed can be encoded and parsed");
    must(again.encode() == encoded, "what was parsed stays the same");
    if (meta.layouts.empty()) return 0;
    must(meta.layouts.layouts.size() <= RowLayouts::kMost, "there are no more layouts than a table may have");
    translate(meta.layouts, bytes + 2 + meta_length, length - 2 - meta_length);
    return 0;
}

std::vector<std::pair<std::string, std::vector<uint8_t>>> samples() {
    TableMeta plain = sample_meta(), discarded = sample_meta(), layouts = sample_meta();
    discarded.discarded = true;
    layouts.layouts = sample_layouts();
    /* Null bits, an integer, then texts, each behind its length. */
    const std::vector<uchar> of_first{0xfc, 7, 0, 0, 0x80, 2, 'h', 'i', 4, 0, 't', 'e', 'x', 't', 1, 0, 'c'};
    const std::vector<uchar> of_second{0xec, 0xff, 1, 2, 3, 4,   5,   6,   7,   8, 1, 2,   3, 2, 0,
                                       'h',  'i',  4, 0, 0, 't', 'e', 'x', 't', 1, 0, 'c', 0, 0};
    return {{"plain", input(plain, {})},
            {"discarded", input(discarded, {})},
            {"row_of_first", input(layouts, of_first)},
            {"row_of_second", input(layouts, of_second)},
            {"statistics", sample_statistics().encode()}};
}
