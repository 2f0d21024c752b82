#!/usr/bin/env python3
"""Drives examples/udp_echo.cc.   udp_echo.py PROGRAM"""

import socket
import sys
import unittest

import driver


class UdpEcho(unittest.TestCase):
    program = None

    def test_echoes_each_packet(self):
        with driver.Server(self.program, "0") as echo:
            with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as peer:
                peer.settimeout(driver.PATIENCE)
                peer.connect(("127.0.0.1", echo.port))
                packets = {f"packet {i}".encode() for i in range(50)}
                for packet in packets:
                    peer.send(packet)
                self.assertEqual({peer.recv(100) for _ in packets}, packets)
            self.assertEqual(echo.stop(), 0)


if __name__ == "__main__":
    sys.exit(driver.main(sys.argv, UdpEcho))
