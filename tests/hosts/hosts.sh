#!/usr/bin/env bash
# hosts.sh: several "hosts" on one Linux machine, for tests of what happens between hosts. Root only.
#
#   hosts.sh up 3                     make host0 host1 host2, joined by a switch
#   hosts.sh mpirun 2 4 PROGRAM ...   4 ranks, shared out evenly over host0 and host1, by TCP between them
#   hosts.sh exec host1 COMMAND ...   one command on a host, in this working directory
#   hosts.sh linkdown host1           cut its cable;  hosts.sh linkup host1  puts it back
#   hosts.sh slow host1 200mbit 1ms   what it sends goes at that rate, and arrives so much later (whole ms or us). Where the
#                                     kernel has no netem, HOSTS_DELAY_LINE has to name the helper that delays (delay_line.c).
#                                     After a pause 256 KB go at once; with a fourth word, even, 20 KB
#   hosts.sh line host1               seconds of a core that this helper has taken so far; nothing where there is none
#   hosts.sh pids host1               the processes on it, as numbers of this machine
#   hosts.sh crash host1              SIGKILL to all of them
#   hosts.sh address host1            10.78.x.y
#   hosts.sh down                     end everything on the hosts and remove them
#   hosts.sh check                    exit status 77, with the reason, where this machine cannot do it
#
# HOSTS_NAME=NAME chooses among several rigs on one machine. HOSTS_MCA="--mca key value ..." goes to mpirun.
# HOSTS_SHARED_MEMORY=0: TCP inside a host too.
#
# A host is a sleeping process with its own network, host name, shared memory and mounts; others join it by nsenter. So nothing of
# it outlives `down` but for the bridge, which `down` removes. /dev/shm is the host's own: Open MPI's segments of two
# hosts would otherwise meet in it. Processes are not fenced off: a signal to `hosts.sh mpirun` reaches mpirun.
set -euo pipefail

self=$(readlink -f "$0")
state=${TMPDIR:-/tmp}/weft-hosts-${HOSTS_NAME:-0}

die() { printf 'hosts.sh: %s\n' "$*" >&2; exit 2; }
skip() { printf 'skipped: %s\n' "$*"; exit 77; }

check() {
    [ "$(id -u)" = 0 ] || skip "hosts need root"
    local tool
    for tool in ip unshare nsenter; do
        command -v "$tool" >/dev/null || skip "$tool is not installed (Debian: iproute2, util-linux)"
    done
    unshare --net --uts --ipc --mount true 2>/dev/null || skip "this machine lets nobody make namespaces"
    ip link add "weftc$$" type bridge 2>/dev/null || skip "this machine lets nobody make a bridge"
    ip link del "weftc$$"
}

keeper() {
    [ -s "$state/$1" ] || die "there is no $1; hosts.sh up N makes host0 to hostN-1"
    cat "$state/$1"
}

on() {
    local pid
    pid=$(keeper "$1")
    shift
    exec nsenter --target "$pid" --net --uts --ipc --mount bash -c 'cd "$0" && exec "$@"' "$PWD" "$@"
}

pids() {
    local net each keeper
    keeper=$(keeper "$1")
    net=$(readlink "/proc/$keeper/ns/net")
    for each in /proc/[0-9]*; do
        if [ "$(readlink "$each/ns/net" 2>/dev/null)" = "$net" ] && [ "${each#/proc/}" != "$keeper" ]; then
            echo "${each#/proc/}"
        fi
    done
}

# Twice, since a process may start another while the list is read.
crash() {
    local round pid
    for round in 1 2; do
        for pid in $(pids "$1"); do kill -KILL "$pid" 2>/dev/null || true; done
    done
}

