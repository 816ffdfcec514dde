#!/usr/bin/env bash
# overlap_test: over a slow link between two hosts exchanges go on while steps compute, with the bits of --synchronous.
#
#   overlap_test.sh BIN [RATE [DELAY]]    BIN is the folder of gpt; 1500mbit (whole mbit) and 1ms. Plans are for that link
#
# It prints what a step takes (the least of several): alone, with one rank's part of the batch and nobody to talk to; the time
# that its bytes need through the link; with exchanges waited for, and with exchanges that go on. The times are for people:
# it fails only where the losses are others, or nothing went on.
set -euo pipefail

bin=$(readlink -f "$1")
rate=${2:-1500mbit}
delay=${3:-1ms}
here=$(dirname "$(readlink -f "$0")")
hosts=$here/hosts.sh
export HOSTS_NAME=overlap-$$
[ -x "$bin/gpt" ] || { echo "there is no $bin/gpt"; exit 1; }
"$hosts" check || exit $?
for tool in mpirun taskset python3; do
    command -v $tool >/dev/null || { echo "skipped: $tool is not installed"; exit 77; }
done
[ "$(nproc)" -ge 2 ] || { echo "skipped: two ranks need two cores"; exit 77; }

work=$(mktemp -d)
trap '"$hosts" down; rm -rf "$work"' EXIT
head -c 100000 "$here/../../docs/ARCHITECTURE.md" >"$work/text"
gpt=("$bin/gpt" train --data "$work/text" --layers 4 --width 256 --heads 4 --seq 64 --layout batch:data
    --link "$((${rate%mbit} / 8))MB+$delay")
run=(--quiet --steps 12)
# A host has both cores of the machine, and its rank would take them: a core each.
each=(bash -c 'exec taskset -c "$OMPI_COMM_WORLD_RANK" "$@"' rank)

losses() { sed -n 's/.*"step":\([0-9]*\).*"loss":\([^,]*\),.*/\1 \2/p' "$work/$1/metrics.jsonl"; }
least() { sed -n 's/.*"ms":\([0-9.]*\).*/\1/p' "$work/$1/metrics.jsonl" | sort -n | head -1; }

"$hosts" up 2
for host in host0 host1; do "$hosts" slow $host "$rate" "$delay"; done
timeout 120 taskset -c 0 "${gpt[@]}" "${run[@]}" --mesh data:1 --batch 16 --run "$work/alone" >"$work/log" 2>&1
for zero in 0 3; do
    two=("${gpt[@]}" --mesh data:2 --batch 32 --zero "$zero")
    for how in waits goes-on; do
        options=(--run "$work/$how$zero")
        [ $how = goes-on ] || options+=(--synchronous)
        timeout 200 "$hosts" mpirun 2 2 "${each[@]}" "${two[@]}" "${run[@]}" "${options[@]}" >"$work/log" 2>&1 ||
            { tail -n 20 "$work/log"; exit 1; }
    done
    "${two[@]}" --dry-run --json >"$work/plan"
    python3 - "$zero" "$rate" "$(least alone)" "$(least waits$zero)" "$(least goes-on$zero)" "$work/plan" <<'END'
import json, sys
zero, rate, *times, path = sys.argv[1:]
plan = json.load(open(path))
alone, waits, goes_on = map(float, times)
link = sum(q["bytes"] for q in plan["queues"])
if zero == "3":  # of two ranks: what is gathered or scattered passes the link once by half
    link = sum(m["bytes"] * (1 if m["collective"] == "all_reduce" else 0.5) for m in plan["collectives"])
link *= 8e-3 / float(rate.removesuffix("mbit"))
print(f"zero {zero}: alone {alone:.1f} ms, link {link:.1f} ms; exchanges waited for {waits:.1f} ms, going on {goes_on:.1f} ms: "
      f"{goes_on / max(alone, link):.2f} of the longer, {goes_on / (alone + link):.2f} of the sum")
sys.exit(not any(q["beside"] for q in plan["queues"]))
END
    if [ "$(losses waits$zero | wc -l)" != 12 ] || ! diff <(losses waits$zero) <(losses goes-on$zero) >/dev/null; then
        echo "zero $zero: the losses are others than those of --synchronous"
        exit 1
    fi
    echo "zero $zero: 12 losses, the same bits"
done
