//! Patterns such as `/{artist}/{album}/{track:02}-{title}.{ext}`: fields to names and back.
//!
//! What is not in braces is itself; `{{` and `}}` are braces. A directory has one field at most, the file one at least.
//! Between two fields there is a separator, whose first character is no letter and no digit. Where a value has
//! something that would be taken for a separator, its first character is escaped: so names give their fields back,
//! always.

use super::names;
use crate::rows::Record;
use crate::schema::{built_in, Scalar, Schema, Value};
use crate::{Error, Metadata, Result};

/// Fields and text, from the root to the file.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Pattern {
    pub(super) directories: Vec<Component>,
    pub(super) file: Component,
}

/// One name.
#[derive(Debug, Clone, PartialEq, Default)]
pub(super) struct Component {
    /// Text before each field.
    texts: Vec<String>,
    pub(super) fields: Vec<Placeholder>,
    /// Text behind the last field.
    end: String,
}

/// A field in a name.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Placeholder {
    pub(super) number: u32,
    scalar: Scalar,
    name: String,
    /// Digits, of a long.
    width: usize,
}

/// Directories of a pattern, at most.
const DEEPEST: usize = 100;

impl Pattern {
    pub(super) fn parse(schema: &Schema, text: &str) -> Result<Pattern> {
        let wrong = |problem: &str| Error::Usage(format!("pattern {text}: {problem}"));
        let rest = text.strip_prefix('/').ok_or_else(|| wrong("it begins with /"))?;
        let mut components =
            rest.split('/').map(|part| Component::parse(schema, part, &wrong)).collect::<Result<Vec<_>>>()?;
        let file = components.pop().ok_or_else(|| wrong("there is no file name"))?;
        if file.fields.is_empty() {
            return Err(wrong("the file name has no field"));
        }
        if components.len() > DEEPEST {
            return Err(wrong(&format!("more than {DEEPEST} directories")));
        }
        if components.iter().any(|component| component.fields.len() > 1) {
            return Err(wrong("a directory has one field at most"));
        }
        let pattern = Pattern { directories: components, file };
        let of_directories: Vec<u32> = pattern.directory_fields().collect();
        if (1..of_directories.len()).any(|at| of_directories[..at].contains(&of_directories[at])) {
            return Err(wrong("a field is in two directories"));
        }
        Ok(pattern)
    }

    fn directory_fields(&self) -> impl Iterator<Item = u32> + '_ {
        self.directories.iter().flat_map(|component| &component.fields).map(|field| field.number)
    }

    /// Numbers of all fields, those of the directories first, each once: the fields of the view's index.
    pub(super) fn fields(&self) -> Vec<u32> {
        let mut numbers = Vec::new();
        for number in self.directory_fields().chain(self.file.fields.iter().map(|field| field.number)) {
            if !numbers.contains(&number) {
                numbers.push(number);
            }
        }
        numbers
    }
}

impl Pattern {
    /// The fields that the names of a path give, from the root as far as they go.
    pub(super) fn fields_of(&self, schema: &Schema, path: &str, given: &[&str]) -> Result<Metadata> {
        let mut fields: Vec<(u32, Value)> = Vec::new();
        for (component, name) in self.directories.iter().chain([&self.file]).zip(given) {
            for (field, value) in component.fields.iter().zip(component.read(name)?) {
                match fields.iter().find(|(number, _)| *number == field.number) {
                    Some((_, other)) if *other != value => {
                        return Err(Error::Usage(format!(
                            "{path} has two values for one field: {other} and {value}"
                        )));
                    }
                    Some(_) => {}
                    None => fields.push((field.number, value)),
                }
            }
        }
        let mut metadata = Metadata::default();
        for (number, value) in fields {
            let field = schema.by_number(number).ok_or_else(|| Error::Usage(format!("no field {number}")))?;
            field.of_type.check(&value).map_err(|problem| Error::field(&field.name, problem))?;
            metadata.value(&field.name, value);
        }
        Ok(metadata)
    }
}

