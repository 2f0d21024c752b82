"""aiohttp as a client, which reads jobs. See table.py."""

import asyncio
import json
import sys

import aiohttp


async def pieces():
    yield b"ch"
    yield b"unk"


async def ask(session, job, url):
    kind, size = job["body"], job["size"]
    if kind == "chunked":
        asked = session.post(url, data=pieces())
    elif size:
        asked = session.post(url, data=b"b" * size, expect100=kind == "expected")
    else:
        asked = session.get(url)
    async with asked as response:
        return {"status": response.status, "body": await response.text()}


async def run(job):
    results = []
    timeout = aiohttp.ClientTimeout(total=job["timeout"])
    connector = aiohttp.TCPConnector(limit=1)
    async with aiohttp.ClientSession(timeout=timeout, connector=connector) as session:
        for each in job["requests"]:
            try:
                url = f"http://127.0.0.1:{job['port']}{each['path']}"
                results.append(await ask(session, each, url))
            except (aiohttp.ClientError, OSError, asyncio.TimeoutError) as error:
                results.append({"error": repr(error)})
    return results


for line in sys.stdin:
    print(json.dumps(asyncio.run(run(json.loads(line)))), flush=True)
