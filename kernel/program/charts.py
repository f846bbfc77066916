# Copyright 2026 The sandpit authors
# SPDX-License-Identifier: Apache-2.0
"""What a figure of matplotlib shows, and what a data frame holds, as JSON.

The kernel runs this text when it first meets one of them, so that code which draws nothing pays nothing. It reads the
objects of the cell and changes none. Nothing here may raise for a figure that it does not understand: that is a chart
of the type "unknown".
"""

import datetime
import itertools
import math
import re

MAX_POINTS = 20_000  # of a figure, over all of its charts
MAX_ELEMENTS = 1_000  # of one chart
MAX_CHARTS = 50
MAX_LABEL = 500  # characters
MAX_ROWS = 1_000  # of a data frame
MAX_COLUMNS = 100
MAX_CELLS = 20_000
MAX_CELL = 2_000  # characters of a text

BOXES = "_sandpit_boxes"  # of an Axes: the statistics that it drew boxes of


class Room:
    """How much more of a figure is told."""

    def __init__(self):
        self.points = MAX_POINTS
        self.cut = False

    def take(self, items, most=None):
        """As many of the items as there is room for."""
        most = self.points if most is None else min(most, self.points)
        items = list(itertools.islice(items, most + 1))  # there may be millions
        if len(items) > most:
            items, self.cut = items[:most], True
        self.points -= len(items)
        return items


def watch(axes):
    """Has an Axes keep the statistics of the boxes that it draws: what it draws of them are lines."""
    plain = axes.Axes.bxp

    def bxp(self, bxpstats, *args, **kw):
        bxpstats = list(bxpstats)
        drawn = plain(self, bxpstats, *args, **kw)
        try:
            getattr(self, BOXES, None) or setattr(self, BOXES, [])
            getattr(self, BOXES).append((bxpstats, drawn))
        except Exception:
            pass
        return drawn

    bxp.__doc__, bxp.__name__ = plain.__doc__, "bxp"
    axes.Axes.bxp = bxp


def chart(figure):
    """The chart of a figure: that of its one Axes, or one of several; None: it has none."""
    room = Room()
    every = [a for a in figure.get_axes() if a.get_visible() and not hasattr(a, "_colorbar")]
    charts = [c for c in (guarded(axes, room) for axes in every[:MAX_CHARTS]) if c is not None]
    if not charts:
        return None
    if len(charts) == 1 and len(every) == 1:
        out = charts[0]
        if not out["title"]:
            out["title"] = suptitle(figure)
    else:
        out = {"type": "composite", "title": suptitle(figure), "elements": charts}
    if room.cut or len(every) > MAX_CHARTS:
        out["truncated"] = True
    return out


def suptitle(figure):
    return label(figure.get_suptitle() if hasattr(figure, "get_suptitle") else getattr(figure._suptitle, "get_text", str)())


def guarded(axes, room):
    try:
        return of_axes(axes, room)
    except Exception:
        return {"type": "unknown", "title": label(axes.get_title()), "elements": []}


def of_axes(axes, room):
    for make in (pie, boxes, bars, scatter, line):
        found = make(axes, room)
        if found:
            kind, elements = found
            break
    else:
        if not axes.has_data():
            return None
        kind, elements = "unknown", []
    out = {"type": kind, "title": label(axes.get_title()), "elements": elements[:MAX_ELEMENTS]}
    if len(elements) > MAX_ELEMENTS:
        room.cut = True
    if kind == "pie":
        return out
    for name, axis in (("x", axes.xaxis), ("y", axes.yaxis)):
        text = label(axis.get_label_text())
        unit = re.search(r"[(\[]([^()\[\]]{1,40})[)\]]\s*$", text)
        out[name + "_label"] = text
        out[name + "_unit"] = unit.group(1) if unit else ""
        out[name + "_scale"] = scale(axis)
        low, high = sorted(axis.get_view_interval())
        ticks = [t for t in axis.get_majorticklocs() if low <= t <= high][:100]
        out[name + "_ticks"] = [point(axis, t) if dates(axis) else number(format(t, ".12g")) for t in ticks]
        out[name + "_tick_labels"] = tick_labels(axis, ticks)
    return out


def tick_labels(axis, ticks):
    """The labels of ticks as plain text: of powers matplotlib writes mathematics, and of boxes before 3.7 numbers."""
    return [label(re.sub(r"^\$\\mathdefault\{(.*)\}\$$", r"\1", str(t)).replace("{", "").replace("}", "").replace("\u2212", "-"))
            for t in axis.get_major_formatter().format_ticks(ticks)]


def named(axis):
    """Whether somebody chose the labels of an axis's ticks."""
    return any(is_of(axis.get_major_formatter(), name) for name in ("FixedFormatter", "FuncFormatter", "StrCategoryFormatter"))


def is_of(obj, name):
    """Whether an object is of a class, named by its module and itself, that may never have been imported."""
    return any(c.__module__.startswith("matplotlib.") and c.__name__ == name for c in type(obj).__mro__)


def pie(axes, room):
    wedges = [p for p in axes.patches if is_of(p, "Wedge")]
    if not wedges:
        return None
    return "pie", [{"label": label(w.get_label()), "angle": number(abs(w.theta2 - w.theta1)), "radius": number(w.r)}
                   for w in room.take(wedges, MAX_ELEMENTS)]


