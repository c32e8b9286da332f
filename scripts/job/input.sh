# shellcheck shell=bash
# The main job's input, made in var/job: this machine's Debian package catalogue, and its time zones. Sourced after
# apt.sh, whose options of apt it takes, and server.sh.

JOB=$ROOT/scripts/job
INPUT=$VAR/job

# index_files KIND [APT OPTION...]: the files of one kind that apt has, Packages or Translations.
index_files() {
    local kind=$1
    shift
    # shellcheck disable=SC2016
    apt-get "$@" indextargets --format '$(FILENAME)' "Created-By: $kind" 2>/dev/null | sort -u
}

prepare_input() {
    local packages translations
    mkdir -p "$INPUT"
    mapfile -t packages < <(index_files Packages)
    mapfile -t translations < <(index_files Translations)
    if [ "${#packages[@]}" -eq 0 ] || [ "${#translations[@]}" -eq 0 ]; then
        # Containers often have neither lists nor descriptions; apt_refresh dies without a network.
        (apt_refresh) || warn "without apt's lists of descriptions, the catalogue has only short ones"
        # shellcheck disable=SC2154 # of apt.sh
        [ "${#packages[@]}" -gt 0 ] || mapfile -t packages < <(index_files Packages "${apt_options[@]}")
        mapfile -t translations < <(index_files Translations "${apt_options[@]}")
    fi
    [ "${#packages[@]}" -gt 0 ] || die "apt has no package lists on this machine." "Run apt-get update as root."
    /usr/bin/python3 "$JOB/catalogue.py" --packages "${packages[@]}" --translations "${translations[@]}" \
        >"$INPUT/packages.tsv"
    # It warns about files in that directory which are no time zones.
    mariadb-tzinfo-to-sql /usr/share/zoneinfo >"$INPUT/time-zones.sql" 2>"$INPUT/time-zones.log" ||
        die "mariadb-tzinfo-to-sql failed." "See $INPUT/time-zones.log; the package tzdata has to be installed."
}
