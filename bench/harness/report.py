"""Writes the results as one self-contained HTML file: first the peers' own benchmarks."""
import collections
import dataclasses
import html
import pathlib
import statistics
import string

from harness import absences, bars, charts, pictures, stats, subjects
from harness.contestants import PAIRS_ONLY, is_floor, is_twin, original_of
from harness.subjects import (
    SUBJECTS, case_words, count_words, factor, metric_words, number, telling)
from harness.workload import METRICS, RATES

TEMPLATE = pathlib.Path(__file__).resolve().parents[1] / "report" / "template.html"

# On the same program as spate's other contestants; in the tables, but not in the charts.
NOT_DRAWN = {"spate_poll", "spate_select"}

PICTURES = "pictures"  # the directory beside the page
MOST_ROWS = 24  # of a table that is not folded


def tag(name, inner, kind="", **attributes):
    """An element; `inner` is markup."""
    shown = {"class": kind, **attributes}
    told = "".join(f' {k}="{html.escape(v)}"' for k, v in shown.items() if v)
    return f"<{name}{told}>{inner}</{name}>"


def table(head, rows, kind=""):
    """`rows` of (markup, class) cells; it scrolls where it is too wide."""
    lines = [tag("tr", "".join(tag("th", html.escape(h), scope="col") for h in head))]
    for (first, _), *cells in rows:
        lines.append(tag("tr", tag("th", first, scope="row") +
                         "".join(tag("td", inner, k) for inner, k in cells)))
    return tag("div", tag("table", "\n".join(lines), kind), "scroll", tabindex="0")


def plain(text, kind=""):
    return html.escape(text), kind


def folded(title, inner):
    return tag("details", tag("summary", html.escape(title)) + inner)


def badge(word):
    return tag("span", word or "too few runs", f"badge {word or 'untold'}")


def amount(value, unit):
    """A number with its unit, closed up where that is a sign: "2,031 /s", "12%"."""
    return f"{number(value)} {subjects.unit(unit)}"


# --- Charts ---

@dataclasses.dataclass(frozen=True)
class Figure:
    title: str
    words: str
    drawing: str

    def html(self):
        caption = tag("b", html.escape(self.title))
        if self.words:
            caption += f" {html.escape(self.words)}"
        return tag("figure", tag("figcaption", caption) + self.drawing)


def point_of(results, workload, key, metric, name):
    median = results.median(workload, key, metric, name)
    if not charts.has_place(median):
        return None
    around = results.interval(workload, key, metric, name)
    return charts.Point(median, around.low if charts.has_place(around.low) else median, around.high)


def drawn(results, workload):
    return [n for n in results.contestants(workload)
            if n not in NOT_DRAWN and not is_twin(n)]


def along(keys, axis):
    """Groups of the cases that differ in nothing but this parameter, of two or more."""
    groups = {}
    for key in keys:
        groups.setdefault(tuple(pair for pair in key if pair[0] != axis), []).append(key)
    return [group for group in groups.values() if len(group) > 1]


def figures(results, subject):
    """All of a subject that have something to show."""
    found = [*case_figures(results, subject), *series_figures(results, subject.workload)]
    return [figure for figure in found if figure]


def case_figures(results, subject):
    """Lines over the subject's axes where there are two cases to connect; else a row each."""
    keys = subject.cases(results)
    names = telling(keys)
    for metric in METRICS[subject.workload]:
        covered = set()
        for axis in subject.axes:
            for group in along(keys, axis):
                if not covered.issuperset(group):
                    covered.update(group)
                    yield line_figure(results, subject.workload, metric, axis, group, names)
        for key in keys:
            if key not in covered:
                yield dot_figure(results, subject.workload, metric, key, names)


def series_figures(results, workload):
    """Instructions an operation over the size, where they were counted at several."""
    for operation, axis in results.series(workload):
        lines = []
        for name in drawn_counts(results, workload):
            points = {size: charts.Point(value, value, value)
                      for size, value in results.counted(workload, operation, name).items()
                      if charts.has_place(value)}
            if len(points) > 1:
                lines.append(charts.Line(name, points))
        if lines:
            title = f"Instructions: {operation.replace('_', ' ')}"
            yield Figure(title, "", charts.line_chart(lines, axis, "", {}, f"{title}, over {axis}"))


def grid(found):
    """Two or four of them are larger, two a row."""
    return tag("div", "\n".join(figure.html() for figure in found),
               "figures two" if len(found) in (2, 4) else "figures")


