//! Configurations as texts, and what is wrong in them.

use super::*;

const TARGET: &str = "[target]\nsocket = \"/run/target.sock\"\nuser = \"root\"\n";
const SOURCE: &str = "[[source]]\nname = \"wiki1\"\nhost = \"127.0.0.1\"\nport = 3401\nuser = \"repl\"\n";

fn read(text: &str) -> Result<Configuration, String> {
    Configuration::of_text(Path::new("r.toml"), text).map_err(|wrong| wrong.to_string())
}

#[test]
fn the_smallest_configuration_is_read() {
    let text = format!("{TARGET}{SOURCE}start = \"now\"\ndatabases = [\"enwiki\", \"dewiki*\"]\n");
    let text = format!("{text}rename_databases = {{ \"enwiki\" = \"s1_enwiki\" }}\n");
    let configuration = read(&text).unwrap();
    let source = &configuration.sources[0];
    assert_eq!((source.name.as_str(), &source.start), ("wiki1", &Start::Now));
    assert_eq!(source.settings.address, Address::Tcp { host: "127.0.0.1".into(), port: 3401 });
    assert_eq!(configuration.target.settings.address, Address::Socket("/run/target.sock".into()));
    assert_eq!(source.routes.name_of(b"enwiki"), b"s1_enwiki");
    assert!(source.routes.follows(b"dewiki2") && !source.routes.follows(b"frwiki"));
    assert_eq!(source.settings.tls.policy, TlsPolicy::IfOffered);
}

#[test]
fn workers_are_those_of_the_source_or_of_all() {
    let all = "workers = 4\ncommit_order = false\n";
    for (of_all, own, wanted) in [
        ("", "", (1, CommitOrder::Kept)),
        (all, "", (4, CommitOrder::Free)),
        (all, "workers = 2\n", (2, CommitOrder::Free)),
        ("", "workers = 64\ncommit_order = false\n", (64, CommitOrder::Free)),
        (all, "commit_order = true\n", (4, CommitOrder::Kept)),
    ] {
        let configuration = read(&format!("{TARGET}{of_all}{SOURCE}start = \"now\"\n{own}")).unwrap();
        let source = &configuration.sources[0];
        assert_eq!((source.workers, source.commit_order), wanted, "{of_all} {own}");
    }
}

#[test]
fn metrics_are_asked_for_at_an_address_or_a_socket() {
    for (listen, wanted) in [
        ("127.0.0.1:9104", Listen::Tcp(([127, 0, 0, 1], 9104).into())),
        ("[::1]:9104", Listen::Tcp("[::1]:9104".parse().unwrap())),
        ("/run/teak/metrics.sock", Listen::Socket("/run/teak/metrics.sock".into())),
    ] {
        let text = format!("{TARGET}{SOURCE}start = \"now\"\n[metrics]\nlisten = \"{listen}\"\n");
        let metrics = read(&text).unwrap().metrics.unwrap();
        assert_eq!((metrics.to_string().as_str(), &metrics), (listen, &wanted));
    }
}

#[test]
fn a_start_is_now_or_a_position() {
    for (start, wanted) in [
        ("\"0-1-100, 7-2-9\"", Start::Gtid("0-1-100,7-2-9".into())),
        (
            "\"5ccc1033-44a8-11ea-bd59-0242ac190003:1-5\"",
            Start::Gtid("5ccc1033-44a8-11ea-bd59-0242ac190003:1-5".into()),
        ),
        ("\"copy\"", Start::Copy),
        ("{ file = \"b.000001\", position = 4 }", Start::File { file: "b.000001".into(), position: 4 }),
    ] {
        let configuration = read(&format!("{TARGET}{SOURCE}start = {start}\n")).unwrap();
        assert_eq!(configuration.sources[0].start, wanted);
    }
}

#[test]
fn each_source_that_is_wrong_is_told() {
    let other = SOURCE.replace("wiki1", "w 2");
    let text = format!("{TARGET}{SOURCE}start = 5\n{other}start = \"now\"\n");
    let error = read(&text).unwrap_err();
    let lines: Vec<&str> = error.lines().collect();
    assert!(
        matches!(lines[..], [first, second] if first.starts_with("r.toml:9: start is neither")
        && second.starts_with("r.toml:11: a name has")),
        "{error}"
    );
}

