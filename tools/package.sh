#!/bin/sh
# package.sh [FOLDER]: a Debian package of amphora, for /usr, in FOLDER (out).
# Targets, schemas and the module of LLVM are looked for where the package puts
# them, so it is built apart from ./run's build.
set -eu
cd "$(dirname "$0")/.."
out=$(mkdir -p "${1:-out}" && cd "${1:-out}" && pwd)
# Only what the package holds is built, no tests.
cmake -S . -B build-deb -G Ninja -DCMAKE_INSTALL_PREFIX=/usr \
    -DCMAKE_SKIP_INSTALL_ALL_DEPENDENCY=ON >/dev/null
cmake --build build-deb --target amphora libamphora amphora-native \
    amphora-hdf5 amphora-planner manual
cd build-deb && cpack -G DEB -B "$out"
