#!/usr/bin/env python3
"""Contestants that crash, hang or print garbage cost their own results and nothing else."""
import contextlib
import dataclasses
import io
import os
import pathlib
import random
import signal
import subprocess
import sys
import tempfile
import textwrap
import time
import unittest
from unittest import mock

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1]))
from harness import absences, build, cells, closing, counts, equal_work, example  # noqa: E402
from harness import processes, report, runner, schedule, smoke, stats, summary  # noqa: E402
from harness import workloads  # noqa: E402
from harness.workload import Case, Count, Workload  # noqa: E402

GOOD = """
    print('{"version": "1", "library": ""}')
    print('{"metric": "mib_per_s", "unit": "MiB/s", "value": 10}')
    print('{"work": "bytes", "value": 5}')
    print('{"ops": "message", "value": %d}' % int(arguments["messages"]))
"""
HANG = "time.sleep(600)"
# A child that would live on, and hold stdout open.
HANG_WITH_CHILD = """
    subprocess.Popen(["sleep", "600"])
    time.sleep(600)
"""
FAULTS = {
    "crash": ("os.kill(os.getpid(), signal.SIGSEGV)", "it was ended by signal 11"),
    "status": ("sys.exit('no such file')", "it ended with status 1: no such file"),
    "hang": (HANG_WITH_CHILD, "it did not end within"),
    "nan": ("""print('{"metric": "mib_per_s", "unit": "", "value": nan}')""", "not finite"),
    "big_nan": ("""print('{"metric": "mib_per_s", "unit": "", "value": NaN}')""", "not finite"),
    "infinity": ("""print('{"ops": "message", "value": 1e999}')""", "not finite"),
    "text": ("""print('{"work": "bytes", "value": "5"}')""", "not in the protocol"),
    "garbage": ("print('Segmentation fault')", "not in the protocol: Segmentation fault"),
    "list": ("print('[1]')", "not in the protocol"),
    "silence": ("pass", "it printed nothing"),
}


class Fakes(unittest.TestCase):
    """Contestants of pingpong that are small programs in Python."""

    def setUp(self):
        directory = tempfile.TemporaryDirectory()
        self.addCleanup(directory.cleanup)
        self.directory = pathlib.Path(directory.name)
        self.rows, self.absent = [], []
        self.schedule = schedule.Schedule(self.directory / "durations.json")
        self.limits, self.calls, self.run_program = {}, {}, processes.run
        for module, name, value in ((build, "DROPINS", self.directory),
                                    (counts, "CACHE", self.directory / "counts"),
                                    (processes, "run", self.run_fake)):
            replaced = mock.patch.object(module, name, value)
            replaced.start()
            self.addCleanup(replaced.stop)

    def run_fake(self, command, timeout_s=None, environment=None, core=None):
        """Runs a fake, which learns how often it was run. Only one that hangs has little time."""
        name = pathlib.Path(command[0]).name
        self.calls[name] = self.calls.get(name, 0) + 1
        limits = self.limits.get(name)
        return self.run_program(command, limits.pop(0) if limits else 300,
                                {**environment, "RUNS": str(self.calls[name])}, core)

    def contestant(self, name, code, limits=()):
        """`code` has the arguments, and `runs`: which run of the program this is.

        `limits`: how many seconds its first runs have.
        """
        self.calls[name], self.limits[name] = 0, list(limits)
        file = self.directory / name
        file.write_text(textwrap.dedent("""\
            #!/usr/bin/python3 -S
            import os, pathlib, signal, subprocess, sys, time
            arguments = {"messages": 1}
            for name, value in zip(sys.argv[1::2], sys.argv[2::2]):
                arguments[name[2:]] = value
            runs = int(os.environ.get("RUNS", 0))
            with open(__file__ + ".runs", "a") as counter:
                counter.write(".")
            """) + textwrap.dedent(code).strip() + "\n")
        file.chmod(0o755)
        return build.Contestant("pingpong", name, str(file), str(file), (), "")

    def workload(self, count=1):
        cases = [Case({"connections": n + 1}) for n in range(count)]
        spec = Count("message", "message", {"messages": 2}, {"messages": 4})
        return Workload("pingpong", cases, cases[:1], [spec], pinned=False)

    def time(self, workload, contestants, repeats=2):
        cells.run_all(cells.cells_of(workload, contestants), repeats, self.schedule,
                      self.rows.append, self.absent.append, lambda text: None)

    def timed(self):
        """(contestant, case) of each sample."""
        return [(r["contestant"], r["case"]["connections"]) for r in self.rows]