#[test]
fn what_is_wrong_is_told_with_its_line() {
    let now = "start = \"now\"\n";
    for (text, wanted) in [
        (format!("{TARGET}{SOURCE}{now}colour = 1\n"), "r.toml:10: unknown field `colour`"),
        (format!("{TARGET}{SOURCE}"), "r.toml:4: missing field `start`"),
        (format!("{TARGET}{SOURCE}start = \"x\"\n"), "r.toml:9: start: x is no GTID"),
        (format!("{TARGET}{SOURCE}start = 5\n"), "r.toml:9: start is neither"),
        (format!("{TARGET}{SOURCE}start = {{ file = \"b\" }}\n"), "r.toml:9: start is not { file"),
        (
            format!("{TARGET}{SOURCE}{now}rename_databases = {{ \"a\" = \"mysql\" }}\n"),
            "r.toml:10: rename_databases: a cannot be mysql",
        ),
        (format!("{TARGET}{SOURCE}{now}{SOURCE}{now}"), "r.toml:11: there are two sources wiki1"),
        (format!("{TARGET}{SOURCE}{now}socket = \"/x\"\n"), "r.toml:4: there are socket and host"),
        (
            format!("{TARGET}{SOURCE}{now}password_file = \"/nowhere/x\"\n"),
            "r.toml:4: password_file /nowhere/x",
        ),
        (format!("{TARGET}{SOURCE}{now}tables = [\"a.*\",\n\"b\"]\n"), "r.toml:11: b is not database.table"),
        (
            format!("{TARGET}{SOURCE}{now}exclude_tables = [\".t\"]\n"),
            "r.toml:10: .t is not database.table",
        ),
        (
            format!("{TARGET}{SOURCE}{now}rename_tables = {{ \"a.t\" = \"x.t\", \"b.t\" = \"x.t\" }}\n"),
            "r.toml:10: rename_tables: two tables would be x.t",
        ),
        (
            format!("{TARGET}{SOURCE}{now}rename_tables = {{ \"a.t\" = {{ table = \"x.t\", column = \"c\", value = \"it's\" }} }}\n"),
            "r.toml:10: rename_tables: x.t: a value has letters",
        ),
        (
            format!(
                "{TARGET}{SOURCE}{now}rename_tables = {{ \"a.t\" = \"x.t\" }}\n{}{now}rename_tables = {{ \"b.t\" = \"x.t\" }}\n",
                SOURCE.replace("wiki1", "w2")
            ),
            "r.toml:17: rename_tables: a table of wiki1 would be x.t as well",
        ),
        (
            format!("{TARGET}{SOURCE}{now}on_conflict = \"ignore\"\n"),
            "r.toml:10: unknown variant `ignore`, expected one of `stop`, `skip`, `overwrite`",
        ),
        (format!("{TARGET}{SOURCE}{now}server_id = 0\n"), "r.toml:10: server_id is 0"),
        (format!("{TARGET}{SOURCE}{now}timeout = 0\n"), "r.toml:4: timeout: 0 is not from 1 to 3600 seconds"),
        (format!("{TARGET}timeout = 3601\n{SOURCE}{now}"), "r.toml:1: timeout: 3601 is not"),
        (format!("{TARGET}{SOURCE}{now}workers = 0\n"), "r.toml:10: workers is a number from 1 to 64"),
        (format!("{TARGET}workers = 65\n{SOURCE}{now}"), "r.toml:4: workers is a number from 1 to 64"),
        (format!("{TARGET}engine = \"x'y\"\n{SOURCE}{now}"), "r.toml:4: engine is not"),
        (format!("{TARGET}{SOURCE}{now}tls = false\ntls_ca = \"/x\"\n"), "r.toml:4: tls is false"),
        (
            format!(
                "{TARGET}{SOURCE}{now}server_id = 7\n{}{now}server_id = 7\n",
                SOURCE.replace("wiki1", "w2")
            ),
            "r.toml:12: wiki1 asks the same server as replica 7",
        ),
        (
            format!("{TARGET}{SOURCE}{now}[metrics]\nlisten = \"localhost\"\n"),
            "r.toml:11: listen: localhost is neither",
        ),
        (format!("{TARGET}{SOURCE}{now}[metrics]\n"), "r.toml:10: missing field `listen`"),
        (TARGET.to_string(), "r.toml:1: there is no [[source]]"),
        (format!("{TARGET}{}{now}", SOURCE.replace("wiki1", "wiki 1")), "r.toml:5: a name has letters"),
        ("[target\n".to_string(), "r.toml:1: "),
    ] {
        let error = read(&text).unwrap_err();
        assert!(error.starts_with(wanted), "{error}\n{wanted}");
    }
}

#[test]
fn what_is_said_of_tables_has_their_databases() {
    let now = "start = \"now\"\n";
    for (text, wanted) in [
        (
            format!(
                "{TARGET}{SOURCE}{now}exclude_changes = {{ \"a.t\" = [\"insert\"], \"t\" = [\"delete\"] }}\n"
            ),
            "r.toml:10: t is not database.table",
        ),
        (
            format!("{TARGET}{SOURCE}{now}exclude_changes = {{ \"a.t\" = [\"replace\"] }}\n"),
            "r.toml:10: unknown variant `replace`, expected one of `insert`, `update`, `delete`, `truncate`",
        ),
        (
            format!("{TARGET}{SOURCE}{now}own_columns = {{ \"t\" = [\"b\"] }}\n"),
            "r.toml:10: t is not database.table",
        ),
        (
            format!("{TARGET}{SOURCE}{now}exclude_columns = {{ \"a\" = [\"b\"] }}\n"),
            "r.toml:10: a is not database.table",
        ),
    ] {
        let error = read(&text).unwrap_err();
        assert!(error.starts_with(wanted), "{error}\n{wanted}");
    }
}
