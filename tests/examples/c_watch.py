#!/usr/bin/env python3
"""Drives examples/c_watch.c, which prints the lines of examples/watch.cc.   c_watch.py PROGRAM"""

import sys

import driver
import watch

if __name__ == "__main__":
    sys.exit(driver.main(sys.argv, watch.Watch))
