// Follows the links of a site on one host, with one coroutine per page. A few pages are fetched at
// a time, and one deadline applies to all.
//   coro_crawler http://localhost:8080/
//   coro_crawler http://localhost:8080/ 16 10    16 at a time, for ten seconds at most
#include <chrono>
#include <cstdlib>
#include <iostream>
#include <map>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "spate/coro/run.h"
#include "spate/coro/scope.h"
#include "spate/coro/sync.h"
#include "spate/coro/time.h"
#include "spate/http/coro.h"

namespace coro = spate::coro;
namespace http = spate::http;
using spate::Result;

namespace {

// Returns the value of each href="...", without parsing HTML.
std::vector<std::string_view> links_in(std::string_view page) {
  constexpr std::string_view kBegin = "href=\"";
  std::vector<std::string_view> links;
  for (std::size_t at = page.find(kBegin); at != std::string_view::npos; at = page.find(kBegin)) {
    page.remove_prefix(at + kBegin.size());
    links.push_back(page.substr(0, page.find('"')));
  }
  return links;
}

// The state that the tasks share. They are destroyed first.
struct Site {
  Site(spate::Loop& loop, http::Url url, std::size_t at_a_time)
      : start(std::move(url)),
        client(spate::must(http::Client::create(
            loop, {.max_per_origin = at_a_time, .user_agent = "spate-crawler"}))),
        turns(at_a_time),
        pages(loop) {}

  const http::Url start;
  http::Client client;
  std::set<std::string> seen;
  std::map<std::string, std::string> found;
  coro::Semaphore turns;
  coro::Scope pages;
};

void visit(Site& site, const http::Url& url);

// Waits for a slot, then for the response.
coro::Task<void> look_at(Site* site, http::Url url) {
  const coro::Semaphore::Permit permit(co_await site->turns.acquire());
  const std::string text = url.to_string();
  http::CallOptions options{.max_redirects = 5, .decompress = true, .max_body = 1 << 20};
  const Result<http::Response> page = co_await coro::fetch(site->client, text, std::move(options));
  std::string& found = site->found[std::string(url.target())];
  if (!page) {
    found = page.error().message();
    co_return;
  }
  found = std::to_string(http::code_of(page->status()));
  for (const std::string_view link : links_in(page->text())) {
    if (const auto next = page->url().resolve(link)) visit(*site, *next);
  }
}

void visit(Site& site, const http::Url& url) {
  if (!url.has_origin_of(site.start)) return;
  if (!site.seen.insert(std::string(url.target())).second) return;
  site.pages.spawn(look_at(&site, url));
}

coro::Task<Result<void>> crawl(Site* site) {
  visit(*site, site->start);
  co_return co_await site->pages.join();
}

// Returns whether the crawl finished in time.
coro::Task<bool> crawl_for(Site* site, spate::Nanos time) {
  const Result<void> done = co_await coro::with_deadline(time, crawl(site));
  site->pages.cancel();
  co_return done.has_value();
}

void report(const Site& site, bool is_late) {
  for (const auto& [url, what] : site.found) std::cout << what << " " << url << "\n";
  const http::ClientMetrics metrics = site.client.metrics();
  std::cout << site.found.size() << " pages, " << metrics.requests - metrics.reused
            << " connections" << (is_late ? ", not finished" : "") << "\n";
}

int number_of(const char* text, int otherwise) {
  const int number = text == nullptr ? otherwise : std::atoi(text);
  return number > 0 ? number : otherwise;
}

}  // namespace

int main(int argc, char** argv) {
  const auto start = http::Url::parse(argc < 2 ? "" : argv[1]);
  if (!start || argc > 4) {
    std::cerr << "usage: coro_crawler URL [AT-A-TIME [SECONDS]]\n";
    return 2;
  }
  const int at_a_time = number_of(argc > 2 ? argv[2] : nullptr, 4);
  const int seconds = number_of(argc > 3 ? argv[3] : nullptr, 30);
  auto loop = spate::must(spate::Loop::create());
  Site site(*loop, *start, static_cast<std::size_t>(at_a_time));
  const bool is_done = coro::run(*loop, crawl_for(&site, std::chrono::seconds(seconds)));
  report(site, !is_done);
  return is_done ? 0 : 1;
}
