//! Texts of servers and recordings, made such that they do nothing to a terminal.

/// Whether a character moves something on a terminal, reverses what is beside it, or is not seen at all.
fn is_harmful(character: char) -> bool {
    character.is_control()
        || matches!(character,
            '\u{ad}' | '\u{61c}' | '\u{180e}' | '\u{200b}'..='\u{200f}' | '\u{2028}'..='\u{202e}'
            | '\u{2060}'..='\u{206f}' | '\u{feff}' | '\u{fff9}'..='\u{fffb}' | '\u{e0000}'..='\u{e007f}')
}

/// A text in one line: what separates words is a space, and what could do harm is shown by its number, as `\x1b`.
pub fn line(text: &str) -> String {
    let mut shown = String::with_capacity(text.len());
    for character in text.chars() {
        match character {
            '\n' | '\r' | '\t' | '\u{b}' | '\u{c}' => {
                if !shown.ends_with(' ') {
                    shown.push(' ');
                }
            }
            _ if is_harmful(character) && u32::from(character) < 0x100 => {
                shown += &format!("\\x{:02x}", u32::from(character));
            }
            _ if is_harmful(character) => shown += &format!("\\u{{{:x}}}", u32::from(character)),
            _ => shown.push(character),
        }
    }
    shown
}

/// JSON with the same characters written by their numbers: they are in strings only.
pub fn json(text: &str) -> String {
    let mut shown = String::with_capacity(text.len());
    for character in text.chars() {
        match character {
            '\n' => shown.push('\n'),
            _ if is_harmful(character) => {
                for unit in character.encode_utf16(&mut [0; 2]) {
                    shown += &format!("\\u{unit:04x}");
                }
            }
            _ => shown.push(character),
        }
    }
    shown
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nothing_of_a_text_reaches_the_terminal_but_what_is_seen() {
        assert_eq!(line("select 1\n\t-- x"), "select 1 -- x");
        assert_eq!(line("\u{1b}]0;x\u{7}\u{9b}2J\u{7f}"), "\\x1b]0;x\\x07\\x9b2J\\x7f");
        assert_eq!(line("a\u{202e}b\u{200b}ü木"), "a\\u{202e}b\\u{200b}ü木");
    }

    #[test]
    fn json_stays_what_it_says() {
        let said = serde_json::json!({ "a": "x\u{9b}\u{7f}\u{1b}\u{202e}\u{e0001}ü\n" });
        let text = json(&serde_json::to_string_pretty(&said).unwrap());
        assert!(!text.chars().any(|character| character != '\n' && is_harmful(character)), "{text}");
        assert_eq!(serde_json::from_str::<serde_json::Value>(&text).unwrap(), said);
    }
}
