//! Queries beside a model that looks at all records, and what indexes they read.

use crate::place::{put, seed, Place, Random};
use std::collections::BTreeMap;
use teak_archive::{Archive, Definition, Direction, Oid, Query, Result};

const SCHEMA: &str = r#"{"namespaces": {"m": {"s": "string(40)", "n": "long", "d": "double", "tags": "list of string(5)",
    "b": "bool", "day": "date", "hidden": {"type": "long", "queryable": false}}},
    "indexes": [["m.s", "m.n"], ["m.n"], ["m.d", "m.s", "m.n"], ["m.day"]]}"#;

type Fields = BTreeMap<&'static str, String>;

fn filled(random: &mut Random, count: usize) -> (Archive, Vec<(Oid, Fields)>) {
    let archive = Place::new(1).init();
    archive.set_schema(&Definition::parse(SCHEMA).unwrap()).unwrap();
    let mut records = Vec::new();
    for number in 0..count {
        let mut fields = Fields::new();
        let mut have = |name: &'static str, text: String| drop(fields.insert(name, text));
        let choice = |random: &mut Random, of: &[&str]| of[random.below(of.len())].to_string();
        if random.below(4) > 0 {
            have("m.s", choice(random, &["", "a", "ab", "abc", "b", "b%", "ü", "a\u{1}", "a'b"]));
        }
        if random.below(4) > 0 {
            have("m.n", choice(random, &["-5", "0", "3", "4", "1000"]));
        }
        if random.below(2) > 0 {
            have("m.d", choice(random, &["-0.5", "0", "2.25", "inf"]));
        }
        if random.below(2) > 0 {
            have("m.day", choice(random, &["1969-12-31", "1970-01-01", "2024-02-29"]));
        }
        if random.below(2) > 0 {
            have("m.b", choice(random, &["true", "false"]));
        }
        let mut texts: Vec<(&str, &str)> = fields.iter().map(|(name, text)| (*name, &**text)).collect();
        let tags = ["x", "y"];
        texts.extend(tags[..random.below(3)].iter().map(|tag| ("m.tags", *tag)));
        let oid = put(&archive, &[number as u8 % 7], &texts).unwrap();
        let count = texts.iter().filter(|(name, _)| *name == "m.tags").count();
        fields.insert("tags", tags[..count].join(" "));
        records.push((oid, fields));
    }
    (archive, records)
}

/// A condition and what it gives for a record of the model: true, false, or neither.
type Check = Box<dyn Fn(&Fields) -> Option<bool>>;

fn quoted(text: &str) -> String {
    format!("'{}'", text.replace('\'', "''"))
}

fn order_of(field: &str, one: &str, other: &str) -> std::cmp::Ordering {
    match field {
        "m.n" | "m.d" => one.parse::<f64>().unwrap().partial_cmp(&other.parse().unwrap()).unwrap(),
        _ => one.cmp(other),
    }
}

