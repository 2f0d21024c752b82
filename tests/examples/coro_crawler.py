#!/usr/bin/env python3
"""Drives examples/coro_crawler.cc, a crawler.cc with coroutines. coro_crawler.py PROGRAM"""

import sys

import crawler
import driver


class CoroCrawler(crawler.Crawler):
    def test_several_at_a_time_find_the_same(self):
        done = driver.run(self.program, self.url, "3")
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertEqual(done.stdout.splitlines()[:-1], [
            "200 /", "200 /a", "200 /b?c=d", "404 /missing", "200 /moved"])


if __name__ == "__main__":
    sys.exit(driver.main(sys.argv, CoroCrawler))
