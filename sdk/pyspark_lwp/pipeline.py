"""``lwp pipeline …`` as a program for ``spark-submit``.

::

    spark-submit --master yarn "$(python -m pyspark_lwp.pipeline --where)" audit hdfs:///lance
"""

import sys

from lance_sdk.cli import main

if __name__ == "__main__":
    if sys.argv[1:] == ["--where"]:
        sys.stdout.write(f"{__file__}\n")
        sys.exit(0)
    sys.argv[1:1] = ["pipeline"]
    main()
