#!/bin/sh
# Installs the brokers that `bench/brokers` compares with from the distribution's packages, where
# they are missing. Where that cannot be done it says so, and their scenarios are left out.
# The scenarios start private instances; services that the packages would start are kept from it.
# The jars of a Kafka broker go into the folder that the first argument names, if there is one.
set -eu

[ -z "${1:-}" ] || sh "$(dirname "$0")/brokers/kafka_jars/install.sh" "$1"

PATH="$PATH:/usr/sbin" # where servers are, and not every user looks
missing=""
for server in nats-server redis-server; do
    command -v "$server" >/dev/null || missing="$missing $server"
done
[ -z "$missing" ] && exit 0

as_root=""
[ "$(id -u)" -eq 0 ] || as_root="sudo -n"
# shellcheck disable=SC2086 - a list of packages
if ! command -v apt-get >/dev/null ||
    ! $as_root apt-get update -q ||
    ! $as_root env DEBIAN_FRONTEND=noninteractive RUNLEVEL=1 apt-get install -q -y --no-install-recommends $missing; then
    echo "cannot install$missing here: what is compared with them will be left out" >&2
fi
