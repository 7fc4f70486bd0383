"""The mistakes that faulty frames stand for."""

from generate.document import note

NOTES = {
    "Magic": note(
        "MISSING_STEP",
        "One of the four magic bytes is wrong.",
        "A receiver that looks at some of them only takes another protocol for LWP.",
        "3.2",
        "11.1",
    ),
    "Version": note(
        "MISSING_STEP",
        "The version is not 1; the header CRC is right.",
        "A receiver that skips the check misreads whatever version 2 will be.",
        "3.2",
        "11.2",
    ),
    "HeaderCrc": note(
        "MISSING_STEP",
        "The header CRC is wrong; everything else is valid.",
        "A receiver that skips or weakens the check trusts corrupted flags.",
        "9.3",
        "11.3",
    ),
    "PayloadCrc": note(
        "MISSING_STEP",
        "The payload CRC is wrong; everything else is valid.",
        "A receiver that skips or weakens the check stores corrupted records.",
        "9.4",
        "11.3",
    ),
    "CorruptPayload": note(
        "MISSING_STEP",
        "One bit of the payload is inverted after its CRC was computed.",
        "A receiver that skips the check stores corrupted records.",
        "9.4",
        "11.3",
    ),
    "ReservedBits": note(
        "MISSING_STEP",
        "A bit that must be 0 is set; the header CRC is right.",
        "A receiver that lets it pass cannot be told when the bit gets a meaning.",
        "3.2",
        "3.3",
    ),
    "Oversize": note(
        "LIMIT",
        "The payload length is over the limit.",
        "A receiver that believes it allocates up to 4 GiB, or waits for ever.",
        "8.7",
        "13.1",
    ),
    "AtTheLimit": note(
        "LIMIT",
        "The payload length is the largest that is allowed.",
        "A receiver that is off by one refuses the largest record.",
        "8.7",
    ),
    "Truncated": note(
        "STATE",
        "The bytes end inside the frame.",
        "A receiver that expects whole frames from one read fails on slow networks.",
        "3.4",
        "17.3",
    ),
    "OddFlags": note(
        "EDGE_CASE",
        "The flags name no kind of frame, or several, or a property that is not defined.",
        "Receivers that decide differently see different frames in the same bytes.",
        "3.3",
    ),
    "EmptyIngest": note(
        "EDGE_CASE",
        "An Ingest that says it has no batch id or no record.",
        "A server that acknowledges it cannot be asked about it again.",
        "4.1",
    ),
    "StrayPayloadCrc": note(
        "CAN_OF_WORMS",
        "A payload CRC although there is no payload.",
        "None is known.",
        "3.2",
    ),
}
