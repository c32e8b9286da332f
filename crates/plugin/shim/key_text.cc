/*
  See key_text.h.

    description   the definition's version (16), then for each tree of the table, from its first on: length of the
                  index's name (1), name, number of parts (1), parts
*/
#include "key_text.h"
#include "open_table.h"

#include "decimal.h"
#include "tztime.h"
#include <map>

namespace teak {

/* One column of a key. */
struct ShownPart {
    PartKind kind;
    uint8_t type; /* an enum_field_types */
    uint8_t decimals;
    uint8_t precision;
    uint8_t length_bytes;
    bool is_signed;
    bool descending;
    bool nullable;
    bool pad_space;
    uint16_t collation;
    uint32_t length;
    uint32_t fixed_size;
};

namespace {

/* So many bytes of a key are looked at, and of its text shown. */
constexpr size_t kShownBytes = 120;
constexpr size_t kShownText = 400;

using Description = std::vector<uchar>;

void add_tree(const TABLE* table, const char* name, const KeyCodec& key, Description* to) {
    const size_t length = std::min<size_t>(strlen(name), UINT8_MAX);
    to->push_back(static_cast<uchar>(length));
    to->insert(to->end(), name, name + length);
    to->push_back(static_cast<uchar>(key.parts().size()));
    for (const KeyPartCodec& part : key.parts()) {
        const Field* field = table->field[part.fieldnr];
        ShownPart shown{};
        shown.kind = part.kind;
        shown.type = static_cast<uint8_t>(field->real_type());
        shown.decimals = static_cast<uint8_t>(field->decimals());
        if (field->real_type() == MYSQL_TYPE_NEWDECIMAL)
            shown.precision = static_cast<uint8_t>(static_cast<const Field_new_decimal*>(field)->precision);
        shown.length_bytes = part.length_bytes;
        shown.is_signed = part.is_signed;
        shown.descending = part.descending;
        shown.nullable = part.null_mask != 0;
        shown.pad_space = part.pad_space;
        shown.collation = part.charset ? static_cast<uint16_t>(part.charset->number) : 0;
        shown.length = part.length;
        shown.fixed_size = part.fixed_size;
        const auto* bytes = reinterpret_cast<const uchar*>(&shown);
        to->insert(to->end(), bytes, bytes + sizeof shown);
    }
}

void add_hex(const uchar* from, size_t n, std::string* to) {
    static const char digits[] = "0123456789ABCDEF";
    *to += "X'";
    for (size_t at = 0; at < n && at < kShownBytes; at++) {
        *to += digits[from[at] >> 4];
        *to += digits[from[at] & 15];
    }
    *to += n > kShownBytes ? "...'" : "'";
}

void add_quoted(const std::string& text, std::string* to) {
    *to += '\'';
    for (const char each : text) {
        if (each == '\'') *to += '\'';
        *to += each;
    }
    *to += '\'';
}

uint64_t big_endian(const uchar* from, size_t n) {
    uint64_t value = 0;
    for (size_t i = 0; i < n; i++)
        value = value << 8 | from[i];
    return value;
}

std::string printed(const char* format, ...) {
    char text[128];
    va_list values;
    va_start(values, format);
    const int n = vsnprintf(text, sizeof text, format, values);
    va_end(values);
    return std::string(text, static_cast<size_t>(std::max(n, 0)));
}

std::string time_text(const MYSQL_TIME& time, uint decimals, int (*print)(const MYSQL_TIME*, char*, uint)) {
    char text[MAX_DATE_STRING_REP_LENGTH];
    const int n = print(&time, text, decimals);
    return "'" + std::string(text, static_cast<size_t>(std::max(n, 0))) + "'";
}

std::string timestamp_text(const uchar* from, uint decimals, THD* thd) {
    const uint64_t fraction = big_endian(from + 4, (decimals + 1) / 2);
    const auto seconds = static_cast<my_time_t>(big_endian(from, 4));
    MYSQL_TIME time{};
    time.time_type = MYSQL_TIMESTAMP_DATETIME;
    if (seconds || fraction)
        (thd ? thd->variables : global_system_variables).time_zone->gmt_sec_to_TIME(&time, seconds);
    static const uint units[] = {1000000, 10000, 100, 1};
    time.second_part = fraction * units[(decimals + 1) / 2];
    return time_text(time, decimals, my_datetime_to_str);
}

std::string decimal_text(const uchar* from, uint precision, uint scale) {
    decimal_digit_t digits[DECIMAL_MAX_PRECISION];
    decimal_t value{};
    value.buf = digits;
    value.len = DECIMAL_MAX_PRECISION;
    char text[2 * DECIMAL_MAX_PRECISION];
    int n = sizeof text;
    if (bin2decimal(from, &value, static_cast<decimal_digits_t>(precision), static_cast<decimal_digits_t>(scale)) ||
        decimal2string(&value, text, &n, 0, 0, 0))
        return {};
    return std::string(text, static_cast<size_t>(n));
}

std::string float_text(const uchar* from, size_t n) {
    uchar bytes[8];
    const uchar flip = from[0] & 0x80 ? 0 : 0xff; /* negative ones are complemented */
    for (size_t i = 0; i < n; i++)
        bytes[n - 1 - i] = from[i] ^ flip;
    if (!flip) bytes[n - 1] ^= 0x80;
    if (n == 4) {
        float value;
        memcpy(&value, bytes, sizeof value);
        return printed("%.9g", static_cast<double>(value));
    }
    double value;
    memcpy(&value, bytes, sizeof value);
    return printed("%.17g", value);
}

std::string integer_text(const uchar* from, size_t n, bool is_signed, uint8_t type) {
    uint64_t value = big_endian(from, n);
    if (type == MYSQL_TYPE_NEWDATE)
        return printed("'%04u-%02u-%02u'", static_cast<uint>(value >> 9), static_cast<uint>(value >> 5 & 15),
                       static_cast<uint>(value & 31));
    if (!is_signed) return std::to_string(value);
    /* The sign is flipped: so zero lies in the middle. */
    value -= 1ULL << (8 * n - 1);
    return std::to_string(static_cast<int64_t>(value));
}

/* Text, if it can be shown as that: no control characters. */
bool is_printable(const std::string& bytes) {
    for (const char each : bytes)
        if (each < ' ' || each > '~') return false;
    return true;
}

std::string binary_text(const std::string& bytes) {
    std::string text;
    if (is_printable(bytes))
        add_quoted(bytes, &text);
    else
        add_hex(reinterpret_cast<const uchar*>(bytes.data()), bytes.size(), &text);
    return text;
}

/* Characters by their weights. */
class Letters {
  public:
    Letters(CHARSET_INFO* cs, size_t unit, uint flags) : cs_(cs), unit_(unit) {
        for (int c = '~'; c >= ' '; c--)
            note(c, flags);
        for (int c = 'a'; c <= 'z'; c++)
            note(c, flags);
    }