def line_figure(results, workload, metric, axis, keys, names):
    lines = []
    for name in drawn(results, workload):
        points = {dict(key)[axis]: point_of(results, workload, key, metric, name) for key in keys}
        points = {x: point for x, point in points.items() if point}
        if points:
            lines.append(charts.Line(name, points))
    if not lines:
        return None
    cases = set(keys)
    verdicts = {dict(v.key)[axis]: v for v in results.verdicts(workload, [metric])
                if v.key in cases}
    words = case_words(keys[0], names - {axis})
    title = metric_words(metric).capitalize()
    return Figure(title, words, charts.line_chart(
        lines, axis, results.units[metric], verdicts, f"{title} {words}, over {axis}"))


def dot_figure(results, workload, metric, key, names):
    rows = []
    for name in drawn(results, workload):
        point = point_of(results, workload, key, metric, name)
        if point:
            rows.append(charts.Row(name, point, amount(point.value, results.units[metric])))
    title, words = metric_words(metric).capitalize(), case_words(key, names)
    if not rows:
        return None
    return Figure(title, words, charts.dot_chart(rows, metric in RATES,
                                                 f"{title} {words}"))


def count_figures(results, workload):
    """A figure an operation: instructions, and beside them the system calls. A series is a curve
    beside its workload."""
    for operation in results.operations(workload):
        if results.is_in_series(workload, operation):
            continue
        rows = []
        for name in drawn_counts(results, workload):
            value = (results.count(workload, operation, "instructions", name) or
                     results.count(workload, operation, "syscalls", name))
            if charts.has_place(value):
                rows.append(charts.Row(name, charts.Point(value, value, value),
                                       count_words(results, workload, operation, name)))
        if rows:
            yield Figure(operation.capitalize(), f"({workload})",
                         charts.dot_chart(rows, False, f"counts of {operation}"))


def drawn_counts(results, workload):
    names = {n for w, _, _, n in results.counts if w == workload}
    return [n for n in sorted(names) if n not in NOT_DRAWN and not is_twin(n)]


# --- What everybody reads ---

def share_bar(counted):
    parts = [tag("i", "", word, style=f"flex:{count}")
             for word, count in zip((stats.AHEAD, stats.LEVEL, stats.BEHIND), counted) if count]
    return tag("span", "".join(parts), "share")


def summary_row(title, verdicts, names):
    told = [v for v in verdicts if v.word]
    counted, least = stats.tally(told), stats.worst(told)
    cells = [(title, ""), (share_bar(counted), "")]
    cells += [(str(count) if count else "", "n") for count in counted]
    cells.append((factor(stats.typical(told)), "n"))
    words = "" if least is None else ", ".join(
        filter(None, [least.other, subjects.where(least, names)]))
    cells += [("" if least is None else factor(least.factor), "n"), plain(words)]
    return cells


def summary_table(results):
    rows = []
    for number_, subject in present(results):
        verdicts = subject.verdicts(results)
        if verdicts:
            link = tag("a", html.escape(subject.title), href=f"#s{number_}")
            rows.append(summary_row(link, verdicts, telling(subject.cases(results))))
    for workload in results.workloads():
        verdicts = results.twin_verdicts(workload, METRICS[workload])
        if verdicts:
            link = tag("a", f"Drop-in: {html.escape(workload)}", href="#dropin")
            rows.append(summary_row(link, verdicts, telling(results.cases(workload))))
    return table(["", "", "ahead", "level", "behind", "typically", "at worst", ""], rows, "summary")


def present(results):
    """(number, subject) of those that the run contains."""
    ran = results.workloads()
    return [(i, s) for i, s in enumerate(SUBJECTS) if s.workload in ran and s.cases(results)]


def totals(results):
    """Three figures for the whole run."""
    verdicts = [v for _, s in present(results) for v in s.verdicts(results)]
    words = (stats.AHEAD, stats.LEVEL, stats.BEHIND)
    return tag("p", "".join(tag("span", f"<b>{count}</b> {word}", f"total {word}")
                            for word, count in zip(words, stats.tally(verdicts))), "totals")


def verdict_table(results, subject):
    names = telling(subject.cases(results))
    me, rows = results.ours(subject.workload), []
    floors = [n for n in results.contestants(subject.workload) if is_floor(n)]
    for v in subject.verdicts(results):
        spread = "" if v.spread is None else f"{v.spread.low:.2f}–{v.spread.high:.2f}"
        row = [plain(subjects.where(v, names))]
        for name in (me, v.other):
            median = results.median(subject.workload, v.key, v.metric, name)
            row.append(plain(amount(median, results.units[v.metric]), "n"))
        row += [plain(v.other), (factor(v.factor), "n"), plain(spread, "n"), (badge(v.word), "")]
        row += [beside(results, subject.workload, v, me, floor) for floor in floors]
        rows.append(row)
    return table(["", me, "best peer", "", "× as good", "spread", "verdict",
                  *(f"beside {floor}" for floor in floors)], rows)


