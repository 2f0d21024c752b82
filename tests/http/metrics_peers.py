#!/usr/bin/env python3
"""The Inspector's metrics, read by Prometheus' own parsers: the Python package prometheus_client
(Debian: python3-prometheus-client) and promtool, whichever is installed.
metrics_peers.py PROGRAM"""

import math
import os
import shutil
import subprocess
import sys
import urllib.error
import urllib.request

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), os.pardir, "support"))
import missing

sys.path.append("/usr/lib/python3/dist-packages")  # Debian's own packages.
try:
    from prometheus_client import parser
    from prometheus_client.openmetrics import parser as openmetrics
except ImportError:
    parser = None

SECONDS = 60
OPENMETRICS = "application/openmetrics-text;version=1.0.0,text/plain;version=0.0.4;q=0.5,*/*;q=0.1"
DURATIONS = "spate_http_server_request_duration_seconds"
HITS = "spate_program_hits_total"


def get(address, path, accept="*/*"):
    request = urllib.request.Request(f"http://{address}{path}", headers={"Accept": accept})
    try:
        with urllib.request.urlopen(request, timeout=SECONDS) as response:
            return response.headers["Content-Type"], response.read().decode()
    except urllib.error.HTTPError as error:
        return error.code, error.read().decode()


def samples_of(parse, text):
    return [sample for family in parse(text) for sample in family.samples]


def check(samples):
    """Checks values that both formats have."""
    def values(name, **labels):
        return [sample.value for sample in samples if sample.name == name and
                labels.items() <= sample.labels.items()]

    keys = [(sample.name, *sorted(sample.labels.items())) for sample in samples]
    assert len(keys) == len(set(keys)), "a sample appears twice"
    assert sum(values("spate_http_server_requests_total", source='site "one"')) == 5
    assert len(values("spate_http_server_requests_total")) == 2, "one for each worker"
    assert sum(values(DURATIONS + "_count", status="2xx")) == 3
    assert sum(values(DURATIONS + "_bucket", status="4xx", le="+Inf")) == 2
    assert values("spate_program_wait_seconds_bucket", le="0.0001", queue="one") == [1]
    assert values("spate_program_wait_seconds_bucket", le="10.0") == [1]
    assert values("spate_program_wait_seconds_bucket", le="+Inf") == [3]
    assert values("spate_program_wait_seconds_sum") == [30]
    assert values("spate_program_wait_seconds_count") == [3]
    assert values(HITS, shard='a "quoted\\ value\nin two lines', source="odd?") == [1]
    assert values(HITS, shard="\u00e4") == [2]
    assert values(HITS, shard="?") == [3]
    assert values(HITS, _="x", _0="y") == [4]
    assert not values("spate_program_less_total")
    assert math.isnan(values("spate_program_nan")[0])
    assert values("spate_program_infinite") == [-math.inf]
    assert values("spate_program_great") == [1e300]
    assert values("spate_loop_up", loop="workers/1") == [1]


def check_all(site, page):
    for path in ("/", "/missing", "/", "/missing", "/"):
        get(site, path)
    kind, plain = get(page, "/metrics")
    assert kind == "text/plain; version=0.0.4; charset=utf-8", kind
    if parser is not None:
        check(samples_of(parser.text_string_to_metric_families, plain))
        kind, text = get(page, "/metrics", OPENMETRICS)
        assert kind == "application/openmetrics-text; version=1.0.0; charset=utf-8", kind
        assert text.endswith("\n# EOF\n") and "# EOF" not in plain
        check(samples_of(openmetrics.text_string_to_metric_families, text))
    if shutil.which("promtool"):
        done = subprocess.run(["promtool", "check", "metrics"], input=plain, text=True,
                              capture_output=True, timeout=SECONDS, check=False)
        errors = [line for line in done.stderr.splitlines() if "error while linting" in line]
        assert not errors, errors


def main():
    peers = [name for name, there in (("prometheus_client", parser),
                                      ("promtool", shutil.which("promtool"))) if there]
    if not peers:
        print(missing.none_installed("prometheus_client", "promtool"))
        return missing.SKIPPED
    with subprocess.Popen(sys.argv[1:], stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                          text=True) as server:
        try:
            site, page = server.stdout.readline().split()
            check_all(site, page)
        finally:
            server.stdin.close()
    assert server.returncode == 0, server.returncode
    print("parsed by " + ", ".join(peers))
    return 0


if __name__ == "__main__":
    sys.exit(main())
