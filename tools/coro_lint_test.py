#!/usr/bin/env python3
"""Tests of coro_lint.py: for each rule a sample that breaks it, and the correct form."""

import os
import subprocess
import sys
import tempfile
import unittest

import coro_lint

TOOL = os.path.join(os.path.dirname(os.path.abspath(__file__)), "coro_lint.py")


def rules(body):
    """Returns the findings in the body of a coroutine."""
    return [rule for _, rule in coro_lint.check("a.cc", "Task<int> f() {\n" + body + "\n}\n")]


class Rules(unittest.TestCase):
    def breaks(self, rule, body):
        self.assertIn(rule, rules(body), body)

    def passes(self, *bodies):
        for body in bodies:
            self.assertEqual(rules(body), [], body)

    def test_header(self):
        self.breaks("header", "while (co_await more()) {}")
        self.breaks("header", "if (co_await more()) co_return 1;")
        self.breaks("header", "if (const int n = co_await more(); n > 1) co_return 1;")
        self.breaks("header", "for (; co_await more();) {}")
        self.breaks("header", "for (auto& it : co_await all()) use(it);")
        self.breaks("header", "do { f(); } while (co_await more());")
        self.breaks("header", "switch (co_await next()) { case 1: break; }")
        self.breaks("header", "if constexpr (co_await more()) {}")
        self.passes("for (;;) { const bool more = co_await next(); if (!more) break; }",
                    "if (x) co_await sleep(1s);", "if (x) { co_await sleep(1s); }",
                    "while (x) co_await sleep(1s);", "if (x) f(); else co_await sleep(1s);",
                    "switch (x) { case 1: co_await sleep(1s); break; default: co_await g(); }")

    def test_conditional(self):
        self.breaks("conditional", "auto x = co_await more() ? a : b;")
        self.breaks("conditional", "auto x = c ? co_await a() : b;")
        self.breaks("conditional", "auto x = co_await a(c ? d : e);")
        self.breaks("conditional", "co_yield c ? a : b;")
        self.passes("auto x = co_await more(); auto y = x ? a : b;",
                    "auto x = co_await a([&] { return c ? d : e; });",
                    "auto x = c ? d : e; auto y = co_await more();", "co_yield c;")

    def test_braces(self):
        self.breaks("braces", "std::string all[] = {a, co_await next()};")
        self.breaks("braces", "std::vector<int> all{co_await next()};")
        self.breaks("braces", "Options options{.name = co_await next()};")
        self.breaks("braces", "return Options{co_await next()};")
        self.passes("std::string a = co_await next(); std::string all[] = {a, b};")

    def test_capture(self):
        self.breaks("capture", "auto f = [x = co_await next()] { return x; };")
        self.breaks("capture", "auto f = [&y, x = co_await next()](int) mutable { return x; };")

    def test_alone(self):
        self.breaks("alone", "f(co_await next());")
        self.breaks("alone", "int x = 1 + co_await next();")
        self.breaks("alone", "int x = (co_await next()).size();")
        self.breaks("alone", "int x = co_await f(co_await next());")
        self.breaks("alone", "bool x = co_await a() && co_await b();")
        self.breaks("alone", "x = y + f(co_await next());")
        self.breaks("alone", "co_await a(), co_await b();")
        self.breaks("alone", "int x = co_await next() + 1;")
        self.breaks("alone", "bool x = co_await a() || b;")
        self.breaks("alone", "int x = co_await next(), y = 1;")
        self.breaks("alone", "throw co_await next();")
        self.breaks("alone", "auto* x = new T(co_await next());")
        self.passes("co_await next();", "auto x = co_await next();", "x = co_await next();",
                    "x.y += co_await next();", "co_return co_await next();",
                    "Stream peer(co_await or_return(connect(loop, address)));",
                    "std::vector<std::pair<int, int>> all(co_await next());",
                    "const auto& x = co_await next();", "again: co_await next();",
                    "a[i] = co_await next();", "{ co_await next(); }")

    def test_aggregate(self):
        self.breaks("aggregate", "co_await call({.name = \"x\"});")
        self.breaks("aggregate", "co_await call_it(Options{\"x\", 1});")
        self.breaks("aggregate", "co_await Read<std::string>{text};")
        self.breaks("aggregate", "co_await or_return(start(a, {\"x\"}));")
        self.breaks("aggregate", "const auto x = co_await mine::read(Framing{'a'});")
        self.breaks("aggregate", "co_await call(a, {});")
        self.breaks("aggregate", "co_yield Line{text};")
        self.breaks("aggregate", "co_yield {text, 1};")
        self.passes("co_await sleep(Nanos{5});", "co_await read(LengthField{});",
                    "co_await or_return(coro::connect(loop, address, {.timeout = 5s}));",
                    "co_await call_it(std::move(options));",
                    "co_await offload([&] { Options x{1}; return f(x); });",
                    "co_await takes({.a = 1});  // coro-lint: ok")

    def test_closure(self):
        self.breaks("closure", "co_await offload([name] { return name; });")
        self.breaks("closure", "co_await offload([=] { return name; });")
        self.breaks("closure", "co_await offload([&a, n = std::move(name)] { return n; });")
        self.breaks("closure", "co_await offload([*this] { return name; });")
        self.breaks("closure", "co_yield [name] { return name; };")
        self.passes("co_await offload([&] { return name; });",
                    "co_await offload([&name, this](int) -> int { return name; });",
                    "co_await offload([] { return 1; });",
                    "auto f = [name] { return name; }; co_await offload(std::move(f));")

    def test_binding(self):
        self.breaks("binding", "auto [a, b] = co_await pair();")
        self.breaks("binding", "const auto& [a, b] = co_await pair();")
        self.passes("auto both = co_await pair(); auto& [a, b] = both;")

    def test_aligned(self):
        self.breaks("aligned", "alignas(64) std::byte room[64]; co_await next();")
        self.breaks("aligned", "{ alignas(32) int x = 0; } co_await next();")
        self.passes("alignas(16) std::byte room[64]; co_await next();",
                    "alignas(64) std::byte room[64];",
                    "auto f = [] { alignas(64) int x = 0; }; co_await next();")

    def test_coroutine(self):
        self.breaks("coroutine", "spawn([&loop]() -> Task<> { co_await sleep(1s); }());")
        self.breaks("coroutine", "auto f = [x](int y) -> Task<int> { co_return x + y; };")
        self.breaks("coroutine", "auto f = [this] { g([] { return 1; }); co_await h(); };")
        self.passes("spawn([](Loop& loop) -> Task<> { co_await sleep(1s); }(loop));",
                    "listen([&](Stream s) { scope.spawn(session(std::move(s))); });",
                    "auto f = [x] { return [](int y) -> Task<> { co_await g(y); }; };")


