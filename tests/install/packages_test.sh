#!/usr/bin/env bash
# packages_test.sh [BASE]: the Debian packages of `./run package`, installed by apt in a bare Debian 12, do what they are
# for there: programs train and save, examples are built by gcc and CMake, Python trains, and nothing is left when they
# are removed. BASE is a bare system to copy (debootstrap --variant=minbase bookworm); without one it is made.
set -euo pipefail
root=$(readlink -f "$(dirname "$0")/../..")
base=${BARE_DEBIAN:-}
[ "$(id -u)" = 0 ] || { echo "skipped: takes root, for a chroot"; exit 77; }
[ -n "$base" ] || command -v debootstrap >/dev/null || { echo "skipped: debootstrap is not installed"; exit 77; }
"$root/run" package >/dev/null

work=$(mktemp -d /tmp/weft-bare.XXXXXX)
bare=$work/root
clean_up() {
    for mount in sys dev proc; do umount -l "$bare/$mount" 2>/dev/null || true; done
    mount | grep -q "$bare" || rm -rf "$work"
}
trap clean_up EXIT
if [ -n "$base" ]; then
    cp -a "$base" "$bare"
else
    debootstrap --variant=minbase --include=ca-certificates bookworm "$bare" >"$work/log" 2>&1 ||
        { tail -n 3 "$work/log"; echo "skipped: debootstrap cannot reach Debian"; exit 77; }
fi
# The network as this machine has it.
for file in /etc/resolv.conf /etc/hosts /etc/apt/sources.list.d/debian.sources; do
    [ -e "$file" ] && cp -L "$file" "$bare$file"
done
[ ! -e "$bare/etc/apt/sources.list.d/debian.sources" ] || : >"$bare/etc/apt/sources.list"
cp -r /etc/apt/apt.conf.d/. "$bare/etc/apt/apt.conf.d/" 2>/dev/null || true
cp -r /usr/local/share/ca-certificates/. "$bare/usr/local/share/ca-certificates/" 2>/dev/null || true
mount -t proc proc "$bare/proc"
mount --rbind /dev "$bare/dev" && mount --make-rslave "$bare/dev"
mount --rbind /sys "$bare/sys" && mount --make-rslave "$bare/sys"
mkdir "$bare/packages"
cp "$root"/build-package/packages/*.deb "$bare/packages/"

cat >"$bare/check.sh" <<'CHECK'
set -euo pipefail
export DEBIAN_FRONTEND=noninteractive
say() { printf '== %s\n' "$*"; }
install() { apt-get -qq install -y --no-install-recommends "$@" >/log 2>&1 || { tail -n 20 /log; exit 1; }; }
dpkg-query -W -f '${Package}\n' | sort >/before
apt-get -qq update

say "weft and libweft0: programs that train, save, and read what they saved"
install /packages/libweft0_*.deb /packages/weft_*.deb
weft --version
cd /tmp
gpt train --mesh data:2 --layout batch:data --layers 1 --width 16 --heads 2 --steps 20 --save-every 10 --quiet --run run
weft ckpt verify run
weft ckpt export run run.h5 >/dev/null
weft ckpt import run.h5 again
if find / -xdev -name '*.h' -path '*weft*' | grep .; then exit 1; fi

say "libweft-dev: the examples, by pkg-config, as C++ and by CMake"
install /packages/libweft-dev_*.deb gcc g++ libc6-dev pkg-config cmake ninja-build
for example in /usr/share/weft/examples/*.c; do
    cc -std=c99 "$example" -o one $(pkg-config --cflags --libs weft) -lm
    g++ -std=c++17 -xc++ "$example" -o two $(pkg-config --cflags --libs weft)
    ./one >one.txt
    ./two | cmp - one.txt
    echo "$(basename "$example"): $(tail -n 1 one.txt)"
done
cmake -S /usr/share/weft/examples -B build -G Ninja >/dev/null
cmake --build build >/dev/null
build/mlp data:2 batch:data | tail -n 1

say "python3-weft"
install /packages/python3-weft_*.deb
python3 /usr/share/weft/examples/mlp.py | head -n 6 | tail -n 1

say "removed: nothing is left"
apt-get -qq purge -y weft libweft0 libweft-dev python3-weft >/dev/null 2>&1
if find / -xdev -name '*weft*' -not -path '/proc/*' -not -path '/packages*' -not -path '/tmp/*' | grep .; then
    echo "these were left"
    exit 1
fi
CHECK
env -i HOME=/root PATH=/usr/sbin:/usr/bin:/sbin:/bin LANG=C.UTF-8 chroot "$bare" bash /check.sh