    /* The character with this weight, in the character set of names; false: none that is known. */
    bool add(const uchar* weight, std::string* to) const {
        for (const auto& [known, c] : letters_)
            if (memcmp(known.data(), weight, unit_) == 0) {
                *to += c;
                return true;
            }
        /* Without rules of its own, a collation takes the code for the weight, or that of the capital letter. */
        if (!(cs_->state & MY_CS_UNICODE) || cs_->uca) return false;
        uchar text[8];
        CHARSET_INFO* names = system_charset_info;
        const int n = names->wc_mb(big_endian(weight, unit_), text, text + sizeof text);
        if (n <= 0 || (n == 1 && text[0] < ' ')) return false;
        to->append(reinterpret_cast<const char*>(text), static_cast<size_t>(n));
        return true;
    }

  private:
    void note(int c, uint flags) {
        uchar text[8], weight[64];
        const int n = cs_->wc_mb(static_cast<my_wc_t>(c), text, text + sizeof text);
        if (n <= 0) return;
        const size_t size = cs_->strnxfrm(weight, sizeof weight, 1, text, static_cast<size_t>(n), flags);
        if (size != unit_) return;
        const std::string of(reinterpret_cast<const char*>(weight), size);
        letters_.emplace(letters_.begin(), of, static_cast<char>(c));
    }

