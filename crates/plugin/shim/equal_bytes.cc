#include "equal_bytes.h"

#include <map>
#include <memory>
#include <mutex>

namespace teak {
namespace {

constexpr uint kAscii = 128;
/* No character: where there are to be no wildcards. */
constexpr int kNone = INT_MAX;

/* Whether the text is LIKE the pattern, in which nothing has a meaning but `many` and `one`. */
bool matches(CHARSET_INFO* collation, const std::string& text, const std::string& pattern, int many = kNone,
             int one = kNone) {
    return collation->wildcmp(text.data(), text.data() + text.size(), pattern.data(), pattern.data() + pattern.size(),
                              kNone, one, many) == 0;
}

/* Whether two bytes are equal, and are so wherever a pattern has them: the search behind a wildcard is code of its
   own. */
bool ask(CHARSET_INFO* collation, uchar text, uchar pattern, bool* equal) {
    const char many = pattern == '%' ? '_' : '%';
    const std::string one_text(1, static_cast<char>(text)), one_pattern(1, static_cast<char>(pattern));
    *equal = matches(collation, one_text, one_pattern);
    /* Thrice, since what is searched for may be changed on the way. */
    if (matches(collation, std::string(3, one_text[0]), many + one_pattern, many) != *equal) return false;
    /* Item_func_like has an algorithm of its own for character sets of one byte, which asks nobody (turboBM_matches).
       */
    return collation->mbmaxlen > 1 || !collation->sort_order ||
           (collation->sort_order[text] == collation->sort_order[pattern]) == *equal;
}

/* Whether LIKE takes text and pattern character by character: none is passed over, no two count as one. */
bool goes_by_one(CHARSET_INFO* collation) {
    for (uint a = 0; a < kAscii; a++) {
        const std::string text(1, static_cast<char>(a));
        if (matches(collation, text, "") || matches(collation, "", text) || !matches(collation, text, "_", kNone, '_'))
            return false;
        for (uint b = 0; b < kAscii; b++) {
            const std::string two = text + static_cast<char>(b);
            if (matches(collation, two, "_", kNone, '_') || matches(collation, two, text) ||
                matches(collation, text, two))
                return false;
        }
    }
    return true;
}

} // namespace

/* Whether bytes that are equal to one are equal to each other; then that is kept. */
bool EqualBytes::is_equality(const std::vector<bool>& equal, uint known) {
    for (uint a = 0; a < known; a++) {
        uint least = 0;
        while (least < a && !equal[a * known + least])
            least++;
        least_[a] = static_cast<uint16_t>(least);
    }
    for (uint a = 0; a < known; a++)
        for (uint b = 0; b < known; b++)
            if (equal[a * known + b] != (least_[a] == least_[b])) return false;
    return true;
}

bool EqualBytes::find(CHARSET_INFO* collation) {
    const bool one_byte = collation->mbmaxlen == 1;
    if (collation->mbminlen != 1 || (!one_byte && collation->state & MY_CS_NONASCII)) return false;
    const uint known = one_byte ? 256 : kAscii;
    std::vector<bool> equal(static_cast<size_t>(known) * known);
    for (uint text = 0; text < known; text++)
        for (uint pattern = 0; pattern < known; pattern++) {
            bool both;
            if (!ask(collation, static_cast<uchar>(text), static_cast<uchar>(pattern), &both)) return false;
            equal[text * known + pattern] = both;
        }
    if (!is_equality(equal, known) || !goes_by_one(collation)) return false;
    bool is_identity = true;
    for (uint a = 0; a < known; a++)
        is_identity &= least_[a] == a;
    only_ascii_ = !one_byte && !(is_identity && collation->state & MY_CS_BINSORT);
    for (uint a = known; a < 256; a++)
        least_[a] = kUnknown;
    return true;
}

const EqualBytes* EqualBytes::of(CHARSET_INFO* collation) {
    static std::mutex latch;
    static std::map<const CHARSET_INFO*, std::unique_ptr<EqualBytes>> known;
    std::lock_guard<std::mutex> guard(latch);
    auto found = known.find(collation);
    if (found == known.end()) {
        auto made = std::make_unique<EqualBytes>();
        if (!made->find(collation)) made = nullptr;
        found = known.emplace(collation, std::move(made)).first;
    }
    return found->second.get();
}

} // namespace teak