class OneFault(Fakes):
    """Each fault in each of the three steps: repeated once, then left out with the reason."""

    def faulty(self, name):
        return self.contestant(name, FAULTS[name][0], limits=[1, 1] if name == "hang" else ())

    def expect(self, name, fault, case):
        [found] = self.absent
        self.assertEqual((found.kind, found.workload, found.contestant, found.case),
                         (absences.FAILED, "pingpong", name, case))
        self.assertIn(fault, found.reason)

    def test_while_timed(self):
        for name, (_, reason) in FAULTS.items():
            with self.subTest(name):
                self.rows, self.absent = [], []
                good, bad = self.contestant("good", GOOD), self.faulty(name)
                self.time(self.workload(), [bad, good])
                self.expect(name, reason, "connections=1")
                self.assertEqual(self.timed(), [("good", 1)] * 2)
                self.assertEqual(self.calls[name], 2)

    def test_while_checked(self):
        for name, (_, reason) in FAULTS.items():
            with self.subTest(name):
                self.absent = []
                good, bad = self.contestant("good", GOOD), self.faulty(name)
                able = equal_work.check(self.workload(), [bad, good], self.absent.append)
                self.expect(name, reason, "equal work: connections=1")
                self.assertEqual(able, [good])

    def test_while_counted(self):
        for name, (_, reason) in FAULTS.items():
            with self.subTest(name):
                self.rows, self.absent = [], []
                good, bad = self.contestant("good", GOOD), self.faulty(name)
                with self.a_tool():
                    counts.measure(self.workload(), [bad, good], self.rows.append,
                                   self.absent.append)
                self.expect(name, reason, "syscalls per message")
                self.assertEqual([r["contestant"] for r in self.rows], ["good"])

    @contextlib.contextmanager
    def a_tool(self):
        """A tool that counts nothing: each run has as many calls as messages."""
        def count(contestant, params):
            printed, _ = runner.run_command(contestant.command(params), contestant.environment, 300)
            return params["messages"], runner.parse(printed)
        with mock.patch.object(counts, "TOOLS", {"syscalls": "true"}), \
                mock.patch.object(counts, "count_system_calls", count):
            yield

    def test_counts_that_do_not_grow_are_no_counts(self):
        same = self.contestant("same", GOOD.replace('int(arguments["messages"])', "7"))
        with self.a_tool():
            counts.measure(self.workload(), [same], self.rows.append, self.absent.append)
        self.expect("same", "did not do more operations", "syscalls per message")

    def test_a_run_that_two_counts_need_happens_once(self):
        good = self.contestant("good", GOOD)
        workload = self.workload()
        workload.counts.append(dataclasses.replace(workload.counts[0], name="line"))
        with self.a_tool():
            counts.measure(workload, [good], self.rows.append, self.absent.append)
        self.assertEqual((len(self.rows), self.calls["good"], self.absent), (2, 2, []))

    def test_counts_stop_when_the_time_is_over(self):
        good = self.contestant("good", GOOD)
        with self.a_tool():
            counts.measure(self.workload(), [good], self.rows.append, self.absent.append, end=0)
        self.assertEqual((self.rows, self.calls["good"]), ([], 0))
        self.assertEqual([a.kind for a in self.absent], [absences.LATER])


