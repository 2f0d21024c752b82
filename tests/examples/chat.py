#!/usr/bin/env python3
"""Drives examples/chat.cc.   chat.py PROGRAM"""

import sys
import unittest

import driver


class Chat(unittest.TestCase):
    program = None

    def test_sends_each_line_to_all_others(self):
        with driver.Server(self.program, "0") as chat:
            users = []
            for number in range(1, 4):
                users.append(chat.connect())
                self.assertEqual(users[-1].hear(), f"you are user {number}")
                for other in users[:-1]:
                    self.assertEqual(other.hear(), f"user {number} joined")
            first, second, third = users
            first.say("hello, everybody")
            self.assertEqual(second.hear(), "user 1: hello, everybody")
            self.assertEqual(third.hear(), "user 1: hello, everybody")
            second.say("hello, first")
            self.assertEqual(first.hear(), "user 2: hello, first")
            third.hang_up()
            self.assertEqual(first.hear(), "user 3 left")
            first.hang_up()
            second.hang_up()
            self.assertEqual(chat.stop(), 0)

    def test_disconnects_a_client_that_does_not_read(self):
        with driver.Server(self.program, "0") as chat:
            deaf, talker = chat.connect(), chat.connect()
            deaf.hear()
            talker.hear()
            line = "x" * 900
            left = ""
            while not left:
                for _ in range(1000):
                    talker.say(line)
                talker.socket.settimeout(0.2)
                try:
                    left = talker.hear()
                except TimeoutError:
                    talker.file = talker.socket.makefile("rb")
                talker.socket.settimeout(driver.PATIENCE)
            self.assertEqual(left, "user 1 left")
            talker.hang_up()
            deaf.hang_up()


if __name__ == "__main__":
    sys.exit(driver.main(sys.argv, Chat))
