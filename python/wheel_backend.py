"""wheel_backend: makes a wheel of this checkout, by PEP 517 and Python alone: the package, its stubs, the headers, libweft.so.0 of the
build folder (WEFT_BUILD names another) and the libraries that it needs but glibc and MPI, which belong to the machine."""
import base64
import hashlib
import os
import re
import subprocess
import sys
import sysconfig
import zipfile

ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
OF_THE_MACHINE = re.compile(r"lib(c|m|dl|rt|pthread|gcc_s|stdc\+\+|mpi\w*|open-rte|open-pal|pmix|event\w*|udev)[-.]|ld-linux|linux-vdso")


def _version():
    with open(os.path.join(ROOT, "CMakeLists.txt"), encoding="utf-8") as file:
        return re.search(r"project\([^)]*VERSION\s+([\d.]+)", file.read(), re.S).group(1)


def _library():
    build = os.environ.get("WEFT_BUILD", os.path.join(ROOT, "build"))
    path = os.path.join(build, "lib", "libweft.so.0")
    if not os.path.isfile(path):
        sys.exit(f"wheel: there is no {path}; run ./run build first, or name the build folder in WEFT_BUILD")
    return os.path.realpath(path)


def _needed(library):
    """What the loader finds for it: names and files."""
    said = subprocess.run(["ldd", library], check=True, capture_output=True, text=True).stdout
    for name, path in re.findall(r"^\s*(\S+) => (/\S+)", said, re.M):
        if not OF_THE_MACHINE.match(name):
            yield name, os.path.realpath(path)


def _files():
    """(name in the wheel, bytes)."""
    sys.path.insert(0, os.path.join(ROOT, "python", "weft"))
    import _headers
    import _stubs

    package = os.path.join(ROOT, "python", "weft")
    for name in sorted(os.listdir(package)):
        if name.endswith(".py"):
            yield f"weft/{name}", _bytes(os.path.join(package, name))
    yield "weft/__init__.pyi", _stubs.stub(ROOT).encode()
    yield "weft/py.typed", b""
    for folder in _headers.find(ROOT):
        for at, _, names in os.walk(folder):
            for name in sorted(name for name in names if name.endswith(".h")):
                inside = os.path.relpath(os.path.join(at, name), folder)
                yield f"weft/include/{inside}", _bytes(os.path.join(at, name))
    library = _library()
    yield "weft/lib/libweft.so.0", _bytes(library)
    for name, path in _needed(library):
        yield f"weft/lib/{name}", _bytes(path)


def _bytes(path):
    with open(path, "rb") as file:
        return file.read()


def get_requires_for_build_wheel(config_settings=None):
    return []


def build_wheel(wheel_directory, config_settings=None, metadata_directory=None):
    version, platform = _version(), sysconfig.get_platform().replace("-", "_").replace(".", "_")
    tag = f"py3-none-{platform}"
    name, info = f"weft-{version}-{tag}.whl", f"weft-{version}.dist-info"
    records = []
    with zipfile.ZipFile(os.path.join(wheel_directory, name), "w", zipfile.ZIP_DEFLATED) as wheel:
        def add(path, data):
            digest = base64.urlsafe_b64encode(hashlib.sha256(data).digest()).rstrip(b"=").decode()
            records.append(f"{path},sha256={digest},{len(data)}")
            wheel.writestr(path, data)

        for path, data in _files():
            add(path, data)
        add(f"{info}/METADATA", f"Metadata-Version: 2.1\nName: weft\nVersion: {version}\nSummary: mesh-parallel programs on named dims\n"
                                "Requires-Python: >=3.9\nRequires-Dist: numpy\n".encode())
        add(f"{info}/WHEEL", f"Wheel-Version: 1.0\nGenerator: weft\nRoot-Is-Purelib: false\nTag: {tag}\n".encode())
        wheel.writestr(f"{info}/RECORD", "\n".join([*records, f"{info}/RECORD,,"]) + "\n")
    return name
