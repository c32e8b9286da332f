# Thin on purpose: each target is a script, and each script says at its top what it does.

.PHONY: help up down sql cluster cluster-sql cluster-status cluster-kill cluster-add cluster-down replicas replicas-sql replicas-status replicas-kill replicas-promote replicas-down heap-demo build profiled setup test mtr mtr-all mtr-spider format clean soak-kill soak-ddl soak-warm soak-crash soak-schedules soak-damage soak-backup-matrix soak-hostile soak-isolation soak-memory soak-atomic soak-debug soak-plans soak-differential soak-replicate soak-resolve soak-failover bench bench-quick bench-load bench-loaders bench-linkbench bench-side-by-side bench-small bench-engine bench-memory bench-memory-bound bench-cold bench-external bench-backup bench-commits bench-inserts bench-idle bench-lock-tables bench-heap bench-online-ddl apps limits fresh mysql-root
.DEFAULT_GOAL := help
# Benchmarks share tests/kit with the tests.
export PYTHONPATH := $(CURDIR)/tests

help: ## this list
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "make %-15s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)

up: ## set up, build, start the private server in ./var, load the main job's data, print the comparison
	@scripts/up.sh

down: ## stop the private server
	@scripts/server.sh stop

sql: ## open a client on the private server
	@scripts/server.sh sql

heap-demo: ## the private server with jemalloc, and what teak_heap finds in it: a leak by design, what a SELECT keeps
	@scripts/heap-demo.sh

cluster: ## a head with Spider and three shards with Teak in ./var/cluster, the main job's tables spread over them
	@scripts/cluster.sh up

cluster-sql: ## open a client of the cluster's head
	@scripts/cluster.sh sql

cluster-status: ## the cluster's servers, shards, rows, undecided transactions
	@scripts/cluster.sh status

cluster-kill: ## SIGKILL for a shard, and what is to be seen then: SERVER=2
	@scripts/cluster.sh kill $(or $(SERVER),2)

cluster-add: ## one more shard, to which a partition moves beside a writer
	@scripts/cluster.sh add

cluster-down: ## stop the cluster
	@scripts/cluster.sh down

replicas: ## a primary with two semi-synchronous replicas in ./var/replicas, the main job's packages on them; starts what is away
	@scripts/replicas.sh up

replicas-sql: ## open a client of the primary, or another one: SERVER=2
	@scripts/replicas.sh sql $(SERVER)

replicas-status: ## who is the primary, who follows it, how far each is
	@scripts/replicas.sh status

replicas-kill: ## SIGKILL for the primary, or another one: SERVER=2
	@scripts/replicas.sh kill $(SERVER)

replicas-promote: ## a replica takes over from a primary that is gone, by scripts/promote.sh
	@scripts/replicas.sh promote

replicas-down: ## stop them
	@scripts/replicas.sh down

setup: ## install what is missing to build and run
	@scripts/setup.sh

build: ## build/plugin/ha_teak.so and teak_heap.so, build/bin/teak and teak-bench
	@scripts/build.sh

profiled: ## build/profiled/plugin/ha_teak.so: the plugin laid out by what a training run used; three builds
	@scripts/build-profiled.sh

test: ## everything that CI runs
	@scripts/test.sh

mtr: ## MariaDB's own storage engine suites and tests of foreign keys, Teak's outputs against InnoDB's
	@tests/run mtr
	@tests/run foreign_keys

mtr-all: mtr ## the same, and 1,000 tests of MariaDB's suites main, innodb, parts, binlog and others: an hour
	@tests/run mtr suites

mtr-spider: ## MariaDB's own tests of Spider, with shards of InnoDB and of Teak: half an hour
	@tests/run spider

