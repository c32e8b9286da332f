//! What SHOW CREATE TABLE says: the foreign keys, which are dropped and added again, and all the rest, which must be
//! the same afterwards.
//!
//! Read under a `sql_mode` without ANSI_QUOTES and NO_BACKSLASH_ESCAPES.

use super::name::{quoted, Name};
use teak_sql::charset::Dialect;
use teak_sql::tokens::{Token, Tokens};

/// A foreign key of a table.
#[derive(Debug, Clone, PartialEq)]
pub struct ForeignKey {
    pub name: String,
    pub columns: Vec<String>,
    pub parent: Name,
    pub parent_columns: Vec<String>,
    /// `ON DELETE CASCADE ON UPDATE SET NULL` and the like, or nothing.
    pub actions: String,
}

impl ForeignKey {
    /// For ALTER TABLE ... ADD.
    pub fn clause(&self) -> String {
        self.clause_to(&self.name, &self.parent)
    }

    /// The same under another name and to another parent.
    pub fn clause_to(&self, name: &str, parent: &Name) -> String {
        let space = if self.actions.is_empty() { "" } else { " " };
        format!(
            "CONSTRAINT {} FOREIGN KEY ({}) REFERENCES {} ({}){space}{}",
            quoted(name),
            list(&self.columns),
            parent.quoted(),
            list(&self.parent_columns),
            self.actions
        )
    }

    /// Reads such a clause; `database` is the parent's if it names none.
    pub fn parse(clause: &str, database: &str) -> Option<ForeignKey> {
        let mut tokens = Tokens::new(clause.as_bytes(), Dialect::OWN);
        let text = |name: Vec<u8>| String::from_utf8_lossy(&name).into_owned();
        if !tokens.accept("CONSTRAINT") {
            return None;
        }
        let name = text(tokens.name()?);
        if !tokens.accept("FOREIGN") || !tokens.accept("KEY") {
            return None;
        }
        let columns = columns(&mut tokens)?;
        if !tokens.accept("REFERENCES") {
            return None;
        }
        let (parent_database, parent) = tokens.qualified()?;
        let parent = Name::new(parent_database.map_or_else(|| database.to_string(), text), text(parent));
        let parent_columns = self::columns(&mut tokens)?;
        let actions = actions(tokens)?;
        Some(ForeignKey { name, columns, parent, parent_columns, actions })
    }
}

/// What is done with a row whose parent goes or changes. `None` if there is anything else: it would be carried out.
fn actions(mut tokens: Tokens<'_>) -> Option<String> {
    const OF_PARENT: &[&str] = &["DELETE", "UPDATE"];
    const DONE: &[&[&str]] =
        &[&["RESTRICT"], &["CASCADE"], &["SET", "NULL"], &["SET", "DEFAULT"], &["NO", "ACTION"]];
    let mut found = Vec::new();
    while tokens.peek().is_some() {
        if !tokens.accept("ON") {
            return None;
        }
        let of_parent = OF_PARENT.iter().find(|word| tokens.accept(word))?;
        let done = DONE.iter().find(|words| words.iter().all(|word| tokens.accept(word)))?;
        found.push(format!("ON {of_parent} {}", done.join(" ")));
    }
    Some(found.join(" "))
}

fn list(columns: &[String]) -> String {
    columns.iter().map(|column| quoted(column)).collect::<Vec<_>>().join(",")
}

/// `(a, b)`.
fn columns(tokens: &mut Tokens<'_>) -> Option<Vec<String>> {
    let mut columns = Vec::new();
    if !tokens.accept_mark(b'(') {
        return None;
    }
    loop {
        columns.push(String::from_utf8_lossy(&tokens.name()?).into_owned());
        match tokens.next()? {
            Token::Mark(b',') => {}
            Token::Mark(b')') => return Some(columns),
            _ => return None,
        }
    }
}

/// A table's definition, taken apart.
#[derive(Debug, Clone, PartialEq)]
pub struct Definition {
    pub foreign_keys: Vec<ForeignKey>,
    /// Columns, keys and checks, as they stand.
    pub items: Vec<String>,
    /// What comes behind them, without the engine's name.
    pub options: String,
}

impl Definition {
    /// Takes `CREATE TABLE` of a table of `database` apart. `None` if it is not like that.
    pub fn parse(text: &str, database: &str) -> Option<Definition> {
        let (items, end) = items(text)?;
        let (mut foreign_keys, mut rest) = (Vec::new(), Vec::new());
        for item in items {
            match ForeignKey::parse(item, database) {
                Some(key) => foreign_keys.push(key),
                None => rest.push(item.to_string()),
            }
        }
        Some(Definition { foreign_keys, items: rest, options: without_engine(text[end..].trim()) })
    }

