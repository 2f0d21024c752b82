"""Charts of the results as data: addresses; those of fd in the layout of the published ones."""
import base64
import io

from harness import bars, workloads

try:
    import matplotlib
    matplotlib.use("svg")
    from matplotlib import pyplot, ticker
except ImportError:
    pyplot = None

COLOURS = {
    "spate": "#d62728", "spate_epoll": "#d62728", "spate_io_uring": "#ff9896",
    "spate_poll": "#e377c2", "spate_select": "#f7b6d2", "floor": "#000000", "libev": "#1f77b4",
    "libev_libevent": "#aec7e8", "libevent": "#2ca02c", "libevent_changelist": "#98df8a",
    "libuv": "#9467bd", "asio": "#ff7f0e", "glib": "#8c564b", "mutex": "#7f7f7f",
    "lockfree": "#bcbd22", "concurrentqueue": "#17becf",
    "libevent_direct": "#98df8a", "asio_buffered": "#ffbb78", "asio_wait": "#ffbb78",
    "muduo": "#e7ba52", "evpp": "#6b6ecf",
    "memcached": "#2ca02c", "nghttpd": "#1f77b4",
}


def available():
    return pyplot is not None


def draw(results, workload):
    """Yields (alternative text, data: address)."""
    if not available():
        return
    painters = {"fd": fd_charts, "watchers": watchers_chart, "timers": timers_chart,
                "post": post_chart, "pingpong": pingpong_chart, "header_body": header_body_chart,
                "threads": threads_chart, "programs": programs_chart,
                "churn": bars_chart("churn", "connections_per_s"),
                "idle": bars_chart("idle", "bytes_per_connection", "cpu_percent"),
                "latency": bars_chart("latency", "p50_us", "p99_us", "p999_us"),
                "udp": bars_chart("udp", "packets_per_s")}
    yield from painters[workload](results)


def finished(figure, alt):
    handles = {}
    for axes in figure.axes:
        for handle, label in zip(*axes.get_legend_handles_labels()):
            handles.setdefault(label, handle)
    figure.legend(handles.values(), handles.keys(), loc="lower center", ncol=7, frameon=False)
    figure.tight_layout(rect=(0, 0.06, 1, 1))
    picture = io.BytesIO()
    figure.savefig(picture, format="svg")
    pyplot.close(figure)
    return alt, "data:image/svg+xml;base64," + base64.b64encode(picture.getvalue()).decode()


def colour(name):
    return COLOURS.get(workloads.original_of(name))


def line_style(name):
    return ":" if workloads.is_twin(name) else "--" if name == "floor" else "-"


def plot_lines(axes, results, workload, metric, x, fixed):
    """One line a contestant over the parameter `x`, in the cases whose parameters are `fixed`."""
    keys = [key for key in results.cases(workload)
            if all(dict(key).get(k) == v for k, v in fixed.items())]
    for name in results.contestants(workload):
        points = [(dict(key)[x], results.median(workload, key, metric, name)) for key in keys]
        points = sorted(point for point in points if point[1] is not None)
        if points:
            axes.plot(*zip(*points), marker="o", markersize=3, label=name,
                      color=colour(name), linestyle=line_style(name),
                      linewidth=2.2 if name in ("spate", "spate_epoll") else 1.2)
    axes.set_title(f"{metric} " + " ".join(f"{k}={v}" for k, v in fixed.items()), fontsize=9)
    axes.set_xlabel(x, fontsize=8)
    axes.grid(True, which="major", alpha=0.3)
    return keys


def logarithmic(axes, both=False):
    axes.set_xscale("log")
    if both:
        axes.set_yscale("log")
    axes.xaxis.set_major_formatter(ticker.FuncFormatter(lambda v, _: f"{v:,.0f}"))


def fd_charts(results):
    """As published: whole iteration left, processing right; 100 active above, 1000 below."""
    for timeouts in (0, 1):
        figure, grid = pyplot.subplots(2, 2, figsize=(11, 8))
        for row, active in zip(grid, (100, 1000)):
            for axes, metric in zip(row, ("whole_us", "processing_us")):
                plot_lines(axes, results, "fd", metric, "pairs",
                           {"active": active, "timeouts": timeouts})
                logarithmic(axes, both=metric == "whole_us")
                axes.set_ylabel("µs", fontsize=8)
        yield finished(figure, "fd, idle timeouts" if timeouts else "fd, no timeouts")


