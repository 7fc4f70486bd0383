"""What the tests run on a cluster: a batch query, and one copy for each step that dies."""

import json
import os
import sys
from pathlib import Path
from typing import Any

from lance_sdk.spark.pipelines.session import local_session

SEMANTICS = {"staging": "exactly-once", "staged": "exactly-once"}


def copy(spark: Any, at: dict[str, str], folder: str, step: str) -> None:
    """Copy the topic, with what the step's sink promises."""
    reader = spark.readStream.format("lwp").options(**at, topic="orders")
    rows = reader.options(startingOffsets="earliest", maxBytesPerTrigger="5000").load()
    writer = rows.writeStream.format("lwp").options(**at, topic=f"copy-{step}", createTopic="true")
    writer = writer.option("semantics", SEMANTICS.get(step, "at-least-once"))
    writer = writer.option("checkpointLocation", f"{folder}/{step}").option("batchBytes", "1KiB")
    writer.trigger(availableNow=True).start().awaitTermination()


def main(said: dict[str, Any], told: Path) -> None:
    """Run all of it on the cluster that ``SPARK_MASTER`` names."""
    fault, killed = Path(said["fault"]), []
    with local_session() as spark:
        reader = spark.read.format("lwp").options(**said["at"], topic="orders")
        count = reader.load().count()
        pids = spark.sparkContext.range(0, 8, numSlices=8).map(lambda _: os.getppid())
        executors = len(set(pids.collect()))
        for step in said["steps"]:
            fault.write_text(f"{step} executor")
            copy(spark, said["at"], said["folder"], step)
            if not fault.exists():
                killed.append(step)
    told.write_text(json.dumps({"count": count, "executors": executors, "killed": killed}))


if __name__ == "__main__":
    main(json.loads(sys.argv[1]), Path(sys.argv[2]))
