#!/bin/sh
# Builds CPython for musl from the sources of Debian's packages, because Debian has no such package.
#
#   tests/platforms/musl.sh FOLDER
#
# The interpreter is FOLDER/bin/python3 then, and FOLDER/bin/cc compiles extensions for it. The
# sources are those of the machine's release, from the mirror that apt is set up with; apt verifies
# them. Programs of the system come from apt-get where they are missing, which takes root. What is
# built already is left alone.
set -eu

folder=${1:?"name the folder to build in, for example .tox/musl/python"}

stop() {
    echo "no Python for musl: $1" >&2
    exit 1
}

# Installs what the builds run.
install_tools() {
    missing=""
    for each in musl-gcc:musl-tools gcc:gcc make:make tclsh:tcl xz:xz-utils bzip2:bzip2; do
        command -v "${each%:*}" >/dev/null || missing="$missing ${each#*:}"
    done
    [ -d /usr/include/linux ] || missing="$missing linux-libc-dev"
    [ -n "$missing" ] || return 0
    [ "$(id -u)" -eq 0 ] || stop "install$missing, or run this script as root."
    apt-get update -qq
    # shellcheck disable=SC2086  # the list is made of words
    DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends $missing
}

# Writes a list for apt: the sources of the release whose binary packages the machine has.
list_sources() {
    # shellcheck disable=SC2016  # apt fills these in
    apt-get indextargets --format '$(ORIGIN)/$(LABEL)/$(COMPONENT) $(SITE) $(CODENAME)' \
        'Created-By: Packages' | grep '^Debian/Debian/main ' | grep -v -- '-updates$\|-backports$' |
        while read -r _ mirror release; do
            echo "deb-src [signed-by=$KEYS] $mirror $release main"
        done | sort -u
}

# Runs apt-get with that list alone.
apt_get() {
    apt-get -qq -o Dir::Etc::SourceList="$folder/src/sources.list" -o Dir::Etc::SourceParts=- \
        -o Dir::State::Lists="$folder/src/lists" "$@"
}

# Gets the sources of a package and unpacks them: unpack PACKAGE
unpack() {
    mkdir -p "src/$1"
    (
        cd "src/$1"
        apt_get source --download-only "$1"
        tar --strip-components=1 -xf "$(ls ./*.orig.tar.*[!c])"
    )
}

# Builds and installs a library unless its archive is there: library ARCHIVE PACKAGE COMMANDS
library() {
    [ -e "lib/$1" ] && return
    unpack "$2"
    echo "building $2"
    (cd "src/$2" && eval "$3") >"src/$2.log" 2>&1 || stop "$2 was not built: $folder/src/$2.log"
}

KEYS=/usr/share/keyrings/debian-archive-keyring.gpg
if [ "$(uname -sm)" != "Linux x86_64" ] || [ ! -e $KEYS ]; then
    stop "this machine is not Debian on x86-64."
fi
mkdir -p "$folder"
cd "$folder"
folder=$PWD
works() { bin/python3 -c 'import ctypes, lzma, sqlite3, ssl, zlib'; }
works 2>/dev/null && exit 0
install_tools

# Which release of Python is Debian's own.
python=$(apt-cache depends python3 | sed -n 's/^ *Depends: \(python3\.[0-9]*\)$/\1/p')
[ -n "$python" ] || stop "apt does not know python3; run apt-get update."

mkdir -p bin lib include src/lists/partial
list_sources >src/sources.list
[ -s src/sources.list ] || stop "apt is not set up with a mirror of Debian; run apt-get update."
apt_get update

# Headers of the kernel are the only ones of the system that musl's compiler is to see, and last.
# Python asks the compiler for which system it compiles, and gcc would answer for the other library.
cat >bin/cc <<'END'
#!/bin/sh
case "$*" in *print-multiarch*) echo x86_64-linux-musl && exit ;; esac
exec musl-gcc -idirafter /usr/include -idirafter /usr/include/x86_64-linux-gnu "$@"
END
chmod +x bin/cc
export CC="$folder/bin/cc" MAKEFLAGS="-j$(nproc)" PKG_CONFIG_PATH="$folder/lib/pkgconfig"

library libz.a zlib 'CFLAGS="-O2 -fPIC" ./configure --prefix="$folder" --static && make install'
library libffi.a libffi '
    ./configure --prefix="$folder" --disable-shared --with-pic --disable-docs && make install'
library liblzma.a xz-utils '
    ./configure --prefix="$folder" --disable-shared --with-pic --disable-doc --disable-nls && make install'
library libsqlite3.a sqlite3 '
    ./configure --disable-shared --disable-tcl --disable-readline && make sqlite3.c &&
    "$CC" -O2 -fPIC -c sqlite3.c && cp sqlite3.h "$folder/include" && ar rcs "$folder/lib/libsqlite3.a" sqlite3.o'
library libssl.a openssl '
    ./Configure linux-x86_64 --prefix="$folder" --libdir=lib no-shared no-tests no-async no-engine \
        no-legacy -fPIC && make build_libs && make install_dev'
library "lib$python.a" "$python" '
    ./configure --prefix="$folder" --build=x86_64-linux-musl --with-openssl="$folder" \
        --disable-test-modules CPPFLAGS="-I$folder/include" LDFLAGS="-L$folder/lib" &&
    make && make install'
works || stop "its modules were not built: $folder/src"
