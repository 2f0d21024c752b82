"""A table of small programs: a test of each is one function, a row.

    table = Table()

    @table.row("dnsproxy")
    def dnsproxy(run):
        ...

    if __name__ == "__main__":
        table.main("libevent-2.1.so.7")

A row whose programs are not installed says so and is left out. Everything that a row has started
ends with it, and the weather must have affected its programs.
"""

import dataclasses

import harness


ENOUGH_CALLS = 100  # With fewer calls the weather may not hit any.


@dataclasses.dataclass
class Row:
    test: object
    programs: tuple
    has_traffic: bool


class Table:
    def __init__(self):
        self.rows_ = []
        self.skips_ = []

    def row(self, *programs, has_traffic=True):
        """has_traffic=False: it has no sockets or pipes in which faults are injected."""
        def add(test):
            self.rows_.append(Row(test, programs, has_traffic))
            return test
        return add

    def main(self, library):
        """As harness.main()."""
        harness.main(self.run_, library, has_traffic=False)  # Each row has its own.

    def run_(self, run):
        done = sum([self.run_row_(run, row) for row in self.rows_
                    if run.only in (None, row.test.__name__)])
        if not done:
            raise harness.Skip("; ".join(dict.fromkeys(map(str, self.skips_))))

    def run_row_(self, run, row):
        first = len(run.programs)
        try:
            harness.need(*row.programs)
            row.test(run)
        except harness.Skip as skip:
            print(f"left out: {row.test.__name__}: {skip}")
            self.skips_.append(skip)
            return False
        run.end_programs(first)
        check_weather(run, row, run.programs[first:])
        return True


def check_weather(run, row, programs):
    name = row.test.__name__
    weather = harness.sum_weather(programs)
    print(f"{name}:", ", ".join(f"{kind} {count}" for kind, count in weather.items()), flush=True)
    if run.weather_library and row.has_traffic and weather["calls"] >= ENOUGH_CALLS:
        harness.check(sum(weather.values()) > weather["calls"], f"{name} met no weather at all")