    /// What is in this definition and not in the other, foreign keys aside; the order of keys does not count. Options
    /// that an engine does not know are in a comment, and there all the same.
    pub fn missing_from(&self, other: &Definition) -> Vec<String> {
        let options: Vec<&str> = other.options.split_whitespace().collect();
        let lost_items = self.items.iter().filter(|item| !other.items.contains(item)).cloned();
        let lost_options = self.options.split_whitespace().filter(|option| !options.contains(option));
        lost_items.chain(lost_options.filter(|option| !is_comment_mark(option)).map(String::from)).collect()
    }

    /// Whether there are columns that the server computes.
    pub fn has_generated_columns(&self) -> bool {
        let generated = |item: &String| {
            let mut tokens = Tokens::new(item.as_bytes(), Dialect::OWN);
            // The name may be any word.
            tokens.next();
            tokens.any(|token| token.is("GENERATED"))
        };
        self.items.iter().any(generated)
    }

    /// Keys of just the columns of a foreign key, but of another name: (name, as it stands). One that the server made
    /// by itself it would drop when the foreign key is added, for one of that name.
    pub fn keys_that_would_be_renamed(&self, foreign_keys: &[&ForeignKey]) -> Vec<(String, String)> {
        let concerns = |name: &str, columns: &str| {
            foreign_keys.iter().any(|key| key.name != name && columns == format!("({})", list(&key.columns)))
        };
        let keys = self.items.iter().filter_map(|item| {
            let (name, columns) = plain_key(item)?;
            concerns(&name, &columns).then(|| (name, item.clone()))
        });
        keys.collect()
    }
}

fn is_comment_mark(word: &str) -> bool {
    matches!(word, "/*" | "*/")
}

/// The name of a key that is not unique, and all behind it.
fn plain_key(item: &str) -> Option<(String, String)> {
    let mut tokens = Tokens::new(item.as_bytes(), Dialect::OWN);
    if !tokens.accept("KEY") {
        return None;
    }
    let name = String::from_utf8_lossy(&tokens.name()?).into_owned();
    Some((name, item[tokens.at..].trim().to_string()))
}

/// What stands between the outermost parentheses, at its commas, and where they close.
fn items(text: &str) -> Option<(Vec<&str>, usize)> {
    let mut tokens = Tokens::new(text.as_bytes(), Dialect::OWN);
    while tokens.next()? != Token::Mark(b'(') {}
    let (mut items, mut depth, mut start) = (Vec::new(), 0, tokens.at);
    loop {
        let token = tokens.next()?;
        let before = tokens.at - 1;
        match token {
            Token::Mark(b'(') => depth += 1,
            Token::Mark(b')') if depth > 0 => depth -= 1,
            Token::Mark(b')') => {
                items.push(text[start..before].trim());
                return Some((items, tokens.at));
            }
            Token::Mark(b',') if depth == 0 => {
                items.push(text[start..before].trim());
                start = tokens.at;
            }
            _ => {}
        }
    }
}

/// Without `ENGINE=...`, of the table and of partitions, which have it in a comment for older servers.
fn without_engine(options: &str) -> String {
    let mut kept = String::new();
    let mut tokens = Tokens::new(options.as_bytes(), Dialect::OWN);
    let mut copied = 0;
    while let Some(token) = tokens.next() {
        let before = tokens.at - if token.is("ENGINE") { "ENGINE".len() } else { 0 };
        if token.is("ENGINE") && tokens.accept_mark(b'=') && tokens.name().is_some() {
            kept.push_str(options[copied..before].trim_end());
            copied = tokens.at;
        }
    }
    kept.push_str(&options[copied..]);
    kept.trim().to_string()
}

#[cfg(test)]
mod tests {
    use super::*;

    const CHILD: &str = "CREATE TABLE `c` (
  `id` int(11) NOT NULL COMMENT 'a, (b) '' CONSTRAINT `x` FOREIGN KEY',
  `p,id` enum('a','b)') DEFAULT NULL,
  PRIMARY KEY (`id`),
  KEY `p` (`p,id`),
  CONSTRAINT `c``1` FOREIGN KEY (`p,id`, `id`) REFERENCES `p` (`id`, `b`) ON DELETE CASCADE ON UPDATE SET NULL,
  CONSTRAINT `far` FOREIGN KEY (`id`) REFERENCES `other`.`q` (`id`),
  CONSTRAINT `positive` CHECK (`id` > 0)
) ENGINE=InnoDB AUTO_INCREMENT=5 DEFAULT CHARSET=utf8mb4 COMMENT='ENGINE=x'
 PARTITION BY RANGE (`id`)
