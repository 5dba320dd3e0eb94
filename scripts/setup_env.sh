#!/usr/bin/env bash
# Makes a Debian 12 machine ready and builds the program into build/release/prims.
#
#   scripts/setup_env.sh              packages, then the program and the pinned uv beside it
#   scripts/setup_env.sh --no-build   only the packages
#   scripts/setup_env.sh --tests      also what the tests need (linters, sanitizers, npm)
#
# Safe to repeat: what is there is left alone. Runs as root, or as a user with sudo.
set -euo pipefail
cd "$(dirname "$0")/.."

build=1 tests=0
for option in "$@"; do
  case "$option" in
    --no-build) build=0 ;;
    --tests) tests=1 ;;
    -h|--help) sed -n '2,8s/^# \{0,1\}//p' "$0"; exit 0 ;;
    *) echo "setup_env: unknown option $option (--no-build, --tests)" >&2; exit 2 ;;
  esac
done

packages=(
  ca-certificates tzdata python3 python3-venv libpython3-dev
  clang-19 lld-19 llvm-19 ccache cmake ninja-build pkg-config
  libboost1.81-dev libboost-json1.81-dev libboost-url1.81-dev
  libssl-dev libseccomp-dev libspdlog-dev libfmt-dev libcli11-dev libtomlplusplus-dev libgtest-dev libgmock-dev
)
if ((tests)); then
  packages+=(clang-tidy-19 clang-tools-19 clang-format-19 libclang-rt-19-dev binutils git procps util-linux)
  command -v npm >/dev/null || packages+=(npm)
fi

step() { printf '\n\033[1m== %s\033[0m (%d s)\n' "$1" "$SECONDS"; }

missing_packages() {
  local name
  for name in "${packages[@]}"; do
    [[ "$(dpkg-query -W -f='${db:Status-Status}' "$name" 2>/dev/null)" == installed ]] || echo "$name"
  done
}

install_packages() {
  local missing
  mapfile -t missing < <(missing_packages)
  if ((${#missing[@]} == 0)); then
    echo "all ${#packages[@]} packages are installed"
    return
  fi
  echo "installing: ${missing[*]}"
  local sudo=()
  if ((EUID != 0)); then
    command -v sudo >/dev/null || {
      echo "setup_env: not root and no sudo. As root: apt-get install ${missing[*]}" >&2
      exit 1
    }
    sudo=(sudo)
  fi
  "${sudo[@]}" apt-get update -q
  "${sudo[@]}" env DEBIAN_FRONTEND=noninteractive apt-get install -y -q --no-install-recommends "${missing[@]}"
}

# The installer of Python packages: one wheel, checked against the hash in cmake/uv.txt, beside the program.
fetch_uv() {
  local target="build/release" machine version hash wheel
  machine="$(uname -m)"
  version="$(awk '$1 == "version" {print $2}' cmake/uv.txt)"
  read -r _ hash wheel < <(awk -v m="$machine" '$1 == m' cmake/uv.txt) || true
  [[ -n "$version" && -n "${wheel:-}" ]] || { echo "setup_env: cmake/uv.txt names no wheel for $machine" >&2; exit 1; }
  if [[ -f "$target/$wheel" ]] && echo "$hash  $target/$wheel" | sha256sum --check --status; then
    echo "uv $version is there"
    return
  fi
  mkdir -p "$target"
  [[ -x build/tools/venv/bin/pip ]] || /usr/bin/python3 -m venv build/tools/venv
  echo "uv==$version --hash=sha256:$hash" >build/tools/uv-requirement.txt
  local store=()
  if [[ -z "${PIP_CERT:-}" && -f /etc/ssl/certs/ca-certificates.crt ]]; then
    store=(--cert /etc/ssl/certs/ca-certificates.crt)  # a company's own authority is only in the system's store
  fi
  build/tools/venv/bin/pip download --disable-pip-version-check --no-deps --only-binary :all: --require-hashes \
    "${store[@]}" -d "$target" -r build/tools/uv-requirement.txt
}

build_program() {
  cmake --preset release -DCMAKE_MESSAGE_LOG_LEVEL=NOTICE
  cmake --build --preset release --target prims
}

step "packages"
install_packages
if ((build)); then
  step "uv"
  fetch_uv
  step "program"
  build_program
  step "done"
  echo "$PWD/build/release/prims: $(build/release/prims --version)"
fi
