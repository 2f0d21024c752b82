"""The page of a running loop."""

import asyncio
import json
import unittest

import spate


async def fetch(port, request):
    """Returns the response's status and body."""
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    writer.write(request.encode())
    response = await reader.read()
    writer.close()
    head, _, body = response.decode().partition("\r\n\r\n")
    return head.partition("\r\n")[0].partition(" ")[2], body


def run(*requests):
    """Returns the responses."""
    async def main():
        server = await spate.inspect(0)
        port = server.sockets[0].getsockname()[1]
        waiting = asyncio.create_task(asyncio.sleep(1000), name="<waiting>")
        responses = [await fetch(port, request) for request in requests]
        waiting.cancel()
        server.close()
        return responses
    return spate.run(main())


class Inspector(unittest.TestCase):
    def test_documents_show_figures_and_tasks(self):
        host = "HTTP/1.1\r\nHost: localhost:9\r\n\r\n"
        page, text, figures = run(f"GET / {host}", f"GET /json?x {host}", f"GET /metrics {host}")
        self.assertEqual(page[0], "200 OK")
        self.assertIn("&lt;waiting&gt;", page[1])
        self.assertNotIn("<waiting>", page[1])
        shown = json.loads(text[1])
        self.assertGreater(shown["turns"], 0)
        self.assertIn("<waiting>", [task["name"] for task in shown["tasks"]])
        self.assertRegex(figures[1], r"(?m)^spate_loop_callbacks [1-9][0-9]*$")

    def test_other_requests_are_refused(self):
        host = "HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n"
        responses = run(f"POST / {host}", f"GET /other {host}", f"HEAD / {host}",
                        "GET / HTTP/1.1\r\nHost: example.com:80\r\n\r\n",
                        "GET / HTTP/1.1\r\nHost: [::1]:80\r\n\r\n", "x" * 10000)
        self.assertEqual([status for status, _ in responses],
                         ["405 Method Not Allowed", "404 Not Found", "200 OK",
                          "421 Misdirected Request", "200 OK", ""])
        self.assertEqual(responses[2][1], "")


if __name__ == "__main__":
    unittest.main()
