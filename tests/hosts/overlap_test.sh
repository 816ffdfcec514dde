#!/usr/bin/env bash
# overlap_test: over a slow link between two hosts exchanges go on while steps compute, with the bits of --synchronous.
#
#   overlap_test.sh BIN [RATE [DELAY...]]    BIN is the folder of gpt; 400mbit (whole mbit), 0ms and 1ms. Plans are for that link,
#                                            stated as 3/4 of it, as a rank computes 120 GFLOP/s here and not 90 (docs/layouts.md)
#
# With ZeRO 3 computing takes about as long as the bytes need, with data parallelism its backward part does, as nothing can be sent
# before: where there is most to gain. It prints what
# a step takes (the least of several): with nobody to talk to, two such side by side as they will be later; the time that its
# bytes need through the link, of which TCP's headers are a part; with exchanges waited for, and with exchanges that go on. The
# times are for people, and the helper that delays takes its part of the two cores, which is printed too.
# It fails where losses are others, nothing goes on meanwhile, or ZeRO 3 gathers less than half of a layer while the one before
# is computed.
set -euo pipefail

bin=$(readlink -f "$1")
rate=${2:-400mbit}
delays=("${@:3}")
[ ${#delays[@]} -gt 0 ] || delays=(0ms 1ms)
here=$(dirname "$(readlink -f "$0")")
hosts=$here/hosts.sh
export HOSTS_NAME=overlap-$$ HOSTS_DELAY_LINE=${HOSTS_DELAY_LINE:-$bin/../tests/delay_line}
[ -x "$bin/gpt" ] || { echo "there is no $bin/gpt"; exit 1; }
"$hosts" check || exit $?
for tool in mpirun taskset python3; do
    command -v $tool >/dev/null || { echo "skipped: $tool is not installed"; exit 77; }
done
[ "$(nproc)" -ge 2 ] || { echo "skipped: two ranks need two cores"; exit 77; }

work=$(mktemp -d)
trap '"$hosts" down; rm -rf "$work"' EXIT
head -c 100000 "$here/../../docs/ARCHITECTURE.md" >"$work/text"
gpt=("$bin/gpt" train --data "$work/text" --layers 4 --width 256 --heads 4 --seq 64 --layout batch:data)
run=(--quiet --steps 8)
declare -A batch=([0]=78 [3]=78)
# A host has both cores of the machine, and its rank would take them: a core each.
each=(bash -c 'exec taskset -c "$OMPI_COMM_WORLD_RANK" "$@"' rank)

losses() { sed -n 's/.*"step":\([0-9]*\).*"loss":\([^,]*\),.*/\1 \2/p' "$work/$1/metrics.jsonl"; }
least() { sed -n 's/.*"ms":\([0-9.]*\).*/\1/p' "$work/$1/metrics.jsonl" | sort -n | head -1; }

alone() {
    local core jobs=()
    for core in 0 1; do
        timeout 200 taskset -c $core "${gpt[@]}" "${run[@]}" --mesh data:1 --batch $((batch[$1] / 2)) \
            --run "$work/alone$1.$core" >"$work/log" 2>&1 &
        jobs+=($!)
    done
    wait "${jobs[@]}" || { cat "$work/log"; exit 1; }
}

taken() { echo "$("$hosts" line host0) $("$hosts" line host1)"; }

compare() {
    local zero=$1 delay=$2 how two options before
    two=("${gpt[@]}" --mesh data:2 --batch "${batch[$zero]}" --zero "$zero" --link "$((${rate%mbit} * 3 / 32))MB+$delay")
    [ "$delay" != 0ms ] || two[-1]=${two[-1]%+0ms}
    for how in waits goes-on; do
        options=(--run "$work/$how$zero.$delay")
        [ $how = goes-on ] || options+=(--synchronous)
        before=$(taken)
        timeout 200 "$hosts" mpirun 2 2 "${each[@]}" "${two[@]}" "${run[@]}" "${options[@]}" >"$work/log" 2>&1 ||
            { tail -n 20 "$work/log"; exit 1; }
    done
    "${two[@]}" --dry-run --json >"$work/plan"
    python3 "$here/overlap.py" "$work/plan" "$zero" "$rate" "$delay" "$(least alone$zero.0)" "$(least alone$zero.1)" \
        "$(least waits$zero.$delay)" "$(least goes-on$zero.$delay)" $before $(taken)
    if [ "$(losses waits$zero.$delay | wc -l)" != 8 ] ||
        ! diff <(losses waits$zero.$delay) <(losses goes-on$zero.$delay) >/dev/null; then
        echo "zero $zero, $delay: the losses are others than those of --synchronous"
        exit 1
    fi
    echo "zero $zero, $delay: 8 losses, the same bits"
}

"$hosts" up 2
for zero in 0 3; do alone $zero; done
for delay in "${delays[@]}"; do
    for host in host0 host1; do "$hosts" slow $host "$rate" "$delay"; done
    for zero in 0 3; do compare $zero "$delay"; done
done
