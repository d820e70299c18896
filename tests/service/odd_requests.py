"""Requests as an attacker, a bad proxy or a broken client would send them."""

import json

LOOP = "/v1/loops/heat"
PAUSE = b"POST /v1/loops/heat/resume HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Length: 0\r\n\r\n"
LAST = b"GET /healthz HTTP/1.1\r\nHost: 127.0.0.1\r\nConnection: close\r\n\r\n"
METHODS = ["POST"] * 12 + ["GET", "PUT", "DELETE", "OPTIONS", "PATCH", "post", "FOO", "POST ", ""]
PATHS = [f"{LOOP}/decisions"] * 8 + [f"{LOOP}/decisions/o1/loss"] * 4 + [
    f"{LOOP}/decisions/known/loss", f"{LOOP}/decisions/", f"{LOOP}/decisions?x=1", f"{LOOP}/decisions#x", "//decisions",
    "/v1/loops/h%65at/decisions", "/v1/loops/heat%0a/decisions", "/v1/loops/heat%2fdecisions", "/v1/loops/cold/decisions",
    f"http://127.0.0.1{LOOP}/decisions", f"{LOOP}/decisions/%6f1/loss", f"{LOOP}/decisions/~1/loss",
    f"{LOOP}/decisions/o1/loss/", f"{LOOP}/decisions\xe9",
    f"{LOOP}/decisions/a%00b/loss", "*", "/healthz", f"{LOOP}/pause", "/V1/loops/heat/decisions", f"{LOOP}/../heat/decisions",
]  # fmt: skip
VERSIONS = ["HTTP/1.1"] * 16 + ["HTTP/1.0", "HTTP/2.0", "HTTP/0.9", "HTTP/1.1 ", "http/1.1", "HTTP/1.11", ""]
HEADERS = [
    "Host: 127.0.0.1", "Host: evil.example", "Authorization: Bearer a", "Authorization: Bearer b", "Content-Type: text/plain",
    "Transfer-Encoding : chunked", "X : y", " X: y", "X: a\r\n folded", "X: a\r\n\tfolded", "X: a\0b", "X: a\x01b", "X: a\x7fb",
    "X\0: a", ": empty", "no colon", "X: \xe9", "X\xe9: a", "X: a\nY: b", "X: a\rY: b", "Connection: close",
    "Connection: upgrade\r\nUpgrade: websocket", "Connection: Upgrade, HTTP2-Settings\r\nUpgrade: h2c", "Connection: keep-alive",
    "Expect: 100-continue", "Expect: nothing", "Origin: http://evil.example", "Origin: null", "Sec-Fetch-Site: cross-site",
    "Sec-Fetch-Site: same-origin", "X-Request-Id: mine", "X-Request-Id: not mine", "Content-Encoding: gzip", "Cookie: a=b",
    "X-Forwarded-For: 192.0.2.1", "X: " + "a" * 40_000, "\r\n".join(["X: a"] * 120), "Content-Length: 5", "Transfer-Encoding: gzip",
]  # fmt: skip
LENGTHS = [
    "-1",
    "+5",
    "0x10",
    "5, 5",
    "",
    "0005",
    " 5",
    "5 ",
    "9" * 19,
    "9" * 5000,
    "1e3",
    "\u0665".encode().decode("latin-1"),
]
CODINGS = [
    "chunked",
    "Chunked",
    "chunked, chunked",
    "gzip, chunked",
    "identity",
    "xchunked",
    "chunked ",
    "\tchunked",
    "chunked;q=1",
]
ENDS = [b"\r\n"] * 30 + [b"\n", b"\r", b"\r\r\n"]


def body(random):
    """What a request says, mostly in good order."""
    context = [round(random.gauss(0, 1), 3), 1]
    return random.choice(
        [
            *[json.dumps({"context": context}).encode()] * 5,
            json.dumps({"context": context, "id": random.choice(["a", "b", f"id-{random.randrange(50)}"])}).encode(),
            json.dumps({"loss": random.choice([0.5, 0.25, 7])}).encode(),
            b' {"loss": 0.5}\r\n',
            b"\xef\xbb\xbf{}",
            b"",
            b"{",
            b"\xff\xfe",
            PAUSE,
        ]
    )


def chunked(random, content):
    """A body in chunks, and sometimes in something that is not quite chunks."""
    size = b"%x" % len(content)
    return random.choice(
        [
            size + b"\r\n" + content + b"\r\n0\r\n\r\n",
            size + b";a=b\r\n" + content + b"\r\n0\r\nX: trailer\r\n\r\n",
            size + b"\n" + content + b"\n0\n\n",
            b"0" + size + b"\r\n" + content + b"\r\n0\r\n\r\n",
            b"-1\r\n" + content + b"\r\n0\r\n\r\n",
            b"f" * 17 + b"\r\n" + content,
            b"0\r\n\r\n" + content,
        ]
    )


def request(random):
    """One request."""
    content = body(random)
    lines = [f"{random.choice(METHODS)} {random.choice(PATHS)} {random.choice(VERSIONS)}", "Host: 127.0.0.1"]
    lines += random.sample(HEADERS, random.choice([0, 0, 0, 1, 1, 2]))
    kind = random.random()
    if kind < 0.6:
        lines.append(f"Content-Length: {len(content)}")
    elif kind < 0.7:
        lines.append(f"Content-Length: {random.choice(LENGTHS)}")
    elif kind < 0.73:
        lines.append(f"Content-Length: {len(content) + random.choice([-3, 3, 500])}")
    elif kind < 0.95:
        lines.append(f"Transfer-Encoding: {random.choice([*['chunked'] * 9, *CODINGS])}")
        content = chunked(random, content)
    if random.random() < 0.05:
        random.shuffle(lines)
    end = random.choice(ENDS)
    return end.join(line.encode("latin-1", "replace") for line in lines) + end + end + content


def pieces(random):
    """One to three requests and a last one that closes the connection, cut into one to four pieces.

    Bad chunks that come later than their head race with its answer, so that chunks are not cut from their heads.
    """
    data = b"".join(request(random) for _ in range(random.choice([1, 1, 1, 2, 3]))) + LAST
    most = min(40, len(data)) if b"chunked" in data.lower() else len(data)
    cuts = sorted(random.randrange(most) for _ in range(random.choice([0, 0, 1, 3])))
    return [data[start:end] for start, end in zip([0, *cuts], [*cuts, len(data)], strict=True) if end > start]