def plot_bars(axes, results, workload, metric, key):
    """One bar a contestant."""
    names = [n for n in results.contestants(workload) if results.median(workload, key, metric, n)]
    axes.barh(names, [results.median(workload, key, metric, n) for n in names],
              color=[colour(n) for n in names],
              hatch=["//" if workloads.is_twin(n) else "" for n in names])
    axes.invert_yaxis()
    axes.set_title(f"{metric} {bars.title(key)}", fontsize=9)


def watchers_chart(results):
    metrics = ("create_ns", "invoke_ns", "destroy_ns", "bytes")
    figure, grid = pyplot.subplots(2, 4, figsize=(13, 6))
    for row, kind in zip(grid, ("io", "timer")):
        for axes, metric in zip(row, metrics):
            key = (("kind", kind),)
            plot_bars(axes, results, "watchers", metric, key)
            axes.set_xscale("log")
            axes.set_xlim(left=1)
    yield finished(figure, "watchers")


def timers_chart(results):
    figure, grid = pyplot.subplots(2, 2, figsize=(11, 8))
    for axes, metric in zip(grid.flat, ("start_ns", "restart_ns", "stop_start_ns", "expire_ns")):
        plot_lines(axes, results, "timers", metric, "pending", {})
        logarithmic(axes, both=True)
        axes.set_ylabel("ns", fontsize=8)
    yield finished(figure, "timers")


def post_chart(results):
    columns = list(dict.fromkeys((dict(k)["program"], dict(k)["cores"])
                                 for k in results.cases("post")))
    figure, grid = pyplot.subplots(2, (len(columns) + 1) // 2, figsize=(14, 8), squeeze=False)
    for axes, (program, cores) in zip(grid.flat, columns):
        plot_lines(axes, results, "post", "posts_per_s", "producers",
                   {"program": program, "cores": cores})
        axes.set_yscale("log")
        axes.set_xticks(sorted({dict(k)["producers"] for k in results.cases("post")}))
    for axes in list(grid.flat)[len(columns):]:
        axes.axis("off")
    yield finished(figure, "post, tasks a second")


def programs_chart(results):
    keys = results.cases("programs")
    figure, row = pyplot.subplots(1, len(keys), figsize=(11, 3), squeeze=False)
    for axes, key in zip(row.flat, keys):
        plot_bars(axes, results, "programs", "requests_per_s", key)
    yield finished(figure, "programs, requests a second")


def pingpong_chart(results):
    """As published: throughput over the number of connections, by size of the block."""
    blocks = sorted({dict(key)["block"] for key in results.cases("pingpong")})
    columns = min(3, len(blocks))
    rows = -(-len(blocks) // columns)
    figure, grid = pyplot.subplots(rows, columns, figsize=(13, 4 * rows), squeeze=False)
    for axes, block in zip(grid.flat, blocks):
        plot_lines(axes, results, "pingpong", "mib_per_s", "connections", {"block": block})
        logarithmic(axes)
    for axes in list(grid.flat)[len(blocks):]:
        axes.axis("off")
    yield finished(figure, "pingpong, MiB a second")


def over_threads(results, workload, metric):
    sizes = sorted({dict(key)["connections"] for key in results.cases(workload)})
    figure, row = pyplot.subplots(1, len(sizes), figsize=(13, 4.5), squeeze=False)
    for axes, size in zip(row.flat, sizes):
        plot_lines(axes, results, workload, metric, "threads", {"connections": size})
    return figure


def header_body_chart(results):
    yield finished(over_threads(results, "header_body", "seconds"), "header_body, seconds")


def threads_chart(results):
    yield finished(over_threads(results, "threads", "mib_per_s"), "threads, MiB a second")


def bars_chart(workload, *metrics):
    """A painter: a row of bars a case, one column a metric."""
    def paint(results):
        keys = results.cases(workload)
        figure, grid = pyplot.subplots(len(keys), len(metrics), squeeze=False,
                                       figsize=(5.5 * max(2, len(metrics)), 2.6 * len(keys)))
        for row, key in zip(grid, keys):
            for axes, metric in zip(row, metrics):
                plot_bars(axes, results, workload, metric, key)
        yield finished(figure, workload)
    return paint
