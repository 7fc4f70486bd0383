"""``python -m generate [--check]``: write the vectors, or report what differs."""

import json
import sys
from pathlib import Path
from typing import Any

from generate import lock, server
from generate.cluster import engine_messages, group_messages, replication_messages
from generate.codec.wire import check_known
from generate.fluvio import exchange
from generate.fluvio import messages as fluvio
from generate.fluvio import records as fluvio_records
from generate.journal import slot_files, slot_messages, slot_segments
from generate.lwp import bodies, consumer_ids, control, errors, fetch, texts
from generate.lwp.frames import crc, decode, encode, stream
from generate.lwp.records import chains, lz4_frames, packed, tlv
from generate.qwp import messages as qwp_messages
from generate.qwp import upgrade
from generate.rustlog import json_dialect
from generate.rustlog import messages as rustlog

ROOT = Path(__file__).resolve().parent.parent
FAMILIES = {
    "crc": crc.build,
    "frame_decode": decode.build,
    "tlv_decode": tlv.build,
    "control_payload": control.build,
    "fetch_response": fetch.build,
    "engine_message": engine_messages.build,
    "frame_encode": encode.build,
    "frame_stream": stream.build,
    "tlv_encode": chains.build_encode,
    "segment_scan": chains.build_scan,
    "error_payload": errors.build,
    "json_body": bodies.build,
    "file_name": texts.build_names,
    "group_text": texts.build_groups,
    "packed_field": packed.build,
    "consumer_id": consumer_ids.build,
    "group_message": group_messages.build,
    "replication_message": replication_messages.build,
    "lz4_frame": lz4_frames.build,
    "slot_message": slot_messages.build,
    "slot_file": slot_files.build,
    "slot_segment": slot_segments.build,
    "qwp_message": qwp_messages.build,
    "qwp_upgrade": upgrade.build,
    "fluvio_message": fluvio.build,
    "fluvio_exchange": exchange.build,
    "fluvio_records": fluvio_records.build,
    "rustlog_message": rustlog.build,
    "rustlog_json": json_dialect.build,
}


def main() -> int:
    """Write or check every family and the list of ids; return the process's exit code."""
    check_known()
    documents = {family: build() for family, build in FAMILIES.items()}
    published, current = lock.read(ROOT / "ids.lock"), lock.digests(documents)
    if found := lock.problems(published, current):
        sys.stdout.write("".join(f"{problem}\n" for problem in found))
        return 1
    texts = {f"{family}.json": _text(document) for family, document in documents.items()}
    texts["ids.lock"] = lock.text(published, current)
    texts["server_case.json"] = _text(server.build())
    checking = "--check" in sys.argv[1:]
    stale = [name for name, text in texts.items() if not _written(name, text, checking=checking)]
    sys.stdout.write("".join(f"{name} differs from what is generated\n" for name in stale))
    return 1 if stale and checking else 0


def _text(document: dict[str, Any]) -> str:
    return json.dumps(document, indent=2, ensure_ascii=False) + "\n"


def _written(name: str, text: str, *, checking: bool) -> bool:
    """Return whether a file has a text, and write it unless it is only to be checked."""
    path = ROOT / name
    if path.is_file() and path.read_text(encoding="utf-8") == text:
        return True
    if not checking:
        path.write_text(text, encoding="utf-8")
    return False


if __name__ == "__main__":
    raise SystemExit(main())
