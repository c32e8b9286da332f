//! What is asked for: a path as segments, parameters, headers, a body. Segments are names in the archive; none of them
//! is ever a path of a file.

use crate::incoming::Source;
use crate::problem::Problem;
use hyper::{HeaderMap, Method};
use serde::de::DeserializeOwned;
use std::str::FromStr;
use teak_archive::{Name, Oid};

/// A request, for the thread that answers it.
pub(crate) struct Asked {
    pub(crate) method: Method,
    pub(crate) headers: HeaderMap,
    /// Segments of the path that stand for something, decoded.
    pub(crate) segments: Vec<String>,
    parameters: Vec<(String, String)>,
    pub(crate) body: Source,
}

impl Asked {
    /// `query` is what stands behind the question mark.
    pub(crate) fn new(
        method: Method,
        headers: HeaderMap,
        segments: Vec<String>,
        query: &str,
    ) -> Result<Asked, Problem> {
        let mut parameters = Vec::new();
        for pair in query.split('&').filter(|pair| !pair.is_empty()) {
            let (name, value) = pair.split_once('=').unwrap_or((pair, ""));
            let decoded = |text: &str| decode(&text.replace('+', " "));
            let wrong = || Problem::bad("a parameter is not UTF-8 with % before two hexadecimal digits");
            parameters.push((decoded(name).ok_or_else(wrong)?, decoded(value).ok_or_else(wrong)?));
        }
        Ok(Asked { method, headers, segments, parameters, body: Source::whole(Vec::new()) })
    }

    /// Refuses parameters that are none of these: who misspells one is to know.
    pub(crate) fn only(&self, known: &[&str]) -> Result<(), Problem> {
        match self.parameters.iter().find(|(name, _)| !known.contains(&&**name)) {
            Some((name, _)) => {
                let known = if known.is_empty() { "none".to_string() } else { known.join(", ") };
                Err(Problem::of_field(name, format!("there is no such parameter; there is {known}")))
            }
            None => Ok(()),
        }
    }

    /// All values of a parameter.
    pub(crate) fn all<'a>(&'a self, name: &'a str) -> impl Iterator<Item = &'a str> {
        self.parameters.iter().filter(move |(given, _)| given == name).map(|(_, value)| &**value)
    }

    /// The one value of a parameter.
    pub(crate) fn one(&self, name: &str) -> Result<Option<&str>, Problem> {
        let mut values = self.parameters.iter().filter(|(given, _)| given == name).map(|(_, value)| &**value);
        match (values.next(), values.next()) {
            (_, Some(_)) => Err(Problem::of_field(name, "the parameter is given twice")),
            (value, None) => Ok(value),
        }
    }

    /// The same, as a number or a name.
    pub(crate) fn read<T: FromStr>(&self, name: &str) -> Result<Option<T>, Problem> {
        let read = |text: &str| text.parse().map_err(|_| Problem::of_field(name, "the value makes no sense"));
        self.one(name)?.map(read).transpose()
    }

    /// Values that are separated by commas.
    pub(crate) fn list(&self, name: &str) -> Result<Vec<&str>, Problem> {
        let list = self.one(name)?.unwrap_or_default();
        Ok(list.split(',').filter(|value| !value.is_empty()).collect())
    }

    /// Of a header that can be read as text.
    pub(crate) fn header(&self, name: impl hyper::header::AsHeaderName) -> Option<&str> {
        self.headers.get(name).and_then(|value| value.to_str().ok())
    }

    /// The object that the first segment names.
    pub(crate) fn name(&self) -> Result<Name, Problem> {
        Ok(self.segments[0].parse()?)
    }

    /// The record that the first segment names.
    pub(crate) fn oid(&self) -> Result<Oid, Problem> {
        match self.name()? {
            Name::Record(oid) => Ok(oid),
            Name::Data(_) => Err(Problem::bad("this is done with a record, by its OID")),
        }
    }

    /// The body as JSON.
    pub(crate) fn json<T: DeserializeOwned>(&self) -> Result<T, Problem> {
        serde_json::from_slice(self.body.bytes()).map_err(|wrong| Problem::bad(format!("body: {wrong}")))
    }
}

/// A text in which `%` and two hexadecimal digits are a byte, if it is UTF-8 then.
pub(crate) fn decode(text: &str) -> Option<String> {
    let mut bytes = Vec::with_capacity(text.len());
    let mut rest = text.as_bytes();
    while let Some((first, behind)) = rest.split_first() {
        rest = behind;
        if *first != b'%' {
            bytes.push(*first);
            continue;
        }
        let (digits, behind) = rest.split_first_chunk::<2>()?;
        if !digits.iter().all(u8::is_ascii_hexdigit) {
            return None;
        }
        bytes.push(u8::from_str_radix(std::str::from_utf8(digits).ok()?, 16).ok()?);
        rest = behind;
    }
    String::from_utf8(bytes).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_decoded_is_utf8_and_all_else_is_nothing() {
        for (text, meant) in
            [("", ""), ("a%20b", "a b"), ("%C3%a9", "é"), ("a+b", "a+b"), ("%2F..%00", "/..\0")]
        {
            assert_eq!(decode(text).as_deref(), Some(meant));
        }
        for wrong in ["%", "%2", "%zz", "%+1", "%é", "%ff", "%C3"] {
            assert_eq!(decode(wrong), None, "{wrong}");
        }
        let asked =
            Asked::new(Method::GET, HeaderMap::new(), vec!["x".into()], "a=1&a=2&b=x+y%2B&&c").unwrap();
        assert_eq!(asked.all("a").collect::<Vec<_>>(), ["1", "2"]);
        assert!(asked.one("a").is_err() && asked.read::<u64>("b").is_err() && asked.name().is_err());
        assert_eq!((asked.one("b").unwrap(), asked.one("c").unwrap()), (Some("x y+"), Some("")));
        assert!(asked.only(&["a", "b"]).is_err() && asked.only(&["a", "b", "c"]).is_ok());
    }
}
