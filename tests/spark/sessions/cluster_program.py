"""What the tests run on a cluster: a batch query, and one copy for each step that dies."""

import json
import os
import sys
from pathlib import Path
from typing import Any

from pyspark.errors import StreamingQueryException

from lance_sdk.spark.pipelines.session import local_session

SLOW_START = "Python worker failed to connect back"
"""What Spark says when a Python of its own took more than 10 s to start: the machine is busy."""


def copy(spark: Any, at: dict[str, str], folder: str, name: str) -> None:
    """Copy the topic, with what the sink that is named before the step promises."""
    reader = spark.readStream.format("lwp").options(**at, topic="orders")
    rows = reader.options(startingOffsets="earliest", maxBytesPerTrigger="5000").load()
    writer = rows.writeStream.format("lwp").options(**at, topic=name, createTopic="true")
    writer = writer.option("semantics", name.partition(".")[0])
    writer = writer.option("checkpointLocation", f"{folder}/{name}").option("batchBytes", "1KiB")
    try:
        writer.trigger(availableNow=True).start().awaitTermination()
    except StreamingQueryException as error:
        if SLOW_START not in str(error):
            raise
        copy(spark, at, folder, name)


def main(said: dict[str, Any], told: Path) -> None:
    """Run all of it on the cluster that ``SPARK_MASTER`` names."""
    fault, killed = Path(said["fault"]), []
    with local_session() as spark:
        reader = spark.read.format("lwp").options(**said["at"], topic="orders")
        count = reader.load().count()
        pids = spark.sparkContext.range(0, 8, numSlices=8).map(lambda _: os.getppid())
        executors = len(set(pids.collect()))
        for name in said["finish"]:  # which the driver began that was killed
            copy(spark, said["at"], said["folder"], name)
        for name in said["steps"]:
            fault.write_text(f"{name.partition('.')[2]} executor")
            copy(spark, said["at"], said["folder"], name)
            if not fault.exists():
                killed.append(name)
    told.write_text(json.dumps({"count": count, "executors": executors, "killed": killed}))


if __name__ == "__main__":
    main(json.loads(sys.argv[1]), Path(sys.argv[2]))
