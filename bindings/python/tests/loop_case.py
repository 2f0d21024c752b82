"""The base of test cases that run on a spate.Loop without debug mode, as programs do."""

import asyncio
import sys
import unittest

import spate


class LoopCase(unittest.IsolatedAsyncioTestCase):
    if sys.version_info >= (3, 13):
        loop_factory = spate.Loop
    else:
        def _setupAsyncioRunner(self):
            self._asyncioRunner = asyncio.Runner(debug=False, loop_factory=spate.Loop)

    async def asyncSetUp(self):
        asyncio.get_running_loop().set_debug(False)  # Python 3.13 and later enable it.

    async def until(self, condition):
        while not condition():
            await asyncio.sleep(0.001)
