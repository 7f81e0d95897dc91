"""`study.explore()`: choose an experiment, what is drawn over what, and see the figure and the rows.

Without ipywidgets, or without measurements, it is a table of what there is.
"""

from dataclasses import dataclass, field

from labbook.study.explorer import shown

# What draws: a function of (rows of a summary, x, hue or None, metric). labbook.figures, a room above, sets it.
chart = None
ALL, NONE = "all", "none"


@dataclass(frozen=True)
class Measured:
    """What was measured of an experiment: `rows` as Experiment.summary gives them, `varies` {parameter:
    values} of what can be drawn over and chosen, `metrics` the names of numbers, the likeliest first."""

    name: str
    rows: object = field(repr=False)
    varies: dict
    metrics: list[str]

    def x(self) -> str | None:
        """The parameter to draw over first: that of most numbers, or of most values."""
        numbers = [name for name, values in self.varies.items() if all(_is_number(value) for value in values)]
        return max(numbers or self.varies, key=lambda name: len(self.varies[name]), default=None)

    def hue(self, x) -> str | None:
        """The parameter to compare first."""
        return next((name for name in self.varies if name != x), None)


def measured(study) -> dict[str, Measured]:
    """What was measured of each experiment of a Study; experiments without rows are left out."""
    found = {name: _measured(study, one) for name, one in study.experiments.items()}
    return {name: one for name, one in found.items() if one is not None}


def _measured(study, experiment) -> Measured | None:
    rows = experiment.summary()
    parameters = [name for name in experiment.parameters if name in rows]
    if not len(rows):
        return None
    varies = {name: values for name in parameters
              if len(values := sorted(_distinct(rows[name]), key=shown.order)) > 1}
    numbers = experiment.metrics(rows)
    claimed = [entry["metric"] for entry in study.claim_entries
               if entry.get("experiment") == experiment.name and entry.get("metric") in numbers]
    usual = [name for name in ("mean_ms", "rate_per_s") if name in numbers]
    return Measured(experiment.name, rows, varies, list(dict.fromkeys([*claimed, *usual, *numbers])))


def _distinct(column) -> list:
    return list({repr(value): value for value in (None if one != one else one for one in column.tolist())}.values())


def _is_number(value) -> bool:
    return isinstance(value, (int, float)) and not isinstance(value, bool)


class Contents(dict):
    """What was measured, as a table: {name: Measured}."""

    def _rows(self):
        return [(one.name, f"{len(one.rows)}", "; ".join(f"{name} {', '.join(map(str, values))}" for name, values
                                                         in one.varies.items()), ", ".join(one.metrics))
                for one in self.values()]

    def __repr__(self):
        return "\n".join(f"{name}: {rows} rows; {varies or 'nothing varies'}; metrics: {metrics}"
                         for name, rows, varies, metrics in self._rows()) or "nothing is measured yet"

    def _repr_html_(self) -> str:
        if not self:
            return "<p>Nothing is measured yet.</p>"
        return shown.table(("Experiment", "Rows", "What varies", "Metrics"), self._rows(), "what was measured")


def explore(study):
    """Widgets to choose by, or Contents."""
    found = measured(study)
    try:
        import ipywidgets
    except ImportError:
        return Contents(found)
    return Explorer(study, found, ipywidgets).box if found else Contents(found)


class Explorer:
    """Dropdowns of an experiment, x, hue and measure, and one a further parameter that varies; the figure and
    rows of what is chosen below them. `box`: the widget."""

    def __init__(self, study, found: dict[str, Measured], widgets):
        self.study, self.found, self._widgets = study, found, widgets
        self.experiment = self._dropdown("experiment", list(found))
        self.x, self.hue, self.metric = (self._dropdown(name, []) for name in ("over", "compared", "measure"))
        self.where, self.shown = widgets.HBox(), widgets.Output()
        self.box = widgets.VBox([widgets.HBox([self.experiment, self.x, self.hue, self.metric]), self.where,
                                 self.shown])
        self._busy = False
        self.experiment.observe(lambda _: self._begin(), "value")
        for one in (self.x, self.hue):
            one.observe(lambda _: self._limit(), "value")
        self.metric.observe(lambda _: self._draw(), "value")
        self._begin()

    def _dropdown(self, name, options):
        return self._widgets.Dropdown(description=name, options=options, layout={"width": "16rem"})

    @property
    def chosen(self) -> Measured:
        return self.found[self.experiment.value]

    def _begin(self):
        """Offer what the experiment has."""
        one, self._busy = self.chosen, True
        x = one.x()
        self._offer(self.x, [*one.varies] or [NONE], x or NONE)
        self._offer(self.hue, [NONE, *one.varies], one.hue(x) or NONE)
        self._offer(self.metric, one.metrics or [NONE], (one.metrics or [NONE])[0])
        self._busy = False
        self._limit()

    @staticmethod
    def _offer(dropdown, options, value):
        dropdown.options = options
        dropdown.value = value

    def _limit(self):
        """Offer the values of the parameters that are neither drawn over nor compared."""
        if self._busy:
            return
        others = [name for name in self.chosen.varies if name not in (self.x.value, self.hue.value)]
        choices = []
        for name in others:
            values = self.chosen.varies[name]
            one = self._dropdown(name, [(ALL, None), *((str(value), number) for number, value in enumerate(values, 1))])
            one.observe(lambda _: self._draw(), "value")
            choices.append(one)
        self.where.children = choices
        self._draw()

    def rows(self):
        """DataFrame of the summary's rows that are chosen."""
        rows = self.chosen.rows
        for one in self.where.children:
            if one.value is not None:
                wanted = repr(self.chosen.varies[one.description][one.value - 1])
                rows = rows[[repr(None if value != value else value) == wanted
                             for value in rows[one.description].tolist()]]
        return rows

    def _draw(self):
        if self._busy:
            return
        rows, metric = self.rows(), self.metric.value
        x, hue = (None if one.value == NONE else one.value for one in (self.x, self.hue))
        # Not `with self.shown:`, whose messages nbclient answers on the socket on which it waits for the end of the
        # cell; where that end comes at the same moment, it is not seen, and papermill waits for ever.
        with self.shown.hold_sync():
            self.shown.outputs = ()
            if chart is not None and x is not None and metric != NONE:
                self.shown.append_display_data(chart(rows, x, hue if hue != x else None, metric))
            columns = [*self.chosen.varies, "repeat", *([metric] if metric in rows else [])]
            self.shown.append_display_data(rows[columns].reset_index(drop=True))
            self.shown.append_stdout(self._raw(rows))

    def _raw(self, rows) -> str:
        """How the raw rows of the first point are read."""
        if self.study.run.published or not len(rows):
            return ""
        row = rows.iloc[0].to_dict()
        arguments = ", ".join(f"{name}={_python(row[name])}" for name in (*self.chosen.varies, "repeat"))
        return f"The raw rows of the first: study.experiments[{self.chosen.name!r}].rows({arguments})"


def _python(value) -> str:
    value = value.item() if hasattr(value, "item") else value
    return repr(None if value != value else value)
