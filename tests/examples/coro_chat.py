#!/usr/bin/env python3
"""Drives examples/coro_chat.cc.   coro_chat.py PROGRAM"""

import sys
import unittest

import driver


class CoroChat(unittest.TestCase):
    program = None

    def test_asks_for_names_and_sends_each_line_to_all_others(self):
        with driver.Server(self.program, "0") as chat:
            users = []
            for name in ("ann", "bob", "cem"):
                users.append(chat.connect())
                self.assertEqual(users[-1].hear(), "who are you?")
                users[-1].say(name)
                for other in users[:-1]:
                    self.assertEqual(other.hear(), f"{name} joined")
            first, second, third = users
            first.say("hello, everybody")
            self.assertEqual(second.hear(), "ann: hello, everybody")
            self.assertEqual(third.hear(), "ann: hello, everybody")
            third.hang_up()
            self.assertEqual(first.hear(), "cem left")
            self.assertEqual(second.hear(), "cem left")
            second.say("x" * 2000)
            self.assertEqual(first.hear(), "bob left")
            first.hang_up()
            second.hang_up()
            self.assertEqual(chat.stop(), 0)

    def test_disconnects_everybody_on_sigterm(self):
        with driver.Server(self.program, "0") as chat:
            stranger, member = chat.connect(), chat.connect()
            self.assertEqual(stranger.hear(), "who are you?")
            self.assertEqual(member.hear(), "who are you?")
            member.say("ann")
            chat.process.terminate()
            self.assertEqual(stranger.hear(), "")
            self.assertEqual(member.hear(), "")
            stranger.hang_up()
            member.hang_up()
            self.assertEqual(chat.process.wait(driver.PATIENCE), 0)


if __name__ == "__main__":
    sys.exit(driver.main(sys.argv, CoroChat))
