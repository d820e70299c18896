"""The baseline for the service: an ASGI application that only decodes and encodes JSON."""

from __future__ import annotations

import sys
from typing import Any

import msgspec
import uvicorn

_decode = msgspec.json.Decoder(dict[str, Any]).decode
_encode = msgspec.json.Encoder().encode


async def app(scope: Any, receive: Any, send: Any) -> None:
    assert scope["type"] == "http"
    message = await receive()
    body = message["body"]
    while message.get("more_body"):
        message = await receive()
        body += message["body"]
    request = _decode(body)
    if "context" in request:
        response = _encode({"id": "~1", "action": request["context"][0], "density": 1.0, "model": 0})
    else:
        response = _encode({"id": "~1", "status": "recorded"})
    headers = [(b"content-type", b"application/json"), (b"content-length", str(len(response)).encode())]
    await send({"type": "http.response.start", "status": 200, "headers": headers})
    await send({"type": "http.response.body", "body": response})


if __name__ == "__main__":
    settings: dict[str, Any] = {"loop": "uvloop", "http": "httptools", "lifespan": "off", "log_config": None}
    uvicorn.run(app, host="127.0.0.1", port=int(sys.argv[1]), access_log=False, server_header=False, **settings)
