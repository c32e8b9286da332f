//! The columns of a table as the server describes them: a scratch table with the same columns, and a number for a row's
//! values.
//!
//! The scratch table converts what the dump says to what the table holds, by the server's own rules. The number of a
//! row is made of the bytes of its values, so that two rows have the same one only if no value differs in any bit:
//!
//! ```text
//! MD5( value|value|...  |length|length|...      |is NULL|is NULL|... )     the first 64 bits
//!      of each column    of those without a      of those that may be
//!                        length of their own
//! ```
//!
//! With a server that has no MD5 any more both sides take SHA2.

use super::mysql;
use super::quoting::{hex, literal, quoted_name};

/// A column as information_schema has it.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Column {
    /// Without quotes.
    pub name: Vec<u8>,
    /// Such as `varchar`, in small letters.
    kind: String,
    /// Such as `varchar(20)`.
    full_type: Vec<u8>,
    charset: Option<String>,
    collation: Option<String>,
    nullable: bool,
    /// As it stands in a definition.
    default: Option<Vec<u8>>,
    /// In capitals.
    extra: String,
    expression: Option<Vec<u8>>,
    /// It is one of MySQL, whose rows are compared with MariaDB's.
    is_foreign: bool,
}

/// The statement that asks for the columns of a table, in order: [`Column::read`] reads its rows.
pub fn query(database: &[u8], table: &[u8]) -> String {
    format!(
        "SELECT COLUMN_NAME, LOWER(DATA_TYPE), COLUMN_TYPE, CHARACTER_SET_NAME, COLLATION_NAME, IS_NULLABLE, COLUMN_DEFAULT, UPPER(EXTRA),
            GENERATION_EXPRESSION FROM information_schema.COLUMNS WHERE TABLE_SCHEMA = {} AND TABLE_NAME = {} ORDER BY ORDINAL_POSITION",
        literal(database),
        literal(table)
    )
}

/// MySQL tells of a default without its quotes.
fn defined(default: Vec<u8>, extra: &str) -> Vec<u8> {
    if extra.contains("DEFAULT_GENERATED") {
        let bare = default.to_ascii_uppercase().starts_with(b"CURRENT_TIMESTAMP");
        return if bare { default } else { [b"(", &default[..], b")"].concat() };
    }
    if default.starts_with(b"b'") {
        return default;
    }
    format!("x'{}'", hex(&default)).into_bytes()
}

impl Column {
    /// Of a row of the answer to [`query`]; `maria`: the server is MariaDB.
    pub fn read(row: Vec<Option<Vec<u8>>>, maria: bool) -> Column {
        let mut row = row.into_iter();
        let mut next = || row.next().flatten();
        let text = |value: Option<Vec<u8>>| value.map(|value| String::from_utf8_lossy(&value).into_owned());
        let mut column = Column {
            name: next().unwrap_or_default(),
            kind: text(next()).unwrap_or_default(),
            full_type: next().unwrap_or_default(),
            charset: text(next()),
            collation: text(next()),
            nullable: next().as_deref() == Some(b"YES"),
            default: next(),
            extra: text(next()).unwrap_or_default(),
            expression: next().filter(|expression| !expression.is_empty()),
            is_foreign: false,
        };
        if !maria {
            column.default = column.default.take().map(|default| defined(default, &column.extra));
        }
        column
    }

    /// The column that MariaDB has for one of MySQL: JSON is text there, and a VECTOR its bytes.
    pub fn in_mariadb(mut self) -> Column {
        self.is_foreign = true;
        match self.kind.as_str() {
            "json" => {
                (self.kind, self.full_type) = ("longtext".into(), b"longtext".to_vec());
                (self.charset, self.collation) = (Some("utf8mb4".into()), Some("utf8mb4_bin".into()));
            }
            "vector" => {
                let digits: String =
                    String::from_utf8_lossy(&self.full_type).chars().filter(char::is_ascii_digit).collect();
                let kind = mysql::vector_type(digits.parse().unwrap_or(mysql::VECTOR_DIMENSIONS));
                self.kind = kind.split('(').next().unwrap_or_default().into();
                self.full_type = kind.into_bytes();
            }
            _ => (),
        }
        self
    }

