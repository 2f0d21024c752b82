"""An X server without a screen, whose picture can be read."""

import os
import re
import struct

XWD_HEADER = struct.Struct(">25I")  # XWDFile.h: sizes in 32-bit words, most significant byte first.
COLOR_BYTES = 12


class Display:
    """display = Display(run); display.variables is the environment of its clients."""

    def __init__(self, run):
        directory = run.path(f"display{len(run.programs)}")
        os.mkdir(directory)
        self.server = run.start("Xvfb", "-displayfd", 1, "-screen", 0, "800x600x24", "-ac",
                                "-nolisten", "tcp", "-fbdir", directory, dropin=False)
        number = self.server.wait_for(self._number, "the display's number", seconds=40)
        self.variables = {"DISPLAY": f":{number}", "XDG_RUNTIME_DIR": run.directory}
        self.picture = os.path.join(directory, "Xvfb_screen0")

    def _number(self):
        found = re.search(r"^(\d+)\n", self.server.output(), re.MULTILINE)
        return found and found.group(1)

    def pixel(self, x, y):
        """(red, green, blue) of a place on the screen."""
        with open(self.picture, "rb") as file:
            header = XWD_HEADER.unpack(file.read(XWD_HEADER.size))
            head_size, line_size, colors = header[0], header[12], header[19]
            file.seek(head_size + colors * COLOR_BYTES + y * line_size + 4 * x)
            blue, green, red = file.read(3)
        return red, green, blue