class Retries(Fakes):
    def test_failure_is_repeated_once(self):
        for name, (code, _) in FAULTS.items():
            with self.subTest(name):
                self.rows = []
                once = "if runs == 1:\n" + textwrap.indent(textwrap.dedent(code).strip(), "    ")
                good = "\nelse:\n" + textwrap.indent(textwrap.dedent(GOOD).strip(), "    ")
                c = self.contestant("once", once + good, limits=[1] if name == "hang" else ())
                self.time(self.workload(), [c])
                self.assertEqual((self.timed(), self.absent), ([("once", 1)] * 2, []))
                self.assertEqual(self.calls["once"], 3)

    def test_a_crash_in_one_case_leaves_the_others(self):
        code = 'if arguments["connections"] == "1": sys.exit(1)\n' + textwrap.dedent(GOOD).strip()
        self.time(self.workload(count=2), [self.contestant("bad", code)])
        self.assertEqual(self.timed(), [("bad", 2)] * 2)
        self.assertEqual([a.case for a in self.absent], ["connections=1"])

    def test_a_hang_is_waited_for_in_one_case_alone(self):
        bad, good = self.contestant("bad", HANG, limits=[1, 1]), self.contestant("good", GOOD)
        self.time(self.workload(count=3), [bad, good], repeats=1)
        self.assertEqual(self.calls["bad"], 2)
        self.assertEqual([a.case for a in self.absent], [f"connections={n}" for n in (1, 2, 3)])
        self.assertEqual(self.timed(), [("good", n) for n in (1, 2, 3)])

    def test_a_later_repetition_may_fail(self):
        code = "if runs > 1: sys.exit(1)\n" + textwrap.dedent(GOOD).strip()
        self.time(self.workload(), [self.contestant("bad", code)], repeats=3)
        self.assertEqual(self.timed(), [("bad", 1)])
        self.assertEqual(len(self.absent), 1)

    def test_a_metric_of_another_workload_is_none(self):
        other = GOOD.replace("mib_per_s", "whole_us")
        self.time(self.workload(), [self.contestant("other", other)])
        self.assertIn("printed none of mib_per_s", self.absent[0].reason)


class EqualWork(Fakes):
    def check(self, **work):
        found = [self.contestant(name, GOOD.replace('"value": 5', f'"value": {n}'))
                 for name, n in work.items()]
        return [c.name for c in equal_work.check(self.workload(), found, self.absent.append)]

    def test_odd_contestant_is_left_out(self):
        self.assertEqual(self.check(a=5, b=6, c=5), ["a", "c"])
        [found] = self.absent
        self.assertEqual((found.kind, found.contestant), (absences.WRONG, "b"))
        self.assertIn("bytes is 6, not 5", found.reason)

    def test_first_of_two_is_right(self):
        self.assertEqual(self.check(spate=5, b=6), ["spate"])

    def test_contestant_without_work_fails(self):
        silent = self.contestant("silent", """print('{"version": "1", "library": ""}')""")
        self.assertEqual(equal_work.check(self.workload(), [silent], self.absent.append), [])
        self.assertIn("nothing about its work", self.absent[0].reason)

    def test_contestant_that_leaves_itself_out_is_no_hole(self):
        c = self.contestant("here", """print('{"left_out": "no such backend"}')""")
        self.assertEqual(equal_work.check(self.workload(), [c], self.absent.append), [])
        self.assertEqual([(a.kind, a.reason) for a in self.absent],
                         [(absences.LEFT_OUT, "no such backend")])


class Processes(unittest.TestCase):
    def sleepers(self, marker):
        found = []
        for words in pathlib.Path("/proc").glob("[0-9]*/cmdline"):
            with contextlib.suppress(OSError):
                if marker in words.read_text().split("\0"):
                    found.append(words.parent.name)
        return found

    def test_descendants_are_killed_with_their_program(self):
        marker = f"{600 + os.getpid() / 1e7:.7f}"
        for rest, timeout in (("exec sleep", 1), ("true", 20)):
            script = f"setsid true; sleep {marker} >/dev/null 2>&1 & {rest} {marker}"
            with contextlib.suppress(processes.TimedOut):
                processes.run(["sh", "-c", script], timeout)
            self.assertEqual(self.sleepers(marker), [])


    def test_temporary_files_are_deleted_however_their_program_ends(self):
        make = "import os, tempfile, time; print(tempfile.mkdtemp(), flush=True); "
        with tempfile.TemporaryDirectory() as directory, \
                mock.patch.object(tempfile, "tempdir", directory):
            for end in ("", "raise SystemExit(1)", "os.kill(os.getpid(), 9)", "time.sleep(600)"):
                with contextlib.suppress(processes.TimedOut):
                    done = processes.run([sys.executable, "-c", make + end], 1)
                    self.assertIn(directory, done.stdout)
                self.assertEqual(os.listdir(directory), [], end)


