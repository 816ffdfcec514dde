#!/usr/bin/env bash
# two_hosts_test: gpt over TCP between two hosts gives the losses that it gives on one, bit for bit.
#
#   two_hosts_test.sh BIN    BIN is the folder of gpt
set -euo pipefail

bin=$(readlink -f "$1")
here=$(dirname "$(readlink -f "$0")")
hosts=$here/hosts.sh
export HOSTS_NAME=two-$$
[ -x "$bin/gpt" ] || { echo "there is no $bin/gpt"; exit 1; }
"$hosts" check || exit $?
command -v mpirun >/dev/null || { echo "skipped: mpirun is not installed"; exit 77; }

work=$(mktemp -d)
trap '"$hosts" down; rm -rf "$work"' EXIT
head -c 20000 "$here/../../docs/ARCHITECTURE.md" >"$work/text"
gpt=("$bin/gpt" train --data "$work/text" --layers 2 --width 24 --heads 3 --batch 6 --seq 12 --dtype f64 --dropout 0.2
    --quiet --steps 12 --save-every 5)

losses() { sed -n 's/.*"step":\([0-9]*\).*"loss":\([^,]*\),.*/\1 \2/p' "$work/$1/metrics.jsonl"; }

# compare NAME: its 12 losses are those of the run on one host; says so.
compare() {
    if [ "$(losses "$1" | wc -l)" = 12 ] && diff <(losses one) <(losses "$1"); then
        echo "$1: 12 losses, the same bits"
    else
        echo "$1: other losses than on one host"
        exit 1
    fi
}

"$hosts" up 2
for mesh in data:4 data:2,model:2; do
    layout=batch:data
    if [ "$mesh" != data:4 ]; then layout+=,hidden:model,heads:model; fi
    split=(--mesh "$mesh" --layout "$layout" --zero 1)
    echo "$mesh, ${layout}"
    rm -rf "$work/one" "$work/two" "$work/tcp"
    timeout 120 "${gpt[@]}" "${split[@]}" --run "$work/one"
    timeout 120 "$hosts" mpirun 2 4 "${gpt[@]}" "${split[@]}" --run "$work/two"
    for until in 7 12; do # stopped after 7, and continued
        HOSTS_SHARED_MEMORY=0 timeout 120 "$hosts" mpirun 2 4 "${gpt[@]}" "${split[@]}" --run "$work/tcp" --until $until
    done
    compare two
    compare tcp
done