class Reading(unittest.TestCase):
    def test_comments_text_and_directives_are_not_code(self):
        source = ('#define X if (co_await y) \\\n  while (co_await y)\n'
                  '// while (co_await x) {}\n/* if (co_await x)\n */\n'
                  'auto a = "if (co_await x)"; auto b = R"-(if (co_await x) ")")-";\n'
                  "char c = '('; char d = '\\'';\n")
        self.assertEqual(coro_lint.check("a.h", source), [])

    def test_an_operator_of_that_name_is_none(self):
        source = "struct A { Awaiter operator co_await() && { return b ? Awaiter{1} : c; } };"
        self.assertEqual(coro_lint.check("a.h", source), [])

    def test_the_line_is_that_of_the_co_await(self):
        source = "Task<> f() {\n\n  if (a &&\n      co_await b()) {}\n}\n"
        self.assertEqual(coro_lint.check("a.cc", source), [(4, "header")])

    def test_of_markdown_the_cpp_is_read(self):
        bad = "while (co_await x()) {}\n"
        text = f"{bad}```\n{bad}```\n```cpp\nTask<> f() {{\n{bad}}}\n```\n{bad}"
        self.assertEqual(coro_lint.check("a.md", text), [(7, "header")])

    def test_what_is_cut_off_or_unbalanced_is_read_to_its_end(self):
        whole = ("Task<> f() { auto [a] = co_await g({1}, [x](int) { return R\"(a)\"; }); "
                 "if (co_await h() ? b : c) { T d[] = {co_await e()}; } }")
        for end in range(len(whole) + 1):
            coro_lint.check("a.cc", whole[:end])
            coro_lint.check("a.cc", whole[end:])


class Program(unittest.TestCase):
    def run_on(self, *paths):
        return subprocess.run([sys.executable, TOOL, *paths], stdout=subprocess.PIPE, text=True,
                              check=False)

    def test_prints_each_and_exits_with_1(self):
        with tempfile.TemporaryDirectory() as directory:
            path = os.path.join(directory, "a.cc")
            with open(path, "w", encoding="utf-8") as file:
                file.write("Task<> f() {\n  while (co_await x()) {}\n}\n")
            run = self.run_on(directory)
            self.assertEqual(run.returncode, 1)
            self.assertIn(f"{path}:2: header: ", run.stdout)
            self.assertIn("1 files, 1 problems", run.stdout)

    def test_exits_with_0_if_there_is_nothing(self):
        with tempfile.TemporaryDirectory() as directory:
            self.assertEqual(self.run_on(directory).returncode, 0)


if __name__ == "__main__":
    unittest.main()
