//! `profile.proto` of pprof, written by hand: the few messages that a heap profile has, with names of functions.
//!
//! ```text
//! Profile   1 sample_type*  2 sample*  3 mapping*  4 location*  5 function*  6 string_table*
//!           9 time_nanos  11 period_type  12 period  14 default_sample_type
//! ValueType 1 type  2 unit                                   (numbers in string_table)
//! Sample    1 location_id*  2 value*  3 label*               (innermost first)
//! Label     1 key  2 str  3 num  4 num_unit
//! Mapping   1 id  2 memory_start  3 memory_limit  4 file_offset  5 filename  7 has_functions
//! Location  1 id  2 mapping_id  3 address  4 line*            Line 1 function_id  2 line
//! Function  1 id  2 name  3 system_name  4 filename
//! ```

use std::collections::HashMap;
use std::time::{SystemTime, UNIX_EPOCH};

use crate::sites::Site;
use crate::symbols::{Frame, Symbols};

/// A message that is being written.
#[derive(Default)]
struct Message(Vec<u8>);

impl Message {
    fn varint(&mut self, mut number: u64) {
        while number >= 0x80 {
            self.0.push(number as u8 | 0x80);
            number >>= 7;
        }
        self.0.push(number as u8);
    }

    /// A number, which is left out if it is 0.
    fn number(&mut self, field: u64, number: u64) -> &mut Message {
        if number != 0 {
            self.varint(field << 3);
            self.varint(number);
        }
        self
    }

    fn bytes(&mut self, field: u64, bytes: &[u8]) -> &mut Message {
        self.varint(field << 3 | 2);
        self.varint(bytes.len() as u64);
        self.0.extend_from_slice(bytes);
        self
    }

    fn numbers(&mut self, field: u64, numbers: impl IntoIterator<Item = u64>) -> &mut Message {
        let mut packed = Message::default();
        numbers.into_iter().for_each(|number| packed.varint(number));
        self.bytes(field, &packed.0)
    }

    fn message(&mut self, field: u64, message: &Message) -> &mut Message {
        self.bytes(field, &message.0)
    }
}

/// Texts by number; 0 is the empty one.
struct Texts {
    numbers: HashMap<String, u64>,
    all: Vec<String>,
}

impl Texts {
    fn number(&mut self, text: &str) -> u64 {
        if let Some(&number) = self.numbers.get(text) {
            return number;
        }
        let number = self.all.len() as u64;
        self.all.push(text.to_string());
        self.numbers.insert(text.to_string(), number);
        number
    }
}

/// A profile that is being written.
struct Profile {
    out: Message,
    texts: Texts,
    mappings: Vec<(u64, u64)>,
    locations: HashMap<usize, u64>,
    functions: HashMap<(u64, u64), u64>,
    symbols: Symbols,
}

/// The bytes of what was found.
pub fn encode(sites: &[Site], period: Option<u64>) -> Vec<u8> {
    let texts = Texts { numbers: HashMap::from([(String::new(), 0)]), all: vec![String::new()] };
    let mut profile = Profile {
        out: Message::default(),
        texts,
        mappings: Vec::new(),
        locations: HashMap::new(),
        functions: HashMap::new(),
        symbols: Symbols::new(),
    };
    for (kind, unit) in [("inuse_objects", "count"), ("inuse_space", "bytes")] {
        let value = profile.value_type(kind, unit);
        profile.out.message(1, &value);
    }
    profile.mappings();
    for site in sites {
        profile.sample(site);
    }
    let (kind, default) = (profile.value_type("space", "bytes"), profile.texts.number("inuse_space"));
    let now = SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |since| since.as_nanos() as u64);
    for text in std::mem::take(&mut profile.texts.all) {
        profile.out.bytes(6, text.as_bytes());
    }
    profile.out.number(9, now).message(11, &kind).number(12, period.unwrap_or(1)).number(14, default);
    profile.out.0
}