impl Component {
    fn parse(schema: &Schema, part: &str, wrong: &dyn Fn(&str) -> Error) -> Result<Component> {
        let (mut component, mut text, mut rest) = (Component::default(), String::new(), part);
        while let Some(at) = rest.find(['{', '}']) {
            text.push_str(&rest[..at]);
            let (brace, after) = rest[at..].split_at(1);
            if let Some(after) = after.strip_prefix(brace) {
                text.push_str(brace);
                rest = after;
                continue;
            }
            let field = (brace == "{").then(|| after.split_once('}')).flatten();
            let (field, after) = field.ok_or_else(|| wrong("a brace that has no other"))?;
            component.texts.push(std::mem::take(&mut text));
            component.fields.push(Placeholder::parse(schema, field, wrong)?);
            rest = after;
        }
        text.push_str(rest);
        component.end = text;
        for text in component.texts.iter().chain([&component.end]) {
            if text.chars().any(|c| matches!(c, '%' | '~') || c.is_control()) {
                return Err(wrong("text with %, ~ or control characters"));
            }
        }
        for separator in component.texts.iter().skip(1) {
            if separator.chars().next().is_none_or(char::is_alphanumeric) {
                return Err(wrong(
                    "between two fields there is text that begins with no letter and no digit",
                ));
            }
        }
        if component.fields.is_empty() && ["", ".", ".."].contains(&&*component.end) {
            return Err(wrong("an empty name, or . or .."));
        }
        Ok(component)
    }

    /// The name that these values give, which gives them back.
    pub(super) fn compose(&self, record: &Record) -> Option<String> {
        let values =
            self.fields.iter().map(|field| record.value(field.number)).collect::<Option<Vec<_>>>()?;
        self.compose_values(&values)
    }

    fn compose_values(&self, values: &[Value]) -> Option<String> {
        let texts: Vec<String> =
            self.fields.iter().zip(values).map(|(field, value)| field.text(value)).collect();
        let separators: String = self.texts.iter().skip(1).filter_map(|text| text.chars().next()).collect();
        // What a name is not to be is the same for all: escaping more makes it another.
        for also in ["", &separators, &format!("{separators}.~"), &format!("{separators}.~ ")] {
            let mut name = String::new();
            for (before, text) in self.texts.iter().zip(&texts) {
                name.push_str(before);
                name.push_str(&names::escape(text, also));
            }
            name.push_str(&self.end);
            let comes_back = self.read(&name).is_ok_and(|read| read == values);
            if comes_back && ![".", ".."].contains(&&*name) && !names::has_suffix(&name) {
                return Some(name);
            }
        }
        None
    }

    /// The name as it is given to the values that it gives; what is wrong with it.
    pub(super) fn canonical(&self, name: &str) -> Result<Option<String>> {
        Ok(self.compose_values(&self.read(name)?))
    }

    /// The values that a name gives; what is wrong with it.
    pub(super) fn read(&self, name: &str) -> Result<Vec<Value>> {
        let wrong = || Error::Usage(format!("'{}' is not as {self}", name.escape_debug()));
        let first = self.texts.first().map_or("", |text| text);
        let inner = name.strip_prefix(first).and_then(|rest| rest.strip_suffix(&*self.end));
        let mut rest = inner.ok_or_else(wrong)?;
        if self.fields.is_empty() {
            return if rest.is_empty() { Ok(Vec::new()) } else { Err(wrong()) };
        }
        let mut values = Vec::new();
        for (at, field) in self.fields.iter().enumerate() {
            let part = match self.texts.get(at + 1) {
                None => std::mem::take(&mut rest),
                Some(separator) => {
                    // An extension is what is behind the last dot.
                    let is_extension = separator.starts_with('.') && at + 2 == self.fields.len();
                    let found = if is_extension { rest.rfind(&**separator) } else { rest.find(&**separator) };
                    let (part, after) = rest.split_at(found.ok_or_else(wrong)?);
                    rest = &after[separator.len()..];
                    part
                }
            };
            values.push(field.read(&names::unescape(part).ok_or_else(wrong)?)?);
        }
        Ok(values)
    }
}

impl std::fmt::Display for Component {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        for (text, field) in self.texts.iter().zip(&self.fields) {
            write!(f, "{text}{{{}}}", field.name)?;
        }
        f.write_str(&self.end)
    }
}

impl Placeholder {
    fn parse(schema: &Schema, text: &str, wrong: &dyn Fn(&str) -> Error) -> Result<Placeholder> {
        let (name, width) = match text.split_once(':') {
            None => (text, 0),
            Some((name, digits)) => {
                let width = digits
                    .strip_prefix('0')
                    .and_then(|digits| digits.parse().ok())
                    .filter(|w| (1..=18).contains(w));
                (
                    name,
                    width
                        .ok_or_else(|| wrong("behind a colon there is 0 and a number of digits, 1 to 18"))?,
                )
            }
        };
        let field = schema.field(name)?;
        let scalar = field.of_type.scalar;
        let problem = match field.number {
            built_in::OID | built_in::DATA => "is not for patterns",
            _ if field.of_type.list => "is a list, and a name has one value",
            _ if !field.queryable => "is not queryable",
            _ if width > 0 && scalar != Scalar::Long => "is no long, and only those have digits",
            _ => return Ok(Placeholder { number: field.number, scalar, name: field.name.clone(), width }),
        };
        Err(Error::field(&field.name, problem))
    }

