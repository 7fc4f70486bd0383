#!/bin/sh
# Install what the environment `spark` needs, half a gigabyte, if there is a Java to run it.
set -eu
python sdk/lance_sdk/spark/java.py
exec python -I -m pip install "$@"
