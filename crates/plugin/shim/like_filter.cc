#include "like_filter.h"

#include <algorithm>

namespace teak {
namespace {

constexpr size_t kLongestRun = 255;

/* A column's own bytes are what LIKE compares, and all of them are in the row. */
bool is_plain_text(const Field* field) {
    if (field->charset()->mbminlen != 1) return false;
    switch (field->real_type()) {
    case MYSQL_TYPE_VARCHAR:
    case MYSQL_TYPE_BLOB:
        return true;
    case MYSQL_TYPE_STRING:
        return field->type_handler() == &type_handler_string;
    default:
        return false;
    }
}

const Field* field_of(Item* item, const TABLE* table) {
    Item* const real = item->real_item();
    if (real->type() != Item::FIELD_ITEM) return nullptr;
    const Field* field = static_cast<Item_field*>(real)->field;
    return field && field->table == table ? field : nullptr;
}

/* Notes whether anything is said, and keeps it from the statement. */
class Listener : public Internal_error_handler {
  public:
    bool handle_condition(THD*, uint, const char*, Sql_condition::enum_warning_level*, const char*,
                          Sql_condition**) override {
        has_heard = true;
        return true;
    }
    bool has_heard = false;
};

/* Whether the item is the same for all rows of the scan, and may be asked for its value once more than the server does:
   literals, values of parameters and variables, and texts that are made of such. What a routine or trigger might do to
   a user's variable from row to row is not known. */
bool is_settled(Item* item, const THD* thd) {
    if (!item->const_item() || item->is_expensive() || item->with_subquery()) return false;
    if (item->basic_const_item() || item->get_item_splocal()) return true;
    if (item->type() == Item::CACHE_ITEM) {
        Item* const example = static_cast<Item_cache*>(item)->get_example();
        return example && is_settled(example, thd);
    }
    if (item->type() != Item::FUNC_ITEM) return false;
    const auto* func = static_cast<Item_func*>(item);
    if (func->functype() == Item_func::GUSERVAR_FUNC)
        return thd->lex->sql_command == SQLCOM_SELECT && !thd->lex->uses_stored_routines();
    const char* const name = func->func_name();
    const auto is_name = [=](const char* known) { return !strcmp(name, known); };
    static const char* const texts[] = {"concat", "convert", "collate", "cast_as_char"};
    return std::any_of(std::begin(texts), std::end(texts), is_name) &&
           std::all_of(func->arguments(), func->arguments() + func->argument_count(),
                       [=](Item* argument) { return is_settled(argument, thd); });
}

/* The value of such an item, nullptr for NULL. False: the server would say something when it asks for it. */
bool value_of(Item* item, THD* thd, String* buffer, const String** value) {
    /* What is behind a cache is asked, so that the server still finds it empty. */
    while (item->type() == Item::CACHE_ITEM)
        item = static_cast<Item_cache*>(item)->get_example();
    Listener listener;
    thd->push_internal_handler(&listener);
    *value = item->val_str(buffer);
    thd->pop_internal_handler();
    return !listener.has_heard;
}

/* Whether to ask for the value of a column or constant has no effect. */
bool is_silent(Item* item, THD* thd) {
    if (item->real_item()->type() == Item::FIELD_ITEM) return true;
    if (!is_settled(item, thd)) return false;
    StringBuffer<MAX_FIELD_WIDTH> buffer;
    const String* value;
    return item->basic_const_item() || value_of(item, thd, &buffer, &value);
}

bool is_number(Item_result type) { return type == INT_RESULT || type == DECIMAL_RESULT || type == REAL_RESULT; }

/* Whether two columns or constants are compared as they are. */
bool compare_without_conversion(Item* a, Item* b) {
    const Item_result type = a->cmp_type(), other = b->cmp_type();
    if (type == TIME_RESULT) return a->field_type() == b->field_type();
    return (type == STRING_RESULT && other == type) || (is_number(type) && is_number(other));
}

/* Whether to look at a part of the condition has no effect but its result. */
bool is_harmless(Item* part, THD* thd) {
    if (part->type() != Item::FUNC_ITEM) return false;
    const auto* func = static_cast<Item_func*>(part);
    switch (func->functype()) {
    case Item_func::EQ_FUNC:
    case Item_func::EQUAL_FUNC:
    case Item_func::NE_FUNC:
    case Item_func::LT_FUNC:
    case Item_func::LE_FUNC:
    case Item_func::GE_FUNC:
    case Item_func::GT_FUNC:
    case Item_func::LIKE_FUNC:
    case Item_func::BETWEEN:
    case Item_func::ISNULL_FUNC:
    case Item_func::ISNOTNULL_FUNC:
        break;
    default:
        return false;
    }
    Item** const arguments = func->arguments();
    return std::all_of(arguments, arguments + func->argument_count(), [=](Item* argument) {
        return compare_without_conversion(arguments[0], argument) && is_silent(argument, thd);
    });
}

/* Whether each byte of the pattern that is ASCII is a character of its own, or what `escape` makes of one. */
bool is_readable(CHARSET_INFO* collation, const char* pattern, size_t length, int escape) {
    if (escape == '%' || escape == '_') return false;
    const auto is_ascii = [](char byte) { return static_cast<uchar>(byte) < 128; };
    if (collation->mbmaxlen == 1)
        return (escape >= 0 && escape < 128) || std::all_of(pattern, pattern + length, is_ascii);
    /* In others than UTF-8 what looks like ASCII may be the second byte of a character. An escape that is not ASCII
       ends a run, as all that is not, and what it takes the meaning from does at most, too. */
    return !strcmp(collation->cs_name.str, MY_UTF8MB4) || !strcmp(collation->cs_name.str, MY_UTF8MB3) ||
           std::all_of(pattern, pattern + length, is_ascii);
}

bool is_all_ascii(teak_bytes text) {
    uint64_t eight, all = 0;
    size_t i = 0;
    for (; i + sizeof eight <= text.len; i += sizeof eight) {
        memcpy(&eight, text.data + i, sizeof eight);
        all |= eight;
    }
    uchar rest = 0;
    for (; i < text.len; i++)
        rest |= text.data[i];
    return !(all & 0x8080808080808080) && rest < 128;
}

} // namespace

bool TextSearch::init(CHARSET_INFO* collation, const char* pattern, size_t length, int escape, bool padded) {
    equal_ = EqualBytes::of(collation);
    if (!equal_ || !is_readable(collation, pattern, length, escape)) return false;
    std::vector<uint16_t> run;
    bool is_start = true;
    const auto end_run = [&] {
        /* A text that has lost the spaces at its end has what is before them. */
        while (padded && !run.empty() && run.back() == equal_->least(' '))
            run.pop_back();
        if (is_start)
            start_ = run;
        else if (run.size() > run_.size())
            run_ = run;
        is_start = false;
        run.clear();
    };
    for (size_t i = 0; i < length; i++) {
        uchar byte = static_cast<uchar>(pattern[i]);
        const bool is_wild = byte == '%' || byte == '_';
        if (byte == escape && i + 1 < length) byte = static_cast<uchar>(pattern[++i]);
        const uint16_t least = is_wild ? EqualBytes::kUnknown : equal_->least(byte);
        if (least == EqualBytes::kUnknown)
            end_run();
        else
            run.push_back(least);
    }
    end_run();
    run_.resize(std::min(run_.size(), kLongestRun));
    if (!run_.empty()) {
        plan_shifts();
        choose_anchors();
    }
    return !run_.empty() || !start_.empty();
}

/* How far each byte moves the run (Horspool's algorithm). */
void TextSearch::plan_shifts() {
    const size_t last = run_.size() - 1;
    for (uint byte = 0; byte < 256; byte++) {
        const uint16_t least = equal_->least(static_cast<uchar>(byte));
        size_t before = 1;
        while (before <= last && run_[last - before] != least)
            before++;
        shift_[byte] = static_cast<uchar>(least == run_[last] ? 0 : before);
        if (least == run_[last]) again_ = static_cast<uchar>(before);
    }
}

/* The first and the last character of the run that no more than two bytes are. */
void TextSearch::choose_anchors() {
    for (size_t i = 0; i < run_.size(); i++) {
        uint count = 0;
        uchar bytes[2];
        for (uint byte = 0; byte < 256; byte++)
            if (equal_->least(static_cast<uchar>(byte)) == run_[i] && count++ < 2)
                bytes[count - 1] = static_cast<uchar>(byte);
        if (count > 2) continue;
        anchors_[1] = {i, bytes[0], bytes[count - 1]};
        if (!has_anchors_) anchors_[0] = anchors_[1];
        has_anchors_ = true;
    }
}

/* Whether the run is where its last character would be at `at`. */
inline bool TextSearch::is_run(const uchar* text, size_t at) const {
    const size_t last = run_.size() - 1;
    size_t before = 0;
    while (before <= last && equal_->least(text[at - before]) == run_[last - before])
        before++;
    return before > last;
}

bool TextSearch::finds_by_shifts(teak_bytes text) const {
    for (size_t at = run_.size() - 1; at < text.len;) {
        const uchar shift = shift_[text.data[at]];
        if (!shift && is_run(text.data, at)) return true;
        at += shift ? shift : again_;
    }
    return false;
}

/* Compares the anchors with the text at sixteen places at once. */
bool TextSearch::finds_by_anchors(teak_bytes text) const {
    using Sixteen = uchar __attribute__((vector_size(kPlaces)));
    using Halves = uint64_t __attribute__((vector_size(kPlaces)));
    const auto is_at = [&](const Anchor& anchor, size_t place) {
        Sixteen bytes;
        memcpy(&bytes, text.data + place + anchor.at, sizeof bytes);
        return (bytes == anchor.byte) | (bytes == anchor.other);
    };
    const size_t places = text.len - run_.size() + 1;
    for (size_t place = 0;; place = std::min(place + kPlaces, places - kPlaces)) {
        const auto found = reinterpret_cast<Halves>(is_at(anchors_[0], place) & is_at(anchors_[1], place));
        for (size_t half = 0; half < 2; half++)
            for (uint64_t left = found[half]; left; left &= ~(UINT64_C(0xff) << __builtin_ctzll(left))) {
                const size_t byte = half * 8 + static_cast<size_t>(__builtin_ctzll(left)) / 8;
                if (is_run(text.data, place + byte + run_.size() - 1)) return true;
            }
        if (place + kPlaces == places) return false;
    }
}

/* Whether the text has the run. */
bool TextSearch::finds(teak_bytes text) const {
    if (text.len < run_.size()) return false;
    const bool is_long = text.len - run_.size() + 1 >= kPlaces;
    return has_anchors_ && is_long ? finds_by_anchors(text) : finds_by_shifts(text);
}

/* Whether the text begins with other characters than the pattern. */
bool TextSearch::begins_otherwise(teak_bytes text) const {
    for (size_t i = 0; i < start_.size(); i++) {
        if (i == text.len) return true;
        const uint16_t least = equal_->least(text.data[i]);
        if (least != start_[i]) return least != EqualBytes::kUnknown;
    }
    return false;
}

bool TextSearch::rules_out(teak_bytes text) const {
    if (begins_otherwise(text)) return true;
    return !run_.empty() && !finds(text) && (!equal_->only_ascii() || is_all_ascii(text));
}

void LikeFilter::add(Item_func_like* like, const TABLE* table, const RowCodec& rows) {
    Item* const pattern = like->arguments()[1];
    const Field* field = field_of(like->arguments()[0], table);
    Column column;
    if (like->negated || !field || !is_plain_text(field) || !is_settled(pattern, table->in_use) ||
        !rows.find_place(field->field_index, &column.place))
        return;
    StringBuffer<MAX_FIELD_WIDTH> buffer;
    const String* text;
    const bool padded = field->real_type() == MYSQL_TYPE_STRING && field->charset() != &my_charset_bin;
    if (value_of(pattern, table->in_use, &buffer, &text) && text &&
        column.search.init(like->compare_collation(), text->ptr(), text->length(), like->escape, padded))
        columns_.push_back(std::move(column));
}

void LikeFilter::set(const Item* condition, const TABLE* table, const RowCodec& rows) {
    columns_.clear();
    Item* const whole = const_cast<Item*>(condition); /* the server's own functions want it so; nothing is changed */
    const auto take = [&](Item* part) {
        if (!is_harmless(part, table->in_use)) return false;
        if (static_cast<Item_func*>(part)->functype() == Item_func::LIKE_FUNC)
            add(static_cast<Item_func_like*>(part), table, rows);
        return true;
    };
    if (whole->type() != Item::COND_ITEM) {
        take(whole);
        return;
    }
    auto* const parts = static_cast<Item_cond*>(whole);
    if (parts->functype() != Item_func::COND_AND_FUNC) return;
    List_iterator_fast<Item> each(*parts->argument_list());
    while (Item* part = each++)
        if (!take(part)) return;
}

} // namespace teak
