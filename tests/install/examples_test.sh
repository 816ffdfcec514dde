#!/usr/bin/env bash
# examples_test.sh BUILD [SANITIZER_FLAG...]: installs what is in the folder BUILD under a prefix, moves it elsewhere, and
# builds and runs every example from there: by pkg-config, by CMake's find_package, and as C++. Losses fall, and are equal
# under two layouts; the three ways print the same. Sanitized, one way is enough.
set -euo pipefail
build=$(readlink -f "$1")
shift
flags=("$@")
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
die() { printf 'FAIL: %s\n' "$*"; exit 1; }

# example: mesh, layout
declare -A other=(
    [mlp]="data:2,model:2 batch:data,hidden:model"
    [encoder_decoder]="data:2,model:2 batch:data,heads:model,hidden:model"
    [word2vec]="data:2,model:2 batch:data,word:model"
    [mixture_of_experts]="data:2,model:2 batch:data,expert:model"
    [placement_policy]="model:2 hidden:model"
)
# What else must hold of what one prints.
check_study() { awk '$1 == NR - 1 && $2 >= last { last = $2; n++ } END { exit n != 50 }' "$1"; }
check_placement_policy() { awk '/loss/ && $4 != $7 { differ++ } /loss/ { n++ } END { exit differ || n < 3 }' "$1"; }
check_encoder_decoder() { tail -n 1 "$1" | awk '{ for (i = 6; i; i--) back = back substr($6, i, 1); exit $8 != back }'; }
check_mlp() { grep -q '300 of 300 right' "$1"; }
check_word2vec() { tail -n 1 "$1" | awk '{ exit !($13 > 5 * $11) }'; }

# ---- what was installed

cmake --install "$build" --prefix "$work/first" >"$work/log" || { cat "$work/log"; die "cmake --install"; }
mv "$work/first" "$work/prefix"
prefix=$work/prefix
library=$(dirname "$(find "$prefix" -name libweft.so)")
if grep -rIl -e "$work/first" -e "$build" "$prefix" --exclude-dir=share; then die "these know where they were made"; fi
for program in gpt mnist charlm seq2seq word2vec weft; do
    ldd "$prefix/bin/$program" | grep -F "libweft.so.0 => $(readlink -f "$prefix")/" >/dev/null ||
        die "bin/$program does not load the libweft.so.0 that was installed with it: $(ldd "$prefix/bin/$program")"
    if ldd "$prefix/bin/$program" | grep 'not found'; then die "bin/$program misses libraries"; fi
done
for file in "$prefix"/bin/* "$library"/*.so; do # nor does the loader look where it was built
    path=$(readelf -d "$file" | sed -n 's/.*R\(UN\)\?PATH.*\[\(.*\)\]/\2/p')
    for folder in ${path//:/ }; do
        [[ $folder = \$ORIGIN* ]] || [ -z "$(ldconfig -p 2>/dev/null | sed -n "s,.*=> \($folder/.*\),\1,p")" ] ||
            die "$(basename "$file") looks for libraries in $folder, where the loader looks anyway"
        [[ $folder != *"$build"* ]] || die "$(basename "$file") looks for libraries in $folder"
    done
done
version=$("$prefix/bin/weft" --version)
"$prefix/bin/gpt" train --layers 1 --width 8 --heads 1 --seq 8 --batch 2 --steps 2 --quiet --run "$work/run" ||
    die "the installed gpt does not train on the installed corpus"
"$prefix/bin/weft" ckpt list "$work/run" | grep step >/dev/null || die "the installed gpt saved nothing"
if [ -e "$build/bin/weft-read-hdf5" ]; then # which must be found from the installed weft
    "$prefix/bin/weft" ckpt export "$work/run" "$work/run.h5" >/dev/null
    "$prefix/bin/weft" ckpt import "$work/run.h5" "$work/again" >/dev/null || die "weft-read-hdf5 is not found"
fi
grep -h '^ *exec\|doctor' "$prefix"/share/weft/slurm/*.sbatch | grep 'build/bin' && die "scripts call the tree they came from"
diff -r "$(dirname "$0")/../../apps/weft/maps" "$prefix/share/weft/maps" || die "weft ckpt import --map would miss these"
echo "installed: $version, $(find "$prefix/include" -name '*.h' | wc -l) headers"

if [ -n "${TEST_PYTHON:-}" ]; then # which must find the library and the headers that it was installed with
    PYTHONDONTWRITEBYTECODE=1 PYTHONPATH=$prefix/lib/python3/dist-packages "$TEST_PYTHON" -c '
import weft
assert "weft " + weft.version() == "'"$version"'" and weft.c.lib._name.startswith("'"$(readlink -f "$prefix")"'"), weft.c.lib'
fi

# ---- three ways to build

export PKG_CONFIG_PATH=$library/pkgconfig
[ "weft $(pkg-config --modversion weft)" = "$version" ] || die "weft.pc is of another version than $version"
read -ra use < <(pkg-config --cflags --libs weft)
strict=(-O1 -pedantic -Wall -Wextra -Werror -Wno-missing-field-initializers)
mkdir "$work/pkgconfig" "$work/cxx"
examples=$prefix/share/weft/examples
names=$(cd "$examples" && basename -s .c ./*.c)
[ "$(wc -w <<<"$names")" -ge 6 ] || die "only these examples were installed: $names"
for name in $names; do
    source=$examples/$name.c
    cc -std=c99 "${strict[@]}" "${flags[@]}" "$source" -o "$work/pkgconfig/$name" "${use[@]}" -lm ||
        die "$name does not build by pkg-config"
    [ ${#flags[@]} = 0 ] || continue
    g++ -std=c++17 "${strict[@]}" -xc++ "$source" -xnone -o "$work/cxx/$name" "${use[@]}" ||
        die "$name does not build as C++"
done
if [ ${#flags[@]} = 0 ]; then
    cmake -S "$examples" -B "$work/cmake" -G Ninja -DCMAKE_PREFIX_PATH="$prefix" >"$work/log" 2>&1 &&
        cmake --build "$work/cmake" >>"$work/log" 2>&1 || { cat "$work/log"; die "find_package(weft)"; }
fi

# ---- runs

losses() { sed -n 's/.*loss \([0-9.]*\).*/\1/p' "$1"; }
for name in $names; do
    "$work/pkgconfig/$name" >"$work/one" || die "$name"
    for way in cmake cxx; do
        [ ${#flags[@]} = 0 ] || continue
        "$work/$way/$name" | cmp - "$work/one" || die "$name prints something else when built by $way"
    done
    if [ "$(type -t "check_$name")" ]; then "check_$name" "$work/one" || { cat "$work/one"; die "$name is not right"; }; fi
    [ -n "${other[$name]:-}" ] || { echo "$name"; continue; }
    read -r mesh layout <<<"${other[$name]}"
    "$work/pkgconfig/$name" "$mesh" "$layout" >"$work/two" || die "$name $mesh $layout"
    paste <(losses "$work/one") <(losses "$work/two") | awk -v name="$name" '
        { if (NR == 1) first = $1; last = $1; apart = $1 - $2; if (apart < 0) apart = -apart }
        NF != 2 || apart > 2e-4 * (1 + $1) { print name ": the losses of two layouts differ: " $0; bad = 1 }
        END {
            if (NR < 3 || !(last < 0.5 * first)) { print name ": the loss does not fall: " first ", ..., " last; bad = 1 }
            if (!bad) printf "%-20s loss %.4f to %.4f, equal under two layouts\n", name, first, last
            exit bad
        }' || die "$name"
done
