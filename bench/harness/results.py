"""Figures, what they are compared with, and the two forms they leave in: a table for people, JSON for programs."""

import math
import statistics

from .native import Failed


def median(values):
    return statistics.median(values)


def p99(values):
    ordered = sorted(values)
    return ordered[min(len(ordered) - 1, math.ceil(len(ordered) * 0.99) - 1)]


def duration(seconds):
    if seconds < 0.01:
        return f"{seconds * 1000:.3f} ms"
    if seconds < 1:
        return f"{seconds * 1000:.1f} ms"
    return f"{seconds:.2f} s"


def quantity(value, unit):
    if value is None:
        return "none"
    if unit == "s":
        return duration(value)
    return f"{value:,.{0 if value >= 100 else 2}f} {unit}"


def ratio(value):
    """1/34 for what is far below one, otherwise a number."""
    if 0 < value < 0.2:
        inverse = 1 / value
        return f"1/{inverse:.0f}" if inverse >= 10 else f"1/{inverse:.1f}"
    return f"{value:.2f}"


class Figure:
    """Something measured: many samples of a duration, or one number."""

    def __init__(self, label, value, unit="s", samples=None, commands=(), role="baseline"):
        self.label = label
        self.value = value
        self.unit = unit
        self.samples = samples
        self.commands = list(commands)
        self.role = role

    @property
    def tail(self):
        return p99(self.samples.seconds) if self.samples and self.samples.seconds else None

    def as_json(self, with_samples):
        out = {
            "label": self.label,
            "role": self.role,
            "value": self.value,
            "unit": self.unit,
            "commands": self.commands,
        }
        if self.samples:
            ordered = sorted(self.samples.seconds)
            out.update(count=len(ordered), failures=self.samples.failures)
            if ordered:
                out.update(median=median(ordered), p99=self.tail, least=ordered[0], most=ordered[-1])
            if with_samples:
                out["samples"] = self.samples.seconds
        return out


class Bar:
    """What a ratio of ours to another figure must keep to, and what it aims at."""

    def __init__(self, bar=None, aim=None, at_least=False):
        self.bar = bar
        self.aim = aim
        self.at_least = at_least

    def holds(self, value, limit):
        return value >= limit if self.at_least else value <= limit

    def shown(self, value, limit):
        if limit is None:
            return ""
        return f"{'>=' if self.at_least else '<='} {ratio(limit)} {'✓' if self.holds(value, limit) else '✗'}"


class Comparison:
    def __init__(self, label, value, bar=None, text=None):
        self.label = label
        self.value = value
        self.bar = bar
        self.text = text or ratio(value)

    @property
    def passed(self):
        return None if self.bar is None or self.bar.bar is None else self.bar.holds(self.value, self.bar.bar)

    def as_json(self):
        out = {"label": self.label.strip(), "ratio": self.value}
        if self.bar:
            out.update(
                bar=self.bar.bar,
                aim=self.bar.aim,
                direction="at least" if self.bar.at_least else "at most",
                passed=self.passed,
            )
            if self.bar.aim is not None:
                out["reached_aim"] = self.bar.holds(self.value, self.bar.aim)
        return out


class Row:
    """One row: figures in the order they were taken, each perhaps compared with one of ours. Printed as it grows."""

    def __init__(self, name, title, table):
        self.name = name
        self.title = title
        self.table = table
        self.figures = []
        self.comparisons = []
        self.notes = []
        table.open_row(self)

    def samples(self, label, samples, role="baseline", commands=(), against=None, bar=None, of=median):
        """A figure of many durations; `of` makes the one number of them that ratios use."""
        if not samples.seconds and role == "ours":
            raise Failed(f"{label}: no call succeeded: {' '.join(samples.why.split())[:600]}")
        value = of(samples.seconds) if samples.seconds else None
        figure = Figure(label, value, "s", samples, commands, role)
        self._add(figure, against, bar)
        if samples.failures:
            self.note(f"{label}: {samples.failures} calls failed: {' '.join(samples.why.split())[:300]}")
        return figure

    def number(self, label, value, unit, role="baseline", commands=(), against=None, bar=None, samples=None):
        figure = Figure(label, value, unit, samples, commands, role)
        self._add(figure, against, bar)
        if samples is not None and samples.failures:
            self.note(f"{label}: {samples.failures} calls failed: {' '.join(samples.why.split())[:300]}")
        return figure

    def _add(self, figure, against, bar):
        """`against`: the figure of ours that this one is a baseline of. The ratio is ours divided by this."""
        self.figures.append(figure)
        comparison = None
        if against is not None and figure.value and against.value:
            comparison = Comparison(f"{against.label} / {figure.label}", against.value / figure.value, bar)
            self.comparisons.append(comparison)
        self.table.figure(figure, comparison)

    def check(self, label, value, bar=None, text=None):
        """A ratio, or another number with a bar, that belongs to no single baseline."""
        comparison = Comparison(label, value, bar, text)
        self.comparisons.append(comparison)
        self.table.check(comparison)

    def note(self, text):
        self.notes.append(text)
        self.table.note(text)

    def as_json(self, with_samples=False):
        return {
            "row": self.name,
            "title": self.title,
            "figures": [f.as_json(with_samples) for f in self.figures],
            "comparisons": [c.as_json() for c in self.comparisons],
            "notes": self.notes,
        }


class Table:
    """Prints rows as they come, in columns that stay aligned."""

    COLUMNS = (
        ("what was measured", 56, "<"),
        ("median", 14, ">"),
        ("p99", 12, ">"),
        ("samples", 8, ">"),
        ("ours : this", 12, ">"),
        ("bar", 13, ">"),
        ("aim", 13, ">"),
    )

    def __init__(self, show_commands=True):
        self.show_commands = show_commands

    def line(self, *cells):
        shown = [f"{cell:{align}{width}}" for cell, (_, width, align) in zip(cells, self.COLUMNS)]
        print(" ".join(shown).rstrip(), flush=True)

    def head(self):
        self.line(*(name for name, _, _ in self.COLUMNS))

    def open_row(self, row):
        print(f"\n{row.name}: {row.title}", flush=True)
        self.head()

    def figure(self, figure, comparison):
        tail = duration(figure.tail) if figure.tail is not None else ""
        count = f"{len(figure.samples.seconds):,}" if figure.samples else ""
        self.line(
            "  " + figure.label, quantity(figure.value, figure.unit), tail, count, *self._compared(comparison)
        )
        if self.show_commands:
            for command in figure.commands:
                print(f"      $ {command}", flush=True)

    def check(self, comparison):
        self.line("  " + comparison.label, "", "", "", *self._compared(comparison))

    def note(self, text):
        print(f"  note: {text}", flush=True)

    @staticmethod
    def _compared(comparison):
        if comparison is None:
            return "", "", ""
        bar = comparison.bar
        if bar is None:
            return comparison.text, "", ""
        return comparison.text, bar.shown(comparison.value, bar.bar), bar.shown(comparison.value, bar.aim)
