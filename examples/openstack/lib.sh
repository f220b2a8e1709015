# Shared by the scripts of this folder: names, addresses, processes, waiting. To be sourced.
# shellcheck shell=bash disable=SC2034 # names are used by the scripts that source this

HERE=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)

# Everything that runs keeps its state here; `down --purge` removes it.
DIR=$(realpath -m "${CHEOPS_OPENSTACK_DIR:-/tmp/cheops-openstack}")
# What stands in front of the services: `cheops` (one agent per site) or `plain` (forwards bytes).
FRONT=${CHEOPS_FRONT:-cheops}
# How long anything may take to answer, in seconds.
PATIENCE=${CHEOPS_OPENSTACK_PATIENCE:-120}

SITES=(1 2)
# Every service of site i listens on 127.0.i.1, what stands in front of it on 127.0.i.2, same port.
SERVICES=(identity image placement compute network)
declare -A PORT=([identity]=5000 [image]=9292 [placement]=8778 [compute]=8774 [network]=9696)
# What answers without a token, to see whether a service is there.
declare -A PROBE=([identity]=/v3 [image]=/versions [placement]=/ [compute]=/ [network]=/)
API_PORT=8079
MESH_PORT=8078
# Both sites are only reachable from this machine.
PASSWORD=cheops

log() { printf '%s\n' "$*" >&2; }
die() {
    log "error: $*"
    exit 1
}

service_address() { printf '127.0.%s.1' "$1"; }
front_address() { printf '127.0.%s.2' "$1"; }
site_dir() { printf '%s/site%s' "$DIR" "$1"; }

is_site() {
    local site
    for site in "${SITES[@]}"; do
        [[ $1 != "$site" ]] || return 0
    done
    return 1
}

need() {
    local command
    for command in "$@"; do
        command -v "$command" >/dev/null || die "there is no $command here; run ./install first"
    done
}

# The Cheops program: $CHEOPS, or the one in the path, or the one built in this repository.
cheops_program() {
    local built=$HERE/../../target/release/cheops
    if [[ -n ${CHEOPS:-} ]]; then
        command -v "$CHEOPS" || die "CHEOPS=$CHEOPS is no program"
    elif command -v cheops; then
        :
    elif [[ -x $built ]]; then
        printf '%s\n' "$built"
    else
        die "there is no cheops program: set CHEOPS, or build it (make build), or use CHEOPS_FRONT=plain"
    fi
}

# Fills in a template: render TEMPLATE SITE >FILE
render() {
    local site=$2
    sed -e "s|@SITE@|site$site|g" \
        -e "s|@ADDRESS@|$(service_address "$site")|g" \
        -e "s|@FRONT@|$(front_address "$site")|g" \
        -e "s|@DIR@|$DIR|g" \
        -e "s|@PASSWORD@|$PASSWORD|g" \
        -e "s|@API_PORT@|$API_PORT|g" \
        -e "s|@MESH_PORT@|$MESH_PORT|g" \
        "$HERE/templates/$1"
}

# --- Processes. Each has a name such as site1/image, a pid file and a log file under $DIR. Each is
# --- started with its name in its environment, so that a number in an old pid file is never
# --- mistaken for it.

pid_file() { printf '%s/run/%s.pid' "$(dirname "$DIR/$1")" "$(basename "$1")"; }
log_file() { printf '%s/log/%s.log' "$(dirname "$DIR/$1")" "$(basename "$1")"; }

# Prints the pid of a process if it runs.
running() {
    local pid
    pid=$(cat "$(pid_file "$1")" 2>/dev/null) || return 1
    grep --quiet --null-data --fixed-strings --line-regexp \
        "OPENSTACK_EXAMPLE=$DIR/$1" "/proc/$pid/environ" 2>/dev/null || return 1
    printf '%s\n' "$pid"
}

# launch NAME DIRECTORY COMMAND...
# Without the caller's proxies, for the sites talk on loopback only; without CHEOPS_ variables, which
# an agent would take for settings; as the leader of a process group, which is then stopped whole.
launch() {
    local name=$1 directory=$2 variable
    shift 2
    ! running "$name" >/dev/null || return 0
    mkdir -p "$(dirname "$(pid_file "$name")")" "$(dirname "$(log_file "$name")")"
    (
        cd "$directory" || exit
        unset http_proxy https_proxy all_proxy no_proxy HTTP_PROXY HTTPS_PROXY ALL_PROXY NO_PROXY
        for variable in "${!CHEOPS_@}"; do
            unset "$variable"
        done
        export OPENSTACK_EXAMPLE=$DIR/$name
        exec setsid "$@" </dev/null >>"$(log_file "$name")" 2>&1
    ) &
    printf '%s\n' "$!" >"$(pid_file "$name")"
}

# Refuses to go on if somebody else listens where a process is about to: its answers would be taken
# for the process's own. vacant NAME ADDRESS PORT
vacant() {
    if ! running "$1" >/dev/null && (exec 3<>"/dev/tcp/$2/$3") 2>/dev/null; then
        die "$1 cannot be started: something else listens on $2:$3"
    fi
}

# Asks a process and its children to end, and ends them if they do not within 20 seconds.
end() {
    local name=$1 pid deadline=$((SECONDS + 20))
    if pid=$(running "$name"); then
        kill -CONT -- "-$pid" 2>/dev/null || true
        kill -TERM -- "-$pid" 2>/dev/null || true
        while running "$name" >/dev/null; do
            if ((SECONDS >= deadline)); then
                log "$name does not end; it is killed"
                kill -KILL -- "-$pid" 2>/dev/null || true
            fi
            sleep 0.1
        done
    fi
    rm -f "$(pid_file "$name")"
}

# Prints the pid of everything that was started from this $DIR and still runs.
leftovers() {
    local environment
    for environment in /proc/[0-9]*/environ; do
        if tr '\0' '\n' 2>/dev/null <"$environment" |
            grep --quiet --fixed-strings "OPENSTACK_EXAMPLE=$DIR/"; then
            basename "$(dirname "$environment")"
        fi
    done 2>/dev/null
}

# --- Waiting

# Waits until a URL answers anything but a server's error: wait_for URL NAME-OF-PROCESS
wait_for() {
    local url=$1 name=$2 deadline=$((SECONDS + PATIENCE)) code
    while true; do
        code=$(curl --silent --noproxy '*' --max-time 5 --output /dev/null --write-out '%{http_code}' "$url") || true
        [[ $code != [234]* ]] || return 0
        if [[ ! $(running "$name") ]]; then
            tail -n 20 "$(log_file "$name")" >&2 || true
            die "$name has ended; its log is $(log_file "$name")"
        fi
        ((SECONDS < deadline)) ||
            die "$url does not answer after $PATIENCE s; the log is $(log_file "$name")"
        sleep 0.2
    done
}

# Runs a command and says how long it took: phase WHAT COMMAND...
phase() {
    local what=$1 start=$EPOCHREALTIME
    shift
    "$@"
    awk -v what="$what" -v start="$start" -v end="$EPOCHREALTIME" \
        'BEGIN { printf "%6.1f s  %s\n", end - start, what }' >&2
}
