"""Applications of Starlette, FastAPI, Django, Channels and Flask, and the client of websockets.

`pip install --target` puts the packages into the directory that the environment names. A class
whose package is missing is skipped.
"""

import asyncio
import contextlib
import importlib.util
import json
import os
import sys
import tempfile
import unittest

from server_case import ServerCase

PACKAGES = os.environ.get("SPATE_PYTHON_APPLICATIONS", "")
if PACKAGES:
    sys.path.insert(0, PACKAGES)


def needs(*names):
    missing = [name for name in names if importlib.util.find_spec(name) is None]
    return unittest.skipIf(missing, f"missing: pip install --target {PACKAGES} {' '.join(missing)}")


def form(*parts):
    """Returns the headers and the body of a form with files."""
    body = b""
    for name, value in parts:
        body += (f'--cut\r\nContent-Disposition: form-data; name="{name}"; filename="{name}.txt"'
                 "\r\n\r\n").encode() + value + b"\r\n"
    body += b"--cut--\r\n"
    return f"Content-Type: multipart/form-data; boundary=cut\r\n{length(body)}", body


def length(body):
    return f"Content-Length: {len(body)}\r\n"


class Application(ServerCase):
    async def post(self, target, body, headers=""):
        return await self.get(target, "POST", length(body) + headers, body)

    def url(self, path):
        return f"ws://127.0.0.1:{self.address[1]}{path}"


@needs("starlette")
class Starlette(Application):
    def application(self, *routes, **settings):
        from starlette.applications import Starlette
        from starlette.routing import Route
        return Starlette(routes=[Route(path, function, methods=["GET", "POST"])
                                 for path, function in routes], **settings)

    async def test_json_has_parameters_of_path_and_query(self):
        from starlette.responses import JSONResponse

        async def view(request):
            return JSONResponse({"name": request.path_params["name"],
                                 "q": request.query_params["q"], "host": request.url.hostname})

        await self.serve(self.application(("/items/{name}", view)))
        response = await self.get("/items/caf%C3%A9?q=a%20b")
        self.assertEqual(response.headers["content-type"], "application/json")
        self.assertEqual(json.loads(response.body),
                         {"name": "caf\u00e9", "q": "a b", "host": "test"})
        self.assertEqual((await self.get("/none")).status, 404)

    async def test_stream_of_a_body_is_sent_back(self):
        from starlette.responses import StreamingResponse

        async def view(request):
            async def pieces():
                async for piece in request.stream():
                    yield piece
            return StreamingResponse(pieces())

        await self.serve(self.application(("/", view)))
        body = os.urandom(300_000)
        self.assertTrue((await self.post("/", body)).body == body)

    async def test_file_is_sent_in_parts_and_whole(self):
        from starlette.responses import FileResponse
        with tempfile.NamedTemporaryFile(suffix=".bin") as file:
            data = os.urandom(200_000)
            file.write(data)
            file.flush()

            async def view(request):
                return FileResponse(file.name)

            await self.serve(self.application(("/", view)))
            self.assertTrue((await self.get("/")).body == data)
            part = await self.get("/", headers="Range: bytes=10-99\r\n")
            self.assertEqual((part.status, part.body), (206, data[10:100]))
            head = await self.get("/", "HEAD")
            self.assertEqual((head.headers["content-length"], head.body), ("200000", b""))

    async def test_background_task_runs_after_the_response(self):
        from starlette.background import BackgroundTask
        from starlette.responses import PlainTextResponse
        done = asyncio.Event()

        async def finish():
            done.set()

        async def view(request):
            return PlainTextResponse("first", background=BackgroundTask(finish))

        await self.serve(self.application(("/", view)))
        self.assertEqual((await self.get("/")).body, b"first")
        await done.wait()

    async def test_stream_ends_when_the_client_leaves(self):
        from starlette.responses import StreamingResponse

        async def view(request):
            async def pieces():
                while True:
                    yield b"piece"
                    await asyncio.sleep(0.001)
            return StreamingResponse(pieces())

        server = await self.serve(self.application(("/", view)))
        client = await self.connect()
        client.request("/")
        await client.reader.readuntil(b"piece")
        self.assertTrue(server.tasks)
        client.reset()
        await self.until(lambda: not server.tasks)
        self.assertEqual(self.error_text(), [])

    async def test_state_of_the_lifespan_is_in_requests(self):
        from starlette.responses import PlainTextResponse
        events = []

        @contextlib.asynccontextmanager
        async def lifespan(app):
            events.append("start")
            yield {"word": "shared"}
            events.append("stop")

        async def view(request):
            return PlainTextResponse(request.state.word)

        server = await self.serve(self.application(("/", view), lifespan=lifespan), lifespan="on")
        self.assertEqual((await self.get("/")).body, b"shared")
        await server.stop()
        self.assertEqual(events, ["start", "stop"])

    async def test_exception_is_500_and_logged(self):
        async def view(request):
            raise KeyError("broken view")

        await self.serve(self.application(("/", view)))
        self.assertEqual((await self.get("/")).status, 500)
        self.assertIn("broken view", "".join(self.error_text()))


