#!/usr/bin/env bash
# readme_test.sh BUILD: the README's program, by the shell lines that stand below it, as they are written but for the prefix:
# from an installed Weft to losses that fall and are the same on four ranks, in an environment that helps with nothing.
set -euo pipefail
root=$(readlink -f "$(dirname "$0")/../..")
build=$(readlink -f "$1")
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
die() { printf 'FAIL: %s\n' "$*"; exit 1; }

# block N: the N-th fenced block behind the heading, from 1.
block() {
    awk -v n="$1" '/^## / { is_there = $0 == "## A program in C" } /^```/ && is_there { fences++; next }
                   is_there && fences == 2 * n - 1' "$root/README.md"
}
block 1 >"$work/mlp.c"
block 2 | sed "s,/opt/weft,$work/prefix,g" >"$work/lines"
grep -q 'int main' "$work/mlp.c" && grep -q '^cc ' "$work/lines" || die "the program and its lines are no longer the first blocks"
grep -q "$work/prefix" "$work/lines" || die "its lines do not install: $(cat "$work/lines")"

ln -s "$build" "$work/build"
cd "$work"
env -i HOME="$work" PATH="$PATH" LANG=C.UTF-8 bash -e lines >said 2>&1 || { cat said; die "a line of the README"; }
sed -n 's/^step.*loss //p' said >losses
[ "$(wc -l <losses)" = 10 ] || { cat said; die "no losses of 2 times 100 steps"; }
paste <(head -n 5 losses) <(tail -n 5 losses) | awk '
    { apart = $1 - $2; if (apart < 0) apart = -apart; if (NR == 1) first = $1; last = $1 }
    apart > 2e-4 * (1 + $1) { print "the losses of one rank and of four: " $0; bad = 1 }
    END { if (!(last < 0.5 * first)) { print "the loss does not fall: " first ", ..., " last; bad = 1 }; exit bad }' || die "losses"
tail -n 1 said
