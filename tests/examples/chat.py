#!/usr/bin/env python3
"""examples/chat.cc, and its guests.   chat.py PROGRAM"""

import sys
import unittest

import server


class Chat(unittest.TestCase):
    program = None

    def test_tells_everybody_but_the_speaker(self):
        with server.Server(self.program, "0") as chat:
            guests = []
            for number in range(1, 4):
                guests.append(chat.connect())
                self.assertEqual(guests[-1].hear(), f"you are guest {number}")
                for other in guests[:-1]:
                    self.assertEqual(other.hear(), f"guest {number} has come")
            anna, bert, carl = guests
            anna.say("hello, everybody")
            self.assertEqual(bert.hear(), "guest 1 says: hello, everybody")
            self.assertEqual(carl.hear(), "guest 1 says: hello, everybody")
            bert.say("hello, Anna")
            self.assertEqual(anna.hear(), "guest 2 says: hello, Anna")
            carl.hang_up()
            self.assertEqual(anna.hear(), "guest 3 has gone")
            anna.hang_up()
            bert.hang_up()
            self.assertEqual(chat.stop(), 0)

    def test_shows_those_out_who_do_not_listen(self):
        with server.Server(self.program, "0") as chat:
            deaf, talker = chat.connect(), chat.connect()
            deaf.hear()
            talker.hear()
            line = "x" * 900
            gone = ""
            while not gone:
                for _ in range(1000):
                    talker.say(line)
                talker.socket.settimeout(0.2)
                try:
                    gone = talker.hear()
                except TimeoutError:
                    talker.file = talker.socket.makefile("rb")
                talker.socket.settimeout(server.PATIENCE)
            self.assertEqual(gone, "guest 1 has gone")
            talker.hang_up()
            deaf.hang_up()


if __name__ == "__main__":
    server.main(sys.argv, Chat)
