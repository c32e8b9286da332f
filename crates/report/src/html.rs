//! The report as one page.

use crate::text::{indexes, place, summary, tables, Columns};
use crate::Report;

const STYLE: &str = "body{font:15px/1.5 system-ui,sans-serif;margin:2em auto;max-width:75em;padding:0 1em}\
    table{border-collapse:collapse;margin:1em 0}th,td{padding:.2em .8em;border-bottom:1px solid #ccc;text-align:right}\
    th.n,td.n{text-align:left}pre{background:#f3f3f3;padding:.4em .8em;overflow:auto}";

/// What people wrote, names above all, is text and nothing else.
fn escaped(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for character in text.chars() {
        match character {
            '&' => out.push_str("&amp;"),
            '<' => out.push_str("&lt;"),
            '>' => out.push_str("&gt;"),
            '"' => out.push_str("&quot;"),
            '\'' => out.push_str("&#39;"),
            other => out.push(other),
        }
    }
    out
}

fn table(columns: &Columns) -> String {
    let cell = |tag: &str, at: usize, text: &str| {
        let class = if at < columns.names { " class=n" } else { "" };
        format!("<{tag}{class}>{}</{tag}>", escaped(text))
    };
    let heads: String = columns.heads.iter().enumerate().map(|(at, head)| cell("th", at, head)).collect();
    let row = |row: &Vec<String>| {
        let cells: String = row.iter().enumerate().map(|(at, text)| cell("td", at, text)).collect();
        format!("<tr>{cells}</tr>\n")
    };
    format!("<table><tr>{heads}</tr>\n{}</table>\n", columns.rows.iter().map(row).collect::<String>())
}

/// All of it, without anything from elsewhere.
pub fn page(report: &Report, largest: usize) -> String {
    let lines: String =
        summary(&report.facts).iter().map(|line| format!("<p>{}</p>\n", escaped(line))).collect();
    let advice: String = report
        .advice
        .iter()
        .map(|advice| {
            let table = advice.table.as_deref().unwrap_or_default();
            format!(
                "<li><b>{} {}</b>: {}<pre>{};</pre></li>\n",
                advice.kind,
                escaped(table),
                escaped(&advice.evidence),
                escaped(&advice.statement)
            )
        })
        .collect();
    let advice = if advice.is_empty() {
        "<p>nothing to advise</p>\n".into()
    } else {
        format!("<ol>\n{advice}</ol>\n")
    };
    format!(
        "<!doctype html>\n<html lang=en><meta charset=utf-8><title>Teak on {}</title><style>{STYLE}</style>\n\
         <h1>Teak on {}</h1>\n{lines}<h2>Advice</h2>\n{advice}<h2>Tables</h2>\n{}<h2>Indexes</h2>\n{}</html>\n",
        escaped(place(&report.facts)),
        escaped(place(&report.facts)),
        table(&tables(&report.facts, largest)),
        table(&indexes(&report.facts, largest)),
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::facts::{Facts, Table};

    #[test]
    fn names_are_no_markup() {
        let evil = Table { database: "<script>".into(), name: "a&'\"".into(), ..Table::default() };
        let page =
            page(&Report { facts: Facts { tables: vec![evil], ..Facts::default() }, advice: vec![] }, 3);
        assert!(page.contains("&lt;script&gt;.a&amp;&#39;&quot;") && !page.contains("<script>"), "{page}");
    }
}
