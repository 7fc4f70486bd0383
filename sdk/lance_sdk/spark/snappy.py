"""The library of Parquet's default compression, where Spark would choose one for another libc."""

import platform
import shutil
import zipfile
from importlib.util import find_spec
from pathlib import Path
from typing import Final

MUSL: Final = Path("/lib/ld-musl-x86_64.so.1")
"""Where a system has musl, be it as its libc or, beside glibc, as a package of its own."""
_MEMBER: Final = "org/xerial/snappy/native/Linux/x86_64/libsnappyjava.so"


def snappy_options(folder: Path) -> str:
    """Return what Java must be told to load Snappy; empty where it finds it by itself.

    Snappy for Java takes its library for musl wherever musl is installed, and cannot load it into
    a Java that was built for glibc.

    Args:
        folder: where the library for glibc is put, if it is needed.
    """
    spark = find_spec("pyspark")
    if not MUSL.exists() or platform.libc_ver()[0] != "glibc" or spark is None:
        return ""
    homes = spark.submodule_search_locations or ()
    jars = [jar for home in homes for jar in Path(home, "jars").glob("snappy-java-*.jar")]
    if not jars:
        return ""
    library = folder / "libsnappyjava.so"
    with zipfile.ZipFile(jars[0]) as jar, jar.open(_MEMBER) as source, library.open("wb") as target:
        shutil.copyfileobj(source, target)
    return f"-Dorg.xerial.snappy.lib.path={folder} -Dorg.xerial.snappy.lib.name={library.name}"
