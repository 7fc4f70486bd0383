#!/bin/sh
# Installs redis-server and PostgreSQL from the distribution's packages where they are missing.
# The tests start private instances; services that the packages would start are kept from it.
set -eu

missing=""
command -v redis-server >/dev/null || missing="redis-server"
if ! command -v initdb >/dev/null && ! ls /usr/lib/postgresql/*/bin/initdb >/dev/null 2>&1; then
    missing="$missing postgresql"
fi
[ -z "$missing" ] && exit 0

if ! command -v apt-get >/dev/null; then
    echo "install $missing, then run this again: there is no apt-get here" >&2
    exit 1
fi
as_root=""
[ "$(id -u)" -eq 0 ] || as_root="sudo -n"
$as_root apt-get update -q
# shellcheck disable=SC2086 - a list of packages
$as_root env DEBIAN_FRONTEND=noninteractive RUNLEVEL=1 apt-get install -q -y --no-install-recommends $missing
