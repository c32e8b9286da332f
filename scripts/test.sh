#!/usr/bin/env bash
# Runs every check and test in order and ends with 'N passed, N failed', and how many were skipped. A step counts
# as one, plus what its tool reports of its own tests. Logs: build/test-logs/. All steps run, also after one failed.
#
# usage: scripts/test.sh [STEP...]     without arguments all of them; scripts/test.sh --list names them
set -euo pipefail
# shellcheck source=scripts/lib/base.sh
. "$(dirname "$0")/lib/base.sh"
# shellcheck source=scripts/lib/debian.sh
. "$ROOT/scripts/lib/debian.sh"
cd "$ROOT"

LOGS=$BUILD/test-logs
passed=0
failed=0
skipped=0
failures=()

# limited COMMAND...: a test that hangs ends, with all its processes, long before CI's own limit of 90 minutes.
limited() { timeout --kill-after=30 "${TEAK_STEP_SECONDS:-1800}" "$@"; }

step_setup() { scripts/setup.sh --test; }
step_rustfmt() { cargo fmt --all --check; }
# A step that returns this cannot be run here; it counts neither as passed nor as failed.
SKIPPED=77

step_clippy() {
    if ! have cargo-clippy; then
        echo "no clippy on this machine: Debian's rustc-web comes without; rustup has it"
        return "$SKIPPED"
    fi
    cargo clippy --workspace --release --all-targets --quiet -- -D warnings
}

step_clang_format() {
    local files
    mapfile -t files < <(git ls-files 'crates/*/shim/*.cc' 'crates/*/shim/*.h')
    [ "${#files[@]}" -eq 0 ] || clang-format --dry-run --Werror "${files[@]}"
}

step_shellcheck() {
    local files
    mapfile -t files < <(git ls-files '*.sh' .ci/run)
    shellcheck -x "${files[@]}"
}

step_style() { scripts/style.py; }

# The pages of the libraries and all that is linked from them; without the documentation of what they depend on it is
# quick.
step_doc() {
    RUSTDOCFLAGS="-D warnings" limited cargo doc --no-deps --quiet \
        --package teak-core --package teak-archive --package teak-archive-http --package teak-rows --package teak-plugin \
        --package teak-heap --package teak-console --package teak-client --package teak-sql --package teak-binlog --package teak-load \
        --package teak-replicate --package teak-convert --package teak-metrics --package teak-exporter \
        --package teak-report --package teak-top
}

step_rust() { limited cargo test --workspace --profile checked; }
# The core's unit tests under a scheduler that decides who goes on (docs/design/checks.md).
step_schedules() {
    limited cargo test --package teak-core --profile checked --features schedules --lib schedules::
}
step_build() { scripts/build.sh; }

# A shorter run on the other server that the plugin is built for, in the Debian that has it. Skipped where that Debian,
# or the source of its server, cannot be had today.
OTHER_STEPS=(build sql kill mtr versions)
step_other_debian() {
    local other=trixie status=0
    [ "$(debian_release)" != trixie ] || other=bookworm
    if [ "$(id -u)" -ne 0 ]; then
        echo "another Debian needs root: chroot and mounts"
        return "$SKIPPED"
    fi
    scripts/root.sh "$other" scripts/setup.sh --test 2>&1 || status=$?
    [ "$status" -ne "$UNAVAILABLE" ] || return "$SKIPPED"
    [ "$status" -eq 0 ] || return "$status"
    limited scripts/root.sh "$other" scripts/test.sh "${OTHER_STEPS[@]}"
    # The way goes from the earlier server to the later one.
    [ "$other" != trixie ] || limited tests/run versions upgrade
}

# The rest of MariaDB's suites, too long for CI: not among all steps.
step_mtr_all() { TEAK_STEP_SECONDS=${TEAK_STEP_SECONDS:-7200} limited tests/run mtr suites; }

all_steps() {
    printf '%s\n' setup rustfmt clippy clang_format shellcheck style doc rust schedules build
    # The tests that need a server or several crates.
    tests/run --list
    printf '%s\n' other_debian
}

run_step() {
    if declare -F "step_$1" >/dev/null; then "step_$1"; else limited tests/run "$1"; fi
}

# count_tests LOG: adds up 'N passed, N failed' lines and cargo's 'test result:' lines; prints "passed failed".
count_tests() {
    sed -nE -e 's/^test result: .* ([0-9]+) passed; ([0-9]+) failed.*/\1 \2/p' \
        -e 's/^([a-z_-]+: )?([0-9]+) passed, ([0-9]+) failed.*/\2 \3/p' "$1" |
        awk '{ p += $1; f += $2 } END { print p + 0, f + 0 }'
}

run_and_count() {
    local step=$1 log=$LOGS/$1.log started=$SECONDS status=0 tests_passed tests_failed verdict=ok
    # In a shell of its own, with -e in force: a function called in a condition would run without it.
    set +e
    (set -e; run_step "$step") >"$log" 2>&1 </dev/null
    status=$?
    set -e
    read -r tests_passed tests_failed < <(count_tests "$log")
    if [ "$status" -eq "$SKIPPED" ]; then
        verdict=skipped
        skipped=$((skipped + 1))
    elif [ "$status" -eq 0 ] && [ "$tests_failed" -eq 0 ]; then
        passed=$((passed + 1))
    else
        verdict=FAILED
        failed=$((failed + 1))
        failures+=("$step")
    fi
    passed=$((passed + tests_passed))
    failed=$((failed + tests_failed))
    printf '%-14s %-7s %5d s   %s\n' "$step" "$verdict" "$((SECONDS - started))" \
        "$([ "$((tests_passed + tests_failed))" -eq 0 ] || echo "tests: $tests_passed passed and $tests_failed failed")"
    [ "$verdict" != skipped ] || sed -n 's/^teak: error: //p' "$log" | grep . || tail -n 1 "$log"
    if [ "$verdict" = FAILED ]; then
        printf -- '--- the end of %s\n' "$log"
        tail -n 60 "$log"
        printf -- '---\n'
    fi
}

main() {
    local steps step
    if [ "${1-}" = --list ]; then
        all_steps
        return
    fi
    mkdir -p "$LOGS"
    if [ "$#" -gt 0 ]; then steps=("$@"); else mapfile -t steps < <(all_steps); fi
    for step in "${steps[@]}"; do run_and_count "$step"; done
    [ "${#failures[@]}" -eq 0 ] || printf 'failed steps: %s (logs in build/test-logs)\n' "${failures[*]}"
    printf '%d passed, %d failed%s\n' "$passed" "$failed" "$([ "$skipped" -eq 0 ] || echo ", $skipped skipped")"
    [ "$failed" -eq 0 ]
}

main "$@"
