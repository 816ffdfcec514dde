#!/usr/bin/env bash
# cut_link_test: a cable between two hosts is pulled while gpt runs on both. Put back after 3 s, the run goes on with the
# same numbers; left out, every rank ends with the sentence that names the host, and mpirun ends too.
#
#   cut_link_test.sh BIN [TIMES]    BIN is the folder of gpt
set -euo pipefail

bin=$(readlink -f "$1")
times=${2:-1}
here=$(dirname "$(readlink -f "$0")")
hosts=$here/hosts.sh
export HOSTS_NAME=cut-$$
[ -x "$bin/gpt" ] || { echo "there is no $bin/gpt"; exit 1; }
"$hosts" check || exit $?
command -v mpirun >/dev/null || { echo "skipped: mpirun is not installed"; exit 77; }

work=$(mktemp -d)
trap '"$hosts" down; rm -rf "$work"' EXIT
# So that mpirun notices by itself that it has lost the other host (docs/reliability.md).
export HOSTS_MCA="--mca oob_tcp_keepalive_time 1 --mca oob_tcp_keepalive_intvl 1 --mca oob_tcp_keepalive_probes 12"
head -c 20000 "$here/../../docs/ARCHITECTURE.md" >"$work/text"
gpt=("$bin/gpt" train --data "$work/text" --layers 2 --width 24 --heads 3 --batch 8 --seq 12 --dtype f64 --quiet
    --mesh data:4 --layout batch:data)

losses() { sed -n 's/.*"step":\([0-9]*\).*"loss":\([^,]*\),.*/\1 \2/p' "$work/$1/metrics.jsonl"; }

fail() {
    echo "$*"
    tail -n 40 "$work/log"
    exit 1
}

# begin NAME ARGUMENTS: a run on both hosts in the background, until its first steps are done; $job is its process.
begin() {
    local name=$1
    shift
    rm -rf "${work:?}/$name"
    timeout 120 "$hosts" mpirun 2 4 "${gpt[@]}" --run "$work/$name" "$@" >"$work/log" 2>&1 &
    job=$!
    while [ "$(wc -l 2>/dev/null <"$work/$name/metrics.jsonl" || echo 0)" -lt 5 ]; do
        kill -0 $job 2>/dev/null || fail "$name ended before its first steps"
        sleep 0.1
    done
}

status_of() {
    local status=0
    wait "$1" || status=$?
    echo $status
}

"$hosts" up 2
steps=400
timeout 120 "${gpt[@]}" --run "$work/one" --steps $steps >"$work/log" 2>&1 || fail "the run on one host failed"

for ((i = 1; i <= times; i++)); do
    begin short --steps $steps
    "$hosts" linkdown host1
    sleep 3
    kill -0 $job 2>/dev/null || fail "the run ended within 3 s without a link, or before it was cut"
    "$hosts" linkup host1
    status=0
    wait $job || status=$?
    [ $status = 0 ] || fail "after a cut of 3 s the run ended with status $status"
    diff <(losses one) <(losses short) >/dev/null || fail "after a cut of 3 s the losses are others"
done
echo "$times cuts of 3 s: $times runs went on, each with the losses of an uncut one"

for ((i = 1; i <= times; i++)); do
    begin long --steps 1000000 --save-every 5
    "$hosts" linkdown host$((i % 2))
    status=0
    wait $job || status=$?
    "$hosts" linkup host$((i % 2))
    # 71 from the ranks, 205 where mpirun was first; 124 would be the net of `timeout`
    case $status in 71 | 205) ;; *) fail "cut off for good, the run ended with status $status" ;; esac
    grep -q "is cut off: neither it nor its host" "$work/log" || fail "nobody said what had happened"
    [ "$(grep -c "^weft: " "$work/log")" = 1 ] || fail "it was said more than once"
done
echo "$times cuts for good: $times runs ended with one sentence"
