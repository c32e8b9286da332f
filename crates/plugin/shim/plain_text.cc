#include "plain_text.h"
#include "copy_few.h"

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
    for (uint weight = 0; weight < 256; weight++)
        upper_[guess_[weight]] = capital_[weight];
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

const uchar* PlainText::guess(const uchar* from, const uchar* end, uchar* text, size_t* n) const {
    const uchar flip = part_.descending ? 0xff : 0;
    const uint u = part_.unit;
    const uchar stop = part_.pad_space ? kEndSpaces : kEndZero;
    const uchar special = part_.pad_space ? part_.level[0].special[u - 1] : 0;
    uchar* to = text;
    uchar* const to_end = text + part_.length;
    uchar high = 0; /* of weights of two bytes, which is zero */
    while (static_cast<size_t>(end - from) >= u + 1) {
        if (u == 2) high |= *from++ ^ flip;
        const uchar weight = *from++ ^ flip;
        if (weight == special && (*from++ ^ flip) == stop) {
            *n = static_cast<size_t>(to - text);
            return high ? nullptr : from;
        }
        if (to == to_end) return nullptr;
        *to++ = guess_[weight];
    }
    return nullptr;
}

bool PlainText::is_remembered(const uchar* from, const uchar* end, const uchar* capitals,
                              const uchar* capitals_end) const {
    const size_t n = last_.part.size();
    if (!n || static_cast<size_t>(end - from) < n || memcmp(from, last_.part.data(), n) != 0) return false;
    if (!capitals) return last_.capitals.empty();
    const size_t bytes = (last_.length + 7) / 8;
    return bytes == last_.capitals.size() && static_cast<size_t>(capitals_end - capitals) >= bytes &&
           memcmp(capitals, last_.capitals.data(), bytes) == 0;
}

bool PlainText::restore(const uchar* from, const uchar* end, const uchar** capitals, const uchar* capitals_end,
                        uchar* record) const {
    if (!guessable_ || (part_.null_mask && from++ == end)) return false;
    uchar* const to = record + part_.offset;
    if (is_remembered(from, end, *capitals, capitals_end)) {
        copy_few(to, last_.column.data(), last_.column.size());
        if (*capitals) *capitals += last_.capitals.size();
        return true;
    }
    last_.part.clear();
    uchar* const text = to + part_.length_bytes;
    size_t n;
    const uchar* const behind = guess(from, end, text, &n);
    if (!behind) return false;
    size_t shown = n;
    while (shown && text[shown - 1] == ' ')
        shown--;
    const size_t bytes = *capitals ? (shown + 7) / 8 : 0;
    if (*capitals && bytes > static_cast<size_t>(capitals_end - *capitals)) return false;
    for (size_t i = 0; i < bytes; i++)
        for (uint bits = (*capitals)[i]; bits; bits &= bits - 1) {
            const size_t at = 8 * i + static_cast<size_t>(__builtin_ctz(bits));
            if (at < shown) text[at] = upper_[text[at]];
        }
    if (part_.length_bytes == 0) memset(text + n, ' ', part_.length - n);
    for (uint i = 0; i < part_.length_bytes; i++)
        to[i] = static_cast<uchar>(n >> (8 * i));
    last_.part.assign(from, behind);
    last_.capitals.assign(*capitals, *capitals + bytes);
    last_.column.assign(to, text + (part_.length_bytes ? n : part_.length));
    last_.length = shown;
    if (*capitals) *capitals += bytes;
    return true;
}

} // namespace teak
