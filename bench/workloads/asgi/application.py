"""The application that all servers serve."""

TEXT = (b"content-type", b"text/plain")
BODIES = {"/hello": b"Hello, World!", "/page": b"p" * 20 * 1024}


async def app(scope, receive, send):
    if scope["type"] != "http":
        raise RuntimeError("it has neither lifespan nor WebSockets")
    body = BODIES[scope["path"]]
    await send({"type": "http.response.start", "status": 200,
                "headers": [TEXT, (b"content-length", str(len(body)).encode())]})
    await send({"type": "http.response.body", "body": body})
