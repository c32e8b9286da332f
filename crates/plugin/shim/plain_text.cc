#include "plain_text.h"

namespace teak {
namespace {

constexpr uint kAscii = 128;

} // namespace

PlainText::PlainText(const KeyPartCodec& part) : part_(part) {
    CHARSET_INFO* cs = part.charset;
    if (part.kind != PartKind::String || part.prefix || part.is_blob || part.unit > 2 || cs->mbminlen != 1 || cs->uca ||
        cs->levels_for_order > 1)
        return;
    uchar weights[kAscii] = {};
    for (uint c = 0; c < kAscii; c++) {
        uchar text = static_cast<uchar>(c), weight[64];
        size_t n = cs->strnxfrm(weight, sizeof weight, 1, &text, 1, 0);
        if (n != part.unit || (n == 2 && weight[0] != 0)) return;
        weights[c] = weight[n - 1];
    }
    /* The last one counts: of letters the small ones. */
    for (uint c = kAscii; c-- > 0;)
        guess_[weights[c]] = static_cast<uchar>(c);
    for (uint c = 'a'; c <= 'z'; c++)
        guess_[weights[c]] = static_cast<uchar>(c);
    for (uint c = 0; c < kAscii; c++)
        plain_[c] = guess_[weights[c]] == c;
    guessable_ = plain_[static_cast<uchar>(' ')];
}

bool PlainText::is(const uchar* record) const {
    if (!guessable_) return false;
    size_t n;
    const uchar* text = part_.data(record, &n);
    /* The key has lost trailing spaces; those of a CHAR come back by its length. */
    if (part_.pad_space && part_.length_bytes && n && text[n - 1] == ' ') return false;
    for (size_t i = 0; i < n; i++)
        if (!plain_[text[i]]) return false;
    return true;
}

bool PlainText::restore(const uchar* from, const uchar* end, uchar* record) const {
    if (!guessable_) return false;
    const uchar flip = part_.descending ? 0xff : 0;
    const uint u = part_.unit;
    const uchar stop = part_.pad_space ? kEndSpaces : kEndZero;
    const uchar special = part_.pad_space ? part_.special[u - 1] : 0;
    uchar* to = record + part_.offset;
    uchar* text = to + part_.length_bytes;
    if (part_.null_mask) from++;
    size_t n = 0;
    while (from <= end && static_cast<size_t>(end - from) >= u + 1) {
        if (u == 2 && (from[0] ^ flip) != 0) return false;
        const uchar weight = from[u - 1] ^ flip;
        from += u;
        if (weight == special && (*from++ ^ flip) == stop) {
            if (part_.length_bytes == 0) memset(text + n, ' ', part_.length - n);
            for (uint i = 0; i < part_.length_bytes; i++)
                to[i] = static_cast<uchar>(n >> (8 * i));
            return true;
        }
        if (n >= part_.length) return false;
        text[n++] = guess_[weight];
    }
    return false;
}

} // namespace teak
