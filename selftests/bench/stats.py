# SPDX-License-Identifier: GPL-2.0
"""What several rounds of a measurement come to."""
import dataclasses
import statistics


@dataclasses.dataclass
class Figure:
    """The rounds of one row and contender: their values, and why others have none."""

    values: list
    failures: list

    @property
    def median(self):
        return statistics.median(self.values) if self.values else None

    @property
    def spread(self):
        """The smallest and the largest value, as parts of the median."""
        if len(self.values) < 2:
            return None
        return (min(self.values) / self.median - 1, max(self.values) / self.median - 1)

    def ratio(self, other):
        """This median by the other's."""
        if not self.values or not other.values or not other.median:
            return None
        return self.median / other.median

    def as_json(self):
        return {"median": self.median, "values": self.values, "failures": self.failures}


def figures(results):
    """From {row: {contender: [{"value"} or {"failed"}]}} to {row: {contender: Figure}}."""
    return {row: {contender: Figure([one["value"] for one in rounds if "value" in one],
                                    [one["failed"] for one in rounds if "failed" in one])
                  for contender, rounds in of_row.items()}
            for row, of_row in results.items()}


def number(value):
    """Three digits that mean something."""
    if value is None:
        return "–"
    for bound, digits in ((10, 2), (100, 1)):
        if abs(value) < bound:
            return f"{value:.{digits}f}"
    return f"{value:,.0f}".replace(",", " ")
