# shellcheck shell=bash
# A private view of the Debian archive: own sources list with deb-src, own index files, English descriptions.
# Nothing under /etc/apt or /var/lib/apt changes, and reading it needs no root. Sourced after base.sh.

# shellcheck source=scripts/lib/debian.sh
. "$ROOT/scripts/lib/debian.sh"

APT_DIR=$CACHE/apt

apt_options=(
    -o "Dir::Etc::sourcelist=$APT_DIR/sources.list"
    -o "Dir::Etc::sourceparts=/dev/null"
    -o "Dir::State::Lists=$APT_DIR/lists"
    -o "Dir::Cache::archives=$APT_DIR/archives"
    -o "Dir::Cache::pkgcache="
    -o "Dir::Cache::srcpkgcache="
    -o "Acquire::Languages=en"
    -o "Acquire::Retries=3"
    -o "Acquire::IndexTargets::deb::DEP-11::DefaultEnabled=false"
    -o "APT::Sandbox::User=root"
)

private_apt_get() { apt-get "${apt_options[@]}" "$@"; }
private_apt_cache() { apt-cache "${apt_options[@]}" "$@"; }
private_apt_helper() { /usr/lib/apt/apt-helper "${apt_options[@]}" "$@"; }

# The machine's own mirrors where it knows any (a company mirror, a snapshot), else Debian's. Lines of site and suite.
apt_mirrors() {
    local release known
    release=$(debian_release)
    # The format's variables are apt's, not the shell's.
    # shellcheck disable=SC2016
    known=$(apt-get indextargets --format '$(SITE) $(RELEASE)' 'Created-By: Packages' 2>/dev/null |
        grep -E " $release(-updates|-security)?\$" | sort -u || true)
    if grep -q " $release\$" <<<"$known"; then
        printf '%s\n' "$known"
    else
        debian_suites "$release" | sed 's|^|http://deb.debian.org/|'
    fi
}

# apt_mirror RELEASE: the site that has it: this machine's own, which has all releases, or Debian's.
apt_mirror() {
    local own
    own=$(apt_mirrors | awk -v release="$(debian_release)" '$2 == release { print $1; exit }')
    case $own in
        */debian) printf '%s\n' "$own" ;;
        *) echo http://deb.debian.org/debian ;;
    esac
}

apt_write_sources() {
    local keyring=/usr/share/keyrings/debian-archive-keyring.gpg signed='' site release
    [ ! -e "$keyring" ] || signed="[signed-by=$keyring] "
    while read -r site release; do
        printf 'deb %s%s %s main\ndeb-src %s%s %s main\n' "$signed" "$site" "$release" "$signed" "$site" "$release"
    done < <(apt_mirrors) >"$APT_DIR/sources.list"
}

# apt_refresh: fetch the index files unless that was done in the last six hours.
apt_refresh() {
    mkdir -p "$APT_DIR/lists/partial" "$APT_DIR/archives/partial"
    if [ -n "$(find "$APT_DIR/fresh" -mmin -360 2>/dev/null)" ]; then return; fi
    need_space "$APT_DIR" 300 "Debian's package lists"
    apt_write_sources
    say "reading Debian's package lists"
    private_apt_get -q update >"$APT_DIR/update.log" 2>&1 || true
    # apt-get update exits 0 with only warnings when the network is down, so its log decides.
    if grep -qE '^(E:|Err:|W: (Failed to fetch|Some index files))' "$APT_DIR/update.log"; then
        grep -E '^(E:|W:)' "$APT_DIR/update.log" | head -n 5 >&2
        unavailable "cannot read Debian's package lists (log: $APT_DIR/update.log)." \
            "Is there a network? Mirrors asked: $(apt_mirrors | tr '\n' ';')" \
            "Behind a proxy, set http_proxy, or Acquire::http::Proxy in /etc/apt/apt.conf.d."
    fi
    touch "$APT_DIR/fresh"
}

installed_version() { dpkg-query -W -f='${db:Status-Status} ${Version}' "$1" 2>/dev/null | sed -n 's/^installed //p'; }

# apt_install PACKAGE[=VERSION]...: installs without starting any service.
apt_install() {
    need_root
    need_space /usr 1000 "the packages $*"
    say "installing: $*"
    local log=$APT_DIR/install.log
    with_services_off as_root env DEBIAN_FRONTEND=noninteractive apt-get "${apt_options[@]}" -q -y \
        --no-install-recommends --allow-downgrades -o DPkg::Lock::Timeout=120 \
        -o Dpkg::Options::=--force-confold install "$@" >"$log" 2>&1 </dev/null || {
        tail -n 25 "$log" >&2
        die "apt-get could not install: $*" "The whole log is in $log."
    }
}

# with_services_off COMMAND...: packages ask policy-rc.d before they start a service; 101 means no.
with_services_off() {
    local policy=/usr/sbin/policy-rc.d status=0
    if [ -e "$policy" ]; then
        "$@"
        return
    fi
    printf '#!/bin/sh\nexit 101\n' | as_root install -m 755 /dev/stdin "$policy"
    # Not in a subshell with a trap: as_root may need the terminal for sudo's password.
    trap 'as_root rm -f /usr/sbin/policy-rc.d' EXIT
    "$@" || status=$?
    as_root rm -f "$policy"
    trap - EXIT
    return "$status"
}