(PARTITION `p0` VALUES LESS THAN (10) ENGINE = InnoDB)";

    #[test]
    fn foreign_keys_are_found_and_written_as_they_are() {
        let definition = Definition::parse(CHILD, "d").unwrap();
        let clauses: Vec<String> = definition.foreign_keys.iter().map(ForeignKey::clause).collect();
        assert_eq!(
            clauses,
            [
                "CONSTRAINT `c``1` FOREIGN KEY (`p,id`,`id`) REFERENCES `d`.`p` (`id`,`b`) ON DELETE CASCADE ON UPDATE SET NULL",
                "CONSTRAINT `far` FOREIGN KEY (`id`) REFERENCES `other`.`q` (`id`)",
            ]
        );
        for (clause, key) in clauses.iter().zip(&definition.foreign_keys) {
            assert_eq!(ForeignKey::parse(clause, "elsewhere").as_ref(), Some(key));
        }
    }

    #[test]
    fn the_rest_is_compared_without_the_engine() {
        let definition = Definition::parse(CHILD, "d").unwrap();
        assert_eq!(definition.items.len(), 5);
        assert_eq!(
            definition.options,
            "AUTO_INCREMENT=5 DEFAULT CHARSET=utf8mb4 COMMENT='ENGINE=x'\n PARTITION BY RANGE (`id`)\n\
             (PARTITION `p0` VALUES LESS THAN (10))"
        );
        let teak = Definition::parse(&CHILD.replace("InnoDB", "Teak"), "d").unwrap();
        assert!(definition.missing_from(&teak).is_empty() && teak.missing_from(&definition).is_empty());
        let other = Definition::parse(&CHILD.replace("=5", "=4"), "d").unwrap();
        assert_eq!(definition.missing_from(&other), ["AUTO_INCREMENT=5"]);
        let compressed =
            Definition::parse("CREATE TABLE `t` (`a` int) ENGINE=InnoDB `page_compressed`=1 X=1", "d");
        let kept = Definition::parse("CREATE TABLE `t` (`a` int) ENGINE=Teak /* `page_compressed`=1 */", "d");
        let (compressed, kept) = (compressed.unwrap(), kept.unwrap());
        assert_eq!(compressed.missing_from(&kept), ["X=1"]);
        assert!(kept.missing_from(&compressed).is_empty());
        assert!(!definition.has_generated_columns());
        let generated =
            "CREATE TABLE `t` (`GENERATED` int, `b` int(11) GENERATED ALWAYS AS (`a` + 1) STORED)";
        assert!(Definition::parse(generated, "d").is_some_and(|table| table.has_generated_columns()));
    }

    #[test]
    fn keys_that_the_server_would_rename_are_found() {
        let text = "CREATE TABLE `t` (`a` int, KEY `a` (`a`), KEY `f` (`a`), KEY `long` (`a`,`b`), UNIQUE KEY `u` (`a`))";
        let definition = Definition::parse(text, "d").unwrap();
        let key = ForeignKey::parse("CONSTRAINT `f` FOREIGN KEY (`a`) REFERENCES `p` (`x`)", "d").unwrap();
        let found = definition.keys_that_would_be_renamed(&[&key]);
        assert_eq!(found, [("a".to_string(), "KEY `a` (`a`)".to_string())]);
    }

    #[test]
    fn what_is_no_definition_is_told() {
        for text in ["", "CREATE TABLE `t`", "CREATE TABLE `t` (`a` int", "CREATE VIEW v AS SELECT '"] {
            assert!(Definition::parse(text, "d").is_none(), "{text}");
        }
        assert!(ForeignKey::parse("CONSTRAINT `x` FOREIGN KEY (`a`", "d").is_none());
        let key = "CONSTRAINT `x` FOREIGN KEY (`a`) REFERENCES `p` (`a`)";
        let parsed = |more: &str| ForeignKey::parse(&format!("{key}{more}"), "d").map(|key| key.actions);
        assert_eq!(
            parsed(" on update no action ON DELETE /* x */ SET NULL").as_deref(),
            Some("ON UPDATE NO ACTION ON DELETE SET NULL")
        );
        for more in [
            ", DROP PRIMARY KEY",
            " ON DELETE CASCADE, DROP COLUMN a",
            " ON DELETE",
            " ON INSERT CASCADE",
            " /*! , DROP PRIMARY KEY */",
            " COMMENT 'x'",
            " ON DELETE CASCADE `x`",
        ] {
            assert_eq!(parsed(more), None, "{more}");
        }
    }
}