format: ## put Rust and C++ sources into the form that `make test` checks
	@cargo fmt --all
	@clang-format -i crates/*/shim/*.cc crates/*/shim/*.h

clean: down cluster-down replicas-down ## stop the servers and remove target, build and var
	rm -rf target build var

soak-kill: ## 500 rounds of killing a server under load
	@tests/run kill --rounds 500

soak-memory: ## every kind of work in a memory group, in random order, the server killed now and then: an hour
	@tests/run limits bound --minutes 60

soak-isolation: ## histories of concurrent transactions searched for anomalies, five minutes a level and kind of list: two hours
	@tests/run isolation --seconds 300

soak-ddl: ## 300 rounds of killing a server in the middle of DDL
	@tests/run ddl --rounds 300

soak-warm: ## each SQL test 5 times while another session uses and changes its tables between its statements: an hour
	@tests/run sql warm --all --rounds 5

soak-atomic: ## MariaDB's suite atomic: DDL killed at named points of its debug server, which is built first; 40 minutes
	@tests/run atomic

soak-debug: ## tests/answers/sql and MariaDB's storage engine suites on the debug server, whose assertions check each call of the engine
	@TEAK_SQL_TIMEOUT=300 scripts/debug-server.sh tests/run sql
	@scripts/debug-server.sh tests/run mtr

soak-differential: ## random tables and statements in Teak and InnoDB side by side, eight hours of them; TEAK_SEED for others
	@tests/run differential --seconds 28800 --keep-going --shrink-seconds 300

mysql-root: ## a Debian unstable with MySQL 9.7 in it, for tests that have one beside them (root)
	@scripts/root.sh sid bash -c 'apt-get -q update && apt-get -q -y --no-install-recommends install mysql-server-core'

soak-replicate: ## fifteen sources of `teak replicate`, 200 kills of any server and of the program: half an hour
	@tests/run replicate sources --sources 15 --kills 200

soak-resolve: ## 200 kills of a head with Spider or of its shards amid transfers, each resolved by `teak resolve`
	@tests/run cluster resolve --rounds 200

soak-failover: ## 50 primaries killed under load, whose replicas take over: no acknowledged commit is missing; ten minutes
	@tests/run replication failover --rounds 50 --limit 10 --start-limit 2

soak-plans: ## more of tests/answers/sql under each of nine settings of the optimizer and of memory, beside InnoDB
	@TEAK_SQL_TIMEOUT=300 tests/run sql --plans

soak-crash: ## 10,000 histories of power cuts, kills, I/O errors and full disks, simulated; 10,000 of transactions against the model; 10,000 of archives
	@TEAK_SEEDS=10000 cargo test --profile checked -p teak-core --test crash --test model
	@TEAK_SEEDS=10000 cargo test --profile checked -p teak-archive --test archive histories

soak-schedules: ## 20,000 schedules of each test of what is lock-free, and of group commit, snapshots and trees
	@TEAK_SCHEDULES=20000 scripts/test.sh schedules

soak-damage: ## 10 minutes of work beside damaged tables, and 2,000 rounds of flipped bits in the files of a stopped engine
	@tests/run damage beside --seconds 600
	@tests/run damage flips --rounds 2000

soak-backup-matrix: ## 49 set-ups of a server, each backed up, restored and compared, or refused: 15 minutes
	@tests/run backup matrix --all

soak-hostile: ## 300,000 mutations of each file in the corpora of the decoders
	@TEAK_MUTATIONS=300000 cargo test --profile checked -p teak-core --test hostile
	@TEAK_MUTATIONS=300000 cargo test --profile checked -p teak-archive-http -p teak-client -p teak-metrics -p teak-sql -p teak-top hostile
	@TEAK_MUTATIONS=300000 tests/run metadata
	@TEAK_MUTATIONS=30000 cargo test --profile checked -p teak-archive --test archive hostile

bench: ## sysbench, Teak against InnoDB, medians of 3 runs: about half an hour, on an idle machine
	@benches/sysbench.sh

bench-quick: ## the same, one short run each: about 7 minutes
	@benches/sysbench.sh quick

bench-load: ## import of a 1 GB dump into BLACKHOLE, InnoDB, Teak, MyISAM, MyRocks; LOAD="--size 100" for a quick look
	@benches/load.sh $(LOAD)

bench-loaders: ## one table through mariadb, myloader and teak load, into BLACKHOLE, InnoDB, Teak; LOADERS="--rows 100000" for a quick look
	@/usr/bin/python3 benches/load_tools.py $(LOADERS)

bench-linkbench: ## LinkBench with a long-running snapshot, hot row, queue; InnoDB, Teak, MyRocks: an hour and a half; LINKBENCH=quick for a look
	@benches/linkbench.sh $(LINKBENCH)

bench-side-by-side: ## LinkBench on two servers at once, Teak beside InnoDB: processor time for an operation; SIDES="--second Teak --snapshot"; 6 minutes
	@benches/side_by_side.sh $(SIDES)

bench-small: ## counts of small statements, Teak and InnoDB, against benches/small.md; SMALL="--statements ^delete --functions 40"; 5 minutes
	@benches/small.sh $(SMALL)

bench-engine: ## scans, look-ups, changes of many rows inside the server; all engines; ENGINE="--rows 100000 --plugin before=/path/ha_teak.so"
	@benches/engine.sh $(ENGINE)

bench-memory: ## tables in memory: MEMORY (hash, btree), Teak's, InnoDB; sysbench, bytes for a row, statements; half an hour; MEMORY=--full for all
	@benches/memory.sh $(MEMORY)

bench-cold: ## statements over tables that nobody has in memory; COLD="--side before=/path/to/plugins --rows 300000"
	@/usr/bin/python3 benches/cold.py $(COLD)

bench-external: ## a wiki's store of texts, memory limited, cold and warm: MyISAM, InnoDB, MyRocks, ARCHIVE, Teak; hours; EXTERNAL=--quick for a look
	@benches/external.sh $(EXTERNAL)

bench-memory-bound: ## data larger than memory: sysbench, Insert Benchmark; InnoDB, MyRocks, Teak; an hour and a half; MEMORY_BOUND=--quick for a look
	@benches/memory_bound.sh $(MEMORY_BOUND)

bench-backup: ## backups, incremental ones and restores of the same rows in Teak and InnoDB, and writers beside them; BACKUP="--rows 200000"
	@/usr/bin/python3 benches/backup.py $(BACKUP)

bench-commits: ## single synced commits of two clients, InnoDB and Teak in turn; COMMITS="--rounds 60 --plugin before=/path/ha_teak.so"
	@/usr/bin/python3 benches/commits.py $(COMMITS)

bench-inserts: ## INSERTs of many rows in no order, four secondary keys, InnoDB and Teak in turn; INSERTS="--clients 4 --plugin before=/path/ha_teak.so"
	@/usr/bin/python3 benches/inserts.py $(INSERTS)

bench-idle: ## one writer beside 1,000 idle sessions with a cache of 128 MB, by what they have done; IDLE="--sessions 200 --rounds 3"
	@/usr/bin/python3 benches/idle.py $(IDLE)

bench-lock-tables: ## looks at transactions and lock waits: 1,000 sessions, 100 of which wait, with 1,000,000 row locks
	@/usr/bin/python3 benches/lock_tables.py $(LOCK_TABLES)

bench-heap: ## what watching the heap costs sysbench, with jemalloc: installed, sampling, beside a recorded session; HEAP="--rounds 9"
	@/usr/bin/python3 benches/heap.py $(HEAP)

bench-online-ddl: ## ADD INDEX, ADD UNIQUE, OPTIMIZE, ADD COLUMN beside writers, Teak and InnoDB; ONLINE_DDL="--rows 200000 --runs 1"
	@/usr/bin/python3 benches/online_ddl.py $(ONLINE_DDL)

apps: ## SQLAlchemy, Django and others, from the package registries, on Teak and on InnoDB, results compared; APPS="django" for one
	@tests/run apps $(APPS)

limits: ## memory while three times the cache is loaded; restart after kill -9 with 1 GiB of log
	@tests/run limits memory
	@tests/run limits large_values
	@tests/run limits restart

fresh: ## README's commands in a minimal Debian 12 made by debootstrap, from a clone of HEAD; needs root; half an hour; FRESH=up for one of them
	@scripts/fresh.sh $(FRESH)
