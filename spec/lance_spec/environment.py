"""Environment variables of the programs: which there are, and what a misspelt one was meant to be.

Both `lance-server` and `lwp` know the variables of the other one, so that they can share an
environment. Tests hold the lists to the options.
"""

import re
from collections.abc import Collection, Iterator, Mapping
from difflib import get_close_matches
from typing import Final

PREFIX: Final = "LANCE_"


def _names(text: str) -> frozenset[str]:
    return frozenset(text.split())


SERVER: Final = _names(
    """
    ACK_TIMEOUT ADMIN ADVERTISE AUTH_TOKEN_FILE AUTH_WRITE_ONLY BREAKER_FAILURES BREAKER_RESET
    CHECK_CONFIG CLUSTER CLUSTER_CONFIG CLUSTER_TIMEOUT COMMIT_RETENTION_SECS COMPACTION CONFIG
    CONSUMER_NAMES CONSUMER_RATE DATA_DIR DEDUP_ENTRIES DIALECT DRAIN_TIMEOUT DURABILITY
    ENGINE_UNSAFE EVENT_LOOP FLUVIO_SC FLUVIO_SPU FLUVIO_SPU_PUBLIC HTTP IDLE_TIMEOUT
    INLINE_COMMITS JSON_LOGS LISTEN LOG_LEVEL MAX_CONNECTIONS MAX_DISK_LATENCY MAX_MEMORY
    MAX_PAYLOAD MAX_QUEUE MAX_TOPICS NODE_ID OFFER_COPIES OTEL_ENDPOINT OTEL_INTERVAL
    OTEL_SAMPLE_RATE PORT_FILE QWP QWP_SCRIPT READ_CONSISTENCY REDIRECT RUSTLOG
    RUSTLOG_DIALECT SCRUB_DAYS SEGMENT_AGE_SECS SEGMENT_SIZE SHARDS SHED_AFTER SLOW_PEER_TIMEOUT
    STORAGE STRICT_TOPIC_NAMES TLS_CERT_PATH TLS_CLIENT_CA_PATH TLS_KEY_PATH TLS_REQUIRE_CLIENT_CERT
    TRIM_LOG UPKEEP_INTERVAL VALIDATE_RECORDS
    """
)
"""Options of ``lance-server``, without the prefix."""
CLIENT: Final = _names(
    "CONSUMER_NAMES COORDINATOR OFFSETS TLS_CA TLS_CERT TLS_KEY TLS_SERVER_NAME TOKEN URL"
)
"""Options of ``lwp`` and of the conformance kit."""
DEVELOPMENT: Final = _names(
    """
    BENCH_CORES BENCH_MB BENCH_SERVER BENCH_TIMES BRIDGE_KILLS CLUSTER_REQUIRED CLUSTER_SCHEDULES
    CLUSTER_SECONDS CLUSTER_SEED CRASH_SEEDS EXAMPLE_KILLS FAULT_CONTROL FAULT_RECORD FAULT_ROOT
    FAULT_SECONDS FAULT_SEED FAULT_TRACE FLUVIO_RUN GROUP_EXAMPLES HANDOVERS INTEROP_RUST
    KAFKA_JARS KILL_ROUNDS MODEL_HANDOVERS PLATFORM PURE_PYTHON QWP_GO QWP_SEEDS RECORD_SLOTS
    RING_RUNS RUSTLOG_RUN SANITIZE_CALLS SANITIZE_SEED SERVER_RUNS SIGKILL_ROUNDS SIM_FIRST
    SIM_MUTANTS SIM_RUNS SITE SLOT_RUNS SPARK SPARK_HISTORIES STORES_REQUIRED SYMBOL_IMAGES
    TEST_ADDR TOOLS VECTOR_ROUNDS
    """
)
"""What the project's build, tests and benchmarks read."""
_MEANT: Final = {
    "ADDR": ("LISTEN", "URL"),
    "ADDRESS": ("LISTEN", "URL"),
    "BIND": ("LISTEN",),
    "BOOTSTRAP_SERVER": ("URL",),
    "BROKER": ("URL",),
    "DATA": ("DATA_DIR",),
    "HOST": ("LISTEN", "URL"),
    "LOG": ("LOG_LEVEL",),
    "PEERS": ("CLUSTER",),
    "PORT": ("LISTEN", "URL"),
    "SERVER": ("URL",),
}
"""What names of other programs mean here, at a server and else at a client."""
_KUBERNETES: Final = re.compile(
    r"LANCE(_[A-Z0-9]+)*?"
    r"_(SERVICE_HOST|SERVICE_PORT(_[A-Z0-9_]+)?|PORT(_\d+_(TCP|UDP|SCTP)(_(PROTO|PORT|ADDR))?)?)"
)
"""What a pod is told of a service whose name begins with ``lance``."""
_PORT_URL: Final = re.compile(r"(tcp|udp|sctp)://", re.ASCII)


def made_by_kubernetes(environment: Mapping[str, str]) -> tuple[str, ...]:
    """Return the variables that Kubernetes made for services called ``lance`` and the like."""
    return tuple(
        name
        for name, value in sorted(environment.items())
        if _KUBERNETES.fullmatch(name) and (not name.endswith("_PORT") or _is_made(name, value))
    )


def _is_made(name: str, value: str) -> bool:
    """Whether a port is one of Kubernetes: a URL, or the number of a service or of one address."""
    return _PORT_URL.match(value) is not None or name.endswith(("_SERVICE_PORT", "_TCP_PORT"))


def unknown_variables(environment: Mapping[str, str]) -> Iterator[str]:
    """Yield a sentence for each variable with our prefix that no program reads.

    Those that Kubernetes makes share one sentence: nobody misspelt them.
    """
    made = made_by_kubernetes(environment)
    if made:
        first = f"{made[0]}={environment[made[0]]}"
        yield (
            f"{len(made)} environment variables such as {first} are of a service of Kubernetes "
            f"whose name begins with 'lance', and are not read: set enableServiceLinks: false "
            f"in the pod, or give the service another name"
        )
    known = SERVER | CLIENT | DEVELOPMENT
    for name in sorted(environment):
        rest = name.removeprefix(PREFIX)
        if rest != name and rest not in known and name not in made:
            yield f"the environment variable {name} is not read by anything{_hint(rest)}"


def meant_option(option: str, known: Collection[str]) -> str | None:
    """Return the option that one of other programs means here; None where it means none.

    Args:
        option: how it was written, for example ``--port``.
        known: the options that there are.
    """
    name = option.removeprefix("--").replace("-", "_").upper()
    means = (f"--{each.replace('_', '-').lower()}" for each in _MEANT.get(name, ()))
    return next((each for each in means if each in known), None)


def _hint(rest: str) -> str:
    close = list(_MEANT.get(rest, ())[:1])
    close = close or get_close_matches(rest, sorted(SERVER | CLIENT), n=1)
    if close:
        return f"; did you mean {PREFIX}{close[0]}?"
    return "; 'lance-server --help' and 'lwp --help' list the options"
