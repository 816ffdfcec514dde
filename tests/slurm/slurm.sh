#!/usr/bin/env bash
# slurm.sh: a private Slurm on one machine, for tests of batch jobs. Root only; Debian's slurm-wlm and munge.
#
#   slurm.sh up 3                 controller, and 3 nodes host0 host1 host2 of ../hosts/hosts.sh, 4 processors each
#   eval "$(slurm.sh env)"        for sbatch, srun, squeue of this shell
#   slurm.sh down                 ends its daemons and removes everything
#   slurm.sh check                exit status 77, with the reason, where this machine cannot do it
#
# HOSTS_NAME=NAME chooses among several on one machine, as for hosts.sh. Processors are declared, not counted, so that
# there may be more ranks than cores. No cgroups, no accounting, GPUs in name only: 2 a node.
set -euo pipefail

here=$(dirname "$(readlink -f "$0")")
hosts=$here/../hosts/hosts.sh
state=${TMPDIR:-/tmp}/weft-slurm-${HOSTS_NAME:-0}
conf=$state/slurm.conf

die() { printf 'slurm.sh: %s\n' "$*" >&2; exit 2; }

check() {
    local tool
    "$hosts" check
    for tool in slurmctld slurmd sbatch srun munged; do
        command -v "$tool" >/dev/null || { echo "skipped: $tool is not installed (Debian: slurm-wlm, munge)"; exit 77; }
    done
    compgen -G '/usr/lib*/*/slurm*/mpi_pmix*.so' >/dev/null || compgen -G '/usr/lib*/slurm*/mpi_pmix*.so' >/dev/null || { echo "skipped: this srun has no PMIx"; exit 77; }
}

# The first of two ports in a row that nobody listens at.
free_port() {
    local port=16817
    while ss -Hltn | grep -q ":\($port\|$((port + 1))\) "; do port=$((port + 2)); done
    echo "$port"
}

write_conf() {
    local n=$1 port i
    port=$(free_port)
    cat >"$conf" <<CONF
ClusterName=weft
SlurmctldHost=$(hostname -s)($("$hosts" address host0 | sed 's/[0-9]*$/1/'))
SlurmUser=root
SlurmdUser=root
AuthType=auth/munge
AuthInfo=socket=$state/munge/socket
CredType=cred/munge
SlurmctldPort=$port
SlurmctldPidFile=$state/slurmctld.pid
SlurmdPidFile=$state/slurmd-%n.pid
SlurmctldLogFile=$state/slurmctld.log
SlurmdLogFile=$state/slurmd-%n.log
StateSaveLocation=$state/state
SlurmdSpoolDir=$state/spool-%n
TmpFS=$state/tmp-%n
SwitchType=switch/none
MpiDefault=none
ProctrackType=proctrack/linuxproc
TaskPlugin=task/none
SelectType=select/cons_tres
SelectTypeParameters=CR_CPU
SchedulerType=sched/backfill
SchedulerParameters=bf_interval=1,sched_interval=1,sched_min_interval=200000
JobRequeue=1
KillWait=5
MinJobAge=300
SlurmdTimeout=15
ReturnToService=2
SlurmdParameters=config_overrides
AccountingStorageType=accounting_storage/none
JobAcctGatherType=jobacct_gather/none
MailProg=/bin/true
PropagateResourceLimits=NONE
GresTypes=gpu
CONF
    printf "Name=gpu File=%s\n" /dev/null /dev/zero >"$state/gres.conf"
    for ((i = 0; i < n; i++)); do
        echo "NodeName=host$i NodeAddr=$("$hosts" address "host$i") Port=$((port + 1)) CPUs=4 RealMemory=2000 Gres=gpu:2"
        mkdir "$state/spool-host$i" "$state/tmp-host$i"
    done >>"$conf"
    echo "PartitionName=all Nodes=ALL Default=YES MaxTime=INFINITE State=UP OverSubscribe=NO" >>"$conf"
}

start_munge() {
    mkdir -m 711 "$state/munge"
    (umask 077 && head -c 128 /dev/urandom >"$state/munge/key")
    munged --force --key-file="$state/munge/key" --socket="$state/munge/socket" --pid-file="$state/munge.pid" \
        --log-file="$state/munge/log" --seed-file="$state/munge/seed"
}

up() {
    local n=$1 i
    mkdir -m 711 "$state" 2>/dev/null || die "$state is there already; slurm.sh down, or another HOSTS_NAME=NAME"
    mkdir "$state/state"
    "$hosts" up "$n"
    write_conf "$n"
    start_munge
    export SLURM_CONF=$conf
    slurmctld -f "$conf"
    for ((i = 0; i < n; i++)); do "$hosts" exec "host$i" slurmd -f "$conf" -N "host$i"; done
    for ((i = 0; i < 100; i++)); do
        if [ "$(sinfo -h -N -o %T 2>/dev/null | grep -c '^idle$')" = "$n" ]; then return; fi
        sleep 0.2
    done
    die "the nodes did not come up: $(sinfo -h -N -o '%N %T' 2>&1)"
}

end() {
    local file pid
    for file in "$@"; do
        pid=$(cat "$file" 2>/dev/null) || continue
        kill "$pid" 2>/dev/null || continue
        for _ in {1..50}; do kill -0 "$pid" 2>/dev/null || break; sleep 0.1; done
        kill -KILL "$pid" 2>/dev/null || true
    done
}

down() {
    if [ -d "$state" ]; then
        end "$state"/slurmd-*.pid "$state/slurmctld.pid" "$state/munge.pid"
    fi
    "$hosts" down # with whatever jobs are left on them
    rm -rf "$state"
}

case ${1:-help} in
    check) check ;;
    up) (check) && up "${2:-1}" ;;
    env) echo "export SLURM_CONF='$conf'" ;;
    down) down ;;
    help | -h | --help) sed -n 's/^# \{0,1\}//; 2,11p' "$0" ;;
    *) die "unknown command \"$1\"; slurm.sh help" ;;
esac
