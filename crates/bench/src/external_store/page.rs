//! One page of a wiki and its history: a text with headings, links, references and templates, which each revision
//! changes in a small place.

use super::words::Words;
use crate::random::Random;

/// Mean bytes of a first revision, before limits.
const MEAN_BYTES: f64 = 34_000.0;
/// Of the normal distribution whose exponential the sizes are; half its square, by which the mean lies above the
/// median.
const SPREAD: f64 = 0.8;
const SHORTEST: f64 = 400.0;
const LONGEST: f64 = 1_000_000.0;
/// Words that say what the page is about.
const TOPIC: usize = 48;
/// One of so many words is of the topic.
const ON_TOPIC: u64 = 5;

/// Turns of phrase that a page uses again and again, and of how many words one is such a phrase: by these texts
/// compress as those of a wiki do.
const PHRASES: u64 = 48;
const PHRASED: u64 = 6;

/// A page as it is after so many edits.
pub struct Page {
    random: Random,
    topic: Vec<u32>,
    phrases: Vec<String>,
    text: String,
}

impl Page {
    /// The first revision of page number `number`.
    pub fn new(words: &Words, seed: u64, number: u64) -> Page {
        let mut random = Random::new(seed, number);
        let bytes = first_bytes(&mut random);
        let topic = (0..TOPIC).map(|_| words.rare(&mut random)).collect();
        let mut page = Page { random, topic, phrases: Vec::new(), text: String::new() };
        page.phrases = (0..PHRASES).map(|_| page.phrase(words)).collect();
        let mut text = page.opening(words);
        while text.len() < bytes {
            let section = page.section(words, bytes - text.len());
            text.push_str(&section);
        }
        let category = page.title(words);
        text.push_str(&format!("\n[[Category:{category}]]\n"));
        page.text = text;
        page
    }

    /// The whole text.
    pub fn text(&self) -> &str {
        &self.text
    }

    /// The next revision.
    pub fn edit(&mut self, words: &Words) {
        match self.random.below(100) {
            0..=37 => self.change_words(words),
            38..=64 => {
                let at = self.sentence_start();
                let sentence = self.sentence(words);
                self.text.insert_str(at, &sentence);
            }
            65..=82 => self.remove_sentence(),
            83..=91 => {
                let at = self.word_start();
                let link = format!("[[{}]] ", self.title(words));
                self.text.insert_str(at, &link);
            }
            92..=96 => {
                let at = self.sentence_start();
                let reference = self.reference(words);
                self.text.insert_str(at, &reference);
            }
            _ => {
                let at = self.text.rfind("\n[[Category:").unwrap_or(self.text.len());
                let paragraph = self.paragraph(words, 1000);
                self.text.insert_str(at, &paragraph);
            }
        }
    }

    fn change_words(&mut self, words: &Words) {
        let from = self.word_start();
        let mut to = from;
        for _ in 0..=self.random.below(3) {
            to = self.text[to..].find(' ').map_or(to, |length| to + length + 1);
        }
        let mut changed = String::new();
        for _ in 0..=self.random.below(3) {
            changed.push_str(self.word(words).as_str());
            changed.push(' ');
        }
        self.text.replace_range(from..to, &changed);
    }

    fn remove_sentence(&mut self) {
        let from = self.sentence_start();
        let to = self.text[from..].find(". ").map_or(from, |length| from + length + 2);
        // What is left must be a text still.
        if self.text.len() - (to - from) >= SHORTEST as usize / 2 {
            self.text.replace_range(from..to, "");
        }
    }

    /// Behind the first blank after a random place.
    fn word_start(&mut self) -> usize {
        self.start_after(" ")
    }

    fn sentence_start(&mut self) -> usize {
        self.start_after(". ")
    }

    fn start_after(&mut self, mark: &str) -> usize {
        let place = self.random.below(self.text.len() as u64 + 1) as usize;
        self.text[place..].find(mark).map_or(self.text.len(), |length| place + length + mark.len())
    }

    fn word(&mut self, words: &Words) -> String {
        if self.random.below(ON_TOPIC) > 0 {
            return words.any(&mut self.random).into();
        }
        // The first words of the topic are the frequent ones.
        let among = 1 + self.random.below(TOPIC as u64);
        let which = self.random.below(among) as usize;
        words.numbered(self.topic[which]).into()
    }

    fn phrase(&mut self, words: &Words) -> String {
        let count = 3 + self.random.below(5);
        (0..count).map(|_| self.word(words)).collect::<Vec<_>>().join(" ")
    }

    fn title(&mut self, words: &Words) -> String {
        let mut title = capitalised(&self.word(words));
        for _ in 0..self.random.below(3) {
            title.push(' ');
            title.push_str(&self.word(words));
        }
        title
    }

    fn year(&mut self) -> u64 {
        1700 + self.random.below(310)
    }

    fn opening(&mut self, words: &Words) -> String {
        let mut text = String::from("{{Infobox\n");
        for field in ["name", "image", "born", "location", "website"] {
            let (title, year) = (self.title(words), self.year());
            text.push_str(&format!("| {field} = {title} {year}\n"));
        }
        text.push_str("}}\n");
        text
    }