class WholeRun(Fakes):
    """bench/run itself, with a manifest of fakes."""

    PROGRAM = """
        import pathlib, sys
        sys.path.insert(0, {bench!r})
        from unittest import mock
        from harness import build, counts, workloads
        from harness.workload import Case, Count, Workload
        root = pathlib.Path({directory!r})
        contestants = [build.Contestant("pingpong", n, str(root / n), str(root / n), (), "")
                       for n in {names!r}]
        build.contestants = lambda: contestants
        build.MANIFEST = build.BINARY_DIR = root
        build.configure = lambda: None
        build.build = lambda workload: "error: no such header"
        build.can_be_built = lambda contestant: contestant.name != "libev"
        counts.TOOLS = {{}}
        spec = Count("message", "message", {{"messages": 2}}, {{"messages": 4}})
        cases = [Case({{"connections": n}}) for n in (1, 2)]
        workloads.ALL = {{"pingpong": lambda quick: Workload(
            "pingpong", cases, cases[:1], [spec], pinned=False)}}
        import importlib.machinery, importlib.util
        loader = importlib.machinery.SourceFileLoader("run", {bench!r} + "/run")
        run = importlib.util.module_from_spec(importlib.util.spec_from_loader("run", loader))
        loader.exec_module(run)
        with mock.patch("harness.bars.all_bars", lambda results: []):
            sys.exit(run.main())
    """

    def start(self, *options, build="--no-build", counts="--no-counts", **contestants):
        for name, code in contestants.items():
            self.contestant(name, code)
        program = textwrap.dedent(self.PROGRAM).format(
            bench=str(pathlib.Path(__file__).resolve().parents[1]), directory=str(self.directory),
            names=list(contestants))
        command = [sys.executable, "-c", program, "--report", str(self.directory),
                   "--json", str(self.directory / "rows"), *filter(None, [build, counts]), *options]
        return subprocess.Popen(command, text=True, stdout=subprocess.PIPE, stderr=subprocess.PIPE)

    def finish(self, process):
        printed, told = process.communicate(timeout=300)
        page = self.directory / "index.html"
        return process.returncode, printed, told, page.read_text() if page.exists() else ""

    def test_holes_are_shown_everywhere_and_smoke_fails(self):
        status, printed, told, page = self.finish(
            self.start("--smoke", spate=GOOD, libev=FAULTS["crash"][0]))
        self.assertEqual(status, 1)
        for text in (printed, told, page):
            self.assertIn("it was ended by signal 11", text)
        self.assertIn("smoke: failed", printed)

    def test_counts_follow_the_times(self):
        status, printed, told, _ = self.finish(
            self.start("--smoke", counts="", spate=GOOD, libuv=GOOD))
        self.assertEqual(status, 0, printed + told)
        self.assertIn("smoke: every contestant works", printed)

    def test_a_failure_alone_does_not_fail_a_run_but_unequal_work_does(self):
        unequal = GOOD.replace('"bytes", "value": 5', '"bytes", "value": 6')
        for code, expected in ((FAULTS["crash"][0], 0), (unequal, 1)):
            status, printed, _, page = self.finish(
                self.start("--quick", "--again", "0", spate=GOOD, libuv=GOOD, libev=code))
            self.assertEqual(status, expected, printed)
            self.assertIn("Missing results", page)
            self.assertIn("pingpong: Bytes to and fro (1 of 1;", printed)

    def test_contestant_is_missing_if_it_does_not_compile(self):
        status, printed, told, page = self.finish(self.start(
            "--quick", "--again", "0", build="", spate=GOOD, libev=GOOD, libuv=GOOD))
        self.assertEqual(status, 1)
        self.assertIn("error: no such header", told)
        for text in (printed, page):
            self.assertIn("it does not compile", text)
        self.assertIn("with 2 contestants", printed)

    def test_smoke_succeeds_where_all_work(self):
        status, printed, told, page = self.finish(self.start("--smoke", spate=GOOD, libev=GOOD))
        self.assertEqual(status, 0, printed + told)
        self.assertIn("smoke: every contestant works", printed)
        self.assertNotIn("Missing results", page)

    def test_a_signal_keeps_what_was_measured(self):
        slow = 'arguments["connections"] == "2" and time.sleep(600)\n' + \
            textwrap.dedent(GOOD).strip()
        for number in (signal.SIGINT, signal.SIGTERM):
            process = self.start("--quick", spate=GOOD, libev=slow)
            counter = self.directory / "libev.runs"
            # After the check and three samples.
            while not counter.exists() or len(counter.read_text()) < 5:
                self.assertIsNone(process.poll(), "it ended by itself")
                time.sleep(0.01)
            process.send_signal(number)
            status, printed, _, page = self.finish(process)
            self.assertEqual(status, 130)
            self.assertIn("The run was interrupted", printed)
            self.assertIn("pingpong: every sample", page)
            self.assertIn('"contestant": "libev"', (self.directory / "rows").read_text())
            counter.unlink()


