#!/usr/bin/env bash
# plugin_test.sh BUILD: installs what is in the folder BUILD under a prefix, and builds the example plug-in against it, by
# CMake and by pkg-config. Its ops pass the oracle, it trains split over 4 ranks to the same losses, and the installed gpt
# loads it and trains by its optimizer.
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
cc -std=c11 -O1 -Wall -Wextra -Werror -Wno-missing-field-initializers "$source"/{register,softsign,product,lion,train}.c \
    -o "$work/train" "${use[@]}" -lm "-Wl,-rpath,$library" || die "the plug-in does not build by pkg-config"

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
"${gpt[@]}" --plugin "$plugin" --optimizer lion --run "$work/run" || die "gpt --plugin"
if "${gpt[@]}" --optimizer lion --run "$work/other" 2>"$work/said"; then die "lion without its plug-in"; fi
grep -q 'no optimizer lion' "$work/said" || { cat "$work/said"; die "the sentence without the plug-in"; }
if "${gpt[@]}" --plugin "$work/nowhere.so" --run "$work/other" 2>"$work/said"; then die "a plug-in that is not there"; fi
grep -q 'plug-in .*nowhere.so cannot be loaded' "$work/said" || { cat "$work/said"; die "the sentence of a missing one"; }