def beside(results, workload, verdict, me, name):
    found = results.verdict(workload, verdict.key, verdict.metric, me, name)
    return (factor(found.factor) if found else "–"), "n"


def subject_section(results, number_, subject):
    parts = [tag("h2", html.escape(subject.title), id=f"s{number_}")]
    origin = html.escape(subject.after)
    if subject.link:
        origin = "After " + tag("a", origin, href=subject.link)
        parts.append(tag("p", origin, "after"))
    parts.append(tag("p", html.escape(subject.measured)))
    verdicts = subject.verdicts(results)
    if verdicts:
        told = subjects.in_one_sentence(verdicts, telling(subject.cases(results)))
        parts.append(tag("p", html.escape(told), "winner"))
    drawn_ones = figures(results, subject)
    parts.append(grid(drawn_ones))
    if drawn_ones:
        link = tag("a", "These charts as a picture", href=f"{PICTURES}/{picture_name(subject)}")
        parts.append(tag("p", link, "after"))
    if len(verdicts) > MOST_ROWS:
        parts.append(folded(f"{len(verdicts)} comparisons with the best peer",
                            verdict_table(results, subject)))
    elif verdicts:
        parts.append(verdict_table(results, subject))
    return tag("section", "\n".join(parts))


def picture_name(subject):
    """Returns the name of the file with the charts of a subject."""
    return "-".join([subject.workload, *(f"{k}-{v}" for k, v in subject.fixed)]) + ".svg"


def write_pictures(results, run, directory):
    for _, subject in present(results):
        drawn_ones = figures(results, subject)
        if drawn_ones and subject.workload not in PAIRS_ONLY:
            pictures.write(directory, picture_name(subject), pictures.picture(
                subject.title, subject.measured, run, drawn_ones, TEMPLATE.read_text()))


def counts_section(results):
    drawings = [figure for workload in dict.fromkeys(w for w, _, _, _ in results.counts)
                if workload not in PAIRS_ONLY
                for figure in count_figures(results, workload)]
    if not drawings:
        return tag("p", "This run did not count them.")
    told = " ".join(count_sentence(results, kind, words) for kind, words in
                    (("instructions", "instructions"), ("syscalls", "system calls")))
    return (tag("p", html.escape(told), "winner") + tag(
        "p", "The figures: instructions; system calls. Fewer are better.", "key") + grid(drawings))


def count_sentence(results, kind, words):
    counted = collections.Counter(results.count_words(kind).values())
    parts = [f"{told} in {counted[word]}" for word, told in
             ((stats.AHEAD, "fewer than any peer"), (stats.LEVEL, "as many as the best"),
              (stats.BEHIND, "more")) if counted[word]]
    return f"Of {sum(counted.values())} operations, spate needs {words}: {', '.join(parts)}."


# --- Details ---

def sample_cell(results, workload, key, metric, name, reference):
    """Median, least and greatest, and the verdict of the reference beside it."""
    values = results.samples(workload, key, metric, name)
    if not values:
        return ("failed", "n hole") if results.has_hole(workload, key, name) else ("–", "n")
    text = f"{number(statistics.median(values))} [{number(min(values))}…{number(max(values))}]"
    if name == reference:
        return text, "n own"
    found = (results.verdict(workload, key, metric, name, reference) if is_twin(name)
             else results.verdict(workload, key, metric, reference, name))
    return (f"{text} {factor(found.factor)}", f"n {found.word}") if found else (text, "n")


def sample_tables(results, workload, names, reference_of):
    """A table a metric, and that of the counts."""
    for metric in results.metrics(workload):
        direction = "more is better" if metric in RATES else "less is better"
        unit = subjects.unit(results.units[metric])
        yield tag("h4", html.escape(f"{metric}, {unit} ({direction})"))
        yield table(["", *names],
                    [[plain(bars.title(key))] +
                     [sample_cell(results, workload, key, metric, n, reference_of(n))
                      for n in names] for key in results.cases(workload)])
    rows = [[plain(op)] + [plain(count_words(results, workload, op, n), "n") for n in names]
            for op in results.operations(workload)]
    if rows:
        yield tag("h4", "Per operation: user-space instructions; system calls")
        yield table(["", *names], rows)


