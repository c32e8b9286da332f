#!/usr/bin/env python3
"""Writes rows of forum articles for the table of article87.sql, in the format of LOAD DATA (latin1), to standard output.

The same size and seed give the same bytes. Words follow a Zipf distribution; a few sites, forums, threads and authors
have most of the articles. The order is that of crawling, so that `published` nearly rises, while `ext_key`, `hash` and
threads are spread over their whole range. Bodies are slices of one long text of 2 million words (12 MB): a compressor would
have to look back that far to find one again, except for quotes of earlier articles and signatures, which forums have.
"""

import argparse
import hashlib
import itertools
import random
import sys
import time

VOCABULARY = 30_000
TEXT_WORDS = 2_000_000
SITES = 400
MEAN_BODY = 735
# Seconds between two articles, and when the first was crawled: 1 January 2019.
PACE = 45
BEGIN = 1_546_300_800


def zipf(count, exponent=1.0, shift=0.0):
    """Cumulative weights of ranks 1 to count; a shift flattens the head, as in Mandelbrot's form of the law."""
    return list(itertools.accumulate(1 / (rank + shift) ** exponent for rank in range(1, count + 1)))


def make_vocabulary(source):
    """Words out of syllables: frequent ones short, some with letters beyond ASCII."""
    onsets = ["b", "br", "c", "ch", "d", "f", "g", "gr", "h", "j", "k", "l", "m", "n", "p", "pr", "qu", "r", "s", "sh", "st", "t", "th", "tr", "v", "w", ""]
    vowels = ["a", "e", "i", "o", "u", "ea", "ou", "ai", "e", "a", "\xe9", "\xf6"]
    codas = ["", "", "n", "r", "s", "t", "l", "nd", "ng", "st", "ck", "'s"]
    words, seen = [], set()
    while len(words) < VOCABULARY:
        syllables = min(4, 1 + source.randrange(2) + len(words) // 6000)
        word = "".join(source.choice(onsets) + source.choice(vowels[:10] if source.random() < 0.9 else vowels) for _ in range(syllables)) + source.choice(codas)
        if word not in seen and len(word) > 1 - (len(words) < 5):
            seen.add(word)
            words.append(word)
    return words


def make_text(source, words, weights):
    """Sentences and paragraphs as one string, escaped for LOAD DATA."""
    chosen = source.choices(words, cum_weights=weights, k=TEXT_WORDS)
    at = 0
    while at < TEXT_WORDS:
        chosen[at] = chosen[at].capitalize()
        end = min(at + 4 + int(source.expovariate(1 / 10)), TEXT_WORDS - 1)
        if end - at > 9:
            chosen[(at + end) // 2] += ","
        chosen[end] += source.choices((".", "!", "?", "...", ".\\n", ".\\n\\n", " :-)", f" {source.randrange(10000)}."), (60, 6, 9, 4, 6, 9, 2, 4))[0]
        at = end + 1
    return " ".join(chosen)


class Forums:
    """Sites with forums, and each forum's threads that are still written to."""

    def __init__(self, source, phrase):
        self.source, self.phrase = source, phrase
        self.site_weights = zipf(SITES)
        self.forum_weights = [zipf(2 + source.randrange(30), 1.1) for _ in range(SITES)]
        self.author_weights = zipf(5000, 0.8)
        self.threads = {}
        self.forum_names = {}
        self.last_thread = 100_000

    def choose(self):
        """Site, forum, thread, and whether the article starts it. A thread is [number, title, replies, quote of its last article]."""
        source = self.source
        site = source.choices(range(SITES), cum_weights=self.site_weights)[0]
        weights = self.forum_weights[site]
        forum = site * 40 + source.choices(range(len(weights)), cum_weights=weights)[0]
        threads = self.threads.setdefault(forum, [])
        if not threads or source.random() < 0.09:
            self.last_thread += 1 + source.randrange(9)
            thread = [self.last_thread, self.phrase(12, 70).capitalize(), 0, ""]
            threads.append(thread)
            if len(threads) > 60:
                del threads[source.randrange(len(threads) - 10)]
            return site, forum, thread, 1
        # The newest are written to most.
        thread = threads[-1 - min(len(threads) - 1, int(source.expovariate(0.15)))]
        thread[2] += 1
        return site, forum, thread, 0

    def name(self, forum):
        """The forum's name."""
        if forum not in self.forum_names:
            self.forum_names[forum] = self.phrase(6, 30).title()
        return self.forum_names[forum]


def rows(seed):
    """Endless rows, as text without the id, which the server assigns."""
    source = random.Random(seed)
    words = make_vocabulary(source)
    text = make_text(source, words, zipf(VOCABULARY, shift=2.7))
    text_end = len(text) - 40_000
    uniform, gauss, randrange = source.random, source.gauss, source.randrange

    def piece(least, most=None):
        """A slice of the text, from the beginning of a word to the end of one; it never cuts an escape."""
        at = text.index(" ", int(uniform() * text_end)) + 1
        return text[at:text.index(" ", at + (least if most is None else randrange(least, most)))]

    def phrase(least, most):
        return piece(least, most).replace("\\n", "").strip(".,!? ")

    forums = Forums(source, phrase)
    signatures = {}
    languages = ["en", "en", "en", "de", "fr", "\\N"]
    for number in itertools.count(1):
        site, forum, thread, starts = forums.choose()
        author = source.choices(range(5000), cum_weights=forums.author_weights)[0]
        author_id = site * 5000 + author
        host = f"http://forum{site}.{words[site + 300].replace(chr(39), '').encode('ascii', 'ignore').decode()}.example"
        author_name = f"{words[author_id % 20011].capitalize()}{author_id % 89 if author_id % 3 else ''}"
        body = piece(min(20_000, int(60 + MEAN_BODY * 0.70 * 2.718281828 ** (gauss(0, 0.82)))))
        quote, thread[3] = thread[3], f"[quote={author_name}]{body if len(body) < 250 else body[:body.index(' ', 200)]}[/quote]\\n"
        if quote and uniform() < 0.2:
            body = quote + body
        if author_id % 4 == 0:
            if author_id not in signatures:
                signatures[author_id] = piece(30, 120)
            body += "\\n--\\n" + signatures[author_id]
        post = 7_000_000 + number * 3
        crawled = BEGIN + number * PACE
        published = crawled - int(source.expovariate(1 / 7200)) - 60
        moments = [time.strftime("%Y-%m-%d %H:%M:%S", time.gmtime(moment)) for moment in (published, crawled, crawled + randrange(5, 600))]
        thread_url = f"{host}/showthread.php?t={thread[0]}"
        yield "\t".join((
            f"{site:x}-{source.getrandbits(64):x}", str(site), str(forum), f"t{forum}_{thread[0]}", *moments,
            thread[1] if starts else f"Re: {thread[1]}" if uniform() < 0.6 else "", author_name, f"{thread_url}&p={post}#post{post}",
            f"{host}/member.php?u={author_id}", thread[1], thread_url, forums.name(forum),
            words[author_id % 997].capitalize() if author_id % 5 == 0 else "\\N", languages[site % 6],
            phrase(5, 30).lower() if uniform() < 0.1 else "", str(author_id), str(starts), str(int(uniform() < 0.03)), str(thread[2]),
            str(randrange(1, 6)) if uniform() < 0.15 else "\\N", hashlib.md5(f"{seed}/{number}".encode()).hexdigest(),
            f"date guessed from {moments[1]}; charset of {host} unknown" if uniform() < 0.02 else "\\N", body,
        )) + "\n"


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--size", type=int, default=1000, help="MB (millions of bytes)")
    parser.add_argument("--seed", type=int, default=1)
    arguments = parser.parse_args()
    left = arguments.size * 1_000_000
    articles = rows(arguments.seed)
    while left > 0:
        chunk = "".join(itertools.islice(articles, 500)).encode("latin-1")
        left -= len(chunk)
        sys.stdout.buffer.write(chunk)


if __name__ == "__main__":
    main()
