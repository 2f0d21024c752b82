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
    "pingpong": "pingpong: bytes to and fro",
    "header_body": "header_body: growing messages to and fro",
    "threads": "threads: pingpong with several",
    "churn": "churn: connect, ask, be answered, close",
    "idle": "idle: memory and timeouts",
    "latency": "latency: one round trip",
    "udp": "udp: packets to and fro",
    "programs": "programs: servers of the distribution",
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


def compared(results, workload):
    """(those compared with the reference, those compared in pairs: each before its twin)."""
    paired = [name for pair in results.pairs(workload) for name in pair]
    if workload in workloads.PAIRS_ONLY:
        return [], paired or results.contestants(workload)
    return [n for n in results.contestants(workload) if not workloads.is_twin(n)], paired


def print_tables(results):
    """Ratios to the reference, a column a contestant; over 1 costs more than the reference."""
    for workload in results.workloads():
        names, paired = compared(results, workload)
        if names:
            print_against(results, workload, results.reference(workload), names)
        if paired:
            print_pairs(results, workload, paired)
    print("\nBars")
    print_aligned([[v.what, v.bar, v.measured or "not measured", answer(v)]
                   for v in bars.verdicts(results)])


def print_against(results, workload, reference, names):
    print(f"\n{TITLES[workload]}: cost as a multiple of {reference} "
          f"(median over repetitions; over 1 is worse)")
    others = [n for n in names if n != reference]
    rows = [["", reference, *others]]
    for metric, key in metrics_by_case(results, workload):
        rows.append([f"{metric} {bars.title(key)}",
                     measured(results, workload, key, metric, reference)])
        rows[-1] += [ratio(results.cost_ratio(workload, key, metric, n, reference)) for n in others]
    print_aligned(rows)
    print_counts(results, workload, names, names)


def print_pairs(results, workload, names):
    print(f"\n{TITLES[workload]}: the same program on spate's drop-in, cost as a multiple of the "
          f"original's (over 1 is worse)")
    head = ["on spate" if workloads.is_twin(n) else n for n in names]
    rows = [["", *head]]
    for metric, key in metrics_by_case(results, workload):
        rows.append([f"{metric} {bars.title(key)}"])
        for n in names:
            rows[-1].append(
                ratio(results.cost_ratio(workload, key, metric, n, workloads.original_of(n)))
                if workloads.is_twin(n) else measured(results, workload, key, metric, n))
    print_aligned(rows)
    print_counts(results, workload, names, head)


def measured(results, workload, key, metric, name):
    median = results.median(workload, key, metric, name)
    return "–" if median is None else f"{number(median)} {results.units[metric]}"


def print_counts(results, workload, names, head):
    table = count_table(results, workload, names)
    if table:
        print("\n  per operation (user-space instructions; system calls)")
        print_aligned([["", *head], *table])


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
    """Median, least and greatest, and the ratio to the reference, marked where spate loses."""
    values = results.samples(workload, key, metric, name)
    if not values:
        return "–", "n"
    median = results.median(workload, key, metric, name)
    text = f"{number(median)} [{number(min(values))}…{number(max(values))}]"
    if name == reference:
        return text, "n own"
    cost = results.cost_ratio(workload, key, metric, name, reference)
    lost = cost is not None and (cost > 1 if workloads.is_twin(name) else cost < 1)
    return f"{text} {ratio(cost)}", "n lost" if lost else "n"


def workload_html(results, workload, repeats):
    names, paired = compared(results, workload)
    parts = [tag("h2", html.escape(TITLES[workload]))]
    parts += [f'<img alt="{html.escape(alt)}" src="{source}">'
              for alt, source in charts.draw(results, workload)]
    note = f"Median of {repeats} repetitions [least…greatest], then the cost as a multiple of "
    if names:
        reference = results.reference(workload)
        parts.append(tag("p", f"{note}{html.escape(reference)}; a cell is shaded where a "
                              f"contestant costs less than it."))
        parts += tables_html(results, workload, names, lambda n: reference)
    if paired:
        parts.append(tag("p", f"The same program on spate's drop-in. {note}the original's; a cell "
                              f"is shaded where the drop-in costs more."))
        parts += tables_html(results, workload, paired, workloads.original_of)
    return "\n".join(parts)


def tables_html(results, workload, names, reference_of):
    """A table a metric, and that of the counts."""
    for metric in results.metrics(workload):
        direction = "more is better" if metric in workloads.RATES else "less is better"
        yield tag("h3", html.escape(f"{metric}, {results.units[metric]} ({direction})"))
        yield table_html(["", *names],
                         [[(bars.title(key), "")] +
                          [sample_cell(results, workload, key, metric, n, reference_of(n))
                           for n in names] for key in results.cases(workload)])
    counted = count_table(results, workload, names)
    if counted:
        yield tag("h3", "Per operation: user-space instructions; system calls")
        yield table_html(["", *names], [[(c, "n" if i else "") for i, c in enumerate(row)]
                                        for row in counted])


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
