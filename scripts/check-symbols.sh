#!/usr/bin/env bash
# Checks a freshly linked plugin before a server has to: it exports the three symbols of a plugin's declaration and
# the pointers of the services it uses, nothing else; and what it leaves undefined is found in mariadbd or in the
# libraries it names.
#
# usage: scripts/check-symbols.sh PLUGIN.so
set -euo pipefail
# shellcheck source=scripts/lib/base.sh
. "$(dirname "$0")/lib/base.sh"

plugin=${1:?usage: check-symbols.sh PLUGIN.so}
server=$(command -v mariadbd) || die "mariadbd is not installed." "Run scripts/setup.sh"

wanted="_maria_plugin_declarations_ _maria_plugin_interface_version_ _maria_sizeof_struct_st_plugin_"
exported=$(nm -D --defined-only "$plugin" | awk '$3 !~ /_service$/ { print $3 }' | sort | tr '\n' ' ')
[ "$exported" = "$wanted " ] || die "$plugin exports the wrong symbols." \
    "wanted: $wanted" "found:  $exported" "See scripts/ha_teak.map and the shim's maria_declare_plugin."

# A service pointer that stays private is one that the server cannot fill in: the first call would crash.
hidden=$(comm -23 <(nm --defined-only "$plugin" | awk '$2 ~ /[dD]/ && $3 ~ /_service$/ { print $3 }' | sort -u) \
    <(nm -D --defined-only "$plugin" | awk '{ print $3 }' | sort -u))
[ -z "$hidden" ] || die "$plugin hides the pointers of services it uses:" "${hidden//$'\n'/ }" "See scripts/ha_teak.map."

# ldd -r resolves against the plugin's own libraries; what is left has to come from the server.
missing=$(comm -23 \
    <(ldd -r "$plugin" 2>&1 | sed -n 's/^undefined symbol: \([^ \t]*\).*/\1/p' | sort -u) \
    <(nm -D --defined-only "$server" | awk '{ print $3 }' | sed 's/@.*//' | sort -u))
[ -z "$missing" ] || die "$plugin needs symbols that neither mariadbd nor its libraries have:" \
    "$(c++filt <<<"$missing" | head -n 20 | sed '2,$s/^/             /')"

# Values are made again bit by bit by the zlib that was linked in (crates/core/src/values): any other one, the server's
# or one that is preloaded, must not come into it.
foreign=$(nm -D "$plugin" | awk '{ print $NF }' | sed 's/@.*//' |
    grep -E '^_?(deflate|inflate|adler32|zlib|zcalloc|zcfree|_tr_)' || true)
[ -z "$foreign" ] || die "$plugin has names of zlib that another zlib may answer to:" "${foreign//$'\n'/ }" \
    "libz-sys has to be linked statically: is LIBZ_SYS_STATIC set?"
libz=$(readelf -d "$plugin" | grep -F '(NEEDED)' | grep -F 'libz.so' || true)
[ -z "$libz" ] || die "$plugin needs the machine's zlib." "libz-sys has to be linked statically: is LIBZ_SYS_STATIC set?"
