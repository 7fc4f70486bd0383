"""What the tests run as a client of Spark Connect."""

import json
import sys
from pathlib import Path

from pyspark.sql import SparkSession

from lance_sdk.errors import ConfigError
from lance_sdk.spark.pipelines import archive, report


def main(at: dict[str, str], folder: str, told: Path) -> None:
    """Read, write and stream the topic ``orders``, and try pipelines."""
    builder = SparkSession.builder.remote("local[2]").config("spark.ui.enabled", "false")
    spark = builder.getOrCreate()
    rows = spark.read.format("lwp").options(**at, topic="orders").load()
    count = rows.count()
    writer = rows.select("value").write.format("lwp").options(**at, topic="copy")
    writer.option("createTopic", "true").mode("append").save()
    stream = spark.readStream.format("lwp").options(**at, topic="orders").load()
    sink = stream.writeStream.format("lwp").options(**at, topic="streamed", createTopic="true")
    sink = sink.option("semantics", "exactly-once").option("checkpointLocation", f"{folder}/cp")
    query = sink.trigger(availableNow=True).start()
    query.awaitTermination()
    refused = []
    for pipeline in (
        lambda: archive(spark, {**at, "topic": "orders"}, f"{folder}/archive"),
        lambda: report(spark, {**at, "topic": "orders"}),
    ):
        try:
            pipeline()
        except ConfigError as error:
            refused.append(str(error))
    told.write_text(json.dumps({"count": count, "refused": refused}))
    spark.stop()


if __name__ == "__main__":
    main(json.loads(sys.argv[1]), sys.argv[2], Path(sys.argv[3]))