fn condition(random: &mut Random, depth: usize) -> (String, Check) {
    if depth > 0 && random.below(2) == 0 {
        let (one, of_one) = condition(random, depth - 1);
        let (other, of_other) = condition(random, depth - 1);
        return match random.below(3) {
            0 => (format!("not ({one})"), Box::new(move |fields| of_one(fields).map(|truth| !truth))),
            1 => (
                format!("({one} and {other})"),
                Box::new(move |fields| match (of_one(fields), of_other(fields)) {
                    (Some(false), _) | (_, Some(false)) => Some(false),
                    (Some(true), Some(true)) => Some(true),
                    _ => None,
                }),
            ),
            _ => (
                format!("({one} or {other})"),
                Box::new(move |fields| match (of_one(fields), of_other(fields)) {
                    (Some(true), _) | (_, Some(true)) => Some(true),
                    (Some(false), Some(false)) => Some(false),
                    _ => None,
                }),
            ),
        };
    }
    let (field, values): (&'static str, &[&str]) = [
        ("m.s", &["", "a", "ab", "b%", "a'b", "zz"][..]),
        ("m.n", &["-5", "3", "4", "999"]),
        ("m.d", &["-0.5", "0", "2.25"]),
        ("m.day", &["1970-01-01", "2000-01-01"]),
        ("m.b", &["true"]),
    ][random.below(5)];
    let (one, other) =
        (values[random.below(values.len())].to_string(), values[random.below(values.len())].to_string());
    let with = |check: Box<dyn Fn(&str) -> bool>| -> Check {
        Box::new(move |fields| fields.get(field).map(|text| check(text)))
    };
    let (q1, q2) = (quoted(&one), quoted(&other));
    match random.below(8) {
        0 => (format!("{field} is null"), Box::new(move |fields| Some(!fields.contains_key(field)))),
        1 => (format!("{field} is not null"), Box::new(move |fields| Some(fields.contains_key(field)))),
        2 => (format!("{field} = {q1}"), with(Box::new(move |text| order_of(field, text, &one).is_eq()))),
        3 => (
            format!("{field} in ({q1}, {q2})"),
            with(Box::new(move |text| {
                order_of(field, text, &one).is_eq() || order_of(field, text, &other).is_eq()
            })),
        ),
        4 => (
            format!("{field} between {q1} and {q2}"),
            with(Box::new(move |text| {
                order_of(field, text, &one).is_ge() && order_of(field, text, &other).is_le()
            })),
        ),
        5 => (
            format!("{field} > {q1} and {field} <= {q2}"),
            with(Box::new(move |text| {
                order_of(field, text, &one).is_gt() && order_of(field, text, &other).is_le()
            })),
        ),
        6 if field == "m.s" => {
            (format!("m.s prefix {q1}"), with(Box::new(move |text| text.starts_with(&one))))
        }
        6 => (format!("{field} != {q1}"), with(Box::new(move |text| order_of(field, text, &one).is_ne()))),
        _ if field == "m.s" => ("m.s like 'a%'".to_string(), with(Box::new(|text| text.starts_with('a')))),
        _ => (
            format!("tags = x and {field} < {q1}"),
            Box::new(move |fields| {
                let tagged = match fields["tags"].as_str() {
                    "" => None,
                    tags => Some(tags.contains('x')),
                };
                match (tagged, fields.get(field).map(|text| order_of(field, text, &one).is_lt())) {
                    (Some(false), _) | (_, Some(false)) => Some(false),
                    (Some(true), Some(true)) => Some(true),
                    _ => None,
                }
            }),
        ),
    }
}

fn asked(archive: &Archive, query: &Query) -> Result<(Vec<Oid>, Option<String>)> {
    let mut oids = Vec::new();
    let cursor = archive.query(query, &mut |record| {
        oids.push(record.oid);
        Ok(true)
    })?;
    Ok((oids, cursor))
}

#[test]
fn queries_find_what_a_look_at_all_records_finds_in_the_same_order_page_by_page() {
    let mut random = Random(seed(1));
    let (archive, records) = filled(&mut random, 300);
    let (mut by_index, rounds) = (0, 3000);
    for round in 0..rounds {
        let (expression, check) = condition(&mut random, round % 4);
        let mut query = Query { expression: expression.clone(), ..Query::default() };
        let fields: Vec<&'static str> =
            ["m.n", "m.s", "m.d"][random.below(3)..].iter().take(random.below(3)).copied().collect();
        let directions: Vec<Direction> =
            fields.iter().map(|_| [Direction::Ascending, Direction::Descending][random.below(2)]).collect();
        query.order = fields.iter().map(|field| field.to_string()).zip(directions.iter().copied()).collect();
        let in_order = |one: &Fields, other: &Fields| {
            let by_fields = fields.iter().zip(&directions).map(|(field, direction)| {
                let order = match (one.get(field), other.get(field)) {
                    (Some(one), Some(other)) => order_of(field, one, other),
                    (one, other) => one.is_some().cmp(&other.is_some()),
                };
                if *direction == Direction::Descending {
                    order.reverse()
                } else {
                    order
                }
            });
            by_fields.fold(std::cmp::Ordering::Equal, std::cmp::Ordering::then).is_le()
        };
        let expected = records.iter().filter(|(_, fields)| check(fields) == Some(true));
        let expected: BTreeMap<Oid, &Fields> = expected.map(|(oid, fields)| (*oid, fields)).collect();
        let explained = archive.explain(&query).unwrap();
        by_index += usize::from(explained[0].starts_with("index"));
        let (mut whole, none) = asked(&archive, &query).unwrap();
        assert!(none.is_none());
        let mut pages = Vec::new();
        query.limit = Some(1 + random.below(40) as u64);
        loop {
            let (page, cursor) = asked(&archive, &query).unwrap();
            pages.extend(page);
            query.cursor = cursor;
            if query.cursor.is_none() {
                break;
            }
        }
        assert_eq!(pages, whole, "{expression} {:?} {explained:?}", query.order);
        let told = whole.windows(2).all(|two| in_order(expected[&two[0]], expected[&two[1]]));
        assert!(told, "{expression} {:?} {explained:?}", query.order);
        whole.sort();
        assert_eq!(
            whole,
            expected.into_keys().collect::<Vec<_>>(),
            "{expression} {:?} {explained:?}",
            query.order
        );
    }
    assert!(by_index > rounds / 4, "{by_index}");
}