# Its own end of the cable: one shaper a direction. The burst lets large segments through whole: cut into packets, they would
# take more of the cores than the job.
slow() {
    local host=$1 rate=$2 delay=${3:-0ms} even=${4:-} pid burst=256k
    pid=$(keeper "$host")
    command -v tc >/dev/null || skip "tc is not installed (Debian: iproute2)"
    if [ "$even" = even ]; then
        nsenter --target "$pid" --net ip link set eth0 gso_max_size 16384 # a segment fits into the burst
        burst=20k
    fi
    nsenter --target "$pid" --net tc qdisc del dev eth0 root 2>/dev/null || true
    nsenter --target "$pid" --net tc qdisc add dev eth0 root handle 1: tbf rate "$rate" burst $burst latency 400ms 2>/dev/null ||
        skip "this kernel has no tbf (CONFIG_NET_SCH_TBF)"
    unlay_line "$host"
    [ "$delay" != 0ms ] || return 0
    nsenter --target "$pid" --net tc qdisc add dev eth0 parent 1:1 netem delay "$delay" 2>/dev/null || lay_line "$host" "$delay"
}

# What comes from a host enters the helper's device in place of the switch, and leaves it into the switch. What goes to the
# host never meets it.
lay_line() {
    local host=$1 delay=$2 i=${1#host} net tap port us
    net=$(cat "$state/net")
    tap=weft${net}d$i port=weft${net}v$i
    case $delay in
        *ms) us=$((${delay%ms} * 1000)) ;;
        *us) us=${delay%us} ;;
        *) die "a delay of $delay; write 1ms or 500us" ;;
    esac
    [ -x "${HOSTS_DELAY_LINE:-}" ] || skip "this kernel has no netem, and HOSTS_DELAY_LINE names no helper that delays"
    "$HOSTS_DELAY_LINE" check || exit $?
    setsid "$HOSTS_DELAY_LINE" "$tap" "$us" </dev/null >"$state/line$i.log" 2>&1 &
    echo $! >"$state/line$i"
    until ip link set "$tap" master "weft$net" up 2>/dev/null; do
        kill -0 "$(cat "$state/line$i")" 2>/dev/null || die "the delay line did not start: $(cat "$state/line$i.log")"
        sleep 0.02
    done
    bridge link set dev "$tap" learning off flood off mcast_flood off bcast_flood off
    bridge fdb replace "$(on "$host" cat /sys/class/net/eth0/address)" dev "$port" master static
    { tc qdisc add dev "$port" ingress &&
        tc filter add dev "$port" ingress protocol all u32 match u32 0 0 action mirred egress redirect dev "$tap"; } ||
        skip "this kernel cannot redirect frames (CONFIG_NET_CLS_U32, CONFIG_NET_ACT_MIRRED)"
}