    /// A heading and what follows, not much more than `room` bytes.
    fn section(&mut self, words: &Words, room: usize) -> String {
        let mut text = format!("\n== {} ==\n", self.title(words));
        for _ in 0..=self.random.below(4) {
            if text.len() < room {
                let paragraph = self.paragraph(words, room - text.len());
                text.push_str(&paragraph);
            }
        }
        text
    }

    fn paragraph(&mut self, words: &Words, room: usize) -> String {
        let mut text = String::new();
        for _ in 0..3 + self.random.below(6) {
            if text.len() < room {
                let sentence = self.sentence(words);
                text.push_str(&sentence);
                if self.random.below(12) == 0 {
                    let reference = self.reference(words);
                    text.push_str(&reference);
                }
            }
        }
        text.push_str("\n\n");
        text
    }

    /// Ends with a full stop and a blank.
    fn sentence(&mut self, words: &Words) -> String {
        let mut text = capitalised(&self.word(words));
        for _ in 0..5 + self.random.below(15) {
            text.push_str(if self.random.below(14) == 0 { ", " } else { " " });
            match self.random.below(40) {
                0..=1 => text.push_str(&format!("[[{}]]", self.title(words))),
                2 => text.push_str(&self.year().to_string()),
                _ if self.random.below(PHRASED) == 0 => {
                    let which = self.random.below(PHRASES) as usize;
                    text.push_str(&self.phrases[which]);
                }
                _ => text.push_str(&self.word(words)),
            }
        }
        text.push_str(". ");
        text
    }

    fn reference(&mut self, words: &Words) -> String {
        let (site, name, title) = (self.word(words), self.word(words), self.title(words));
        let (year, month, day) =
            (1995 + self.random.below(25), 1 + self.random.below(12), 1 + self.random.below(28));
        format!(
            "<ref>{{{{cite web |url=http://www.{site}.org/{name}.html |title={title} |date={year}-{month:02}-{day:02}}}}}</ref> "
        )
    }
}

fn capitalised(word: &str) -> String {
    let mut made = word.to_string();
    if let Some(first) = made.get_mut(..1) {
        first.make_ascii_uppercase();
    }
    made
}

/// Log-normal, made by sums and products alone: logarithms and cosines are not the same on every machine.
fn first_bytes(random: &mut Random) -> usize {
    // The sum of twelve has variance 1, and is normal as far as anybody could see.
    let normal = (0..12).map(|_| random.fraction()).sum::<f64>() - 6.0;
    let exponent = SPREAD * normal - SPREAD * SPREAD / 2.0;
    (MEAN_BYTES * exponential(exponent)).clamp(SHORTEST, LONGEST) as usize
}

/// e to the power of a number of few digits, to four digits or more: (1 + x/2^20)^(2^20).
fn exponential(exponent: f64) -> f64 {
    let mut power = 1.0 + exponent / f64::from(1 << 20);
    for _ in 0..20 {
        power *= power;
    }
    power
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_are_log_normal() {
        let mut random = Random::new(1, 0);
        let mut sizes: Vec<f64> = (0..100_000).map(|_| first_bytes(&mut random) as f64).collect();
        sizes.sort_unstable_by(f64::total_cmp);
        let mean = sizes.iter().sum::<f64>() / sizes.len() as f64;
        assert!((mean / MEAN_BYTES - 1.0).abs() < 0.03, "{mean}");
        let median = sizes[sizes.len() / 2];
        assert!((median / (MEAN_BYTES * (-SPREAD * SPREAD / 2.0).exp()) - 1.0).abs() < 0.03, "{median}");
        for exponent in [-3.0, -0.5, 0.0, 1.0, 4.0] {
            assert!((exponential(exponent) / f64::exp(exponent) - 1.0).abs() < 1e-4);
        }
    }

    #[test]
    fn an_edit_changes_little() {
        let words = Words::new(1);
        let mut changed_bytes = 0;
        for number in 0..20 {
            let mut page = Page::new(&words, 1, number);
            for _ in 0..50 {
                let before = page.text().to_string();
                page.edit(&words);
                let after = page.text();
                assert!(after.is_ascii() && after.len() > 100);
                let same = |a: &mut dyn Iterator<Item = u8>, b: &mut dyn Iterator<Item = u8>| {
                    a.zip(b).take_while(|(a, b)| a == b).count()
                };
                let shorter = before.len().min(after.len());
                let head = same(&mut before.bytes(), &mut after.bytes());
                let tail = same(&mut before.bytes().rev(), &mut after.bytes().rev()).min(shorter - head);
                changed_bytes += before.len().max(after.len()) - head - tail;
            }
        }
        assert!(changed_bytes < 20 * 50 * 250, "{changed_bytes}");
    }

    #[test]
    fn short_texts_can_be_edited_for_ever() {
        let words = Words::new(1);
        let mut page = Page::new(&words, 1, 1);
        page.text = "a".into();
        for _ in 0..500 {
            page.edit(&words);
        }
        assert!(!page.text().is_empty());
    }
}
