#!/usr/bin/env python3
"""elinks, which uses libev's emulation of libevent's old functions."""

import harness
from peers.web import WebServer

WORDS = 20_000
PAGES = 6
RUNS = 3
# With the original library too, EAGAIN from a read is an error to it.
WEATHER = harness.Weather(share=0.2, kinds="interrupt,short")


def page(number):
    """Returns a page, and the words of it that must be shown."""
    words = [f"p{number}w{word}" for word in range(WORDS)]
    head = "<html><head><title>Page</title></head><body><p>"
    return f"{head}{' '.join(words)}</p></body></html>".encode(), words


def dump(run, address):
    # Its configuration would be in the private directory, which is empty.
    return run.start("elinks", "-no-home", "-dump", "1", "-dump-width", "120", "-no-references",
                     address, weather=WEATHER)


def check_pages(run, web, pages):
    """Downloads several at once, over HTTP."""
    dumps = [dump(run, f"http://127.0.0.1:{web.port}/{name}.html") for name in pages]
    for program, words in zip(dumps, pages.values()):
        got = program.wait().split()
        harness.check(got == words, f"{len(got)} words, not {len(words)}: {got[:5]}")


def check_file(run, content, words):
    path = run.file("local.html", content)
    got = dump(run, f"file://{path}").wait().split()
    harness.check(got == words, f"{len(got)} words, not {len(words)}: {got[:5]}")


def check_refused(run):
    dump(run, f"http://127.0.0.1:{harness.free_port()}/").wait(status=1)


def test(run):
    harness.need("elinks")
    made = {f"{number}": page(number) for number in range(PAGES)}
    contents = {f"{name}.html": content for name, (content, _) in made.items()}
    pages = {name: words for name, (_, words) in made.items()}
    with WebServer(contents) as web:
        dumps = [dump(run, f"http://127.0.0.1:{web.port}/0.html")]
        dumps[0].assert_uses()
        for _ in range(RUNS):
            check_pages(run, web, pages)
        check_file(run, *made["0"])
        check_refused(run)


if __name__ == "__main__":
    harness.main(test, library="libev.so.4")