@needs("starlette", "websockets")
class WebSockets(Application):
    async def serve_echo(self):
        from starlette.applications import Starlette
        from starlette.routing import WebSocketRoute

        async def echo(socket):
            if "refuse" in socket.query_params:
                await socket.close()
                return
            await socket.accept(subprotocol="b", headers=[(b"x-one", b"1")])
            async for text in socket.iter_text():
                if text == "end":
                    await socket.close(4001, "enough")
                    return
                await socket.send_text(text.upper())

        await self.serve(Starlette(routes=[WebSocketRoute("/ws", echo)]))

    async def test_client_gets_messages_and_the_close_code(self):
        import websockets
        await self.serve_echo()
        async with websockets.connect(self.url("/ws"), subprotocols=["a", "b"]) as client:
            self.assertEqual(client.subprotocol, "b")
            self.assertEqual(client.response.headers["x-one"], "1")
            for text in "one", "\u00e9" * 70_000:
                await client.send(text)
                self.assertEqual(await client.recv(), text.upper())
            await client.send("end")
            with self.assertRaises(websockets.ConnectionClosed) as closed:
                await client.recv()
            self.assertEqual((closed.exception.rcvd.code, closed.exception.rcvd.reason),
                             (4001, "enough"))

    async def test_refused_client_gets_403(self):
        import websockets
        await self.serve_echo()
        with self.assertRaises(websockets.InvalidStatus) as refused:
            async with websockets.connect(self.url("/ws?refuse=1")):
                pass
        self.assertEqual(refused.exception.response.status_code, 403)


@needs("fastapi")
class FastApi(Application):
    async def serve_items(self):
        from fastapi import Depends, FastAPI, Request
        from pydantic import BaseModel
        app = FastAPI()

        class Item(BaseModel):
            name: str
            price: float

        def user(request: Request):
            return request.headers.get("x-user", "nobody")

        @app.post("/items")
        async def create(item: Item, owner: str = Depends(user)):
            return {"owner": owner, "double": item.price * 2}

        @app.get("/sync/{number}")
        def sync(number: int):  # Runs in a thread.
            return {"number": number}

        await self.serve(app)

    async def test_body_is_validated(self):
        await self.serve_items()
        json_type = "Content-Type: application/json\r\n"
        good = await self.post("/items", b'{"name": "x", "price": 1.5}',
                               json_type + "X-User: me\r\n")
        self.assertEqual(json.loads(good.body), {"owner": "me", "double": 3.0})
        self.assertEqual((await self.post("/items", b'{"name": 1}', json_type)).status, 422)

    async def test_function_runs_in_a_thread(self):
        await self.serve_items()
        responses = await asyncio.gather(*[self.get(f"/sync/{i}") for i in range(30)])
        self.assertEqual([json.loads(response.body)["number"] for response in responses],
                         list(range(30)))

    async def test_schema_is_served(self):
        await self.serve_items()
        schema = json.loads((await self.get("/openapi.json")).body)
        self.assertIn("/items", schema["paths"])


def configure_django():
    import django
    from django.conf import settings
    if not settings.configured:
        settings.configure(DEBUG=False, SECRET_KEY="test", ROOT_URLCONF=__name__,
                           ALLOWED_HOSTS=["*"], MIDDLEWARE=[], LOGGING_CONFIG=None)
        django.setup()


