#!/usr/bin/env bash
# sysroot.sh ARCHITECTURE FOLDER PACKAGE...: Debian packages of another architecture, and all that they depend on, unpacked
# into a folder for a cross compiler and an emulator.
#
# apt works from a state of its own in FOLDER.apt. So the system's packages and its list of architectures stay as they are,
# and whatever is unpacked here conflicts with nothing there. It takes no root. A folder that has the same packages stays.
set -euo pipefail
[ $# -ge 3 ] || { echo "usage: sysroot.sh ARCHITECTURE FOLDER PACKAGE..." >&2; exit 2; }
architecture=$1
folder=$(realpath -m "$2")
shift 2

[ "$(cat "$folder/packages" 2>/dev/null)" != "$*" ] || exit 0
state=$folder.apt
rm -rf "$folder" "$state"
mkdir -p "$folder" "$state"/{lists,cache/archives}/partial
touch "$state/status"
cat > "$state/apt.conf" <<END
#clear APT::Architectures;
APT::Architecture "$architecture";
APT::Architectures { "$architecture"; };
APT::Install-Recommends "false";
APT::Sandbox::User "$(id -un)";
Dir::State "$state";
Dir::State::status "$state/status";
Dir::Cache "$state/cache";
Debug::NoLocking "true";
END
export APT_CONFIG=$state/apt.conf

apt-get -qq update
apt-get -qq -y --download-only install "$@" >/dev/null
for package in "$state"/cache/archives/*.deb; do
    dpkg-deb --extract "$package" "$folder"
done
rm -rf "$state"
# Links from the root of the other system: libz.so -> /lib/aarch64-linux-gnu/libz.so.1.2.13.
find "$folder" -type l -lname '/*' | while read -r link; do
    ln -snfr "$folder$(readlink "$link")" "$link"
done
echo "$*" > "$folder/packages"
