#!/usr/bin/env python3
"""tmux: windows, their terminals and its clients, all with bufferevents; with poll, since tmux
itself disables epoll."""

import random
import string

import harness

LINES = 3000
WORD = string.ascii_letters + string.digits
WINDOWS = 4


class Tmux:
    """A server in the foreground, to which clients send commands."""

    def __init__(self, run):
        self.run = run
        self.socket = run.path("tmux.socket")
        self.server = run.start("tmux", "-S", self.socket, "-f", "/dev/null", "-D")
        self.server.wait_unix(self.socket)

    def __call__(self, *words):
        return self.run.call("tmux", "-S", self.socket, "-f", "/dev/null", *words)

    def screen(self, window, *options):
        return self("capture-pane", "-p", "-J", "-t", f"w:{window}", *options).split("\n")

    def wait_screen(self, window, line, *options):
        self.server.wait_for(lambda: line in self.screen(window, *options),
                             f"{line!r} in window {window}")


def check_output(run, tmux):
    """More output than fits a screen or a buffer; every line must then be in the history."""
    lines = [" ".join("".join(random.choices(WORD, k=random.randrange(1, 9))) for _ in range(6))
             for _ in range(LINES)]
    path = run.file("lines", "\n".join(lines) + "\nend of it\n")
    tmux("new-window", "-d", "-t", "w:9", f"cat {path}; cat")
    tmux.wait_screen(9, "end of it")
    shown = [line.rstrip() for line in tmux.screen(9, "-S", "-")]
    harness.check(shown[:LINES] == lines, "the history is not what was printed")


def check_input(run, tmux):
    """A program in each window echoes typed and pasted text."""
    for window in range(WINDOWS):
        text = "".join(random.choices(WORD, k=60))
        tmux("send-keys", "-t", f"w:{window}", "-l", text)
        tmux("send-keys", "-t", f"w:{window}", "Enter")
        tmux.wait_screen(window, text)
        pasted = run.file("pasted", f"pasted into {window}\n")
        tmux("load-buffer", pasted)
        tmux("paste-buffer", "-t", f"w:{window}")
        tmux.wait_screen(window, f"pasted into {window}")


def test(run):
    harness.need("tmux")
    random.seed(run.seed)
    tmux = Tmux(run)
    tmux("set-option", "-g", "history-limit", "10000")
    tmux("new-session", "-d", "-s", "w", "-x", "80", "-y", "24", "cat")
    # Our library is one file with several names.
    tmux.server.assert_uses("libevent_core-2.1.so.7" if run.mode == "original" else None)
    for window in range(1, WINDOWS):
        tmux("new-window", "-d", "-t", f"w:{window}", "cat")
    check_input(run, tmux)
    tmux("set-option", "-g", "history-limit", "10000")
    check_output(run, tmux)
    tmux("resize-window", "-t", "w:0", "-x", "40", "-y", "10")
    size = tmux("display-message", "-p", "-t", "w:0", "#{window_width}x#{window_height}")
    harness.check(size.strip() == "40x10", f"resized to {size!r}")
    check_input(run, tmux)
    tmux("kill-server")
    tmux.server.wait()


if __name__ == "__main__":
    harness.main(test, library="libevent-2.1.so.7")