    CHARSET_INFO* cs_;
    size_t unit_;
    std::vector<std::pair<std::string, char>> letters_; /* what was noted last comes first */
};

} // namespace

/* Those of each collation, once they were asked for. */
class Alphabets {
  public:
    const Letters& of(const KeyPartCodec& codec) {
        auto found = letters_.find(codec.charset->number);
        if (found == letters_.end())
            found =
                letters_.emplace(codec.charset->number, Letters(codec.charset, codec.unit, codec.level[0].flags)).first;
        return found->second;
    }

  private:
    std::map<uint, Letters> letters_;
};

namespace {

/* A description's next bytes. */
class Reader {
  public:
    explicit Reader(teak_bytes bytes) : at_(bytes.data), end_(bytes.data + bytes.len) {}
    const uchar* take(size_t n) {
        if (static_cast<size_t>(end_ - at_) < n) return nullptr;
        at_ += n;
        return at_ - n;
    }
    size_t number() {
        const uchar* byte = take(1);
        return byte ? *byte : 0;
    }

  private:
    const uchar* at_;
    const uchar* end_;
};

/* The codec's own view of a part: enough to find its end. */
KeyPartCodec codec_of(const ShownPart& part) {
    KeyPartCodec codec{};
    codec.kind = part.kind;
    codec.descending = part.descending;
    codec.null_mask = part.nullable;
    codec.length = part.length;
    codec.length_bytes = part.length_bytes;
    codec.fixed_size = part.fixed_size;
    codec.pad_space = part.pad_space;
    codec.charset = part.collation ? get_charset(part.collation, MYF(0)) : nullptr;
    if (part.kind == PartKind::String && (!codec.charset || !set_levels(&codec))) codec.levels = 0;
    return codec;
}

/* The weights of a text's first level, or the bytes of a binary string, without what marks the special ones. */
std::string unescaped(const KeyPartCodec& codec, const std::string& body, size_t unit) {
    const bool padded = codec.kind == PartKind::String && codec.level[0].padded;
    const uchar stop = padded ? kEndSpaces : kEndZero;
    const std::string special(reinterpret_cast<const char*>(codec.level[0].special), unit);
    std::string units;
    for (size_t at = 0; at + unit < body.size();) {
        const std::string one = body.substr(at, unit);
        at += unit;
        if (one == special && static_cast<uchar>(body[at++]) == stop) break;
        units += one;
    }
    return units;
}

std::string text_of(const KeyPartCodec& codec, const std::string& body, const Letters& letters) {
    const size_t unit = codec.unit;
    const std::string weights = unescaped(codec, body, unit);
    std::string text, shown;
    bool known = true;
    for (size_t at = 0; known && at + unit <= weights.size() && text.size() < kShownText; at += unit)
        known = letters.add(reinterpret_cast<const uchar*>(weights.data()) + at, &text);
    if (known) {
        add_quoted(text, &shown);
        return shown;
    }
    shown = "weights ";
    add_hex(reinterpret_cast<const uchar*>(weights.data()), weights.size(), &shown);
    return shown;
}

/* A part's body, which is whole, as SQL would have it. */
std::string value_text(const ShownPart& part, const KeyPartCodec& codec, const std::string& body, THD* thd,
                       Alphabets* alphabets) {
    const auto* from = reinterpret_cast<const uchar*>(body.data());
    const size_t n = body.size();
    MYSQL_TIME time{};
    switch (part.kind) {
    case PartKind::Integer:
        return integer_text(from, n, part.is_signed, part.type);
    case PartKind::Float:
        return float_text(from, n);
    case PartKind::Binary:
        return binary_text(unescaped(codec, body, 1));
    case PartKind::String:
        return text_of(codec, body, alphabets->of(codec));
    case PartKind::Weights: {
        std::string text = "weights ";
        add_hex(from, n, &text);
        return text;
    }
    case PartKind::Raw:
        break;
    }
    switch (part.type) {
    case MYSQL_TYPE_NEWDECIMAL:
        return decimal_text(from, part.precision, part.decimals);
    case MYSQL_TYPE_DATETIME2:
        TIME_from_longlong_datetime_packed(&time, my_datetime_packed_from_binary(from, part.decimals));
        return time_text(time, part.decimals, my_datetime_to_str);
    case MYSQL_TYPE_TIME2:
        TIME_from_longlong_time_packed(&time, my_time_packed_from_binary(from, part.decimals));
        return time_text(time, part.decimals, my_time_to_str);
    case MYSQL_TYPE_TIMESTAMP2:
        return timestamp_text(from, part.decimals, thd);
    case MYSQL_TYPE_YEAR:
        return std::to_string(from[0] ? 1900 + from[0] : 0);
    case MYSQL_TYPE_TINY:
    case MYSQL_TYPE_BIT:
    case MYSQL_TYPE_ENUM:
    case MYSQL_TYPE_SET:
        if (n <= 8) return std::to_string(big_endian(from, n));
        [[fallthrough]];
    default:
        return binary_text(body);
    }
}

uint64_t least_size(const ShownPart& part) { return part.fixed_size ? part.fixed_size + (part.nullable ? 1 : 0) : 0; }

/* The parts that the bytes have, behind `to`; returns where they end, nullptr if they end within one. */
const uchar* add_parts(const std::vector<ShownPart>& parts, const uchar* from, const uchar* end, THD* thd,
                       Alphabets* alphabets, std::vector<std::string>* to) {
    for (const ShownPart& part : parts) {
        if (from == end) break;
        const KeyPartCodec codec = codec_of(part);
        const uchar* behind = KeyCodec::skip_part(codec, from, end);
        if (!behind) return nullptr;
        const uchar flip = part.descending ? 0xff : 0;
        std::string body;
        for (const uchar* at = from; at < behind; at++)
            body += static_cast<char>(*at ^ flip);
        if (part.nullable && body[0] == 0)
            to->push_back("NULL");
        else
            to->push_back(value_text(part, codec, part.nullable ? body.substr(1) : body, thd, alphabets));
        from = behind;
    }
    return from;
}

/* A key may be there to be behind all keys that begin with another, which this finds: see successor in crates/rows.
   Empty: it is none. */
std::string predecessor(teak_bytes key) {
    std::string before(reinterpret_cast<const char*>(key.data), key.len);
    if (before.empty() || before.back() == 0) return {};
    before.back() = static_cast<char>(static_cast<uchar>(before.back()) - 1);
    return before;
}

} // namespace

void describe_keys(const OpenTable& open) {
    const TABLE* const table = open.table;
    Description description(MY_UUID_SIZE, 0);
    const LEX_CUSTRING& version = table->s->tabledef_version;
    if (version.length == description.size()) memcpy(description.data(), version.str, version.length);
    if (teak_table_is_described(open.core, bytes_of(description.data(), description.size()))) return;
    add_tree(table, open.primary.hidden() ? "" : "PRIMARY", open.primary.key(), &description);
    for (uint32_t tree = 1; tree <= open.meta.indexes.size(); tree++) {
        const uint index = open.index_of(tree);
        if (index == MAX_KEY)
            add_tree(table, "", KeyCodec(), &description);
        else
            add_tree(table, table->key_info[index].name.str, open.indexes[index].key(), &description);
    }
    teak_table_describe(open.core, bytes_of(description.data(), description.size()));
}

KeyText::KeyText(teak_bytes description, uint64_t tree) : alphabets_(std::make_unique<Alphabets>()) {
    Reader reader(description);
    if (!reader.take(MY_UUID_SIZE)) return;
    for (uint64_t number = 0; number <= tree; number++) {
        const size_t length = reader.number();
        const uchar* name = reader.take(length);
        const size_t count = reader.number();
        std::vector<ShownPart> parts(count);
        const uchar* bytes = reader.take(count * sizeof(ShownPart));
        if (!name || !bytes) return;
        if (count) memcpy(parts.data(), bytes, count * sizeof(ShownPart));
        if (number == 0) {
            has_row_ids_ = parts.empty();
            primary_ = parts;
        }
        if (number < tree) continue;
        index_.assign(reinterpret_cast<const char*>(name), length);
        parts_ = std::move(parts);
        known_ = tree == 0 || !index_.empty();
    }
}

KeyText::~KeyText() = default;

bool KeyText::show(teak_bytes key, THD* thd, std::string* to) const {
    std::vector<std::string> shown;
    const uchar* const end = key.data + key.len;
    const uchar* from = add_parts(parts_, key.data, end, thd, alphabets_.get(), &shown);
    if (!from) return false;
    /* Behind the columns of an index stands its row's key, unless the columns have it. */
    if (from < end && has_row_ids_) {
        if (end - from != static_cast<ptrdiff_t>(sizeof(uint64_t))) return false;
        shown.push_back("row " + std::to_string(big_endian(from, sizeof(uint64_t))));
    } else if (from < end && add_parts(primary_, from, end, thd, alphabets_.get(), &shown) != end)
        return false;
    if (shown.empty()) return false;
    *to = "(";
    for (const std::string& value : shown)
        *to += (to->size() > 1 ? ", " : "") + value;
    *to += ')';
    return true;
}

std::string KeyText::end(const char* at, const char* behind, teak_bytes key, THD* thd) const {
    std::string text;
    if (known_) {
        if (show(key, thd, &text)) return at + text;
        const std::string before = predecessor(key);
        if (show(bytes_of(before), thd, &text)) return behind + text;
        /* Of numbers the last bytes may be missing, where they would be the least. */
        std::string longer(reinterpret_cast<const char*>(key.data), key.len);
        uint64_t size = 0;
        for (const ShownPart& part : parts_)
            if (longer.size() > size) size += least_size(part);
        longer.resize(std::max<size_t>(longer.size(), size), '\0');
        if (show(bytes_of(longer), thd, &text)) return at + text;
    }
    text = std::string(at) + "raw ";
    add_hex(key.data, key.len, &text);
    return text;
}

std::string KeyText::of(const teak_sought& range, THD* thd) const {
    const bool is_one = range.from_kind == TEAK_BOUND_INCLUDE && range.to_kind == TEAK_BOUND_INCLUDE &&
                        range.from.len == range.to.len && !memcmp(range.from.data, range.to.data, range.from.len);
    std::string text;
    if (is_one) {
        if (known_ && show(range.from, thd, &text)) return text;
        text = "raw ";
        add_hex(range.from.data, range.from.len, &text);
        return text;
    }
    /* Keys that begin with an end's bytes lie behind it: so `>` of a key that is whole, and of its first columns. */
    if (range.from_kind == TEAK_BOUND_INCLUDE) text = end(">= ", "> ", range.from, thd);
    if (range.from_kind == TEAK_BOUND_EXCLUDE) text = end("> ", "> ", range.from, thd);
    if (range.to_kind == TEAK_BOUND_NONE) return text.empty() ? "ALL" : text;
    if (!text.empty()) text += " AND ";
    return text +
           (range.to_kind == TEAK_BOUND_INCLUDE ? end("<= ", "<= ", range.to, thd) : end("< ", "<= ", range.to, thd));
}

void tell_key(const teak_sought* sought, teak_key_text* out) {
    const KeyText key(sought->description, sought->tree);
    const std::string text = (key.index().empty() ? "" : key.index() + " ") + key.of(*sought, current_thd);
    out->len = std::min(text.size(), sizeof out->data);
    memcpy(out->data, text.data(), out->len);
}

} // namespace teak
