# SPDX-License-Identifier: GPL-2.0
"""Statistics of the rounds of a measurement."""
import dataclasses
import statistics


@dataclasses.dataclass
class Figure:
    """The rounds of one row and contender: the values, and the reasons of failed rounds."""

    values: list
    failures: list

    @property
    def median(self):
        return statistics.median(self.values) if self.values else None

    @property
    def spread(self):
        """The deviations of the smallest and the largest value from the median, relative to it;
        None with fewer than two values."""
        if len(self.values) < 2:
            return None
        return (min(self.values) / self.median - 1, max(self.values) / self.median - 1)

    def ratio(self, other):
        """Returns this median divided by the other one, or None if one is missing."""
        if not self.values or not other.values or not other.median:
            return None
        return self.median / other.median

    def as_json(self):
        return {"median": self.median, "values": self.values, "failures": self.failures}


def figures(results):
    """Converts {row: {contender: [{"value"} or {"failed"}]}} to {row: {contender: Figure}}."""
    return {row: {contender: Figure([one["value"] for one in rounds if "value" in one],
                                    [one["failed"] for one in rounds if "failed" in one])
                  for contender, rounds in of_row.items()}
            for row, of_row in results.items()}


def number(value):
    """Formats a value with at least three significant digits, if it is 1 or more."""
    if value is None:
        return "–"
    for bound, digits in ((10, 2), (100, 1)):
        if abs(value) < bound:
            return f"{value:.{digits}f}"
    return f"{value:,.0f}".replace(",", " ")
