//! Tables by their names: as users give them, as statements have them, as messages show them.

use teak_sql::charset::Dialect;
use teak_sql::quoting::{self, quoted_name};
use teak_sql::tokens::Tokens;

/// A table and its database.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Name {
    /// Without quotes.
    pub database: String,
    /// Without quotes.
    pub table: String,
}

impl Name {
    /// Of names without quotes.
    pub fn new(database: impl Into<String>, table: impl Into<String>) -> Name {
        Name { database: database.into(), table: table.into() }
    }

    /// With backticks.
    pub fn quoted(&self) -> String {
        format!("{}.{}", quoted(&self.database), quoted(&self.table))
    }
}

impl std::fmt::Display for Name {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}.{}", self.database, self.table)
    }
}

/// A name in backticks.
pub fn quoted(name: &str) -> String {
    String::from_utf8_lossy(&quoted_name(name.as_bytes())).into_owned()
}

/// A string of SQL.
pub fn literal(text: &str) -> String {
    quoting::literal(text.as_bytes())
}

/// What a user asks for.
#[derive(Debug, Clone, PartialEq)]
pub enum Asked {
    Database(String),
    Table(Name),
}

impl Asked {
    /// `DB`, `DB.TABLE`, or the same with backticks where a name has a dot.
    pub fn parse(text: &str) -> Result<Asked, String> {
        let wrong = || format!("'{text}' is neither DATABASE nor DATABASE.TABLE");
        let (database, table) = if text.starts_with('`') {
            let mut tokens = Tokens::new(text.as_bytes(), Dialect::OWN);
            let (first, second) = tokens.qualified().ok_or_else(wrong)?;
            if tokens.next().is_some() {
                return Err(wrong());
            }
            let text = |name: Vec<u8>| String::from_utf8_lossy(&name).into_owned();
            match first {
                Some(database) => (text(database), Some(text(second))),
                None => (text(second), None),
            }
        } else {
            let (database, table) = text.split_once('.').map_or((text, None), |(d, t)| (d, Some(t)));
            (database.to_string(), table.map(String::from))
        };
        match table {
            _ if database.is_empty() || table.as_deref() == Some("") => Err(wrong()),
            Some(table) => Ok(Asked::Table(Name { database, table })),
            None => Ok(Asked::Database(database)),
        }
    }

    pub fn database(&self) -> &str {
        match self {
            Asked::Database(database) => database,
            Asked::Table(name) => &name.database,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn databases_and_tables_are_told_apart() {
        assert_eq!(Asked::parse("shop"), Ok(Asked::Database("shop".into())));
        assert_eq!(Asked::parse("shop.item"), Ok(Asked::Table(Name::new("shop", "item"))));
        assert_eq!(Asked::parse("shop.a.b"), Ok(Asked::Table(Name::new("shop", "a.b"))));
        assert_eq!(Asked::parse("`my.shop`"), Ok(Asked::Database("my.shop".into())));
        assert_eq!(Asked::parse("`my.shop`.`a``b`"), Ok(Asked::Table(Name::new("my.shop", "a`b"))));
        for wrong in ["", ".t", "d.", "`d`.`t` x", "`"] {
            assert!(Asked::parse(wrong).is_err(), "{wrong}");
        }
    }
}