def urls():
    from django.http import FileResponse, HttpResponse, JsonResponse, StreamingHttpResponse
    from django.urls import path

    def hello(request):
        return HttpResponse(f"hello {request.method} {request.get_full_path()}")

    async def upload(request):
        file = request.FILES["file"]
        return JsonResponse({"name": file.name, "size": file.size})

    async def stream(request):
        async def pieces():
            for i in range(5):
                yield f"{i} ".encode()
                await asyncio.sleep(0)
        return StreamingHttpResponse(pieces())

    def file(request):
        return FileResponse(open(__file__, "rb"))

    return [path("hello", hello), path("upload", upload), path("stream", stream),
            path("file", file)]


if importlib.util.find_spec("django"):
    configure_django()
    urlpatterns = urls()


@needs("django")
class Django(Application):
    async def serve_site(self):
        from django.core.asgi import get_asgi_application
        await self.serve(get_asgi_application())

    async def test_synchronous_view_is_served(self):
        await self.serve_site()
        self.assertEqual((await self.get("/hello?x=1")).body, b"hello GET /hello?x=1")
        self.assertEqual((await self.get("/none")).status, 404)

    async def test_uploaded_file_arrives_whole(self):
        await self.serve_site()
        headers, body = form(("file", b"x" * 3_000_000))
        response = await self.get("/upload", "POST", headers, body)
        self.assertEqual(json.loads(response.body), {"name": "file.txt", "size": 3_000_000})

    async def test_streams_and_files_are_sent(self):
        await self.serve_site()
        self.assertEqual((await self.get("/stream")).body, b"0 1 2 3 4 ")
        with open(__file__, "rb") as file:
            self.assertEqual((await self.get("/file")).body, file.read())


@needs("django")
class DjangoInThreads(Application):
    async def test_views_and_uploads_are_served(self):
        from django.core.wsgi import get_wsgi_application
        await self.serve(get_wsgi_application(), interface="wsgi")
        self.assertEqual((await self.get("/hello?x=1")).body, b"hello GET /hello?x=1")
        headers, body = form(("file", b"x" * 3_000_000))
        response = await self.get("/upload", "POST", headers, body)
        self.assertEqual(json.loads(response.body), {"name": "file.txt", "size": 3_000_000})
        with open(__file__, "rb") as file:
            self.assertEqual((await self.get("/file")).body, file.read())


@needs("flask")
class Flask(Application):
    async def test_json_and_streams_are_served(self):
        import flask
        app = flask.Flask(__name__)

        @app.post("/sum")
        def add():
            return {"sum": sum(flask.request.json), "host": flask.request.host}

        @app.get("/stream")
        def stream():
            return flask.Response(f"{i} " for i in range(5))

        await self.serve(app, interface="wsgi")
        response = await self.post("/sum", b"[1, 2, 3]", "Content-Type: application/json\r\n")
        self.assertEqual(json.loads(response.body), {"sum": 6, "host": "test"})
        self.assertEqual((await self.get("/stream")).body, b"0 1 2 3 4 ")
        self.assertEqual((await self.post("/stream", b"")).status, 405)


@needs("django", "channels", "websockets")
class Channels(Application):
    async def test_consumer_gets_messages(self):
        import websockets
        from channels.generic.websocket import AsyncWebsocketConsumer
        from channels.routing import ProtocolTypeRouter, URLRouter
        from django.urls import path
        left = asyncio.Event()

        class Echo(AsyncWebsocketConsumer):
            async def connect(self):
                await self.accept()

            async def receive(self, text_data=None, bytes_data=None):
                name = self.scope["url_route"]["kwargs"]["name"]
                await self.send(text_data=f"{name}: {text_data}")

            async def disconnect(self, code):
                self.code = code
                left.set()

        await self.serve(ProtocolTypeRouter(
            {"websocket": URLRouter([path("chat/<name>", Echo.as_asgi())])}))
        async with websockets.connect(self.url("/chat/room")) as client:
            await client.send("hi")
            self.assertEqual(await client.recv(), "room: hi")
        await left.wait()
