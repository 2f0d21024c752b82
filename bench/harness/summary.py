"""The results as text on the terminal: one screen, and on request every ratio."""
from harness import bars, stats
from harness.contestants import PAIRS_ONLY, is_twin, original_of
from harness.subjects import SUBJECTS, count_words, factor, number, telling, where
from harness.workload import METRICS


def print_summary(results):
    """A line a part of the page, and one for each set of twins."""
    rows = [["", "ahead", "level", "behind", "typical", "worst", ""]]
    for subject in SUBJECTS:
        if subject.workload in results.workloads():
            rows += line(subject.workload + "".join(f" {k}={v}" for k, v in subject.fixed),
                         subject.verdicts(results), telling(subject.cases(results)))
    for workload in results.workloads():
        rows += line(f"{workload}, drop-in",
                     results.twin_verdicts(workload, METRICS[workload]),
                     telling(results.cases(workload)))
    if len(rows) > 1:
        print("\nspate beside the best peer, times as good; the drop-ins beside the originals")
        print_aligned(rows, words=(0, 6))
    if aims := [bar.met for bar in bars.all_bars(results) if bar.met is not None]:
        print(f"\naims met: {sum(aims)} of {len(aims)}")


def print_workload(results, workload, left, with_ratios=False):
    """Prints the results of one workload; `left`: how much of the run follows."""
    subject = next(s for s in SUBJECTS if s.workload == workload)
    print(f"\n{workload}: {subject.title} ({left})")
    names = telling(results.cases(workload))
    verdicts = results.verdicts(workload, METRICS[workload])
    twins = results.twin_verdicts(workload, METRICS[workload])
    if verdicts:
        head = ["", results.ours(workload), "best peer", "", "times as good", ""]
        print_aligned([head, *(verdict_row(results, v, names) for v in verdicts)], words=(0, 3, 5))
    if workload in PAIRS_ONLY and twins:
        head = ["", "on spate", "original", "", "times as good", ""]
        print_aligned([head, *(verdict_row(results, v, names) for v in twins)], words=(0, 3, 5))
    elif told := [v for v in twins if v.word]:
        ahead, level, behind = stats.tally(told)
        print(f"  drop-ins beside the originals: {ahead} ahead, {level} level, {behind} behind; "
              f"typically {factor(stats.typical(told))} as good")
    if not results.cases(workload):
        print("  nothing was measured")
    elif not verdicts and not twins:
        print("  no peer was measured")
    if with_ratios:
        print_ratios(results, workload)
    print_holes(results, workload)


def verdict_row(results, v, names):
    values = [measured(results, v.workload, v.key, v.metric, name)
              for name in (v.contestant, v.other)]
    return [where(v, names), *values, v.other, factor(v.factor), v.word or "too few runs"]


def print_holes(results, workload=None):
    for a in results.holes(workload):
        print(f"  {a.where}: {a.kind}: {a.reason}")


def print_smoke(results, workload, left):
    """Prints a workload of a smoke run, whose figures mean nothing."""
    count = len(results.contestants(workload)) if results.cases(workload) else 0
    print(f"{workload}: {count} contestants ({left})")


def line(title, verdicts, names):
    told = [v for v in verdicts if v.word]
    if not told:
        return []
    least = stats.worst(told)
    words = "" if least is None else ", ".join(filter(None, [least.other, where(least, names)]))
    return [[title, *(str(count) for count in stats.tally(told)), factor(stats.typical(told)),
             factor(least.factor if least else None), words]]


def ratio(value):
    return "–" if value is None else f"{value:.2f}×"


def metrics_by_case(results, workload):
    return [(metric, key) for metric in results.metrics(workload)
            for key in results.cases(workload)]


def compared(results, workload):
    """(those compared with the reference, those compared in pairs: each before its twin)."""
    paired = [name for pair in results.pairs(workload) for name in pair]
    if workload in PAIRS_ONLY:
        return [], paired or results.contestants(workload)
    return [n for n in results.contestants(workload) if not is_twin(n)], paired


def print_tables(results):
    """Ratios to the reference, a column a contestant; over 1 costs more than the reference."""
    for workload in results.workloads():
        print_ratios(results, workload)
    print_aims(results)


def print_ratios(results, workload):
    names, paired = compared(results, workload) if results.cases(workload) else ([], [])
    if names:
        print_against(results, workload, results.reference(workload), names)
    if paired:
        print_pairs(results, workload, paired)


def print_aims(results):
    print("\nAims")
    print_aligned([[b.what, b.bar, b.measured or "not measured", answer(b)]
                   for b in bars.all_bars(results)])


def answer(bar):
    return {True: "met", False: "missed", None: ""}[bar.met]


def print_against(results, workload, reference, names):
    print(f"\n{workload}: cost as a multiple of {reference} "
          f"(median over repetitions; over 1 is worse)")
    others = [n for n in names if n != reference]
    rows = [["", reference, *others]]
    for metric, key in metrics_by_case(results, workload):
        rows.append([f"{metric} {bars.title(key)}",
                     measured(results, workload, key, metric, reference)])
        rows[-1] += [ratio_cell(results, workload, key, metric, n, reference) for n in others]
    print_aligned(rows)
    print_counts(results, workload, names, names)


def print_pairs(results, workload, names):
    print(f"\n{workload}: the same program on spate's drop-in, cost as a multiple of the "
          f"original's (over 1 is worse)")
    head = ["on spate" if is_twin(n) else n for n in names]
    rows = [["", *head]]
    for metric, key in metrics_by_case(results, workload):
        rows.append([f"{metric} {bars.title(key)}"])
        for n in names:
            rows[-1].append(
                ratio_cell(results, workload, key, metric, n, original_of(n))
                if is_twin(n) else measured(results, workload, key, metric, n))
    print_aligned(rows)
    print_counts(results, workload, names, head)


def measured(results, workload, key, metric, name):
    median = results.median(workload, key, metric, name)
    if median is None:
        return "failed" if results.has_hole(workload, key, name) else "–"
    return f"{number(median)} {results.units[metric]}"


def ratio_cell(results, workload, key, metric, name, reference):
    if results.has_hole(workload, key, name):
        return "failed"
    return ratio(results.cost_ratio(workload, key, metric, name, reference))


def print_counts(results, workload, names, head):
    table = count_table(results, workload, names)
    if table:
        print("\n  per operation (user-space instructions; system calls)")
        print_aligned([["", *head], *table])


def print_all_counts(results):
    """Where nothing was timed."""
    for workload in dict.fromkeys(workload for workload, _, _, _ in results.counts):
        names = list(dict.fromkeys(n for w, _, _, n in results.counts if w == workload))
        print(f"\n{workload}")
        print_counts(results, workload, names, names)


def count_table(results, workload, names):
    return [[op, *(count_words(results, workload, op, name) for name in names)]
            for op in results.operations(workload)]


def print_aligned(rows, words=(0,)):
    """Numbers to the right, but to the left in the columns that are `words`."""
    widths = [max(len(row[i]) if i < len(row) else 0 for row in rows)
              for i in range(max(map(len, rows), default=0))]
    for row in rows:
        cells = [cell.ljust(widths[i]) if i in words else cell.rjust(widths[i])
                 for i, cell in enumerate(row)]
        print("  " + "  ".join(cells).rstrip())