    fn text(&self, value: &Value) -> String {
        match value {
            Value::Long(number) if *number >= 0 => format!("{number:0width$}", width = self.width),
            value => value.to_string(),
        }
    }

    fn read(&self, text: &str) -> Result<Value> {
        self.scalar.parse(text).map_err(|problem| Error::field(&self.name, problem))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Definition;
    use proptest::prelude::*;

    fn schema() -> Schema {
        let text = r#"{"namespaces": {"m": {"a": "string(100)", "t": "string(100)", "e": "string(10)", "n": "long",
            "d": "double", "day": "date", "l": "list of long", "b": "binary(9)", "q": {"type": "long", "queryable": false}}}}"#;
        Definition::parse(text).unwrap().after(&Schema::default()).unwrap()
    }

    fn values() -> impl Strategy<Value = String> {
        prop_oneof![
            "[-.~%/ a0-9]{0,12}",
            "\\PC{0,6}",
            "[a-z]{0,3}~[0-9a-f]{8}",
            Just("..".to_string()),
            "\\p{Cc}{0,2}"
        ]
    }

    proptest! {
        #[test]
        fn names_give_their_fields_back(a in values(), t in values(), e in values(), n in any::<i64>(), which in 0usize..7) {
            let pattern = ["/{n:02}-{t}.{e}", "/{a} by {t}", "/{a}..{t}.{e}", "/x{a}", "/{a}--{t}--{e}x", "/{a}.{t}.{e}", "/{t}"][which];
            let component = Pattern::parse(&schema(), pattern).unwrap().file;
            let values: Vec<Value> = component.fields.iter().map(|field| match &*field.name {
                "m.n" => Value::Long(n),
                "m.a" => Value::String(a.clone()),
                "m.e" => Value::String(e.clone()),
                _ => Value::String(t.clone()),
            }).collect();
            let name = component.compose_values(&values);
            prop_assert!(name.is_some(), "{pattern} {values:?}");
            let name = name.unwrap();
            prop_assert!(!name.contains(['/', '\0']) && ![".", "..", ""].contains(&&*name));
            prop_assert_eq!(component.read(&name).unwrap(), values);
        }

        #[test]
        fn no_name_and_no_pattern_is_too_much(name in "[-.%{}:0a/~]{0,20}", pattern in "/[-{}:0amnt./~%]{0,20}") {
            let component = Pattern::parse(&schema(), "/{n:02}-{t}.{e}").unwrap().file;
            let _ = component.read(&name);
            if let Ok(pattern) = Pattern::parse(&schema(), &pattern) {
                let _ = pattern.file.read(&name);
            }
        }
    }

    #[test]
    fn patterns_that_cannot_be_are_refused_with_the_reason() {
        for (pattern, part) in [
            ("", "begins with /"),
            ("{a}", "begins with /"),
            ("/", "an empty name"),
            ("/{a}/x", "no field"),
            ("/{a}{t}", "between two fields"),
            ("/{a}x{t}", "between two fields"),
            ("/{a}-{t}/{e}", "one field at most"),
            ("/{a}/{a}/{t}", "two directories"),
            ("/{a", "brace"),
            ("/a}", "brace"),
            ("/{a}%", "%, ~"),
            ("//{a}", "empty name"),
            ("/../{a}", "empty name"),
            ("/{n:2}", "colon"),
            ("/{a:02}", "is no long"),
            ("/{x}", "no field of that name"),
            ("/{l}", "is a list"),
            ("/{q}", "not queryable"),
            ("/{system_oid}", "not for patterns"),
        ] {
            let told = Pattern::parse(&schema(), pattern).unwrap_err().to_string();
            assert!(told.contains(part), "{pattern}: {told}");
        }
        let pattern = Pattern::parse(&schema(), "/x{{y}}/{day}/{n:02}-{t}.{e}").unwrap();
        assert_eq!(pattern.fields().len(), 4);
        let told = pattern.file.read("xx-title.ext").unwrap_err().to_string();
        assert_eq!(told, "field m.n: 'xx' is no long");
        assert!(pattern
            .file
            .read("12title")
            .unwrap_err()
            .to_string()
            .contains("is not as {m.n}-{m.t}.{m.e}"));
    }
}