#[test]
fn a_cursor_goes_on_while_others_write_and_fits_its_question_alone() {
    let (archive, records) = filled(&mut Random(2), 100);
    let mut query = Query { expression: "m.n >= -10".into(), limit: Some(10), ..Query::default() };
    let (first, cursor) = asked(&archive, &query).unwrap();
    for (oid, _) in &records {
        if first.contains(oid) {
            archive.remove(*oid).unwrap();
        }
    }
    query.cursor = cursor.clone();
    let (second, _) = asked(&archive, &query).unwrap();
    assert!(second.len() == 10 && second.iter().all(|oid| !first.contains(oid)));
    for (expression, cursor) in
        [("m.n >= -11", cursor.as_deref()), ("m.n >= -10", Some("x")), ("m.n >= -10", Some("é0"))]
    {
        let query =
            Query { expression: expression.into(), cursor: cursor.map(str::to_string), ..query.clone() };
        assert!(asked(&archive, &query).unwrap_err().to_string().contains("cursor"));
    }
}

#[test]
fn explain_names_the_index_and_data_and_oids_are_found_directly() {
    let (archive, records) = filled(&mut Random(3), 50);
    let record = archive.record(records[0].0).unwrap();
    for (expression, told) in [
        ("m.s = a and m.n > 3".to_string(), "index (m.s =, m.n in a range), 1 range"),
        ("m.s in (a, b) and m.n = 3".into(), "index (m.s =, m.n =), 2 ranges"),
        ("m.n = 3".into(), "index (m.n =), 1 range"),
        ("s is null and n = 3 and d < 1".into(), "index (m.s =, m.n =), 1 range"),
        ("m.s is null".into(), "all records: no index answers this"),
        ("m.s like '%a'".into(), "index (m.s in a range, m.n), 1 range"),
        ("m.b = true".into(), "all records: no index answers this"),
        (format!("data = {}", record.data), "index (system.data =), 1 range"),
        (format!("data in ('{}')", record.data), "index (system.data =), 1 range"),
        (format!("oid = {}", record.oid), "1 records by OID"),
    ] {
        let query = Query { expression: expression.clone(), ..Query::default() };
        assert_eq!(archive.explain(&query).unwrap()[0], told, "{expression}");
        if expression.starts_with("data") || expression.starts_with("oid") {
            assert!(asked(&archive, &query).unwrap().0.contains(&record.oid));
        }
    }
    let or = Query { expression: "m.n = 3 or m.s = a".into(), ..Query::default() };
    assert_eq!(archive.explain(&or).unwrap().len(), 2);
}

#[test]
fn what_cannot_be_read_says_where_and_nothing_panics() {
    let (archive, _) = filled(&mut Random(4), 1);
    for (expression, part) in [
        ("m.x = 1", "field m.x: there is no field"),
        ("m.n = x", "field m.n: 'x' is no long"),
        ("m.hidden = 1", "field m.hidden: is not queryable"),
        ("m.n like 'a'", "field m.n: is a long"),
        ("m.n", "a comparison is expected: = != < <= > >= in between like prefix is at character 4"),
        ("m.n = ", "a value is expected at character 7"),
        ("(m.n = 1", "')' is expected at character 9"),
        ("m.n = 1 m", "'and', 'or' or the end is expected at character 9"),
        ("m.s = 'a", "no end of the quotes at character 7"),
        ("ü # 1", "'#' is not expected at character 3"),
        ("m.n between 1 or 2", "'and' is expected"),
        ("m.n in ()", "a value is expected"),
        ("data = b3:12", "no name of an object"),
        (&"(".repeat(100_000), "more than 100 brackets"),
        (&"not ".repeat(100_000), "more than 100 brackets"),
    ] {
        let query = Query { expression: expression.into(), ..Query::default() };
        let told = asked(&archive, &query).unwrap_err().to_string();
        assert!(told.contains(part), "{told}");
    }
    let mut random = Random(seed(5));
    let words = [
        "m.s", "m.n", "=", "(", ")", "and", "or", "not", "in", "between", "like", "is", "null", "'a'", "1",
        ",", "''", "tags", "<=", "ü",
    ];
    for _ in 0..20_000 {
        let expression: Vec<&str> = (0..random.below(12)).map(|_| words[random.below(words.len())]).collect();
        let _ = asked(&archive, &Query { expression: expression.join(" "), ..Query::default() });
    }
}
