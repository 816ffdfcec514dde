#!/usr/bin/env bash
# calibrate_test: weft calibrate on two hosts tells what is within a host from what is between hosts.
#
#   calibrate_test.sh BIN    BIN is the folder of weft
#
# Each host has two ranks. What a host sends goes at 40 Mbit/s: 5 MB/s are the most that an exchange can have between hosts, and
# shared memory has a hundred times that. What is asked of the figures holds on a machine that others use too. Ranks of a host are
# found by the host's name. The link between hosts is slower than what is within one, and what is too long for the shaper's
# burst goes no faster than the link was set. No host is named: the launcher knows them.
set -euo pipefail

bin=$(readlink -f "$1")
here=$(dirname "$(readlink -f "$0")")
hosts=$here/hosts.sh
export HOSTS_NAME=calibrate-$$
[ -x "$bin/weft" ] || { echo "there is no $bin/weft"; exit 1; }
"$hosts" check || exit $?
for tool in mpirun python3; do
    command -v $tool >/dev/null || { echo "skipped: $tool is not installed"; exit 77; }
done

work=$(mktemp -d)
trap '"$hosts" down; rm -rf "$work"' EXIT
"$hosts" up 2
for host in host0 host1; do "$hosts" slow $host 40mbit; done
timeout 300 "$hosts" mpirun 2 4 "$bin/weft" calibrate --seconds 24 --noisy --out "$work/two.json" >"$work/log" 2>&1 ||
    { cat "$work/log"; exit 1; }
timeout 60 "$bin/weft" machine show "$work/two.json" | grep -E 'host|net'
python3 - "$work/two.json" <<'EOF'
import json
import sys

LINK = 5e6  # bytes a second
model = json.load(open(sys.argv[1]))
host, net = model["levels"]


def check(holds, sentence):
    if not holds:
        sys.exit(f"calibrate_test: {sentence}: {host}, {net}")


check((host["name"], host["ranks"], net["name"], net["ranks"]) == ("host", 2, "net", 0), "other levels than host and net")
check(net["bytes_per_second"] < host["bytes_per_second"], "hosts are nearer to each other than ranks of a host")
for load in model["loads"]:
    check(load["ranks"] == 2, f"{load['ranks']} ranks of a host")
for level in host, net:
    kinds = {e["kind"] for e in model["exchanges"] if e["level"] == level["name"]}
    check({"all_reduce", "all_gather", "reduce_scatter", "all_to_all", "move"} == kinds, f"exchanges {kinds}")
    check(any(s["level"] == level["name"] for s in model["slows"]), "no work beside exchanges")

# Two ranks of a host share its cable. What has rested goes at once, up to 256 KB (hosts.sh, slow): that is taken off.
for e in model["exchanges"]:
    for size, seconds in e["seconds"] if e["level"] == "net" and e["kind"] == "all_gather" else []:
        held = 2 * size / 2 - (1 << 18)  # bytes of both ranks that had to wait for the cable
        check(held / LINK < 1.1 * seconds, f"{size} bytes in {seconds} s are more than the link lets through")
        print(f"all_gather of {size:.0f} bytes between hosts: {size / 2 / seconds / 1e6:.2f} MB/s a rank, of {LINK / 2e6} MB/s")
EOF
echo "levels host and net, each with its own figures"
