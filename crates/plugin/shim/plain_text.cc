#include "plain_text.h"

namespace teak {
namespace {

constexpr uint kAscii = 128;

} // namespace

PlainText::PlainText(const KeyPartCodec& part) : part_(part) {
    CHARSET_INFO* cs = part.charset;
    if (part.kind != PartKind::String || part.prefix || part.is_blob || part.unit > 2 || cs->mbminlen != 1 || cs->uca ||
        part.levels > 1 || part.level[0].padded != part.pad_space)
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
    memcpy(capital_, guess_, sizeof capital_);
    for (uint c = 'A'; c <= 'Z'; c++)
        capital_[weights[c]] = static_cast<uchar>(c);
    for (uint c = 0; c < kAscii; c++) {
        const uchar weight = weights[c];
        forms_[c] = guess_[weight] == c ? Form::Guessed : capital_[weight] == c ? Form::Capitals : Form::Other;
    }
    guessable_ = forms_[static_cast<uchar>(' ')] == Form::Guessed;
}

PlainText::Form PlainText::form(const uchar* record) const {
    if (!guessable_) return Form::Other;
    size_t n;
    const uchar* text = part_.data(record, &n);
    /* The key has lost trailing spaces; those of a CHAR come back by its length. */
    if (part_.pad_space && part_.length_bytes && n && text[n - 1] == ' ') return Form::Other;
    Form form = Form::Guessed;
    for (size_t i = 0; i < n; i++) {
        const Form one = forms_[text[i]];
        if (one == Form::Other) return one;
        if (one == Form::Capitals) form = one;
    }
    return form;
}

const uchar* PlainText::trimmed(const uchar* record, size_t* n) const {
    const uchar* text = part_.data(record, n);
    while (*n && text[*n - 1] == ' ')
        (*n)--;
    return text;
}

size_t PlainText::capitals_size(const uchar* record) const {
    size_t n;
    trimmed(record, &n);
    return (n + 7) / 8;
}

uchar* PlainText::pack_capitals(uchar* to, const uchar* record) const {
    size_t n;
    const uchar* text = trimmed(record, &n);
    const size_t bytes = (n + 7) / 8;
    memset(to, 0, bytes);
    for (size_t i = 0; i < n; i++)
        if (forms_[text[i]] == Form::Capitals) to[i / 8] |= static_cast<uchar>(1 << (i % 8));
    return to + bytes;
}

bool PlainText::restore(const uchar* from, const uchar* end, const uchar** capitals, const uchar* capitals_end,
                        uchar* record) const {
    if (!guessable_) return false;
    const uchar* bits = *capitals;
    auto is_capital = [&](size_t i) {
        return bits && i / 8 < static_cast<size_t>(capitals_end - bits) && (bits[i / 8] >> (i % 8) & 1);
    };
    const uchar flip = part_.descending ? 0xff : 0;
    const uint u = part_.unit;
    const uchar stop = part_.pad_space ? kEndSpaces : kEndZero;
    const uchar special = part_.pad_space ? part_.level[0].special[u - 1] : 0;
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
            if (!bits) return true;
            const size_t bytes = capitals_size(record);
            if (bytes > static_cast<size_t>(capitals_end - bits)) return false;
            *capitals = bits + bytes;
            return true;
        }
        if (n >= part_.length) return false;
        text[n] = is_capital(n) ? capital_[weight] : guess_[weight];
        n++;
    }
    return false;
}

} // namespace teak
