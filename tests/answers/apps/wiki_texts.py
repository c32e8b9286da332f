"""Histories of wiki pages: Debian's documentation, cut into pages and edited as authors do, the same in every run; and the files that MediaWiki imports."""

import datetime
import glob
import gzip
import os
import random
import unicodedata
from xml.sax.saxutils import escape

PACKAGES = ("debian-policy", "developers-reference")
SEED = 22
PAGES = 120
# Revisions of a page: at least, at most.
REVISIONS = (16, 24)
FIRST = datetime.datetime(2015, 1, 1)
# MediaWiki replaces these when a page is saved, and what is written would not be what is read.
REPLACED = ("~~~", "{{", "[[")


def paragraphs(place):
    """Paragraphs of the packages' plain texts, which are fetched on the first run. MediaWiki's API answers in Unicode's form NFC, so they have it."""
    found = []
    for package in PACKAGES:
        names = glob.glob(os.path.join(place.debian(package), "usr/share/**", "*.txt.gz"), recursive=True)
        for name in sorted(names):
            with gzip.open(name, "rt", encoding="utf-8") as text:
                found += unicodedata.normalize("NFC", text.read()).split("\n\n")
    return [paragraph for paragraph in found if paragraph.strip() and not any(word in paragraph for word in REPLACED)]


class Author:
    """Edits texts, which are lists of paragraphs."""

    def __init__(self, seed, source):
        self.random = random.Random(seed)
        self.source = source

    def change(self, text):
        """Other words at a few places of a paragraph."""
        number = self.random.randrange(len(text))
        words = text[number].split(" ")
        other = self.random.choice(self.source).split(" ")
        for _ in range(self.random.randint(1, 4)):
            words[self.random.randrange(len(words))] = self.random.choice(other)
        return text[:number] + [" ".join(words)] + text[number + 1:]

    def insert(self, text):
        """A paragraph of another page."""
        number = self.random.randint(0, len(text))
        return text[:number] + [self.random.choice(self.source)] + text[number:]

    def remove(self, text):
        """A paragraph less, unless it is the last."""
        number = self.random.randrange(len(text))
        return text[:number] + text[number + 1:] if len(text) > 1 else self.insert(text)

    def move(self, text):
        """A paragraph elsewhere."""
        rest = list(text)
        paragraph = rest.pop(self.random.randrange(len(rest)))
        rest.insert(self.random.randint(0, len(rest)), paragraph)
        return rest

    def history(self, text):
        """A page's texts from the first to the last. No text is that of the one before it; a tenth are those of an older one."""
        texts = [text]
        wanted = self.random.randint(*REVISIONS)
        while len(texts) < wanted:
            edits = (self.change, self.change, self.change, self.change, self.insert, self.insert, self.remove, self.move)
            edit = self.random.choice(edits)
            after = self.random.choice(texts) if self.random.random() < 0.1 else edit(texts[-1])
            if after != texts[-1]:
                texts.append(after)
        return ["\n\n".join(text).strip() for text in texts]


def of_special_sizes(source):
    """Pages that differ in kind: shorter than what MediaWiki moves or packs, and larger than a page of any engine; all kinds of letters."""
    long = "\n\n".join(source)[:500_000].strip()
    letters = "'\"\\ &amp; & <b> ]]> %s %00 \t\\0 äöüß ñ €  Ж дом 漢字 かな 한글 עברית العربية हिन्दी 😀👩‍💻𝄞 ﷽ \u202e\u200b"
    return {
        "Short": ["", "a", "b" * 90, "a", "c" * 119, "", "d" * 121, "a"],
        "Long": [long, long[:400_000], long[:250_000] + letters + long[250_000:], long],
        "Letters": [unicodedata.normalize("NFC", f"{letters} {number}\n\n" * number).strip() for number in range(1, 20)],
    }


def histories(place):
    """{title: its texts from the first to the last}, in the order in which they are imported."""
    source = paragraphs(place)
    share = -(-len(source) // PAGES)
    pages = {}
    for number in range(PAGES):
        text = source[number * share:(number + 1) * share]
        if text:
            pages[f"Documentation {number + 1:03}"] = Author(SEED * 1000 + number, source).history(text)
    return {**pages, **of_special_sizes(source)}


def write_dump(path, pages):
    """An XML dump of pages as importDump.php reads it. Each revision has a time of its own: of two with one time and text, the second is not imported."""
    with open(path, "w", encoding="utf-8") as out:
        out.write('<mediawiki xmlns="http://www.mediawiki.org/xml/export-0.11/" version="0.11" xml:lang="en">\n')
        for title, texts in pages.items():
            out.write(f"<page><title>{escape(title)}</title><ns>0</ns>\n")
            for number, text in enumerate(texts):
                when = (FIRST + datetime.timedelta(hours=number)).strftime("%Y-%m-%dT%H:%M:%SZ")
                out.write(f"<revision><timestamp>{when}</timestamp><contributor><username>Admin</username></contributor><comment>{number}</comment>"
                          f'<model>wikitext</model><format>text/x-wiki</format><text xml:space="preserve">{escape(text)}</text></revision>\n')
            out.write("</page>\n")
        out.write("</mediawiki>\n")


def write_files(directory, texts):
    """A file for each text of {title: text}, as importTextFiles.php reads them; their paths."""
    os.makedirs(directory, exist_ok=True)
    paths = []
    for title, text in texts.items():
        paths.append(os.path.join(directory, f"{title}.txt"))
        with open(paths[-1], "w", encoding="utf-8") as out:
            out.write(text)
    return paths
