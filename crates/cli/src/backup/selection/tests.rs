use super::*;

fn selection(
    databases: &[&str],
    databases_exclude: &[&str],
    tables: &[&str],
    tables_exclude: &[&str],
) -> Selection {
    let set = |names: &[&str]| names.iter().map(|name| name.to_string()).collect();
    let list = |names: &[&str]| names.iter().map(|name| name.to_string()).collect();
    Selection {
        databases: set(databases),
        databases_exclude: set(databases_exclude),
        tables: list(tables),
        tables_exclude: list(tables_exclude),
    }
}

/// Those of the tables that the selection has.
fn chosen(selection: &Selection) -> String {
    let filter = selection.filter().unwrap();
    let tables = ["a/i", "a/t", "a/p#P#p0", "a/p#P#p1#SP#s", "b/i", "b/t", "my@002ddb/t"];
    tables.into_iter().filter(|table| filter.has(table)).collect::<Vec<_>>().join(" ")
}

#[test]
fn a_selection_means_what_it_means_to_mariadb_backup() {
    for (selection, expected) in [
        (selection(&["a"], &[], &[], &[]), "a/i a/t a/p#P#p0 a/p#P#p1#SP#s"),
        (selection(&["a.t", "b"], &[], &[], &[]), "a/t b/i b/t"),
        (selection(&["a.p"], &[], &[], &[]), "a/p#P#p0 a/p#P#p1#SP#s"),
        (selection(&["my@002ddb"], &[], &[], &[]), "my@002ddb/t"),
        (selection(&[], &["a"], &[], &[]), "b/i b/t my@002ddb/t"),
        (selection(&["a"], &["a.t"], &[], &[]), "a/i a/p#P#p0 a/p#P#p1#SP#s"),
        (selection(&["a", "b"], &["b"], &[], &[]), "a/i a/t a/p#P#p0 a/p#P#p1#SP#s"),
        (selection(&[], &[], &["^a[.](t|p)$", "^b"], &[]), "a/t a/p#P#p0 a/p#P#p1#SP#s b/i b/t"),
        (selection(&[], &[], &["[.]t"], &["^my@"]), "a/t b/t"),
        (selection(&[], &[], &[], &["[.]t$"]), "a/i a/p#P#p0 a/p#P#p1#SP#s b/i"),
        (selection(&["a"], &[], &[], &["[.]t$"]), "a/i a/p#P#p0 a/p#P#p1#SP#s"),
        // A database that is named is in it, whatever matches; one that is not, is not.
        (selection(&["a", "b.t"], &[], &["i$"], &[]), "a/i a/t a/p#P#p0 a/p#P#p1#SP#s b/i b/t"),
    ] {
        assert_eq!(chosen(&selection), expected, "{selection}");
    }
}

#[test]
fn what_alter_works_with_is_in_no_selection() {
    let filter = selection(&["a"], &[], &[], &[]).filter().unwrap();
    assert!(!filter.has("a/#sql-alter-1f-7") && !filter.has("a/#sql-alter-1f-7#P#p0"));
    assert!(!filter.has("/tmp/#sql-temptable-1f-7-0"));
    assert!(!Filter::default().has("a/#sql-alter-1f-7") && Filter::default().has("a/t"));
}

#[test]
fn partitions_go_with_their_table_however_they_are_matched() {
    assert_eq!(chosen(&selection(&[], &[], &["p#P#p0"], &[])), "");
    assert!(chosen(&selection(&["a"], &[], &[], &["#P#p0"])).contains("a/p#P#p0 a/p#P#p1#SP#s"));
    assert!(selection(&["a.p"], &[], &[], &[]).filter().unwrap().has("a/p#p#p0"), "lower case file names");
}

#[test]
fn a_table_whose_database_is_named_goes_without_saying() {
    let one = selection(&["a", "a.t", "b.t"], &["c", "c.t"], &[], &[]).without_contradictions().unwrap();
    assert_eq!(one, selection(&["a", "b.t"], &["c"], &[], &[]));
    assert_eq!(one.options(), ["--databases=a b.t", "--databases-exclude=c"]);
    let refused = selection(&[], &["c.t"], &[], &[]).without_contradictions().unwrap_err();
    assert!(refused.to_string().contains("--tables-exclude"), "{refused}");
}

#[test]
fn a_wrong_expression_is_told() {
    let Err(refused) = selection(&[], &[], &["^(a[.]t"], &[]).filter() else { panic!("it is not wrong") };
    assert!(refused.to_string().contains("'^(a[.]t': Unmatched ("), "{refused}");
}

#[test]
fn an_option_that_selects_is_known_however_it_is_written() {
    for option in ["--databases=a", "--tables-exclude=x", "--tables_file=f", "--databases"] {
        assert!(is_selecting(option), "{option}");
    }
    assert!(!is_selecting("--table-definition-cache=1") && !is_selecting("--datadir=x"));
}
