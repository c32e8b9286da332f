#!/usr/bin/python3
"""What `teak replicate` leaves out of rows, kinds of changes and values of columns, and columns of the target's own, with kills, several workers, merged tables, definitions and policies.

usage: exclusions.py [CASE...]
"""

import sys

from kit.agent import FollowingCases, run_cases
from kit.cases import check

USAGE, DAMAGE = 2, 3


class Cases(FollowingCases):
    """Each has a database of its own."""

    def rows(self, query, server=None):
        return [tuple(row) for row in (server or self.target).query(query, database=None)]

    def case_changes_of_some_kinds_are_left_out(self):
        for keys in ({}, {"workers": 3}, {"workers": 3, "commit_order": "false"}):
            database = f"xc{self.names}"
            for server in (self.source, self.target):
                self.at([f"create database {database}"], server=server)
            name = self.follow(databases=f'["{database}"]', exclude_changes=f'{{ "{database}.log*" = ["delete", "truncate"], "{database}.first" = ["update"] }}', **keys)
            self.at(["create table log1 (a int primary key, b int)", "create table first (a int primary key, b int)", "create table other (a int primary key, b int)"], database=database)
            for table in ("log1", "first", "other"):
                self.at([f"insert into {table} select seq, 0 from seq_1_to_50", f"update {table} set b = 1 where a <= 10", f"delete from {table} where a > 40"], database=database)
            # In one transaction with others, and through the killed program.
            self.agent.kill()
            self.at(["begin", "delete from log1 where a = 1", "insert into log1 values (100, 5)", "delete from other where a = 1", "update first set b = 9 where a = 2", "commit",
                     "truncate table log1", "set statement max_statement_time = 10 for truncate log1", "truncate other", "insert into log1 values (1000, 1)"], database=database)
            self.agent.start()
            self.agent.catch_up(name, self.source)
            check(self.rows(f"select count(*), sum(b), max(a) from {database}.log1") == [(52, 16, 1000)], self.rows(f"select count(*), sum(b), max(a) from {database}.log1"))
            check(self.rows(f"select count(*), sum(b) from {database}.first") == [(40, 0)], self.rows(f"select count(*), sum(b) from {database}.first"))
            check(self.rows(f"select count(*) from {database}.other") == [(0,)], "rows of another table are left")
            check(self.agent.says().count("TRUNCATE of") == 2, self.agent.says())
            status, said = self.agent.command("verify")
            check(status == 0 and f"`{database}`.`log1` is not compared" in said and ", 0 differences" in said, said)
            check(self.agent.stop() == 0, self.agent.says())

    def case_values_of_columns_do_not_come(self):
        for keys in ({}, {"workers": 3}, {"on_conflict": '"overwrite"'}):
            database = f"xv{self.names}"
            for server in (self.source, self.target):
                self.at([f"create database {database}"], server=server)
            name = self.follow(databases=f'["{database}"]', exclude_columns=f'{{ "{database}.user" = ["password", "token"] }}', **keys)
            self.at(["create table user (password varchar(99) not null, a int primary key, token blob, name varchar(20), n int default 7, unique (name))",
                     "create table other (a int primary key, password text)", "insert into other values (1, 'seen')"], database=database)
            for image in ("full", "minimal", "noblob"):
                first = {"full": 0, "minimal": 1000, "noblob": 2000}[image]
                self.at([f"set session binlog_row_image = {image}", f"insert into user select 'secret', {first} + seq, 'secret', concat('name', {first} + seq), null from seq_1_to_100",
                         f"update user set password = 'secret2' where a between {first} and {first} + 50", f"update user set password = 'secret3', n = n + 1, token = null where a = {first} + 7",
                         f"update user set name = concat(name, '!'), n = 5 where a between {first} + 60 and {first} + 70", f"delete from user where a > {first} + 90",
                         f"update user set a = -a where a = {first} + 80"], database=database)
            self.agent.catch_up(name, self.source)
            self.agent.kill()
            # A definition means the same on both sides.
            self.at(["alter table user add column m int default 3 after password, drop column n", "insert into user (password, a, name, token, m) values ('secret', 5000, 'x', 'secret', 4)"], database=database)
            self.agent.start()
            self.agent.catch_up(name, self.source)
            columns = "a, name, m"
            there, here = (self.rows(f"select {columns} from {database}.user order by a", server) for server in (self.source, self.target))
            check(there == here and len(here) == 271, f"{len(there)} {len(here)} {set(there) ^ set(here)}")
            check(self.rows(f"select distinct password, token from {database}.user") == [("", None)], self.rows(f"select distinct password, token from {database}.user"))
            check(self.rows(f"select * from {database}.other") == [(1, "seen")], "a table of another name")
            status, said = self.agent.command("verify")
            check(status == 0, said)
            self.at([f"update {database}.user set name = 'changed' where a = 5000"], server=self.target)
            status, said = self.agent.command("verify", "--repair")
            check(status == 0 and "1 differences, 1 repaired" in said, said)
            check(self.agent.stop() == 0, self.agent.says())

    def case_merged_tables_leave_columns_out(self):
        self.at(["create database xm", "create table xm.user (a int primary key, password text, name varchar(20))"])
        self.at(["create database xmt", "create table xmt.user (a int, password text, name varchar(20), wiki varchar(20), primary key (a, wiki)) engine = teak"], server=self.target)
        name = self.follow(databases='["xm"]', rename_tables='{ "xm.user" = { table = "xmt.user", column = "wiki", value = "en" } }', exclude_columns='{ "xm.user" = ["password"] }')
        self.at(["insert into xm.user values (1, 'secret', 'x'), (2, 'secret', 'y')", "update xm.user set name = 'z', password = 'other' where a = 1", "delete from xm.user where a = 2"])
        self.agent.catch_up(name, self.source)
        check(self.rows("select * from xmt.user") == [(1, None, "z", "en")], self.rows("select * from xmt.user"))
        check(self.agent.command("verify")[0] == 0, "the same rows are not the same")
        check(self.agent.stop() == 0, self.agent.says())

    def case_the_target_has_columns_of_its_own(self):
        for keys in ({}, {"workers": 3}):
            database = f"xo{self.names}"
            for server in (self.source, self.target):
                self.at([f"create database {database}", f"create table {database}.t (a int primary key, b varchar(20))"], server=server, init_command="set default_storage_engine = innodb")
            self.at([f"alter table {database}.t add column seen timestamp(6) default current_timestamp(6), add column note varchar(20) default 'none', add index (seen)"], server=self.target)
            name = self.follow(databases=f'["{database}"]', own_columns=f'{{ "{database}.t" = ["seen", "note"] }}', **keys)
            self.at(["insert into t select seq, 'x' from seq_1_to_100", "update t set b = 'y' where a < 10", "delete from t where a > 90"], database=database)
            self.agent.catch_up(name, self.source)
            self.at([f"update {database}.t set note = 'mine' where a = 5"], server=self.target)
            self.agent.kill()
            self.at(["update t set b = 'z' where a = 5", "replace into t values (6, 'w')", "set session binlog_row_image = minimal", "update t set b = 'v' where a = 7", "delete from t where a = 8"], database=database)
            self.agent.start()
            self.agent.catch_up(name, self.source)
            there, here = (self.rows(f"select a, b from {database}.t order by a", server) for server in (self.source, self.target))
            check(there == here and len(here) == 89, f"{there} {here}")
            check(self.rows(f"select a, note from {database}.t where note <> 'none'") == [(5, "mine")], "a column of the target's own was changed")
            # As in a replica, what a default would have to be computed from is not.
            check(self.rows(f"select count(*) from {database}.t where seen is not null") == [(0,)], "a default was computed")
            for command in ("verify", "check"):
                status, said = self.agent.command(command)
                check(status == 0, said)
            # A column more comes behind those of the target's own, and is moved before them by hand.
            self.agent.forget()
            self.at(["alter table t add column c int", "insert into t values (1000, 'x', 3)"], database=database)
            self.stops(DAMAGE, f"{name}: stopped:", "its last columns must be its own: seen, note")
            self.at([f"alter table {database}.t modify column c int after b"], server=self.target)
            self.agent.start()
            self.agent.catch_up(name, self.source)
            check(self.rows(f"select a, b, c, note from {database}.t where a = 1000") == [(1000, "x", 3, "none")], "the row is another one")
            check(self.agent.command("verify")[0] == 0, "the rows differ")
            check(self.agent.stop() == 0, self.agent.says())

    def case_columns_by_which_rows_are_found_are_not_left_out(self):
        for server in (self.source, self.target):
            self.at(["create database xk"], server=server)
        definitions = [("(a int primary key, b int, unique (b))", "has `b` in a unique key"), ("(a int, b int)", "has no key without NULLs"), ("(a int primary key)", "has no column `b`")]
        for number, (definition, why) in enumerate(definitions):
            name = self.follow(databases='["xk"]', exclude_columns=f'{{ "xk.t{number}" = ["b"] }}')
            self.at([f"create table xk.t{number} {definition}", f"insert into xk.t{number} (a) values (1)"])
            self.stops(USAGE, f"{name}: stopped:", f"`xk`.`t{number}` {why}")
            check(self.rows(f"select * from xk.t{number}") == [], "a row was applied")
            status, said = self.agent.command("check")
            check(status == USAGE and why in said, said)

    def case_check_knows_what_is_left_out(self):
        self.at(["create database xn", "create table xn.t (a int primary key, b int)"])
        self.at(["create database xn", "create table xn.t (a int primary key, b int) engine = teak"], server=self.target)
        for keys, words in (({"exclude_changes": '{ "xn.nobody" = ["delete"] }'}, "no table that is followed is called as one of these says"),
                            ({"exclude_columns": '{ "xn.nobody" = ["b"] }'}, "no table that is followed is called as one of these says"),
                            ({"own_columns": '{ "xn.nobody" = ["b"] }'}, "no table that is followed is called as one of these says"),
                            ({"own_columns": '{ "xn.t" = ["c"] }'}, "has no last column c in the target"), ({"own_columns": '{ "xn.t" = ["b"] }'}, "has 2 columns at the source, and 1"),
                            ({"exclude_columns": '{ "xn.t" = ["a"] }'}, "has `a` in a unique key"), ({"exclude_changes": '{ "xn.t" = ["deletes"] }'}, "unknown variant `deletes`"),
                            ({"exclude_changes": '{ "t" = ["delete"] }'}, "t is not database.table"), ({"exclude_changes": '{ "xn.t" = ["delete"] }', "start": '"copy"'}, "has changes that are left out")):
            self.agent.configure({"xn": {**self.source_keys(databases='["xn"]'), **keys}})
            if "start" in keys:
                self.at(["drop table xn.t"], server=self.target)
            status, said = self.agent.command("check")
            check(status == USAGE and words in said, f"{keys}: {said}")
        self.agent.forget()
        self.agent.start()
        self.stops(USAGE, "xn: stopped:", "`xn`.`t` has changes that are left out")


if __name__ == "__main__":
    sys.exit(run_cases(Cases, __doc__))