    /// Its type, and the character set of one that has any. Display widths, which newer servers do not tell, are left
    /// out: servers of two versions say the same of columns whose values are the same.
    pub fn type_of_values(&self) -> String {
        let full = String::from_utf8_lossy(&self.full_type);
        let shown = match full.split_once('(').zip(full.split_once(')')) {
            Some(((name, _), (_, rest))) if name.ends_with("int") || name == "year" => {
                format!("{name}{rest}")
            }
            _ => full.into_owned(),
        };
        let charset = self.charset.as_ref().map(|charset| format!(" character set {charset}"));
        shown + &charset.unwrap_or_default()
    }

    /// Whether it has no sign, of integers.
    pub fn integer(&self) -> Option<bool> {
        let is_integer = ["tinyint", "smallint", "mediumint", "int", "bigint"].contains(&self.kind.as_str());
        is_integer.then(|| self.full_type.ends_with(b"unsigned") || self.full_type.ends_with(b"zerofill"))
    }

    /// Whether a statement can give it a value.
    pub fn is_given(&self) -> bool {
        self.expression.is_none()
    }

    /// An expression whose text, if nothing converts it, [`Column::literal`] makes the same value of.
    pub fn exactly(&self) -> Vec<u8> {
        let name = quoted_name(&self.name);
        match self.kind.as_str() {
            "timestamp" => name,
            "float" | "double" | "real" => [b"(", &name[..], b"+0e0)"].concat(),
            _ if self.charset.is_some() && !matches!(self.kind.as_str(), "enum" | "set") => name,
            _ if self.is_large() => name,
            _ => self.value(Digest::Md5),
        }
    }

    /// The value whose text was asked for by [`Column::exactly`], as a statement has it under every `sql_mode`.
    pub fn literal(&self, text: Option<&[u8]>) -> Vec<u8> {
        let Some(text) = text else { return b"NULL".to_vec() };
        const NUMBERS: &[&str] =
            &["tinyint", "smallint", "mediumint", "int", "bigint", "decimal", "bit", "enum", "set", "year"];
        match (self.kind.as_str(), &self.charset) {
            // An exponent makes it a number of double precision.
            ("float" | "double" | "real", _) => match text.contains(&b'e') {
                true => text.to_vec(),
                false => [text, b"e0"].concat(),
            },
            (kind, _) if NUMBERS.contains(&kind) => text.to_vec(),
            (_, Some(charset)) => format!("_{charset} x'{}'", hex(text)).into_bytes(),
            ("date" | "time" | "datetime" | "timestamp" | "uuid" | "inet6" | "inet4", _) => {
                [b"'", text, b"'"].concat()
            }
            _ => format!("x'{}'", hex(text)).into_bytes(),
        }
    }

    /// What LOAD DATA in the character set `binary` sets the column to, if the text that was asked for by
    /// [`Column::exactly`] is in a variable; `None`: to the text as it is.
    pub fn loaded(&self, variable: &[u8]) -> Option<Vec<u8>> {
        match self.kind.as_str() {
            // Bytes and names of members otherwise.
            "bit" | "enum" | "set" | "year" => Some([b"CAST(", variable, b" AS UNSIGNED)"].concat()),
            // What is binary is taken for the value's own bytes.
            "uuid" | "inet6" | "inet4" => Some([b"CONVERT(", variable, b" USING latin1)"].concat()),
            _ => None,
        }
    }

    /// Whether rows are compared by it: not by columns that are computed when they are read, nor by the times of
    /// versions. Of the others the dump decides the value.
    pub fn is_compared(&self) -> bool {
        !(self.extra.contains("VIRTUAL") || self.is_time_of_version())
    }

    fn is_time_of_version(&self) -> bool {
        matches!(self.expression.as_deref(), Some(b"ROW START" | b"ROW END"))
    }

