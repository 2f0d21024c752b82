#!/usr/bin/env python3
"""Drives examples/idle_timeout.cc.   idle_timeout.py PROGRAM"""

import sys
import threading

import driver


class IdleTimeout(driver.EchoTest):
    arguments = ("0", "1")

    def test_closes_the_idle_connection_only(self):
        with self.start() as echo:
            idle, busy = echo.connect(), echo.connect()
            is_closed = threading.Event()

            def wait_for_the_end():
                self.assertEqual(idle.hear(), "")
                is_closed.set()

            waiter = threading.Thread(target=wait_for_the_end)
            waiter.start()
            while not is_closed.wait(0.1):
                busy.say("still here")
                self.assertEqual(busy.hear(), "still here")
            waiter.join()
            port = idle.socket.getsockname()[1]
            self.assertIn(f":{port}: ", echo.read_line())
            busy.hang_up()
            idle.hang_up()


if __name__ == "__main__":
    sys.exit(driver.main(sys.argv, IdleTimeout))