def workload_details(results, workload):
    parts, paired = [], [name for pair in results.pairs(workload) for name in pair]
    if workload not in PAIRS_ONLY:
        names = [n for n in results.contestants(workload) if not is_twin(n)]
        reference = results.reference(workload)
        parts.append(tag("p", f"Median [least…greatest], then how many times as good "
                              f"{html.escape(reference)} is, shaded by the verdict."))
        parts += sample_tables(results, workload, names, lambda n: reference)
    if paired:
        parts.append(tag("p", "The same program on spate's drop-in, beside its original."))
        parts += sample_tables(results, workload, paired, original_of)
    return folded(f"{workload}: every sample", "\n".join(parts))


def dropin_details(results):
    rows = []
    for workload in results.workloads():
        names = telling(results.cases(workload))
        for v in results.twin_verdicts(workload, METRICS[workload]):
            spread = "" if v.spread is None else f"{v.spread.low:.2f}–{v.spread.high:.2f}"
            rows.append([plain(f"{workload}: {v.other}, {subjects.where(v, names)}"),
                         (factor(v.factor), "n"), plain(spread, "n"), (badge(v.word), "")])
    if not rows:
        return ""
    head = ["", "× as good as on the original", "spread", "verdict"]
    return tag("div", folded("The same binaries on spate's drop-in libraries", table(head, rows)),
               id="dropin")


def aims(results):
    met = {True: ("met", "ahead"), False: ("missed", "behind"), None: ("", "")}
    return table(["", "aim", "measured", ""],
                 [[plain(b.what), plain(b.bar, "n"), plain(b.measured or "not measured"),
                   (tag("span", met[b.met][0], f"badge {met[b.met][1]}") if b.met is not None
                    else "", "")] for b in bars.all_bars(results)])


def holes_section(results):
    """Returns the table of the results that are missing without a good reason, or ""."""
    holes = results.holes()
    if not holes:
        return ""
    rows = [[plain(a.workload), plain(a.contestant), plain(a.case or "all cases"), plain(a.reason)]
            for a in holes]
    return tag("section", tag("h2", "Missing results", id="holes") + tag(
        "p", "These contestants failed, or did other work than the others.") +
        table(["", "contestant", "case", "reason"], rows, "holes"))


def left_out_details(results):
    """Contestants by the reason for which they were not run."""
    found = collections.defaultdict(list)
    for a in results.absences:
        if a.kind in (absences.LEFT_OUT, absences.LATER):
            found[a.reason].append(f"{a.workload}/{a.contestant}")
    if not found:
        return ""
    rows = [[plain(reason), plain(", ".join(dict.fromkeys(names)), "names")]
            for reason, names in found.items()]
    return folded("Left out of this run", table(["reason", "contestants"], rows))


def disturbance_words(results):
    steals, loads = ([pair[i] for pair in results.disturbances] or [0] for i in (0, 1))
    return (f"stolen by the hypervisor {100 * statistics.median(steals):.1f} % of the processors' "
            f"time, at most {100 * max(steals):.1f} %; other programs kept "
            f"{statistics.median(loads):.2f} processors busy, at most {max(loads):.2f}")


def write_html(results, described, path):
    machine = {**described, "while it ran": disturbance_words(results)}
    contestants = [[plain(name), plain(results.versions[name]),
                    plain(results.libraries[name] or "–")] for name in sorted(results.versions)]
    details = [dropin_details(results), folded("What spate aims at", aims(results)),
               *(workload_details(results, w) for w in results.workloads()),
               left_out_details(results), folded("The contestants", table(
                   ["contestant", "version it reports", "shared object it loaded"], contestants)),
               folded("The machine", table(["", ""], [[plain(k), plain(v)]
                                                      for k, v in machine.items()]))]
    sections = [subject_section(results, i, s) for i, s in present(results)
                if s.workload not in PAIRS_ONLY]
    run = (f"{described['begun']}, spate at {described['commit']}, {described['processor']}, "
           f"{described['cores']} processors, Linux {described['kernel']}")
    write_pictures(results, run, path.parent / PICTURES)
    page = string.Template(TEMPLATE.read_text()).substitute(
        totals=totals(results), holes=holes_section(results), summary=summary_table(results),
        sections="\n".join(sections),
        counts=counts_section(results), details="\n".join(details),
        run=html.escape(f"{run}; {disturbance_words(results)}."))
    path.write_text(page, encoding="utf-8")
