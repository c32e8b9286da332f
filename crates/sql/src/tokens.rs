//! The words of a statement, as far as telling what it is about needs them.
//!
//! Comments are skipped; of versioned comments only the marks are, as if every server would read what is in them. A
//! server that does not will then do less than was expected, never more.

use super::charset::Dialect;

/// A piece of a statement.
#[derive(Debug, Clone, PartialEq)]
pub enum Token<'a> {
    /// A keyword, a name or a number.
    Word(&'a [u8]),
    /// A name in quotes, without them.
    Name(Vec<u8>),
    /// A string.
    Text,
    /// Any other byte.
    Mark(u8),
}

impl Token<'_> {
    /// Whether this is the keyword, which is given in capitals.
    pub fn is(&self, keyword: &str) -> bool {
        matches!(self, Token::Word(word) if word.eq_ignore_ascii_case(keyword.as_bytes()))
    }
}

/// Reads tokens of a text from a place on.
#[derive(Clone)]
pub struct Tokens<'a> {
    /// All of it.
    pub text: &'a [u8],
    /// After the last token.
    pub at: usize,
    /// How strings in it are written.
    pub dialect: Dialect,
}

impl<'a> Tokens<'a> {
    /// From the beginning on.
    pub fn new(text: &'a [u8], dialect: Dialect) -> Tokens<'a> {
        Tokens { text, at: 0, dialect }
    }

    /// The next token without taking it.
    pub fn peek(&self) -> Option<Token<'a>> {
        self.clone().next()
    }

    /// Takes the next token if it is this keyword.
    pub fn accept(&mut self, keyword: &str) -> bool {
        let mut ahead = self.clone();
        let taken = ahead.next().is_some_and(|token| token.is(keyword));
        if taken {
            *self = ahead;
        }
        taken
    }

    /// Takes the next token if it is this byte.
    pub fn accept_mark(&mut self, mark: u8) -> bool {
        let mut ahead = self.clone();
        let taken = ahead.next() == Some(Token::Mark(mark));
        if taken {
            *self = ahead;
        }
        taken
    }

    /// A name, quoted or not.
    pub fn name(&mut self) -> Option<Vec<u8>> {
        match self.next()? {
            Token::Word(word) => Some(word.to_vec()),
            Token::Name(name) => Some(name),
            _ => None,
        }
    }

    /// `table` or `database.table`.
    pub fn qualified(&mut self) -> Option<(Option<Vec<u8>>, Vec<u8>)> {
        let first = self.name()?;
        match self.accept_mark(b'.') {
            true => Some((Some(first), self.name()?)),
            false => Some((None, first)),
        }
    }

    /// Whether one of the keywords, in capitals, comes somewhere in the rest.
    pub fn any_of(&self, keywords: &[&str]) -> bool {
        self.clone().any(|token| keywords.iter().any(|keyword| token.is(keyword)))
    }

    /// Where the next token begins, behind blanks and comments.
    pub fn begin_of_next(&mut self) -> usize {
        self.skip_blanks();
        self.at
    }

    fn skip_blanks(&mut self) {
        loop {
            let rest = &self.text[self.at..];
            let comment_end =
                |from: usize| memchr::memmem::find(&rest[from..], b"*/").map_or(rest.len(), |n| from + n + 2);
            self.at += match rest {
                [first, ..] if first.is_ascii_whitespace() => 1,
                [b'*', b'/', ..] => 2,
                [b'/', b'*', b'!', ..] => 3 + digits(&rest[3..]),
                [b'/', b'*', b'M', b'!', ..] => 4 + digits(&rest[4..]),
                [b'/', b'*', ..] => comment_end(2),
                [b'#', ..] => line_end(rest),
                [b'-', b'-', next, ..] if next.is_ascii_whitespace() => line_end(rest),
                _ => return,
            };
        }
    }
}

impl<'a> Iterator for Tokens<'a> {
    type Item = Token<'a>;

    fn next(&mut self) -> Option<Token<'a>> {
        self.skip_blanks();
        let start = self.at;
        let first = *self.text.get(start)?;
        let is_word =
            |byte: &u8| byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'$') || *byte >= 0x80;
        if is_word(&first) {
            let second = |at: usize| self.dialect.charset.is_second(self.text, start, at);
            let end = (start..self.text.len()).find(|&at| !is_word(&self.text[at]) && !second(at));
            self.at = end.unwrap_or(self.text.len());
            return Some(Token::Word(&self.text[start..self.at]));
        }
        if !matches!(first, b'\'' | b'"' | b'`') {
            self.at += 1;
            return Some(Token::Mark(first));
        }
        self.at = self.dialect.end_of_quoted(self.text, start).unwrap_or(self.text.len());
        if first == b'\'' || (first == b'"' && !self.dialect.ansi_quotes) {
            return Some(Token::Text);
        }
        let mut name = self.text[start + 1..self.at.max(start + 2) - 1].to_vec();
        // A doubled quote is a quote of the name.
        while self.text.get(self.at) == Some(&first) {
            let from = self.at;
            self.at = self.dialect.end_of_quoted(self.text, from).unwrap_or(self.text.len());
            name.extend_from_slice(&self.text[from..self.at.max(from + 1) - 1]);
        }
        Some(Token::Name(name))
    }
}

fn digits(text: &[u8]) -> usize {
    text.iter().take_while(|byte| byte.is_ascii_digit()).count()
}

fn line_end(text: &[u8]) -> usize {
    memchr::memchr(b'\n', text).unwrap_or(text.len())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_strings_and_comments() {
        let text = b"/*!40000 ALTER TABLE `a``b`.c /* x */ ENABLE -- y\nKEYS 'it''s' */";
        let mut tokens = Tokens::new(text, Dialect::OWN);
        assert!(tokens.accept("ALTER") && tokens.accept("TABLE") && !tokens.accept("ENABLE"));
        assert_eq!(tokens.qualified(), Some((Some(b"a`b".to_vec()), b"c".to_vec())));
        assert!(tokens.any_of(&["KEYS"]) && !tokens.any_of(&["S"]));
        assert_eq!(tokens.by_ref().skip(2).collect::<Vec<_>>(), [Token::Text, Token::Text]);
    }

    #[test]
    fn tokens_have_places() {
        let mut tokens = Tokens::new(b" a /* x */ . `b``c` ", Dialect::OWN);
        let mut places = Vec::new();
        loop {
            let from = tokens.begin_of_next();
            if tokens.next().is_none() {
                break;
            }
            places.push((from, tokens.at));
        }
        assert_eq!(places, [(1, 2), (11, 12), (13, 19)]);
    }

    #[test]
    fn unfinished_quotes_do_not_run_past_the_end() {
        for text in [&b"`"[..], b"`a", b"``", b"```", b"'", b"\"x", b"/*", b"/*!", b"--", b"#", b"a``"] {
            let _ = Tokens::new(text, Dialect::OWN).count();
            let _ = Tokens::new(text, Dialect { ansi_quotes: true, ..Dialect::OWN }).count();
        }
    }
}
