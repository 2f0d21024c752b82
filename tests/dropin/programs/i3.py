#!/usr/bin/env python3
"""i3, a window manager, on a private display: commands, windows, events, restart and exit.

i3 watches its X connection with ev_io, ev_prepare and ev_check, and serves its commands on a
socket.
"""

import json
import os
import tempfile

import harness
from peers.display import Display

WINDOWS = 4
QUERIES = 30
ROUNDS = 40
LAYOUTS = {"splith": "splith", "tabbed": "tabbed", "stacking": "stacked", "splitv": "splitv"}
# With the original library too, libxcb takes EINTR from its own socket for a broken connection, and
# i3 forgets the first half of a message's header if the second cannot be read yet. So a run must
# not have both short calls and calls that fail.
WEATHERS = (harness.Weather(kinds="again", share=0.1), harness.Weather(kinds="short", share=0.1))
CONFIG = """
ipc-socket {socket}
font pango:monospace 8
default_border pixel 1
focus_follows_mouse no
"""


class Desktop:
    """i3 on a display, and its command socket."""

    def __init__(self, run, weather):
        self.run = run
        self.display = Display(run).variables
        self.socket = run.path("i3.socket")
        config = run.file("i3.config", CONFIG.format(socket=self.socket))
        self.i3 = run.start("i3", "-a", "-c", config, env=self.display, weather=weather)
        self.i3.wait_unix(self.socket)
        self.i3.assert_uses()
        self.windows = []

    def message(self, *arguments):
        """Returns i3-msg's output as a value."""
        return json.loads(self.run.call("i3-msg", "-s", self.socket, *arguments, dropin=False))

    def command(self, text):
        results = self.message(text)
        harness.check(all(result["success"] for result in results), f"{text}: {results}")

    def tree(self):
        return self.message("-t", "get_tree")

    def leaves(self):
        """Returns {name of the window: name of its workspace}."""
        return {leaf["name"]: workspace["name"] for workspace in containers(self.tree())
                if workspace["type"] == "workspace" for leaf in containers(workspace)
                if leaf.get("window")}

    def open_window(self, name):
        window = self.run.start("xev", "-name", name, env=self.display, dropin=False)
        self.windows.append(window)
        return window

    def wait_for(self, condition, what):
        self.i3.wait_for(condition, what)


def containers(node):
    yield node
    for child in node["nodes"] + node["floating_nodes"]:
        yield from containers(child)


def check_windows(desktop):
    names = [f"window {number}" for number in range(WINDOWS)]
    for name in names:
        desktop.open_window(name)
    desktop.wait_for(lambda: len(desktop.leaves()) == WINDOWS, "all windows")
    harness.check(desktop.leaves() == dict.fromkeys(names, "1"), str(desktop.leaves()))
    for name in names[::2]:
        desktop.command(f'[title="^{name}$"] move container to workspace 7')
    wanted = {name: "17"[number % 2 == 0] for number, name in enumerate(names)}
    harness.check(desktop.leaves() == wanted, f"{desktop.leaves()}, not {wanted}")


def check_layout(desktop):
    """Each command's effect appears in the next tree."""
    desktop.command("workspace 7")
    for number in range(ROUNDS):
        wanted, layout = list(LAYOUTS.items())[number % len(LAYOUTS)]
        desktop.command(f'[title="^window 0$"] focus; layout {wanted}')
        parents = [node for node in containers(desktop.tree())
                   if any(child["name"] == "window 0" for child in node["nodes"])]
        harness.check(parents and parents[0]["layout"] == layout,
                      f"{parents and parents[0]['layout']}, not {layout}")
    desktop.command('[title="^window 0$"] floating enable, resize set 200 100')
    window = [node for node in containers(desktop.tree()) if node["name"] == "window 0"][0]
    size = [window["window_rect"][side] for side in ("width", "height")]
    harness.check(150 < size[0] <= 200 and 60 < size[1] <= 100, f"the window is {size}")


def check_queries(desktop):
    """Many at once; each has its own complete answer."""
    kinds = ["get_tree", "get_workspaces", "get_outputs", "get_version",
             "get_binding_modes"]
    queries = [desktop.run.start("i3-msg", "-s", desktop.socket, "-t", kinds[n % len(kinds)],
                                 dropin=False) for n in range(QUERIES)]
    for query in queries:
        harness.check(json.loads(query.wait()), "an empty answer")


def check_events(desktop):
    """A subscriber receives every change, in order."""
    listener = desktop.run.start("i3-msg", "-s", desktop.socket, "-t", "subscribe", "-m",
                                 '["workspace", "tick"]', dropin=False)
    listener.wait_output('"first":true')
    for number in range(ROUNDS):
        desktop.message("-t", "send_tick", f"tick {number}")
    listener.wait_output(f"tick {ROUNDS - 1}")
    events = [json.loads(line) for line in listener.output().splitlines()]
    ticks = [event["payload"] for event in events if event.get("payload")]
    harness.check(ticks == [f"tick {number}" for number in range(ROUNDS)], str(ticks))
    desktop.command("workspace 9")
    listener.wait_output('"change":"focus"')


def check_ends(desktop):
    """Closed windows, one of them closed by i3, must leave the tree."""
    desktop.windows[1].end()
    desktop.command('[title="^window 2$"] kill')
    desktop.wait_for(lambda: sorted(desktop.leaves()) == ["window 0", "window 3"],
                     "the windows to be gone")
    desktop.windows[2].wait(status=None)


def check_restart(desktop):
    """i3 executes itself again and restores its state."""
    before = desktop.leaves()
    answer = desktop.run.start("i3-msg", "-s", desktop.socket, "restart", dropin=False)
    answer.wait(status=None)
    desktop.i3.wait_unix(desktop.socket)
    desktop.wait_for(lambda: desktop.leaves() == before, "the windows again")
    desktop.i3.assert_uses()
    desktop.command("reload")


def check_children(desktop):
    directory = tempfile.mkdtemp(dir=desktop.run.directory)
    paths = [os.path.join(directory, str(number)) for number in range(5)]
    for path in paths:
        desktop.command(f"exec --no-startup-id touch '{path}'")
    desktop.wait_for(lambda: all(map(os.path.exists, paths)), "what i3 executed")


def check_desktop(run, weather):
    desktop = Desktop(run, weather)
    check_windows(desktop)
    check_layout(desktop)
    check_queries(desktop)
    check_events(desktop)
    check_ends(desktop)
    check_restart(desktop)
    check_children(desktop)
    run.start("i3-msg", "-s", desktop.socket, "exit", dropin=False).wait(status=None)
    desktop.i3.wait(status=0)


def test(run):
    harness.need("i3", "i3-msg", "Xvfb", "xev")
    for weather in WEATHERS if run.weather_library else WEATHERS[:1]:
        check_desktop(run, weather)


if __name__ == "__main__":
    harness.main(test, library="libev.so.4")