    /// Whether the server gives it numbers: AUTO_INCREMENT.
    pub fn is_counter(&self) -> bool {
        self.extra.contains("AUTO_INCREMENT")
    }

    /// Whether a row that does not say its value gets one that the time decides, or chance.
    pub fn has_passing_default(&self) -> bool {
        let called = self
            .default
            .as_ref()
            .is_some_and(|default| default.first() != Some(&b'\'') && default.contains(&b'('));
        called || (self.kind == "timestamp" && !self.nullable)
    }

    /// Whether it gets that for NULL too.
    pub fn replaces_null(&self) -> bool {
        !self.nullable && self.kind == "timestamp"
    }

    /// A sequence gives the default: it must not be asked a second time.
    fn draws(&self) -> bool {
        let default = self.default.as_deref().unwrap_or_default().to_ascii_lowercase();
        [&b"nextval"[..], b"next value"].iter().any(|name| memchr::memmem::find(&default, name).is_some())
    }

    /// Its clause in the definition of the scratch table, which has no keys and gives no numbers.
    fn clause(&self) -> Vec<u8> {
        let mut clause = [&quoted_name(&self.name)[..], b" ", &self.full_type].concat();
        if let (Some(charset), Some(collation)) = (&self.charset, &self.collation) {
            clause.extend_from_slice(format!(" CHARACTER SET {charset} COLLATE {collation}").as_bytes());
        }
        match self.expression.as_ref().filter(|_| !self.is_time_of_version()) {
            Some(expression) => {
                let kept = if self.extra.contains("VIRTUAL") { b") VIRTUAL" } else { &b") STORED"[..] };
                clause.extend_from_slice(&[b" AS (", &expression[..], kept].concat());
            }
            None if self.nullable || self.is_counter() || self.is_time_of_version() || self.draws() => {
                clause.extend_from_slice(b" NULL")
            }
            None => clause.extend_from_slice(b" NOT NULL"),
        }
        let own = self.expression.is_none() && !self.is_counter() && !self.draws();
        if let Some(default) = self.default.as_ref().filter(|_| own) {
            clause.extend_from_slice(&[b" DEFAULT ", &default[..]].concat());
        }
        if self.extra.contains("INVISIBLE") {
            clause.extend_from_slice(b" INVISIBLE");
        }
        clause
    }

    /// An expression whose text tells all bits of the value, whatever the session's settings.
    fn value(&self, digest: Digest) -> Vec<u8> {
        let name = quoted_name(&self.name);
        let within = |before: &[u8], after: &[u8]| [before, &name[..], after].concat();
        match self.kind.as_str() {
            // Within a text MySQL gives a number 22 characters, and MariaDB more; mantissa and exponent need less.
            "float" | "double" | "real" if self.is_foreign => {
                let number = within(b"(", b"+0e0)");
                let exponent = [b"FLOOR(LOG2(ABS(", &number[..], b")))"].concat();
                let mantissa = [&number[..], b"/POW(2,", &exponent, b")"].concat();
                [b"COALESCE(CONCAT(", &exponent[..], b",' ',", &mantissa, b"),", &number, b")"].concat()
            }
            // A FLOAT as text has six digits, a DOUBLE as many as it takes.
            "float" | "double" | "real" => within(b"(", b"+0e0)"),
            // The numbers of ENUM tell '' from what was no member.
            "bit" | "enum" | "set" => within(b"(", b"+0)"),
            "timestamp" => within(b"UNIX_TIMESTAMP(", b")"),
            _ if self.is_large() => digest.of(&name),
            _ if self.charset.is_some() || self.kind.ends_with("binary") => within(b"CAST(", b" AS BINARY)"),
            _ => name,
        }
    }

    /// Of any length: a row of such values might be longer than the server lets a string be.
    fn is_large(&self) -> bool {
        const LARGE: &[&str] =
            &["blob", "text", "json", "geometry", "point", "linestring", "polygon", "collection"];
        LARGE.iter().any(|end| self.kind.ends_with(end))
    }

