#include "row_layout.h"
#include <algorithm>

namespace teak {
namespace {

constexpr size_t kColumnBytes = 10;

void put2(std::vector<uchar>* to, size_t n) {
    uchar bytes[2];
    int2store(bytes, n);
    to->insert(to->end(), bytes, bytes + sizeof bytes);
}

void put4(std::vector<uchar>* to, size_t n) {
    uchar bytes[4];
    int4store(bytes, n);
    to->insert(to->end(), bytes, bytes + sizeof bytes);
}

/* Reads bytes from front to back; once they do not suffice everything is zero. */
struct Reader {
    const uchar* at;
    const uchar* end;
    bool failed = false;

    const uchar* take(size_t n) {
        if (failed || static_cast<size_t>(end - at) < n) {
            failed = true;
            return nullptr;
        }
        at += n;
        return at - n;
    }
    uint8_t one() {
        const uchar* p = take(1);
        return p ? *p : 0;
    }
    uint16_t two() {
        const uchar* p = take(2);
        return p ? uint2korr(p) : 0;
    }
    uint32_t four() {
        const uchar* p = take(4);
        return p ? uint4korr(p) : 0;
    }
};

/* Whether the columns of some table are packed so: those who read rows rely on it. */
bool is_packed_so(const LayoutColumn& column) {
    switch (column.kind) {
    case ColumnKind::Varchar:
        return column.length_bytes == 1 || column.length_bytes == 2;
    case ColumnKind::Blob:
        return column.length_bytes >= 1 && column.length_bytes <= 4;
    case ColumnKind::PaddedChar:
        return column.length_bytes == 2;
    case ColumnKind::Signed:
    case ColumnKind::Unsigned:
        return column.length_bytes == 0 && column.bytes >= 1 && column.bytes <= 8;
    case ColumnKind::Fixed:
        break;
    }
    return column.length_bytes == 0;
}

bool read_layout(Reader& from, RowLayout* layout) {
    layout->null_bytes = from.two();
    const size_t count = from.two();
    if (count > MAX_FIELDS || count * kColumnBytes > static_cast<size_t>(from.end - from.at)) return false;
    for (size_t i = 0; i < count; i++) {
        LayoutColumn column;
        column.id = from.two();
        const uint8_t kind = from.one();
        if (kind > static_cast<uint8_t>(ColumnKind::Unsigned)) return false;
        column.kind = static_cast<ColumnKind>(kind);
        column.length_bytes = from.one();
        column.bytes = from.four();
        column.null_bit = from.two();
        if (column.may_be_null() && column.null_bit / 8 >= layout->null_bytes) return false;
        if (!is_packed_so(column)) return false;
        if (layout->find(column.id)) return false;
        layout->columns.push_back(column);
    }
    return !from.failed;
}

} // namespace

bool LayoutColumn::reads_as(const LayoutColumn& newer) const {
    if (may_be_null() && !newer.may_be_null()) return false;
    switch (kind) {
    case ColumnKind::Varchar:
    case ColumnKind::Blob:
        return newer.kind == kind && length_bytes <= newer.length_bytes;
    case ColumnKind::PaddedChar:
        return newer.kind == kind && bytes <= newer.bytes;
    case ColumnKind::Signed:
        return newer.kind == kind && bytes <= newer.bytes;
    case ColumnKind::Unsigned:
        return newer.kind == kind ? bytes <= newer.bytes : newer.kind == ColumnKind::Signed && bytes < newer.bytes;
    case ColumnKind::Fixed:
        break;
    }
    return newer.kind == kind && length_bytes == newer.length_bytes && bytes == newer.bytes;
}

const LayoutColumn* RowLayout::find(uint16_t id) const {
    auto found = std::find_if(columns.begin(), columns.end(), [&](const LayoutColumn& c) { return c.id == id; });
    return found == columns.end() ? nullptr : &*found;
}

bool RowLayout::has_form_of(const RowLayout& other) const {
    return null_bytes == other.null_bytes &&
           std::equal(columns.begin(), columns.end(), other.columns.begin(), other.columns.end(),
                      [](const LayoutColumn& a, const LayoutColumn& b) { return a.has_form_of(b); });
}

const RowLayouts::Default* RowLayouts::default_of(uint16_t id) const {
    auto found = std::find_if(defaults.begin(), defaults.end(), [&](const Default& d) { return d.id == id; });
    return found == defaults.end() ? nullptr : &*found;
}

const LayoutColumn& RowLayouts::form_of_default(uint16_t id) const {
    for (const RowLayout& layout : layouts)
        if (const LayoutColumn* column = layout.find(id)) return *column;
    return newest().columns.front(); /* no default is kept of a column that no layout has */
}

uint16_t RowLayouts::next_id() const {
    uint16_t next = 1;
    for (const RowLayout& layout : layouts)
        for (const LayoutColumn& column : layout.columns)
            next = std::max<uint16_t>(next, column.id == UINT16_MAX ? column.id : column.id + 1);
    return next == UINT16_MAX ? 0 : next;
}

void RowLayouts::encode(std::vector<uchar>* to) const {
    put2(to, tail.columns);
    put2(to, tail.base_columns);
    put2(to, tail.base_null_bits);
    to->push_back(tail.may_change);
    put2(to, layouts.size());
    for (const RowLayout& layout : layouts) {
        put2(to, layout.null_bytes);
        put2(to, layout.columns.size());
        for (const LayoutColumn& column : layout.columns) {
            put2(to, column.id);
            to->push_back(static_cast<uchar>(column.kind));
            to->push_back(column.length_bytes);
            put4(to, column.bytes);
            put2(to, column.null_bit);
        }
    }
    put2(to, defaults.size());
    for (const Default& given : defaults) {
        put2(to, given.id);
        to->push_back(given.is_null);
        put4(to, given.value.size());
        to->insert(to->end(), given.value.begin(), given.value.end());
    }
}

bool RowLayouts::parse(const uchar* at, const uchar* end) {
    *this = RowLayouts();
    Reader from{at, end};
    tail.columns = from.two();
    tail.base_columns = from.two();
    tail.base_null_bits = from.two();
    tail.may_change = from.one() != 0;
    const size_t count = from.two();
    if (count > kMost) return false;
    for (size_t i = 0; i < count && !from.failed; i++) {
        layouts.emplace_back();
        if (!read_layout(from, &layouts.back())) return false;
    }
    const size_t given = from.two();
    for (size_t i = 0; i < given && !from.failed; i++) {
        Default value;
        value.id = from.two();
        value.is_null = from.one() != 0;
        const size_t length = from.four();
        const uchar* bytes = from.take(length);
        if (!bytes) return false;
        value.value.assign(bytes, bytes + length);
        defaults.push_back(std::move(value));
    }
    return !from.failed && from.at == end && layouts.size() > 1 && fit_together();
}

/* Each column of the newest layout can be read from rows of each other. */
bool RowLayouts::fit_together() const {
    for (const LayoutColumn& column : layouts.front().columns)
        if (tail.may_change && column.may_be_null() && column.null_bit >= tail.base_null_bits) return false;
    for (const LayoutColumn& column : newest().columns) {
        const Default* value = default_of(column.id);
        if (value && !form_of_default(column.id).reads_as(column)) return false;
        if (value && value->is_null && !column.may_be_null()) return false;
        for (const RowLayout& layout : layouts) {
            const LayoutColumn* older = layout.find(column.id);
            if (older ? !older->reads_as(column) : !value) return false;
        }
    }
    return true;
}

} // namespace teak
