"""Results that are not there, and the reasons."""
import dataclasses

LEFT_OUT = "left out"  # it is not installed, or cannot run here
FAILED = "failed"  # it crashed, hung, or printed something else than results
WRONG = "wrong"  # it did not compile, did other work than the others, or had another library
LATER = "later"  # there was no time for it


@dataclasses.dataclass(frozen=True)
class Absence:
    """A contestant has no result: in one case, or in all of a workload if `case` is ""."""

    kind: str
    workload: str
    contestant: str
    case: str
    reason: str

    @property
    def is_hole(self):
        return self.kind in (FAILED, WRONG)

    @property
    def where(self):
        return f"{self.workload}/{self.contestant}" + (f", {self.case}" if self.case else "")

    def row(self):
        """A line of the results."""
        return {"absent": self.kind, "workload": self.workload, "contestant": self.contestant,
                "case": self.case, "reason": self.reason}


def of_row(row):
    return Absence(row["absent"], row["workload"], row["contestant"], row["case"], row["reason"])