    /// Whether values of different lengths could be taken for each other when they stand side by side.
    fn needs_length(&self) -> bool {
        let is_text = self.charset.is_some() || self.kind.ends_with("binary");
        is_text && !self.is_large() && !matches!(self.kind.as_str(), "enum" | "set")
    }
}

/// Whether the values of both can be compared: the same columns of the same types.
pub fn are_alike(one: &[Column], other: &[Column]) -> bool {
    let essence = |column: &Column| {
        (column.name.clone(), column.full_type.clone(), column.charset.clone(), column.nullable)
    };
    fn compared(columns: &[Column]) -> impl Iterator<Item = &Column> {
        columns.iter().filter(|column| column.is_compared())
    }
    compared(one).map(essence).eq(compared(other).map(essence))
}

/// The statement that makes the scratch table of that name, which has its quotes. It hides the table of the same name
/// from its connection.
pub fn scratch(table: &[u8], columns: &[Column]) -> Vec<u8> {
    let clauses: Vec<Vec<u8>> = columns.iter().map(Column::clause).collect();
    [b"CREATE TEMPORARY TABLE ", table, b" (", &clauses.join(&b", "[..]), b") ENGINE=MyISAM"].concat()
}

/// The function by which rows become numbers, the same one on both sides.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Digest {
    /// Which MySQL has no more since 9.6.
    #[default]
    Md5,
    /// Which all servers have.
    Sha256,
}

impl Digest {
    fn of(self, value: &[u8]) -> Vec<u8> {
        match self {
            Digest::Md5 => [b"MD5(", value, b")"].concat(),
            Digest::Sha256 => [b"SHA2(", value, b", 256)"].concat(),
        }
    }
}

/// The statement that counts the rows of a table, whose name has its quotes, and adds up their numbers.
pub fn sum(table: &[u8], columns: &[Column], digest: Digest) -> Vec<u8> {
    [b"SELECT COUNT(*), SUM(", &number(columns, digest)[..], b") FROM ", table].concat()
}

