#!/usr/bin/env python3
"""Drives examples/embed_glib.cc.   embed_glib.py PROGRAM"""

import sys

import driver


class EmbedGlib(driver.EchoTest):
    def test_glib_gets_its_signals(self):
        with self.start() as echo:
            self.assertEqual(echo.stop(), 0)


if __name__ == "__main__":
    sys.exit(driver.main(sys.argv, EmbedGlib))
