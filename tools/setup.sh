# setup.sh - sourced by ./run and ./test: the packages amphora is built from,
# installed by name where missing, and the build itself.

build_packages="gcc libc6-dev cmake ninja-build pkg-config libyaml-dev
libcjson-dev libopenblas-dev libhdf5-dev libzip-dev libpng-dev libjpeg-dev
llvm-dev"
test_packages="libcmocka-dev clang python3 libonnx-testdata"
# ./test --long: runtimes and a solver that others wrote (1.2 GB), and where
# there is no npm, one to fetch onnxruntime-node with. tests/truthlib.py installs
# them.
# shellcheck disable=SC2034
long_packages="python3-opencv python3-torch python3-torchvision python3-onnx
python3-h5py libarmnn-dev libarmnntfliteparser-dev libarmnn-cpuref-backend22
python3-pyarmnn coinor-cbc"
# shellcheck disable=SC2034
node_packages="nodejs npm"
# A browser, for tests/pages.py, which drives it from node.
# shellcheck disable=SC2034
page_packages="chromium"
# Slurm, and GNU parallel, for tests/submit.py.
# shellcheck disable=SC2034
cluster_packages="slurmctld slurmd slurm-client munge parallel"
# What runs notebooks, for tests/notebooks.py.
# shellcheck disable=SC2034
notebook_packages="python3-nbclient python3-ipykernel python3-nbformat
python3-pandas"
# Compilers, C libraries and emulators for the processors of native code, for
# tests/kernels.py and tests/bundle.py.
# shellcheck disable=SC2034
emulator_packages="qemu-user-static gcc-aarch64-linux-gnu
libc6-dev-arm64-cross gcc-riscv64-linux-gnu libc6-dev-riscv64-cross
gcc-arm-linux-gnueabihf libc6-dev-armhf-cross"
# AddressSanitizer's runtime comes with the version of clang that is installed.

say() { printf '%s\n' "$*" >&2; }

missing() {
    for package in "$@"; do
        dpkg-query -W -f '${Status}' "$package" 2>/dev/null |
            grep -q 'ok installed' || printf '%s ' "$package"
    done
}

as_root() {
    if [ "$(id -u)" = 0 ]; then "$@"; else sudo "$@"; fi
}

install_packages() {
    wanted=$(missing "$@")
    [ -z "$wanted" ] && return 0
    say "installing: $wanted"
    as_root apt-get update -qq
    # shellcheck disable=SC2086
    DEBIAN_FRONTEND=noninteractive as_root apt-get install -y -qq \
        --no-install-recommends $wanted >/dev/null
}

# Debian's npm cannot be installed beside a node that is not Debian's.
install_node() {
    command -v node >/dev/null && command -v npm >/dev/null && return 0
    # shellcheck disable=SC2086
    install_packages $node_packages
}

# build FOLDER [cmake options]: quiet unless something is wrong.
build() {
    folder=$1
    shift
    log=$(mktemp)
    if ! { cmake -S . -B "$folder" -G Ninja "$@" &&
        cmake --build "$folder"; } >"$log" 2>&1; then
        cat "$log" >&2
        rm -f "$log"
        return 1
    fi
    rm -f "$log"
}