/// The expression whose value is the number of a row.
pub fn number(columns: &[Column], digest: Digest) -> Vec<u8> {
    let compared: Vec<&Column> = columns.iter().filter(|column| column.is_compared()).collect();
    let mut parts: Vec<Vec<u8>> = vec![b"'|'".to_vec()];
    parts.extend(compared.iter().map(|column| column.value(digest)));
    let of = |function: &str, column: &Column| {
        [function.as_bytes(), b"(", &quoted_name(&column.name), b")"].concat()
    };
    parts.extend(compared.iter().filter(|column| column.needs_length()).map(|column| of("LENGTH", column)));
    parts.extend(compared.iter().filter(|column| column.nullable).map(|column| of("ISNULL", column)));
    if parts.len() == 1 {
        parts.push(b"''".to_vec());
    }
    let whole = [b"CONCAT_WS(", &parts.join(&b","[..])[..], b")"].concat();
    [b"CAST(CONV(LEFT(", &digest.of(&whole)[..], b", 16), 16, 10) AS UNSIGNED)"].concat()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of_kind(name: &str, kind: &str, charset: Option<&str>) -> Column {
        Column {
            name: name.into(),
            kind: kind.into(),
            full_type: kind.into(),
            charset: charset.map(String::from),
            collation: charset.map(|charset| format!("{charset}_bin")),
            ..Column::default()
        }
    }

    const TABLE: &[u8] = b"`d`.`t`";

    #[test]
    fn a_scratch_table_has_the_columns_and_neither_keys_nor_counters() {
        let id = Column { extra: "AUTO_INCREMENT".into(), ..of_kind("i`d", "int", None) };
        let text = Column {
            nullable: true,
            default: Some(b"'x'".to_vec()),
            ..of_kind("s", "varchar", Some("latin1"))
        };
        let computed = Column {
            expression: Some(b"`s`".to_vec()),
            extra: "VIRTUAL GENERATED".into(),
            ..of_kind("v", "int", None)
        };
        let columns = [id, text, computed];
        assert_eq!(
            String::from_utf8(scratch(TABLE, &columns)).unwrap(),
            "CREATE TEMPORARY TABLE `d`.`t` (`i``d` int NULL, `s` varchar CHARACTER SET latin1 COLLATE latin1_bin NULL DEFAULT 'x', \
             `v` int AS (`s`) VIRTUAL) ENGINE=MyISAM"
        );
        let sum = String::from_utf8(sum(TABLE, &columns, Digest::Md5)).unwrap();
        assert!(sum.contains("CONCAT_WS('|',`i``d`,CAST(`s` AS BINARY),LENGTH(`s`),ISNULL(`s`))"), "{sum}");
    }

    #[test]
    fn tables_are_alike_if_what_is_compared_is() {
        let (one, other) = (of_kind("a", "int", None), of_kind("a", "bigint", None));
        let counts = Column { extra: "AUTO_INCREMENT".into(), ..one.clone() };
        assert!(are_alike(std::slice::from_ref(&one), &[counts]));
        assert!(!are_alike(&[one], &[other]));
    }

    #[test]
    fn types_of_values_are_told_without_display_widths() {
        for (kind, charset, shown) in [
            ("int(11) unsigned", None, "int unsigned"),
            ("bigint(20)", None, "bigint"),
            ("year(4)", None, "year"),
            ("decimal(10,2)", None, "decimal(10,2)"),
            ("varchar(20)", Some("latin1"), "varchar(20) character set latin1"),
            ("point", None, "point"),
        ] {
            assert_eq!(of_kind("a", kind, charset).type_of_values(), shown);
        }
    }

    #[test]
    fn types_of_mysql_alone_are_others_in_mariadb() {
        for (kind, full, wanted) in [
            ("json", "json", "longtext character set utf8mb4"),
            ("vector", "vector(3)", "varbinary(12)"),
            ("vector", "vector(9000)", "mediumblob"),
            ("int", "int", "int"),
        ] {
            let column = Column { full_type: full.into(), ..of_kind("a", kind, None) };
            assert_eq!(column.in_mariadb().type_of_values(), wanted);
        }
        let double = of_kind("a", "double", None).in_mariadb();
        assert_eq!(double.exactly(), b"(`a`+0e0)");
        let number = String::from_utf8(number(&[double], Digest::Sha256)).unwrap();
        assert!(number.contains("(`a`+0e0)/POW(2,FLOOR(LOG2(ABS((`a`+0e0)))))"), "{number}");
    }

    #[test]
    fn values_are_literals() {
        for (kind, charset, text, wanted) in [
            ("int", None, "-5", "-5"),
            ("double", None, "1.5", "1.5e0"),
            ("float", None, "1e-30", "1e-30"),
            ("enum", Some("latin1"), "3", "3"),
            ("varchar", Some("latin1"), "a'", "_latin1 x'6127'"),
            ("varbinary", None, "a", "x'61'"),
            ("point", None, "a", "x'61'"),
            ("datetime", None, "2024-01-01 00:00:00", "'2024-01-01 00:00:00'"),
        ] {
            let literal = of_kind("a", kind, charset).literal(Some(text.as_bytes()));
            assert_eq!(String::from_utf8(literal).unwrap(), wanted);
        }
        assert_eq!(of_kind("a", "int", None).literal(None), b"NULL");
        let exactly = |kind: &str, charset| String::from_utf8(of_kind("a", kind, charset).exactly()).unwrap();
        assert_eq!(exactly("enum", Some("latin1")), "(`a`+0)");
        assert_eq!(exactly("text", Some("latin1")), "`a`");
        assert_eq!((exactly("timestamp", None), exactly("blob", None)), ("`a`".into(), "`a`".into()));
    }

    #[test]
    fn defaults_that_pass() {
        let with = |default: &str| Column { default: Some(default.into()), ..of_kind("a", "datetime", None) };
        assert!(with("current_timestamp()").has_passing_default());
        assert!(!with("'('").has_passing_default() && !with("7").has_passing_default());
        assert!(of_kind("a", "timestamp", None).has_passing_default());
    }
}
