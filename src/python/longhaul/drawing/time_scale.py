"""Times in figures as the tables of our programs have them (src/report/record.hpp)."""

UNITS = (("ns", 1.0), ("us", 1e3), ("ms", 1e6), ("s", 1e9))


class TimeScale:
    """The unit of the largest time that is to be shown, and its four significant digits."""

    def __init__(self, largest_ns):
        self.unit, self.factor = [UNITS[0], *(one for one in UNITS if largest_ns >= one[1])][-1]
        shown, self.decimals = largest_ns / self.factor, 0
        while self.decimals < 3 and 0 < shown * 10**self.decimals < 1000:
            self.decimals += 1

    def text(self, time_ns):
        """'2.453 s'."""
        return f"{time_ns / self.factor:.{self.decimals}f} {self.unit}"


def time_text(time_ns):
    """One time by itself."""
    return TimeScale(time_ns).text(time_ns)
