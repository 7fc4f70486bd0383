"""Every scenario there is.

Importing this imports what the scenarios need: the published client, Spark, and so on.
"""

from bench import brokers
from bench.harness import Scenario
from bench.scenarios import (
    clients,
    cluster,
    codec,
    crowd,
    edge,
    fetching,
    fluvio,
    groups,
    journal,
    latency,
    server,
    spark,
    spark_growth,
    spark_kafka,
    variants,
)

SCENARIOS: tuple[Scenario, ...] = (
    *codec.SCENARIOS,
    *clients.SCENARIOS,
    *server.SCENARIOS,
    *fetching.SCENARIOS,
    *latency.SCENARIOS,
    *crowd.SCENARIOS,
    *variants.SCENARIOS,
    *journal.SCENARIOS,
    *edge.SCENARIOS,
    *spark.SCENARIOS,
    *(spark_growth.SCENARIOS if spark.SCENARIOS else ()),
    *spark_kafka.SCENARIOS,
    *fluvio.SCENARIOS,
    *groups.SCENARIOS,
    *brokers.SCENARIOS,
    *cluster.SCENARIOS,
)
