"""http.client as a client, which reads jobs. See table.py."""

import http.client
import json
import sys


def pieces():
    yield b"ch"
    yield b"unk"


def ask(connection, job):
    kind, size = job["body"], job["size"]
    if kind == "chunked":
        connection.request("POST", job["path"], body=pieces(), encode_chunked=True,
                           headers={"Transfer-Encoding": "chunked"})
    elif size:
        connection.request("POST", job["path"], body=b"b" * size)
    else:
        connection.request("GET", job["path"])
    response = connection.getresponse()
    return {"status": response.status, "body": response.read().decode()}


def run(job):
    connection = http.client.HTTPConnection("127.0.0.1", job["port"], timeout=job["timeout"])
    results = []
    for each in job["requests"]:
        try:
            results.append(ask(connection, each))
        except (OSError, http.client.HTTPException) as error:
            results.append({"error": repr(error)})
            connection.close()
    connection.close()
    return results


for line in sys.stdin:
    print(json.dumps(run(json.loads(line))), flush=True)
