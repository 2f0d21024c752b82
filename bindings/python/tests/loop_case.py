"""The bases of test cases."""

import asyncio
import socket
import sys
import unittest

import spate


class LoopCase(unittest.IsolatedAsyncioTestCase):
    """Tests that run on a spate.Loop without debug mode, as programs do."""

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


class TurnCase(unittest.TestCase):
    """Tests that run the turns of a loop."""

    def setUp(self):
        self.loop = spate.new_event_loop()
        self.addCleanup(self.loop.close)
        self.reported = []
        self.loop.set_exception_handler(lambda loop, context: self.reported.append(context))

    def turn(self):
        self.loop.call_soon(self.loop.stop)
        self.loop.run_forever()

    def pair(self):
        ends = socket.socketpair()
        for end in ends:
            end.setblocking(False)
            self.addCleanup(end.close)
        return ends