def boxes(axes, room):
    drawn = [(stats, parts) for stats, parts in getattr(axes, BOXES, [])
             if any(b in axes.lines or b in axes.patches for b in parts.get("boxes", []))]
    if not drawn:
        return None
    ticks = {}
    for axis in (axes.xaxis, axes.yaxis):
        if named(axis):
            ticks = dict(enumerate(tick_labels(axis, list(axis.get_majorticklocs()))))
    out = []
    for stats, _ in drawn:
        for n, s in enumerate(stats[:MAX_ELEMENTS]):
            out.append({"label": label(s.get("label") or ticks.get(n) or str(n + 1)), "min": number(s.get("whislo")), "first_quartile": number(s.get("q1")),
                        "median": number(s.get("med")), "third_quartile": number(s.get("q3")), "max": number(s.get("whishi")),
                        "outliers": [number(v) for v in room.take(s.get("fliers", []))]})
    return "box_and_whisker", out


def bars(axes, room):
    found = [c for c in axes.containers if is_of(c, "BarContainer")]
    if not found:
        return None
    out = []
    for container in found:
        flat = getattr(container, "orientation", None) == "horizontal"
        axis = axes.yaxis if flat else axes.xaxis
        places = [(p.get_y() + p.get_height() / 2, p.get_width()) if flat else (p.get_x() + p.get_width() / 2, p.get_height())
                  for p in room.take(container.patches)]
        locations = list(axis.get_majorticklocs())
        names = tick_labels(axis, locations)
        # A label that somebody chose may be that of several bars beside each other.
        reach = min([abs(p.get_height() if flat else p.get_width()) for p in container.patches] or [0]) if named(axis) else 1e-9
        for at, value in places:
            near = min(zip(locations, names), key=lambda t: abs(t[0] - at), default=None)
            fits = near is not None and abs(near[0] - at) <= reach and near[1]
            out.append({"label": label(near[1] if fits else format(at, ".6g")), "group": group(container), "value": number(value)})
    return "bar", out


def scatter(axes, room):
    found = [c for c in axes.collections if is_of(c, "PathCollection")]
    lines = [one for one in axes.lines if one.get_linestyle() in ("None", "none", " ", "") and one.get_marker() not in ("None", "none", " ", "", None)]
    if not found and (not lines or len(lines) < len(axes.lines)):
        return None
    out = [{"label": group(c), "points": points(axes, c.get_offsets(), room)} for c in found]
    out += [{"label": group(one), "points": points(axes, zip(*one.get_data(orig=False)), room)} for one in lines]
    return "scatter", out


def line(axes, room):
    if not axes.lines:
        return None
    return "line", [{"label": group(one), "points": points(axes, zip(*one.get_data(orig=False)), room)} for one in axes.lines]


def points(axes, pairs, room):
    return [[point(axes.xaxis, x), point(axes.yaxis, y)] for x, y in room.take(pairs)]


def group(artist):
    """An artist's label, which begins with _ where it has none of its own."""
    text = label(artist.get_label())
    return "" if text.startswith("_") else text


def scale(axis):
    if dates(axis):
        return "datetime"
    if any(c.__name__ == "StrCategoryConverter" for c in type(converter(axis)).__mro__):
        return "categorical"
    return str(axis.get_scale())


def converter(axis):
    found = getattr(axis, "get_converter", None)
    return found() if found is not None else getattr(axis, "converter", None)


def dates(axis):
    """Whether the numbers of an axis are days."""
    return any("Date" in c.__name__ for c in type(converter(axis)).__mro__) or "Date" in type(axis.get_major_formatter()).__name__


def point(axis, value):
    """A coordinate: a number, or a date as text."""
    if dates(axis):
        try:
            import matplotlib.dates
            when = matplotlib.dates.num2date(value).replace(tzinfo=None)
            return when.isoformat()
        except Exception:
            pass
    return number(value)


def number(value):
    """A number that JSON can carry, or None."""
    try:
        value = float(value)
    except Exception:
        return None
    if not math.isfinite(value):
        return None
    return int(value) if value == int(value) and abs(value) < 1 << 53 else value


def label(text):
    return str(text)[:MAX_LABEL]


def table(obj):
    """The columns of a data frame, and whether some of it is left out; None: it is none."""
    kind = type(obj).__module__.split(".")[0]
    if type(obj).__name__ != "DataFrame" or kind not in ("pandas", "polars"):
        return None
    rows, columns = obj.shape
    wide = min(columns, MAX_COLUMNS)
    long = min(rows, MAX_ROWS, MAX_CELLS // max(wide, 1))
    found, cut = {}, wide < columns or long < rows
    for n in range(wide):
        column = obj.iloc[:long, n].tolist() if kind == "pandas" else obj[:long, n].to_list()
        name = str(obj.columns[n])[:MAX_LABEL]
        while name in found:  # pandas allows one name twice
            name += "'"
        found[name] = []
        for value in column:
            value, short = cell(value)
            cut = cut or short
            found[name].append(value)
    return {"columns": found, "cut": cut}


def cell(value):
    """A value of a data frame that JSON can carry, and whether it is only the first part."""
    if value is None or isinstance(value, (bool, str)):
        pass
    elif isinstance(value, int):
        value = int(value) if abs(value) < 1 << 53 else str(value)
    elif isinstance(value, float):
        value = float(value) if math.isfinite(value) else None
    elif isinstance(value, (datetime.date, datetime.time)):
        try:
            value = value.isoformat()
        except Exception:
            value = None
        if value == "NaT":
            value = None
    elif type(value).__name__ in ("NaTType", "NAType"):
        value = None
    else:
        value = str(value)
    if isinstance(value, str) and len(value) > MAX_CELL:
        return value[:MAX_CELL], True
    return value, False
