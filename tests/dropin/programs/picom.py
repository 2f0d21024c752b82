#!/usr/bin/env python3
"""picom, a compositor, on a private display: the test reads the painted picture.

It draws when its loop is idle, fades by timers, and is reset and ended by signals.
"""

import signal

import harness
from peers.display import Display

COLORS = {"#ff0000": (255, 0, 0), "#00ff00": (0, 255, 0), "#0000ff": (0, 0, 255),
          "#ffffff": (255, 255, 255), "#000000": (0, 0, 0)}
SIZE = 100
GROUND = (128, 128, 128)  # The colour that picom paints where the root window has no picture.
ROUNDS = 2
TOLERANCE = 4  # Of 256: fading rounds.
# libxcb takes EINTR from its own socket for a broken connection, with the original library as well.
WEATHER = harness.Weather(kinds="again,short")


def start(run, display):
    return run.start("picom", "--backend", "xrender", "--config", "/dev/null",
                     "--inactive-opacity", "0.5", "--fading", "--fade-delta", 5,
                     env=display.variables, weather=WEATHER)


def place(number):
    return 20 + 150 * number, 40


def show(run, display, number, color):
    """A window filled with that color, except for the text in its upper left corner."""
    x, y = place(number)
    return run.start("xmessage", "-bg", color, "-geometry", f"{SIZE}x{SIZE}+{x}+{y}", "text",
                     env=display.variables, dropin=False)


def wait_color(program, display, number, color):
    """In the lower right corner of that place. Windows are half transparent."""
    x, y = (side + SIZE - 6 for side in place(number))

    def is_shown():
        return all(abs(is_ - wanted) <= TOLERANCE
                   for is_, wanted in zip(display.pixel(x, y), color))
    program.wait_for(is_shown, f"{color} at {x}, {y}, not {display.pixel(x, y)}")


def mixed(color):
    return tuple((one + other) // 2 for one, other in zip(color, GROUND))


def check_windows(run, picom, display):
    """Windows that open and close, each painted in its color."""
    for _ in range(ROUNDS):
        windows = [show(run, display, number, color) for number, color in enumerate(COLORS)]
        for number, color in enumerate(COLORS.values()):
            wait_color(picom, display, number, mixed(color))
        for window in windows:
            window.end()
        for number in range(len(COLORS)):
            wait_color(picom, display, number, GROUND)


def check_reset(run, picom, display):
    """SIGUSR1: it restarts with the existing windows."""
    window = show(run, display, 0, "#ff0000")
    wait_color(picom, display, 0, mixed((255, 0, 0)))
    picom.kill(signal.SIGUSR1)
    other = show(run, display, 1, "#0000ff")
    wait_color(picom, display, 1, mixed((0, 0, 255)))
    wait_color(picom, display, 0, mixed((255, 0, 0)))
    window.end()
    wait_color(picom, display, 0, GROUND)
    other.end()


def test(run):
    harness.need("picom", "Xvfb", "xmessage")
    display = Display(run)
    picom = start(run, display)
    picom.assert_uses()
    wait_color(picom, display, 0, GROUND)
    check_windows(run, picom, display)
    start(run, display).wait(status=1)  # There can be one only.
    check_reset(run, picom, display)
    picom.kill(signal.SIGINT)
    picom.wait(status=0)


if __name__ == "__main__":
    harness.main(test, library="libev.so.4")
