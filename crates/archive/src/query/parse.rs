//! The words of an expression as fields and values of a schema.
//!
//! ```text
//! any        all ("or" all)*
//! all        one ("and" one)*
//! one        "not" one | "(" any ")" | field test
//! test       ("=" | "!=" | "<>" | "<" | "<=" | ">" | ">=") value | "is" ["not"] "null"
//!            ["not"] ("in" "(" value ("," value)* ")" | "between" value "and" value | "like" text | "prefix" text)
//! ```

use super::expression::{Expression, Test};
use super::words::{problem, words, Word};
use crate::schema::{built_in, Field, Scalar, Schema, Value};
use crate::{Digest, Error, Oid, Result};

/// Brackets and `not` within each other, at most.
const DEEPEST: usize = 100;
const KEYWORDS: [&str; 9] = ["and", "or", "not", "in", "between", "like", "prefix", "is", "null"];

/// Reads an expression.
pub(crate) fn parse(schema: &Schema, text: &str) -> Result<Expression> {
    let (words, end) = words(text)?;
    let mut parser = Parser { schema, text, words, end, at: 0 };
    let expression = parser.any(0)?;
    match parser.at == parser.words.len() {
        true => Ok(expression),
        false => Err(parser.problem("'and', 'or' or the end is expected")),
    }
}

struct Parser<'a> {
    schema: &'a Schema,
    text: &'a str,
    words: Vec<(Word, usize)>,
    end: usize,
    at: usize,
}

impl Parser<'_> {
    fn problem(&self, what: &str) -> Error {
        problem(what, self.words.get(self.at).map_or(self.end, |(_, at)| *at), self.text)
    }

    fn peek(&self) -> Option<&Word> {
        self.words.get(self.at).map(|(word, _)| word)
    }

    /// Whether the next word is this sign; then it is passed.
    fn sign(&mut self, sign: &str) -> bool {
        let is = matches!(self.peek(), Some(Word::Sign(next)) if *next == sign);
        self.at += usize::from(is);
        is
    }

    /// Whether the next word is this keyword, in whichever case; then it is passed.
    fn keyword(&mut self, keyword: &str) -> bool {
        let is = matches!(self.peek(), Some(Word::Bare(next)) if next.eq_ignore_ascii_case(keyword));
        self.at += usize::from(is);
        is
    }

    fn any(&mut self, depth: usize) -> Result<Expression> {
        let mut parts = vec![self.all(depth)?];
        while self.keyword("or") {
            parts.push(self.all(depth)?);
        }
        Ok(if parts.len() == 1 { parts.remove(0) } else { Expression::Or(parts) })
    }

    fn all(&mut self, depth: usize) -> Result<Expression> {
        let mut parts = vec![self.one(depth)?];
        while self.keyword("and") {
            parts.push(self.one(depth)?);
        }
        Ok(if parts.len() == 1 { parts.remove(0) } else { Expression::And(parts) })
    }

    fn one(&mut self, depth: usize) -> Result<Expression> {
        if depth == DEEPEST {
            return Err(self.problem(&format!("more than {DEEPEST} brackets")));
        }
        if self.keyword("not") {
            return Ok(Expression::Not(Box::new(self.one(depth + 1)?)));
        }
        if self.sign("(") {
            let inner = self.any(depth + 1)?;
            return match self.sign(")") {
                true => Ok(inner),
                false => Err(self.problem("')' is expected")),
            };
        }
        let name = match self.peek() {
            Some(Word::Bare(name)) if !KEYWORDS.contains(&&*name.to_ascii_lowercase()) => name.clone(),
            _ => return Err(self.problem("a field, 'not' or '(' is expected")),
        };
        let field = self.schema.field(&name)?.clone();
        if !field.queryable {
            return Err(Error::field(&field.name, "is not queryable"));
        }
        self.at += 1;
        self.test(&field)
    }

    fn test(&mut self, field: &Field) -> Result<Expression> {
        if self.keyword("is") {
            let not = self.keyword("not");
            if !self.keyword("null") {
                return Err(self.problem("'null' is expected"));
            }
            return Ok(negated(not, Expression::Field(field.number, Test::IsNull)));
        }
        for sign in ["=", "==", "!=", "<>", "<", "<=", ">", ">="] {
            if self.sign(sign) {
                let value = self.value(field)?;
                let test = match sign {
                    "<" | "<=" => Test::Range(None, Some((value, sign == "<="))),
                    ">" | ">=" => Test::Range(Some((value, sign == ">=")), None),
                    _ => Test::OneOf(vec![value]),
                };
                return Ok(negated(matches!(sign, "!=" | "<>"), Expression::Field(field.number, test)));
            }
        }
        let not = self.keyword("not");
        let test = if self.keyword("in") {
            self.list(field)?
        } else if self.keyword("between") {
            let low = self.value(field)?;
            if !self.keyword("and") {
                return Err(self.problem("'and' is expected"));
            }
            Test::Range(Some((low, true)), Some((self.value(field)?, true)))
        } else if self.keyword("like") {
            Test::Like(self.pattern(field)?)
        } else if self.keyword("prefix") {
            Test::Prefix(self.pattern(field)?)
        } else {
            return Err(self.problem("a comparison is expected: = != < <= > >= in between like prefix is"));
        };
        Ok(negated(not, Expression::Field(field.number, test)))
    }

    fn list(&mut self, field: &Field) -> Result<Test> {
        if !self.sign("(") {
            return Err(self.problem("'(' is expected"));
        }
        let mut values = vec![self.value(field)?];
        while self.sign(",") {
            values.push(self.value(field)?);
        }
        match self.sign(")") {
            true => Ok(Test::OneOf(values)),
            false => Err(self.problem("',' or ')' is expected")),
        }
    }

    fn text(&mut self) -> Result<String> {
        let text = match self.peek() {
            Some(Word::Quoted(text)) => text.clone(),
            Some(Word::Bare(text)) if !KEYWORDS.contains(&&*text.to_ascii_lowercase()) => text.clone(),
            _ => return Err(self.problem("a value is expected")),
        };
        self.at += 1;
        Ok(text)
    }

    fn pattern(&mut self, field: &Field) -> Result<String> {
        match field.of_type.scalar {
            Scalar::String(_) => self.text(),
            _ => Err(Error::field(
                &field.name,
                format!("is a {}, and like and prefix are for strings", field.of_type),
            )),
        }
    }

    /// A value of the field's type; it may be longer than the field's values are.
    fn value(&mut self, field: &Field) -> Result<Value> {
        let text = self.text()?;
        // As the archive writes them.
        match field.number {
            built_in::DATA => return Ok(Value::String(text.parse::<Digest>()?.to_string())),
            built_in::OID => return Ok(Value::String(text.parse::<Oid>()?.to_string())),
            _ => {}
        }
        let value =
            field.of_type.scalar.parse(&text).map_err(|problem| Error::field(&field.name, problem))?;
        match value {
            Value::Double(number) if number.is_nan() => Err(Error::field(&field.name, "NaN is no double")),
            value => Ok(value),
        }
    }
}

fn negated(not: bool, expression: Expression) -> Expression {
    if not {
        Expression::Not(Box::new(expression))
    } else {
        expression
    }
}
