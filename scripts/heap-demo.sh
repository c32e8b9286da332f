#!/usr/bin/env bash
# Starts the private server with jemalloc in place of the C library's malloc, and shows what teak_heap finds: a function
# that leaks by design, and what one statement of the server keeps. docs/heap.md walks through it.
#
# usage: scripts/heap-demo.sh
set -euo pipefail
# shellcheck source=scripts/lib/base.sh
. "$(dirname "$0")/lib/base.sh"
# shellcheck source=scripts/lib/apt.sh
. "$ROOT/scripts/lib/apt.sh"
# shellcheck source=scripts/lib/server.sh
. "$ROOT/scripts/lib/server.sh"

"$ROOT/scripts/setup.sh"
if [ -z "$(installed_version libjemalloc2)" ]; then
    apt_refresh
    apt_install libjemalloc2
fi
"$ROOT/scripts/build.sh"
TEAK_MALLOC=$(dpkg -L libjemalloc2 | grep '/libjemalloc\.so\.2$')
export TEAK_MALLOC
gcc -shared -fPIC -O1 -g -fno-builtin -I/usr/include/mariadb -o "$BUILD/plugin/planted.so" \
    "$ROOT/tests/tools/heap/planted.c"

"$ROOT/scripts/server.sh" stop
"$ROOT/scripts/server.sh" start
sql -e "INSTALL SONAME 'teak_heap'" 2>/dev/null || true
sql mysql -e "CREATE FUNCTION IF NOT EXISTS leak RETURNS INTEGER SONAME 'planted.so';
    CREATE DATABASE IF NOT EXISTS heap_demo; CREATE TABLE IF NOT EXISTS heap_demo.t (id INT PRIMARY KEY) ENGINE=Teak;
    INSERT IGNORE INTO heap_demo.t VALUES (1)"

# One session: what it does between its mark and its question is what is asked about. Only what a client shows is read
# here, so a statement that was never seen runs once before.
{
    echo "SELECT leak(100, 1); SELECT teak_heap_mark('demo'); SELECT leak(100, 7); SELECT teak_heap_leaks('demo');"
    echo "SELECT * FROM heap_demo.t WHERE id = 1; SELECT teak_heap_mark('reads');"
    for _ in {1..50}; do echo "SELECT * FROM heap_demo.t WHERE id = 1;"; done
    echo "SELECT 'kept', live_objects, live_bytes, function, kept_by FROM information_schema.teak_heap
        WHERE digest_text LIKE '%heap_demo.t%' AND kept_by LIKE 'a pool%';"
} | sql mysql | awk '
    /^\{"objects"/ { print "teak_heap_leaks() of a statement that leaks 7 objects of 100 bytes:"; print "    " substr($0, 1, 280) "..." }
    /^kept\t/ { split($0, part, "\t"); print "\nTEAK_HEAP of 50 SELECTs by key: " part[2] " objects, " part[3] " bytes, still there:"
        print "    " part[4]; print "    (" part[5] ")" }'
cat <<END

The server runs with jemalloc until 'make down'. To go on (docs/heap.md): make sql
    SELECT teak_heap_start();                               samples all threads; teak_heap_stop() ends that
    SELECT * FROM information_schema.TEAK_HEAP LIMIT 5\\G    where the memory went
    SELECT teak_heap_dump('now.heap');                      for jeprof --text $(command -v mariadbd) $VAR/data/now.heap
END
