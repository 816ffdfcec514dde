#!/usr/bin/env bash
# plugin_test.sh BUILD: installs what is in the folder BUILD under a prefix, and builds the example plug-ins against it, by
# CMake and by pkg-config. Ops pass the oracle, and so does the engine; split over 4 ranks training gives the same losses;
# a program saved with its ops runs where it is loaded; the installed gpt and mnist load them, train by their optimizer, and by their engine to the same bits.
set -euo pipefail
build=$(readlink -f "$1")
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
die() { printf 'FAIL: %s\n' "$*"; exit 1; }

prefix=$work/prefix
cmake --install "$build" --prefix "$prefix" >"$work/log" || { cat "$work/log"; die "cmake --install"; }
source=$prefix/share/weft/examples/plugin
cmake -S "$source" -B "$work/cmake" -G Ninja -DCMAKE_PREFIX_PATH="$prefix" >"$work/log" 2>&1 &&
    cmake --build "$work/cmake" >>"$work/log" 2>&1 || { cat "$work/log"; die "find_package(weft)"; }

library=$(dirname "$(find "$prefix" -name libweft.so)")
export PKG_CONFIG_PATH=$library/pkgconfig
read -ra use < <(pkg-config --cflags --libs weft)
cc -std=c11 -O1 -Wall -Wextra -Werror -Wno-missing-field-initializers "$source"/{register,softsign,product,signum,train}.c \
    -o "$work/train" "${use[@]}" -lm || die "the plug-in does not build by pkg-config"

"$work/cmake/check" || die "the oracle"
"$work/train" >"$work/one" || die "train"
"$work/train" data:2,model:2 batch:data,gate:model >"$work/four" || die "train on 4 ranks"
cat "$work/four"
grep -q all_reduce "$work/four" || die "nothing was combined between ranks"
losses() { sed -n 's/.*loss \([0-9.]*\).*/\1/p' "$1"; }
paste <(losses "$work/one") <(losses "$work/four") | awk '
    { if (NR == 1) first = $1; last = $1; apart = $1 - $2; if (apart < 0) apart = -apart }
    apart > 1e-4 { print "the losses differ: " $0; bad = 1 }
    END { exit bad || NR != 4 || !(last < 0.6 * first) }' || die "the losses of one rank and four"

plugin=$work/cmake/libplugin.so
gpt=(env -u WEFT_RUN "$prefix/bin/gpt" train --layers 1 --width 8 --heads 1 --seq 8 --batch 4 --steps 3 --quiet)
"${gpt[@]}" --plugin "$plugin" --optimizer signum --run "$work/run" || die "gpt --plugin"
if "${gpt[@]}" --optimizer signum --run "$work/other" 2>"$work/said"; then die "signum without its plug-in"; fi
grep -q 'no optimizer signum' "$work/said" || { cat "$work/said"; die "the sentence without the plug-in"; }
if "${gpt[@]}" --plugin "$work/nowhere.so" --run "$work/other" 2>"$work/said"; then die "a plug-in that is not there"; fi
grep -q 'plug-in .*nowhere.so cannot be loaded' "$work/said" || { cat "$work/said"; die "the sentence of a missing one"; }

# ---- a saved program: its ops are those of the plug-in, by name and version

"$work/train" data:2 batch:data "$work/gates.weft" >"$work/log" || die "train saves"
run=("$prefix/bin/weft" run "$work/gates.weft" --input x=0.5 y=1)
for how in data:2/batch:data gate:5/gate:gate data:1/batch:data; do
    "${run[@]}" --plugin "$plugin" --mesh "${how%/*}" --layout "${how#*/}" >>"$work/losses" || die "weft run with the plug-in on $how"
done
awk '$1 == "loss" { if (n++ == 0) first = $2; apart = $2 - first; if (apart * apart > 1e-10) bad = 1 } END { exit bad || n != 3 }' \
    "$work/losses" || { cat "$work/losses"; die "weft run on three meshes"; }
if "${run[@]}" 2>"$work/said"; then die "a saved program without its plug-in"; fi
grep -q 'there is no op softsign here; load the plug-in' "$work/said" || { cat "$work/said"; die "the sentence without it"; }

# ---- an engine

cmake -S "$prefix/share/weft/examples/link" -B "$work/link" -G Ninja -DCMAKE_PREFIX_PATH="$prefix" >"$work/log" 2>&1 &&
    cmake --build "$work/link" >>"$work/log" 2>&1 || { cat "$work/log"; die "the engine does not build"; }
"$work/link/check" || die "the engine under the oracle"
link=$work/link/liblink.so
four=(--mesh data:2,model:2 --layout batch:data,hidden:model,heads:model,vocab:model --zero 1)
bits() { sed -n 's/.*"loss": *\([^,}]*\).*/\1/p' "$1"; } # all the digits that there are
launch() { "$@"; }
for how in threads mpi; do
    if [ $how = mpi ]; then
        command -v mpiexec >/dev/null && "$prefix/bin/weft" info --json | grep -q '"mpi": true' || { echo "no MPI here"; continue; }
        launch() { OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1 mpiexec --oversubscribe -n 4 "$@"; }
    fi
    launch "${gpt[@]}" "${four[@]}" --run "$work/$how.own" --metrics "$work/$how.own.json" || die "gpt by $how"
    launch "${gpt[@]}" "${four[@]}" --plugin "$plugin:$link" --engine link:20us,2GB,report --run "$work/$how.link" \
        --metrics "$work/$how.link.json" 2>"$work/said" || { cat "$work/said"; die "gpt by link over $how"; }
    [ "$(bits "$work/$how.own.json" | wc -l)" = 3 ] || die "no losses of three steps"
    cmp <(bits "$work/$how.own.json") <(bits "$work/$how.link.json") || die "link over $how gives other bits"
    awk '/^link: / { n += $2; bytes += $4 } END { exit !(n > 100 && bytes > 10000) }' "$work/said" ||
        { cat "$work/said"; die "link over $how carried nothing"; }
    echo "gpt over link over $how: the same bits; $(grep -m1 '^link: ' "$work/said")"
done
[ ! -e "$work/mpi.own.json" ] || cmp <(bits "$work/threads.own.json") <(bits "$work/mpi.own.json") || die "threads and MPI differ"

refused() { # sentence, command...
    local sentence=$1
    shift
    if "$@" 2>"$work/said"; then die "taken: $*"; fi
    grep -q "$sentence" "$work/said" || { cat "$work/said"; die "this should say: $sentence"; }
}
refused 'no engine lnik; did you mean link?' "${gpt[@]}" --plugin "$link" --engine lnik:1us,1GB --run "$work/other"
refused 'it takes a latency and the bytes a second' "${gpt[@]}" --plugin "$link" --engine link --run "$work/other"
refused 'no engine link' "${gpt[@]}" --engine link:1us,1GB --run "$work/other"
WEFT_ENGINE=link:1us,1GB "$prefix/bin/weft" info --plugin "$link" --mesh data:2 | grep -q link || die "weft info"
# mnist has the same options; without its images it gets no further than to have understood them.
refused 'no optimizer signun; did you mean signum?' "$prefix/bin/mnist" --plugin "$plugin" --optimizer signun --run "$work/other"
refused 'plug-in .*nowhere.so cannot be loaded' "$prefix/bin/mnist" --plugin "$work/nowhere.so" --run "$work/other"
refused 'no engine link' "$prefix/bin/mnist" --engine link:1us,1GB --run "$work/other"
