"""HTTP/2 and TLS: applications beside curl, nghttp and h2load."""

import asyncio
import os
import re
import shutil
import ssl
import subprocess
import tempfile

from server_case import ServerCase, read_all, respond
from spate_server.tls import SUITES


async def app(scope, receive, send):
    body = await read_all(receive)
    text = (f"{scope['http_version']} {scope['scheme']} {scope['method']} "
            f"{dict(scope['headers'])[b'host'].decode()} {len(body)}")
    await respond(send, text.encode())


class Http2(ServerCase):
    def url(self, scheme="http"):
        return f"{scheme}://127.0.0.1:{self.address[1]}/"

    def certificate(self):
        if shutil.which("openssl") is None:
            self.skipTest("the program openssl is missing")
        directory = tempfile.TemporaryDirectory()
        self.addCleanup(directory.cleanup)
        chain, key = (os.path.join(directory.name, name) for name in ("chain.pem", "key.pem"))
        subprocess.run(["openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt",
                        "ec_paramgen_curve:P-256", "-nodes", "-subj", "/CN=localhost", "-addext",
                        "subjectAltName=IP:127.0.0.1", "-keyout", key, "-out", chain],
                       check=True, stderr=subprocess.DEVNULL)
        return chain, key

    async def test_prior_knowledge_is_served(self):
        await self.serve(app)
        out = await self.run_peer("curl", "-s", "--http2-prior-knowledge", "-d", "abc", self.url())
        self.assertEqual(out.decode(), f"2 http POST 127.0.0.1:{self.address[1]} 3")

    async def test_tls_is_served_in_both_versions(self):
        chain, key = self.certificate()
        await self.serve(app, ssl_certfile=chain, ssl_keyfile=key)
        for option, version in ("--http1.1", "1.1"), ("--http2", "2"):
            out = await self.run_peer("curl", "-s", "--cacert", chain, option, self.url("https"))
            self.assertEqual(out.decode(), f"{version} https GET 127.0.0.1:{self.address[1]} 0")

    async def test_tls_extension_has_versions_and_certificates(self):
        chain, key = self.certificate()
        scopes = []

        async def note(scope, receive, send):
            scopes.append(scope)
            await respond(send)

        await self.serve(note, ssl_certfile=chain, ssl_keyfile=key, ssl_ca_certs=chain,
                         ssl_cert_reqs=1)
        with open(chain) as file:
            pem = file.read()
        context = ssl.create_default_context(cafile=chain)
        context.maximum_version = ssl.TLSVersion.TLSv1_2
        for certificates in (), (pem,):
            if certificates:
                context.load_cert_chain(chain, key)
                context.maximum_version = ssl.TLSVersion.TLSv1_3
            reader, writer = await asyncio.open_connection(*self.address, ssl=context)
            writer.write(b"GET / HTTP/1.0\r\n\r\n")
            await reader.read()
            cipher = writer.get_extra_info("ssl_object").cipher()[0]
            writer.close()
            tls = scopes[-1]["extensions"]["tls"]
            self.assertIn("http.response.pathsend", scopes[-1]["extensions"])
            self.assertEqual(tls["server_cert"], pem)
            self.assertEqual(tls["tls_version"], 0x0304 if certificates else 0x0303)
            self.assertEqual(tls["cipher_suite"], SUITES[cipher])
            self.assertEqual(tls["client_cert_chain"], certificates)
            self.assertEqual(tls["client_cert_name"], "CN=localhost" if certificates else None)
            self.assertIsNone(tls["client_cert_error"])

    async def test_required_certificate_of_a_client_is_checked(self):
        chain, key = self.certificate()
        await self.serve(app, ssl_certfile=chain, ssl_keyfile=key, ssl_ca_certs=chain,
                         ssl_cert_reqs=2)
        context = ssl.create_default_context(cafile=chain)
        with self.assertRaises((ssl.SSLError, ConnectionError)):
            reader, writer = await asyncio.open_connection(*self.address, ssl=context)
            writer.write(b"GET / HTTP/1.0\r\n\r\n")
            if not await reader.read():
                raise ConnectionError
        context.load_cert_chain(chain, key)
        reader, writer = await asyncio.open_connection(*self.address, ssl=context)
        writer.write(b"GET / HTTP/1.0\r\nHost: x\r\n\r\n")
        self.assertIn(b"1.0 https GET x 0", await reader.read())
        writer.close()

    async def test_trailers_are_sent(self):
        async def trailers(scope, receive, send):
            await send({"type": "http.response.start", "status": 200, "headers": [],
                        "trailers": True})
            await send({"type": "http.response.body", "body": b"ab"})
            await send({"type": "http.response.trailers", "headers": [(b"x-sum", b"7")]})

        await self.serve(trailers)
        out = await self.run_peer("nghttp", "-v", self.url())
        self.assertRegex(out.decode(), r"x-sum: 7")

    async def test_many_streams_are_served(self):
        await self.serve(app)
        out = await self.run_peer("h2load", "-n", "2000", "-c", "4", "-m", "20", self.url())
        self.assertRegex(out.decode(), r"2000 succeeded, 0 failed, 0 errored")

    async def test_exception_in_the_body_resets_the_stream_only(self):
        async def broken(scope, receive, send):
            if scope["path"] == "/good":
                await respond(send, b"good")
                return
            await send({"type": "http.response.start", "status": 200, "headers": []})
            await send({"type": "http.response.body", "body": b"ab", "more_body": True})
            raise KeyError("broken")

        await self.serve(broken)
        out = (await self.run_peer("nghttp", "-v", self.url() + "bad",
                                   self.url() + "good")).decode()
        self.assertTrue(re.search(r"recv RST_STREAM", out), out)
        self.assertIn("good", out)
