#!/usr/bin/env python3
"""Drives examples/echo_by_hand.cc.   echo_by_hand.py PROGRAM"""

import sys

import driver

if __name__ == "__main__":
    sys.exit(driver.main(sys.argv, driver.EchoTest))
