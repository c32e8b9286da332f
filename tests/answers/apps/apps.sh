#!/usr/bin/env bash
# Runs applications, or their own test suites, on Teak and on InnoDB and prints what differs. They are installed into
# build/apps from the package registries, pinned versions, on the first run. About three quarters of an hour.
#
# mediawiki_external is MediaWiki whose texts are in external storage: 2,400 revisions written, moved, compressed,
# deleted and undeleted by its own scripts, and read back after each step.
#
# usage: tests/answers/apps/apps.sh [--engine Teak] [APPLICATION...]
set -euo pipefail
# shellcheck source=scripts/lib/base.sh
. "$(dirname "$0")/../../../scripts/lib/base.sh"

need_built "$PLUGIN_DIR/ha_teak.so"
exec /usr/bin/python3 "$ROOT/tests/answers/apps/apps.py" --plugin-dir "$PLUGIN_DIR" --directory "$BUILD/apps" "$@"
