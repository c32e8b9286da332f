//! What `/api/openapi.json` says: requests are made of it, some of them right and most of them not, and each is
//! answered with a status that is documented, and with what is documented for that.

use crate::client::{bytes, seed, Answer, Served};
use serde_json::Value as Json;

/// Chooses.
struct Chance(Vec<u8>, usize);

impl Chance {
    fn of<'a, T: ?Sized>(&mut self, all: &[&'a T]) -> &'a T {
        self.1 += 1;
        all[usize::from(self.0[self.1 % self.0.len()]) % all.len()]
    }

    fn happens(&mut self) -> bool {
        *self.of(&[&true, &false])
    }
}

fn encoded(text: &str) -> String {
    text.bytes().map(|byte| format!("%{byte:02X}")).collect()
}

/// A schema, or the one that it refers to.
fn resolved<'a>(all: &'a Json, schema: &'a Json) -> &'a Json {
    match schema["$ref"].as_str() {
        Some(path) => all.pointer(path.trim_start_matches('#')).unwrap(),
        None => schema,
    }
}

/// Whether a value has what its schema requires, as far as schemas here go.
fn is_like(all: &Json, value: &Json, schema: &Json) -> bool {
    let schema = resolved(all, schema);
    if let Some(one_of) = schema["oneOf"].as_array() {
        return one_of.iter().any(|schema| is_like(all, value, schema));
    }
    if let Some(known) = schema["enum"].as_array() {
        return known.contains(value);
    }
    let of_type = |name: &str| match name {
        "object" => value.is_object(),
        "array" => value.is_array(),
        "string" => value.is_string(),
        "integer" => value.is_u64(),
        "boolean" => value.is_boolean(),
        "null" => value.is_null(),
        _ => panic!("type {name}"),
    };
    let is_of_type = match &schema["type"] {
        Json::String(name) => of_type(name),
        Json::Array(names) => names.iter().any(|name| of_type(name.as_str().unwrap())),
        _ => true,
    };
    let required = schema["required"].as_array().into_iter().flatten();
    let properties = schema["properties"].as_object().into_iter().flatten();
    let items = value.as_array().into_iter().flatten();
    is_of_type
        && required.into_iter().all(|name| value.get(name.as_str().unwrap()).is_some())
        && properties
            .into_iter()
            .all(|(name, of)| value.get(name).is_none_or(|value| is_like(all, value, of)))
        && (schema["items"].is_null() || items.into_iter().all(|item| is_like(all, item, &schema["items"])))
}

fn value_of(chance: &mut Chance, parameter: &Json, known: &[&str]) -> String {
    match parameter["schema"]["type"].as_str() {
        Some("integer") => chance.of(&["1", "2", "100", "0", "-1", "99999999999999999999", "x", ""]),
        Some("boolean") => chance.of(&["true", "false", "maybe"]),
        _ if parameter["in"] == "path" || chance.happens() => chance.of(known),
        _ => chance.of(&[
            "",
            "/",
            "x",
            "é",
            "file.name = 'x'",
            "file.name",
            "\0",
            "..",
            "[]",
            "00ff",
            "\"1\", *",
            "bytes=0-1,5-",
        ]),
    }
    .to_string()
}

#[test]
fn each_path_is_answered_as_it_is_documented() {
    let served = Served::new();
    let all = served.get("/api/openapi.json").json();
    let mut chance = Chance(bytes(seed(11), 50_000), 0);
    let data = format!("b3:{}", "0".repeat(64));
    let mut oid = served.put(b"x", "?meta=file.name=x");
    for _ in 0..40 {
        for (path, item) in all["paths"].as_object().unwrap() {
            for (method, operation) in
                item.as_object().unwrap().iter().filter(|(key, _)| *key != "parameters")
            {
                let known = [
                    &*oid,
                    &data,
                    "01234567-89ab-7def-8123-456789abcdef",
                    "x",
                    "1",
                    "music",
                    "a/b",
                    "é",
                    "b3:",
                    "\"1\"",
                ];
                let (mut target, mut query, mut headers) = (path.clone(), Vec::new(), String::new());
                let parameters = [&item["parameters"], &operation["parameters"]];
                for parameter in parameters.into_iter().filter_map(Json::as_array).flatten() {
                    let (name, value) =
                        (parameter["name"].as_str().unwrap(), value_of(&mut chance, parameter, &known));
                    match parameter["in"].as_str().unwrap() {
                        "path" => target = target.replace(&format!("{{{name}}}"), &encoded(&value)),
                        "query" if chance.happens() => query.push(format!("{name}={}", encoded(&value))),
                        "header" if chance.happens() => {
                            headers += &format!("{name}: {}\n", value.replace('\0', ""))
                        }
                        _ => {}
                    }
                }
                let of_body = &operation["requestBody"]["content"];
                let schema = resolved(&all, &of_body["application/json"]["schema"]);
                let example = schema["example"].to_string();
                let body = match (of_body.is_null(), schema.is_null()) {
                    (true, _) => "",
                    (_, true) => chance.of(&["", "hello"]),
                    _ => chance.of(&[
                        &*example,
                        &example,
                        &example,
                        "{}",
                        "[]",
                        "{",
                        "\"x\"",
                        "{\"x\": 1}",
                        "",
                    ]),
                };
                let target = if query.is_empty() { target } else { format!("{target}?{}", query.join("&")) };
                let answer = served.ask(&method.to_uppercase(), &target, &headers, body.as_bytes());
                compare(&all, operation, &answer, &format!("{method} {target}\n{headers}{body}"));
            }
        }
        if served.get(&format!("/api/objects/{oid}")).status == 404 {
            oid = served.put(b"x", "?meta=file.name=x");
        }
    }
    assert!(served.log.lock().unwrap().is_empty(), "{:?}", served.log.lock().unwrap());
}

fn compare(all: &Json, operation: &Json, answer: &Answer, asked: &str) {
    let documented = resolved(all, &operation["responses"][answer.status.to_string()]);
    // That there are too many uploads is no failure.
    assert!(!documented.is_null() && (answer.status < 500 || answer.status == 503), "{asked}: {answer:?}");
    if let Some(schema) = documented.pointer("/content/application~1json/schema") {
        assert!(is_like(all, &answer.json(), schema), "{asked}: {answer:?} is not {schema}");
    } else if documented["content"].is_null() {
        assert!(answer.body.is_empty(), "{asked}: {answer:?}");
    }
}
