#!/bin/sh
# Copies the jars of a Kafka broker into a folder: install.sh FOLDER
# Needs Java 17 or later and Maven. Where they are missing it says so and exits with 0: what needs
# the broker is left out then.
set -eu

case "$1" in
/*) folder="$1" ;;
*) folder="$PWD/$1" ;; # Maven would begin at the folder of its file
esac
[ -n "$(ls "$folder" 2>/dev/null)" ] && exit 0
for program in java mvn; do
    if ! command -v "$program" >/dev/null; then
        echo "no $program here: what needs a Kafka broker will be left out" >&2
        exit 0
    fi
done
mvn -q -B -f "$(dirname "$0")/pom.xml" dependency:copy-dependencies -DincludeScope=runtime \
    -DoutputDirectory="$folder.part"
mv "$folder.part" "$folder"