impl Profile {
    fn value_type(&mut self, kind: &str, unit: &str) -> Message {
        let mut value = Message::default();
        value.number(1, self.texts.number(kind)).number(2, self.texts.number(unit));
        value
    }

    fn mappings(&mut self) {
        let maps = std::fs::read_to_string("/proc/self/maps").unwrap_or_default();
        for line in maps.lines() {
            let mut words = line.split_ascii_whitespace();
            let (Some(range), Some(rights), Some(offset)) = (words.next(), words.next(), words.next()) else {
                continue;
            };
            let (Some((from, to)), Some(file)) = (range.split_once('-'), words.nth(2)) else { continue };
            let hex = |text| u64::from_str_radix(text, 16).unwrap_or(0);
            if !rights.contains('x') {
                continue;
            }
            self.mappings.push((hex(from), hex(to)));
            let mut mapping = Message::default();
            mapping.number(1, self.mappings.len() as u64).number(2, hex(from)).number(3, hex(to));
            mapping.number(4, hex(offset)).number(5, self.texts.number(file)).number(7, 1);
            self.out.message(3, &mapping);
        }
    }

    fn sample(&mut self, site: &Site) {
        let locations: Vec<u64> = site.stack.iter().map(|&address| self.location(address)).collect();
        let mut sample = Message::default();
        sample.numbers(1, locations);
        sample.numbers(2, [site.live.objects.round() as u64, site.live.bytes.round() as u64]);
        if site.session != 0 {
            let mut label = Message::default();
            label.number(1, self.texts.number("session")).number(3, site.session);
            sample.message(3, &label);
        }
        if let Some((_, text)) = &site.statement {
            let mut label = Message::default();
            label.number(1, self.texts.number("statement")).number(2, self.texts.number(text));
            sample.message(3, &label);
        }
        self.out.message(2, &sample);
    }

    fn location(&mut self, return_address: usize) -> u64 {
        if let Some(&id) = self.locations.get(&return_address) {
            return id;
        }
        let id = self.locations.len() as u64 + 1;
        self.locations.insert(return_address, id);
        let address = return_address.saturating_sub(1) as u64;
        let mapping = self.mappings.iter().position(|&(from, to)| (from..to).contains(&address));
        let mut location = Message::default();
        location.number(1, id).number(2, mapping.map_or(0, |at| at as u64 + 1)).number(3, address);
        for frame in self.symbols.frames(return_address).iter() {
            let mut line = Message::default();
            line.number(1, self.function(frame)).number(2, u64::from(frame.line.unwrap_or(0)));
            location.message(4, &line);
        }
        self.out.message(4, &location);
        id
    }

    fn function(&mut self, frame: &Frame) -> u64 {
        let (name, file) =
            (self.texts.number(&frame.name()), self.texts.number(frame.file.as_deref().unwrap_or("")));
        if let Some(&id) = self.functions.get(&(name, file)) {
            return id;
        }
        let id = self.functions.len() as u64 + 1;
        self.functions.insert((name, file), id);
        let mut function = Message::default();
        function.number(1, id).number(2, name).number(3, name).number(4, file);
        self.out.message(5, &function);
        id
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sites::Amount;

    #[test]
    fn a_field_is_its_number_its_kind_and_its_value() {
        let mut message = Message::default();
        message.number(1, 300).number(2, 0).bytes(6, b"ab").numbers(2, [1, 128]);
        assert_eq!(message.0, [0x08, 0xac, 0x02, 0x32, 2, b'a', b'b', 0x12, 3, 1, 0x80, 1]);
    }

    #[test]
    fn a_profile_has_what_was_found() {
        let live = Amount { objects: 2.0, bytes: 30.0 };
        let statement = Some((1, "select planted".to_string()));
        let site = Site { stack: vec![0x1001, 0x2002], live, session: 7, statement, ..Site::default() };
        let profile = encode(&[site], None);
        for text in ["inuse_space", "select planted", "?+0x1000"] {
            assert!(profile.windows(text.len()).any(|part| part == text.as_bytes()), "{text}");
        }
    }
}
