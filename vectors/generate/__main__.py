"""``python -m generate [--check]``: write the vectors, or report what differs."""

import json
import sys
from pathlib import Path

from generate import (
    bodies,
    chains,
    control,
    crc,
    engine,
    errors,
    fetch,
    frame_encode,
    frame_stream,
    frames,
    packed,
    texts,
    tlv,
)
from generate.wire import check_known

ROOT = Path(__file__).resolve().parent.parent
FAMILIES = {
    "crc": crc.build,
    "frame_decode": frames.build,
    "tlv_decode": tlv.build,
    "control_payload": control.build,
    "fetch_response": fetch.build,
    "engine_message": engine.build,
    "frame_encode": frame_encode.build,
    "frame_stream": frame_stream.build,
    "tlv_encode": chains.build_encode,
    "segment_scan": chains.build_scan,
    "error_payload": errors.build,
    "json_body": bodies.build,
    "file_name": texts.build_names,
    "group_text": texts.build_groups,
    "packed_field": packed.build,
}


def main() -> int:
    """Write or check every family; return the process's exit code."""
    check_known()
    stale = []
    for family, build in FAMILIES.items():
        path = ROOT / f"{family}.json"
        text = json.dumps(build(), indent=2, ensure_ascii=False) + "\n"
        if not path.is_file() or path.read_text(encoding="utf-8") != text:
            stale.append(path.name)
            if "--check" not in sys.argv[1:]:
                path.write_text(text, encoding="utf-8")
    for name in stale:
        sys.stdout.write(f"{name} differs from what is generated\n")
    return 1 if stale and "--check" in sys.argv[1:] else 0


if __name__ == "__main__":
    raise SystemExit(main())