unlay_line() {
    local i=${1#host}
    [ -s "$state/line$i" ] || return 0
    tc qdisc del dev "weft$(cat "$state/net")v$i" ingress 2>/dev/null || true
    kill "$(cat "$state/line$i")" 2>/dev/null || true
    rm -f "$state/line$i"
}

line() {
    local file=$state/line${1#host}
    [ ! -s "$file" ] || awk -v hz="$(getconf CLK_TCK)" '{ printf "%.2f\n", ($14 + $15) / hz }' "/proc/$(cat "$file")/stat"
}

# ---- up and down ---------------------------------------------------------------------------------

# A bridge is had by one rig only: rigs side by side take different ones, and so 10.78.N.0/24.
claim_bridge() {
    local n=0
    until ip link add "weft$n" type bridge 2>/dev/null; do
        n=$((n + 1))
        [ $n -lt 256 ] || die "256 rigs are there already"
    done
    echo $n >"$state/net"
    ip addr add "10.78.$n.1/24" dev "weft$n"
    ip link set "weft$n" up
}

# What the keeper does in its new namespaces, and then sleeps.
keep() {
    local i=$1
    hostname "host$i"
    mount --bind "$state/hosts" /etc/hosts
    if [ -f /etc/resolv.conf ]; then mount --bind "$state/resolv.conf" /etc/resolv.conf; fi # no DNS, so no waiting
    mount -t tmpfs -o mode=1777 tmpfs /dev/shm
    ip link set lo up
    echo $$ >"$state/host$i.new"
    mv "$state/host$i.new" "$state/host$i"
    exec sleep infinity
}

plug_in() {
    local i=$1 net=$2 pid
    pid=$(keeper "host$i")
    ip link add "weft${net}v$i" type veth peer name eth0 netns "$pid"
    ip link set "weft${net}v$i" master "weft$net" up
    nsenter --target "$pid" --net ip addr add "10.78.$net.$((10 + i))/24" dev eth0
    nsenter --target "$pid" --net ip link set eth0 up
}

up() {
    local n=$1 net i
    mkdir "$state" 2>/dev/null || die "$state is there already; hosts.sh down, or another HOSTS_NAME=NAME"
    claim_bridge
    net=$(cat "$state/net")
    : >"$state/resolv.conf"
    echo "127.0.0.1 localhost" >"$state/hosts"
    for ((i = 0; i < n; i++)); do echo "10.78.$net.$((10 + i)) host$i" >>"$state/hosts"; done
    for ((i = 0; i < n; i++)); do
        # not this script's output, or a reader of it would wait for the keeper
        setsid unshare --net --uts --ipc --mount "$self" keep "$i" </dev/null >"$state/host$i.log" 2>&1 &
        while [ ! -s "$state/host$i" ]; do
            kill -0 $! 2>/dev/null || die "host$i did not start: $(cat "$state/host$i.log")"
            sleep 0.05
        done
        plug_in "$i" "$net"
    done
}

# The cables too: a connection that nobody has ended keeps a host's network alive for minutes after its last process.
unplug() {
    local each
    for each in "/sys/class/net/weft$1v"*; do ip link del "${each##*/}" 2>/dev/null || true; done
    ip link del "weft$1" 2>/dev/null || true
}

down() {
    local each name
    [ -d "$state" ] || return 0
    for each in "$state"/host[0-9]*; do
        name=${each##*/}
        if [ "${name%.log}" != "$name" ] || [ ! -s "$each" ]; then continue; fi
        if kill -0 "$(cat "$each")" 2>/dev/null; then
            crash "$name"
            kill -KILL "$(cat "$each")" 2>/dev/null || true
        fi
    done
    for each in "$state"/line[0-9]; do unlay_line "host${each##*/line}"; done
    if [ -s "$state/net" ]; then unplug "$(cat "$state/net")"; fi
    rm -rf "$state"
}

# ---- mpirun --------------------------------------------------------------------------------------

ranks() {
    local n=$1 ranks=$2 net list="" i btl=self,vader,tcp
    shift 2
    net=10.78.$(cat "$state/net").0/24
    for ((i = 0; i < n; i++)); do list+=${list:+,}host$i:$(((ranks + n - 1) / n)); done
    if [ "${HOSTS_SHARED_MEMORY:-1}" = 0 ]; then btl=self,tcp; fi
    export OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1
    # shellcheck disable=SC2086 # HOSTS_MCA is several words
    on host0 mpirun -np "$ranks" --host "$list" --map-by slot --bind-to none \
        --mca plm rsh --mca plm_rsh_agent "$self rsh" --mca plm_rsh_no_tree_spawn 1 \
        --mca oob_tcp_if_include "$net" --mca btl_tcp_if_include "$net" \
        --mca pml ob1 --mca btl $btl --mca mpi_yield_when_idle 1 ${HOSTS_MCA:-} "$@"
}

command=${1:-help}
[ $# = 0 ] || shift
case $command in
    check) check ;;
    up) (check) && up "${1:-2}" ;;
    down) down ;;
    keep) keep "$1" ;;
    exec) on "$@" ;;
    rsh) host=$1; shift; on "$host" bash -c "$*" ;; # what mpirun calls: a host and a line for its shell
    slow) slow "$@" ;;
    line) line "$1" ;;
    pids) pids "$1" ;;
    crash) crash "$1" ;;
    address) awk -v host="$1" '$2 == host { print $1 }' "$state/hosts" ;;
    linkdown) keeper "$1" >/dev/null; ip link set "weft$(cat "$state/net")v${1#host}" down ;;
    linkup) keeper "$1" >/dev/null; ip link set "weft$(cat "$state/net")v${1#host}" up ;;
    mpirun) ranks "$@" ;;
    help | -h | --help) sed -n 's/^# \{0,1\}//; 2,19p' "$0" ;;
    *) die "unknown command \"$command\"; hosts.sh help" ;;
esac
