#!/bin/sh
# Install what the checks in this folder run: C compilers, tshark, promtool, node and the Kaitai
# compiler, actionlint and kustomize, which Go builds.
#
#   tests/tools/install.sh FOLDER
#
# Programs of the system come from apt-get where they are missing, which takes root; packages of
# node and programs in Go go into FOLDER. What is there already is left alone.
set -eu

folder=${1:?"name the folder for what is not of the system, for example .tox/tools/node"}
here=$(cd "$(dirname "$0")" && pwd)

missing=""
command -v cc >/dev/null 2>&1 || missing="$missing gcc libc6-dev"
command -v musl-gcc >/dev/null 2>&1 || missing="$missing musl-tools"
command -v tshark >/dev/null 2>&1 || missing="$missing tshark"
command -v promtool >/dev/null 2>&1 || missing="$missing prometheus"
command -v node >/dev/null 2>&1 || missing="$missing nodejs"
command -v npm >/dev/null 2>&1 || missing="$missing npm"
command -v go >/dev/null 2>&1 || missing="$missing golang-go"
if [ -n "$missing" ]; then
    if [ "$(id -u)" != 0 ]; then
        echo "missing:$missing. Install them, or run this script as root." >&2
        exit 1
    fi
    DEBIAN_FRONTEND=noninteractive apt-get update -qq
    # shellcheck disable=SC2086  # the list is made of words
    DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends $missing
fi

mkdir -p "$folder"
cp "$here/package.json" "$here/compile_ksy.js" "$folder/"
cd "$folder"
npm install --no-audit --no-fund --loglevel=error
GOBIN=$PWD/bin go install github.com/rhysd/actionlint/cmd/actionlint@v1.7.12
GOBIN=$PWD/bin go install sigs.k8s.io/kustomize/kustomize/v5@v5.7.1
