#!/usr/bin/env python3
"""Drives examples/coro_proxy.cc, a proxy.cc with coroutines. coro_proxy.py PROGRAM"""

import sys
import threading

import driver
import proxy


class CoroProxy(proxy.Proxy):
    def test_both_sides_send_megabytes_at_once(self):
        client, server = self.connect()
        lot = b"0123456789abcde\n" * 500_000

        def send(peer):
            peer.socket.sendall(lot)
            peer.end()

        writers = [threading.Thread(target=send, args=(peer,)) for peer in (client, server)]
        heard = {}
        readers = [threading.Thread(target=lambda peer=peer: heard.update({peer: peer.file.read()}))
                   for peer in (client, server)]
        for thread in writers + readers:
            thread.start()
        for thread in writers + readers:
            thread.join()
        self.assertEqual(heard[client], lot)
        self.assertEqual(heard[server], lot)


if __name__ == "__main__":
    sys.exit(driver.main(sys.argv, CoroProxy))