class PartialResults(unittest.TestCase):
    """A run may be interrupted at any time, and any contestant may be missing."""

    def show(self, rows, machine):
        results = stats.Results(rows)
        with tempfile.TemporaryDirectory() as directory, \
                contextlib.redirect_stdout(io.StringIO()):
            report.write_html(results, machine, pathlib.Path(directory, "index.html"))
            summary.print_summary(results)
            summary.print_tables(results)
            for name in workloads.ALL:
                summary.print_workload(results, name, "")
            list(closing.lines(results, 0, 0, "", ""))

    def test_any_subset_can_be_shown(self):
        first, *rows = example.rows()
        chance = random.Random(1)
        self.show([], first["run"])
        for name in workloads.ALL:
            own = [r for r in rows if r["workload"] == name]
            parts = [[r for r in own if chance.random() < share] for share in (0.02, 0.1, 0.5)]
            parts += [[r for r in own if r["contestant"] == c]
                      for c in dict.fromkeys(r["contestant"] for r in own)]
            for part in parts:
                with self.subTest(f"{name}, {len(part)} rows"):
                    self.show(part, first["run"])


class LastLines(unittest.TestCase):
    def text(self, *found):
        rows = [absences.Absence(*a).row() for a in found]
        return "\n".join(closing.lines(stats.Results(rows), 600, 60, "R", "S"))

    def test_each_reason_has_its_command(self):
        text = self.text(
            (absences.LEFT_OUT, "http", "nginx", "", "nginx-light is not installed"),
            (absences.LEFT_OUT, "tls", "nginx", "", "nginx-light is not installed"),
            (absences.LEFT_OUT, "fd", "libev_on_spate", "", "libev-dev is not installed"),
            (absences.LEFT_OUT, "echo", "evpp", "",
             "it has no package, and SPATE_EVPP names no installed copy"),
            (absences.LEFT_OUT, "idle", "floor", "", "has no idle timeouts"),
            (absences.LATER, "h2", "go", "counts", "no time was left"),
            (absences.FAILED, "tls", "libev", "kind=full", "it printed nothing"))
        self.assertIn("libev, nginx. To enable:\n  apt-get install --no-install-recommends "
                      "libev-dev nginx-light\n", text)
        self.assertIn("cmake --preset bench -DSPATE_EVPP=<prefix>", text)
        self.assertIn("Left out, idle/floor: has no idle timeouts", text)
        self.assertIn("bench/run --quick --only-counts h2", text)
        self.assertIn("tls/libev, kind=full: failed: it printed nothing", text)
        self.assertIn("It took 10 min, 60 s of it for the build.", text)


class Smallest(unittest.TestCase):
    def test_every_contestant_has_a_case_of_every_workload(self):
        for name, make in workloads.ALL.items():
            found = [build.Contestant(name, c, "", "", (), "") for c in example.contestants(name)]
            small = smoke.workload(make(True), found)
            able = {c.name for c in found
                    if any(case.params_of(c.name) is not None for case in small.cases)}
            wanted = {c.name for c in found
                      if any(case.params_of(c.name) is not None for case in make(True).cases)}
            self.assertEqual(able, wanted, name)
            self.assertTrue(all(case.runs == 1 for case in small.cases), name)
            # In these two some contestants have no part in the first case.
            if name not in ("anyevent_server", "programs"):
                self.assertEqual(len(small.cases), 1, name)


if __name__ == "__main__":
    unittest.main()
