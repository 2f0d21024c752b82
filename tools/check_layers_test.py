#!/usr/bin/env python3
"""The test of check_layers.py: small trees that keep the rule, and some that do not."""

import os
import tempfile
import unittest

import check_layers


def problems(tree):
    with tempfile.TemporaryDirectory() as root:
        for name, text in tree.items():
            path = os.path.join(root, name)
            os.makedirs(os.path.dirname(path), exist_ok=True)
            with open(path, "w", encoding="utf-8") as file:
                file.write(text)
        return check_layers.check_tree(root)[0]


class Layers(unittest.TestCase):
    def good(self, name, text):
        self.assertEqual(problems({name: text}), [])

    def bad(self, name, text, message):
        found = problems({name: text})
        self.assertEqual(len(found), 1, found)
        self.assertIn(message, found[0])
        self.assertTrue(found[0].startswith(name + ":"), found[0])

    def test_each_layer_includes_what_is_below(self):
        self.good("src/backend/epoll.cc", '#include "sys/epoll.h"\n')
        self.good("src/core/loop.cc", '#include "backend/backend.h"\n#include "sys/clock.h"\n')
        self.good("src/core/loop.cc", '#include "spate/loop.h"\n#include <spate/io.h>\n')
        self.good("src/net/stream/a.cc", '#include "spate/net/stream.h"\n#include "core/loop.h"\n')
        self.good("src/http/server/server.cc",
                  '#include "spate/net/listener.h"\n#include "http/codec/head.h"\n')

    def test_no_layer_includes_what_is_above_or_beside(self):
        self.bad("src/sys/clock.cc", '#include "core/loop.h"\n', "sys may not include core")
        self.bad("src/sys/clock.cc", '#include "spate/loop.h"\n', "sys may not include spate/loop")
        self.bad("src/backend/epoll.cc", '#include "core/loop.h"\n', "backend may not include")
        self.bad("src/core/loop.cc", '#include "net/stream.h"\n', "core may not include net")
        self.bad("src/core/loop.cc", '#include "spate/net/buffer.h"\n', "core may not include")
        self.bad("src/net/stream/a.cc", '#include "backend/backend.h"\n', "net/stream may not")
        self.bad("src/http/server/server.cc", '#include "backend/backend.h"\n',
                 "http/server may not include backend")
        self.bad("src/http/codec/head.cc", '#include "spate/net/stream.h"\n', "http/codec may not")
        self.bad("src/http/server/server.cc", '#include <spate/http/client.h>\n', "http/server may")
        self.bad("include/spate/net/stream.h", '#include <spate/http/server.h>\n', "net/stream")

    def test_the_rooms_of_net_know_those_below(self):
        self.good("src/net/listen/a.cc", '#include "net/stream/b.h"\n#include "spate/io.h"\n')
        self.good("src/net/connect/a.cc", '#include "spate/net/resolver.h"\n')
        self.bad("src/net/stream/a.cc", '#include "net/dns/resolver.h"\n', "may not include")
        self.bad("src/net/stream/a.cc", '#include "spate/net/listener.h"\n', "may not include")
        self.bad("src/net/address.cc", '#include "net/stream/b.h"\n', "net may not include")
        self.bad("include/spate/net/buffer.h", '#include "spate/net/stream.h"\n', "net may not")
        self.bad("src/net/cellar/a.cc", "int a;\n", "no layer")

    def test_the_rooms_of_sim_know_those_below(self):
        self.good("src/sim/net/a.cc", '#include "sim/kernel/b.h"\n#include "spate/sim/link.h"\n')
        self.good("src/sim/syscalls/a.cc", '#include "sim/unix/b.h"\n#include "sim/disk/c.h"\n')
        self.good("src/sim/world/a.cc", '#include "sim/syscalls/b.h"\n#include <unistd.h>\n')
        self.good("src/sim/explore/a.cc",
                  '#include "spate/sim/world.h"\n#include "spate/sim/explore.h"\n')
        for below, above in (("kernel", "net"), ("kernel", "unix"), ("kernel", "disk"),
                             ("kernel", "syscalls"), ("net", "syscalls"), ("syscalls", "world"),
                             ("world", "explore")):
            self.bad(f"src/sim/{below}/a.cc", f'#include "sim/{above}/b.h"\n',
                     f"sim/{below} may not include sim/{above}")
        for one, other in (("net", "unix"), ("unix", "net"), ("disk", "net"), ("net", "disk")):
            self.bad(f"src/sim/{one}/a.cc", f'#include "sim/{other}/b.h"\n', "may not include")
        self.bad("src/sim/kernel/a.cc", '#include "spate/sim/world.h"\n', "may not include")
        self.bad("src/sim/net/a.cc", '#include "spate/sim/disk.h"\n', "sim/net may not include")
        self.bad("include/spate/sim/link.h", '#include "spate/sim/world.h"\n', "sim/net may not")
        self.bad("include/spate/sim/world.h", '#include "spate/sim/explore.h"\n', "may not include")
        self.bad("src/http/codec/a.cc", '#include "spate/sim/link.h"\n', "may not include")
        self.bad("src/http/server/a.cc", '#include "spate/sim/link.h"\n', "may not include")
        self.bad("src/sim/a.cc", "int a;\n", "no layer")

    def test_the_rooms_of_compat_know_the_house_and_not_each_other(self):
        tree = {"compat/libevent/log.h": "", "compat/libevent/event/base.h": "",
                "compat/libev/loop.h": ""}
        include = '#include "compat/libevent/%s"\n'
        self.assertEqual(problems(tree | {
            "compat/libevent/evutil/time.cc": include % "log.h",
            "compat/libevent/event/base.cc": include % "event/base.h" + include % "log.h"}), [])
        for name, header, other in (("libevent/evutil/time.cc", "event/base.h", "libevent/event"),
                                    ("libevent/log.cc", "event/base.h", "libevent/event"),
                                    ("libev/io.cc", "log.h", "libevent")):
            found = problems(tree | {f"compat/{name}": include % header})
            self.assertEqual(len(found), 1, found)
            self.assertIn(f"may not include {other}", found[0])
        self.bad("compat/libevent/cellar/a.cc", "int a;\n", "no room")

    def test_the_table_has_no_circle(self):
        self.assertEqual(list(check_layers.check_table()), [])
        check_layers.LAYERS["base"].add("net")
        self.assertEqual(len(list(check_layers.check_table())), 1)
        check_layers.LAYERS["base"].remove("net")

    def test_files_beside_are_found(self):
        tree = {"src/backend/a.cc": '#include "../core/b.h"\n', "src/core/b.h": ""}
        self.assertEqual(problems(tree), ["src/backend/a.cc:1: backend may not include core"])
        tree = {"src/core/a.cc": '#include "b.h"\n', "src/core/b.h": ""}
        self.assertEqual(problems(tree), [])

    def test_the_vocabulary_is_for_all_and_depends_on_nothing(self):
        self.good("src/sys/clock.h", '#include "spate/time.h"\n')
        self.good("include/spate/error.h", '#include "spate/assert.h"\n')
        self.bad("include/spate/error.h", '#include "spate/loop.h"\n', "the vocabulary depends on")

    def test_only_sys_includes_kernel_headers(self):
        self.good("src/sys/epoll.h", "#include <sys/epoll.h>\n#include <unistd.h>\n")
        for header in ("sys/epoll.h", "unistd.h", "fcntl.h", "csignal", "time.h", "linux/aio.h"):
            self.bad("src/core/loop.cc", f"#include <{header}>\n", "for src/sys only")
            self.bad("include/spate/loop.h", f"#include <{header}>\n", "for src/sys only")
        self.good("src/core/loop.cc", "#include <cerrno>\n#include <chrono>\n#include <thread>\n")

    def test_only_sys_reads_clocks_and_enters_the_kernel(self):
        self.good("src/sys/clock.cc", "auto now() { return ::clock_gettime(a, b); }\n")
        self.bad("src/core/a.cc", "auto a = std::chrono::steady_clock::now();\n", "a clock")
        self.bad("include/spate/time.h", "auto a = std::chrono::system_clock::now();\n", "a clock")
        self.bad("src/core/a.cc", "int a = ::read(fd, b, c);\n", "enters the kernel")
        self.good("src/core/a.cc", "int a = sys::read(fd, b, c);  // not ::read(fd)\n")
        self.good("src/core/a.cc", "void Stream::write(int) { sink->write(1); }\n")

    def test_public_headers_include_no_internal_one(self):
        self.bad("include/spate/loop.h", '#include "core/fd_table.h"\n', "includes an internal one")

    def test_compat_bindings_and_examples_see_public_headers_only(self):
        for directory in ("compat/libev", "bindings/perl", "examples", "bench/workloads/fd"):
            self.good(f"{directory}/a.cc", "#include <spate/loop.h>\n#include <unistd.h>\n")
            self.bad(f"{directory}/a.cc", '#include "core/loop.h"\n', "public headers only")

    def test_a_contestant_is_built_on_one_library(self):
        self.good("bench/workloads/fd/libev.c", "#include <ev.h>\n")
        self.bad("bench/workloads/fd/x.c", "#include <ev.h>\n#include <uv.h>\n", "libev and libuv")

    def test_tests_are_free(self):
        text = '#include "net/stream.h"\n#include <unistd.h>\n'
        self.good("src/core/loop_test.cc", text)
        self.good("src/sys/testing/a.cc", text)
        self.good("tests/conformance/a.cc", text)

    def test_an_include_in_a_comment_is_none(self):
        self.good("src/core/a.cc", '// #include "net/a.h"\n/*\n#include "net/b.h"\n*/\n')

    def test_a_layer_must_be_known(self):
        self.bad("src/stuff/a.cc", "int a;\n", "no layer")


if __name__ == "__main__":
    unittest.main()
