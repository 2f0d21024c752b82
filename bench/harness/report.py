"""The results as text on the terminal and as one HTML file that needs nothing else."""
import html
import pathlib
import string

from harness import bars, charts, workloads

TEMPLATE = pathlib.Path(__file__).resolve().parents[1] / "report" / "template.html"

TITLES = {
    "fd": "fd: libevent's bench.c",
    "watchers": "watchers: make, call and destroy",
    "timers": "timers: start, restart, stop, expire",
    "post": "post: tasks from other threads",
}


def number(value):
    if value is None:
        return "–"
    if abs(value) >= 1000:
        return f"{value:,.0f}"
    return f"{value:.3g}" if abs(value) < 100 else f"{value:.0f}"


def ratio(value):
    return "–" if value is None else f"{value:.2f}×"


def metrics_by_case(results, workload):
    return [(metric, key) for metric in results.metrics(workload)
            for key in results.cases(workload)]


def print_tables(results):
    """Ratios to the reference, a column a contestant; over 1 costs more than the reference."""
    for workload in results.workloads():
        names, reference = results.contestants(workload), results.reference(workload)
        print(f"\n{TITLES[workload]}: cost as a multiple of {reference} "
              f"(median over repetitions; over 1 is worse)")
        rows = [["", reference, *[n for n in names if n != reference]]]
        for metric, key in metrics_by_case(results, workload):
            own = results.median(workload, key, metric, reference)
            rows.append([f"{metric} {bars.title(key)}",
                         f"{number(own)} {results.units[metric]}" if own is not None else "–"])
            rows[-1] += [ratio(results.cost_ratio(workload, key, metric, n, reference))
                         for n in names if n != reference]
        print_aligned(rows)
        print_counts(results, workload, names)
    print("\nBars")
    print_aligned([[v.what, v.bar, v.measured or "not measured", answer(v)]
                   for v in bars.verdicts(results)])


def print_counts(results, workload, names):
    table = count_table(results, workload, names)
    if table:
        print("\n  per operation (user-space instructions; system calls)")
        print_aligned([["", *names], *table])


def count_table(results, workload, names):
    operations = list(dict.fromkeys(op for w, op, _, _ in results.counts if w == workload))
    table = []
    for op in operations:
        cells = []
        for name in names:
            instructions = results.counts.get((workload, op, "instructions_per_op", name))
            calls = results.counts.get((workload, op, "syscalls_per_op", name))
            cells.append("–" if instructions is None and calls is None else
                         f"{number(instructions)}; {'–' if calls is None else f'{calls:.2f}'}")
        table.append([op, *cells])
    return table


def print_aligned(rows):
    if not rows:
        return
    widths = [max(len(row[i]) if i < len(row) else 0 for row in rows)
              for i in range(max(len(row) for row in rows))]
    for row in rows:
        cells = [cell.ljust(widths[i]) if i == 0 else cell.rjust(widths[i])
                 for i, cell in enumerate(row)]
        print("  " + "  ".join(cells).rstrip())


def answer(verdict):
    return {True: "yes", False: "NO", None: ""}[verdict.met]


def tag(name, text, kind=""):
    return f"<{name}{f' class={kind}' if kind else ''}>{text}</{name}>"


def table_html(head, rows):
    """`rows` of (text, class) cells."""
    lines = ["<table>", "<tr>" + "".join(tag("th", html.escape(h)) for h in head) + "</tr>"]
    for row in rows:
        lines.append("<tr>" + "".join(tag("td", html.escape(t), k) for t, k in row) + "</tr>")
    return "\n".join([*lines, "</table>"])


def verdict_rows(results):
    for v in bars.verdicts(results):
        kind = {True: "met", False: "missed", None: ""}[v.met]
        yield [(v.what, ""), (v.bar, "n"), (v.measured or "not measured", "n"), (answer(v), kind)]


def sample_cell(results, workload, key, metric, name, reference):
    """Median, least and greatest, and the ratio to the reference, marked where it is beaten."""
    values = results.samples(workload, key, metric, name)
    if not values:
        return "–", "n"
    median = results.median(workload, key, metric, name)
    text = f"{number(median)} [{number(min(values))}…{number(max(values))}]"
    if name == reference:
        return text, "n own"
    cost = results.cost_ratio(workload, key, metric, name, reference)
    beaten = cost is not None and cost < 1
    return f"{text} {ratio(cost)}", "n faster" if beaten else "n"


def workload_html(results, workload, repeats):
    names, reference = results.contestants(workload), results.reference(workload)
    parts = [tag("h2", html.escape(TITLES[workload]))]
    parts += [f'<img alt="{html.escape(alt)}" src="{source}">'
              for alt, source in charts.draw(results, workload)]
    parts.append(tag("p", f"Median of {repeats} repetitions [least…greatest], then the cost as a "
                          f"multiple of {html.escape(reference)}; a cell is shaded where a "
                          f"contestant costs less than it."))
    for metric in results.metrics(workload):
        direction = "more is better" if metric in workloads.RATES else "less is better"
        parts.append(tag("h3", html.escape(f"{metric}, {results.units[metric]} ({direction})")))
        rows = [[(bars.title(key), "")] + [sample_cell(results, workload, key, metric, n, reference)
                                           for n in names] for key in results.cases(workload)]
        parts.append(table_html(["", *names], rows))
    counted = count_table(results, workload, names)
    if counted:
        parts.append(tag("h3", "Per operation: user-space instructions; system calls"))
        parts.append(table_html(["", *names], [[(c, "n" if i else "") for i, c in enumerate(row)]
                                               for row in counted]))
    return "\n".join(parts)


def write_html(results, described, repeats, path):
    contestants = [[(name, ""), (results.versions[name], ""), (results.libraries[name] or "–", "")]
                   for name in sorted(results.versions)]
    page = string.Template(TEMPLATE.read_text()).substitute(
        bars=table_html(["", "bar", "measured", "met"], verdict_rows(results)),
        machine=table_html(["", ""], [[(k, ""), (v, "")] for k, v in described.items()]),
        contestants=table_html(["contestant", "version it reports", "shared object it loaded"],
                               contestants),
        charts_note="" if charts.available() else tag("p", "No charts: matplotlib is missing."),
        workloads="\n".join(workload_html(results, w, repeats) for w in results.workloads()))
    path.write_text(page)
