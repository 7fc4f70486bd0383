"""What the published QWP client stored for sending, byte for byte."""

SENT = {
    "name": "questdb for Python",
    "version": "6.0.0",
    "how": "captured: read from the store-and-forward slot that the published client wrote",
}
"""Where the messages come from."""

FRAMES = (
    (
        "symbol",
        "A symbol, a LONG and the time of the row in microseconds.",
        (
            "9f15b35c330000005157503101080100270000000001024130017401030373796d09017605000a00"
            "00000000000000000000000080e4e86e100600"
        ),
    ),
    (
        "long",
        "A LONG of -1.",
        (
            "64862c512c000000515750310108010020000000010004696e74730102017605001000ffffffffff"
            "ffffff00000094bc3d31b017"
        ),
    ),
    (
        "largest-long",
        "The largest LONG.",
        (
            "16fe0d512c000000515750310108010020000000010004776964650102017605001000ffffffffff"
            "ffff7f00000094bc3d31b017"
        ),
    ),
    (
        "double",
        "A DOUBLE of 1.5.",
        (
            "9936a4ff2e000000515750310108010022000000010006666c6f6174730102017607001000000000"
            "000000f83f00000094bc3d31b017"
        ),
    ),
    (
        "boolean",
        "A BOOLEAN of true.",
        (
            "7793a2b22600000051575031010801001a000000010005626f6f6c73010201760100100001000000"
            "94bc3d31b017"
        ),
    ),
    (
        "varchar",
        "A VARCHAR beyond ASCII.",
        (
            "60811dd4340000005157503101080100280000000100057465787473010201760f00100000000000"
            "070000006772c3b6c39f6500000094bc3d31b017"
        ),
    ),
    (
        "timestamps",
        "Times in microseconds and nanoseconds.",
        (
            "9aa382003900000051575031010801002d00000001000574696d6573010301760a016e1000100001"
            "80e4e86e10060000000094bc3d31b01700000094bc3d31b017"
        ),
    ),
    (
        "datetime",
        "A time from a date.",
        (
            "75a700b52d0000005157503101080100210000000100056461746573010201760a0010000080e4e8"
            "6e10060000000094bc3d31b017"
        ),
    ),
    (
        "decimal",
        "The DECIMAL256 12.34: 1234 with scale 2.",
        (
            "f24ea8044900000051575031010801003d000000010008646563696d616c73010201761500100002"
            "d20400000000000000000000000000000000000000000000000000000000000000000094bc3d31b0"
            "17"
        ),
    ),
    (
        "uuid",
        "A UUID, its low half first.",
        (
            "e10ff64d350000005157503101080100290000000100057575696473010201760c001000ffeeddcc"
            "bbaa9988776655443322110000000094bc3d31b017"
        ),
    ),
    (
        "array",
        "A DOUBLE_ARRAY of two by two.",
        (
            "05ebf2b24f0000005157503101080100430000000100066172726179730102017611001000020200"
            "000002000000000000000000f03f0000000000000040000000000000084000000000000010400000"
            "0094bc3d31b017"
        ),
    ),
    (
        "binary",
        "A BINARY of two bytes.",
        (
            "4bc466a92f0000005157503101080100230000000100056279746573010201761700100000000000"
            "0200000000ff00000094bc3d31b017"
        ),
    ),
    (
        "rows",
        "Three rows; columns that a row lacks are null, by a bit or by a value.",
        (
            "50f8e3216c000000515750310108010060000000010202733002733204726f77730305016109016e"
            "05001001620101740f01020102000000000000000000010000000000000000000000000000800000"
            "0094bc3d31b017000094bc3d31b017000094bc3d31b01700040103000000000100000078"
        ),
    ),
    (
        "server-time",
        "A row that the server gives its time.",
        "ca69e7ad200000005157503101080100140000000300036e6f770101017605000100000000000000",
    ),
)
"""Frames of the slot: checksum, length, and one message; name, what it holds, and the bytes."""

PAYLOADS = tuple((name, comment, bytes.fromhex(frame)[8:]) for name, comment, frame in FRAMES)
"""The messages alone."""

SPOKEN = SENT | {"how": "captured: what the published client sent over its connection"}
UPGRADE = (
    b"GET /api/v4/write HTTP/1.1\r\n"
    b"Host: 127.0.0.1:29100\r\n"
    b"Connection: Upgrade\r\n"
    b"Upgrade: websocket\r\n"
    b"Sec-WebSocket-Version: 13\r\n"
    b"Sec-WebSocket-Key: yZhRvJkieh2lpBZEEP5rLw==\r\n"
    b"X-QWP-Max-Version: 1\r\n"
    b"X-QWP-Request-Durable-Ack: true\r\n"
    b"Authorization: Basic dTpw\r\n"
    b"\r\n"
)
"""The head of its request, with durable acknowledgements and a made-up user."""
UPGRADED = (
    b"HTTP/1.1 101 Switching Protocols\r\n"
    b"Upgrade: websocket\r\n"
    b"Connection: Upgrade\r\n"
    b"Sec-WebSocket-Accept: OCqu6rU9NrCU3BmYQMZiviHgtpA=\r\n"
    b"X-QWP-Version: 1\r\n"
    b"X-QWP-Durable-Ack: enabled\r\n"
    b"X-QWP-Max-Batch-Size: 131058\r\n"
    b"\r\n"
)
"""The head of the answer that it took."""
CATCH_UP = "51575031010800000b0000000003024130027330027332"
"""The first message of a connection: the symbols of earlier ones, and no table."""
NEXT_SYMBOL = "51575031010801001d0000000301027339056c6174657201020161090010000300000094bc3d31b017"
"""A message after it, with the next symbol."""

ANSWERED = SENT | {"how": "captured: answers that the published client took for what they are"}
OK_WITHOUT_TABLES = b"\x00" + (2).to_bytes(8, "little") + b"\0\0"
OK = "00000000000000000001000100740100000000000000"
DURABLE = "02010001007402000000000000" + "00"
SEGMENT = "53463031010100000000000000000000c26148fbcd600600"
"""The header of the segment that holds the frames."""
SPARE = "53463031010100000000000000000000ef6348fbcd600600"
"""The header of the segment that was prepared behind it."""
MANIFEST = "53464d310100000001" + 51 * "00" + "3027a8cb"
"""The manifest's first record; it stands in byte 4096 of its file."""
SYMBOLS = "53594431010000000103024130" + "6fd5788c" + "02060273300273327bc89a70"
"""The whole symbol dictionary: a header and two chunks."""
HOLDER = "33313136300a"
"""The whole of `.lock.pid`."""
