// Follows the links of a site on one host, with a few connections at a time and a deadline.
//   crawler http://localhost:8080/
//   crawler http://localhost:8080/ 16 10    16 connections, for ten seconds at most
#include <chrono>
#include <cstdlib>
#include <iostream>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <string_view>

#include "spate/http/client.h"
#include "spate/loop.h"
#include "spate/timer.h"

namespace http = spate::http;

namespace {

// Returns the value of each href="...", without parsing HTML.
class Links {
 public:
  explicit Links(std::string_view page) : rest_(page) {}

  bool next() {
    constexpr std::string_view kBegin = "href=\"";
    const std::size_t begin = rest_.find(kBegin);
    if (begin == std::string_view::npos) return false;
    rest_.remove_prefix(begin + kBegin.size());
    link_ = rest_.substr(0, rest_.find('"'));
    return true;
  }
  std::string_view link() const { return link_; }

 private:
  std::string_view rest_;
  std::string_view link_;
};

class Crawler {
 public:
  Crawler(spate::Loop& loop, http::Url start, std::size_t connections, spate::Nanos time)
      : client_(spate::must(http::Client::create(
            loop, {.max_per_origin = connections, .user_agent = "spate-crawler"}))),
        end_(loop, [this] { give_up(); }),
        start_(std::move(start)) {
    end_.start(time);
    visit(start_);
  }

  bool is_late() const { return is_late_; }
  void report() const {
    for (const auto& [url, what] : found_) std::cout << what << " " << url << "\n";
    const http::ClientMetrics metrics = client_.metrics();
    std::cout << found_.size() << " pages, " << metrics.requests - metrics.reused << " connections"
              << (is_late_ ? ", not finished" : "") << "\n";
  }

 private:
  void visit(const http::Url& url) {
    const std::string name(url.target());
    if (!url.has_origin_of(start_) || !seen_.insert(name).second) return;
    calls_[name] = client_.fetch(
        url.to_string(),
        [this, name](spate::Result<http::Response> response) { on_page(name, response); },
        {.max_redirects = 5, .decompress = true, .max_body = 1 << 20});
  }

  void on_page(const std::string& name, const spate::Result<http::Response>& response) {
    found_[name] =
        response ? std::to_string(http::code_of(response->status())) : response.error().message();
    if (response) follow(*response);
    calls_.erase(name);
    if (calls_.empty()) end_.stop();
  }

  void follow(const http::Response& page) {
    for (Links links(page.text()); links.next();) {
      if (const auto url = page.url().resolve(links.link())) visit(*url);
    }
  }

  // Cancels the calls in progress.
  void give_up() {
    is_late_ = true;
    calls_.clear();
  }

  http::Client client_;
  spate::Timer end_;
  const http::Url start_;
  bool is_late_ = false;
  std::set<std::string> seen_;
  std::map<std::string, std::string> found_;
  std::map<std::string, http::Call> calls_;
};

int number_of(const char* text, int otherwise) {
  const int number = text == nullptr ? otherwise : std::atoi(text);
  return number > 0 ? number : otherwise;
}

}  // namespace

int main(int argc, char** argv) {
  const auto start = http::Url::parse(argc < 2 ? "" : argv[1]);
  if (!start || argc > 4) {
    std::cerr << "usage: crawler URL [CONNECTIONS [SECONDS]]\n";
    return 2;
  }
  const int connections = number_of(argc > 2 ? argv[2] : nullptr, 4);
  const int seconds = number_of(argc > 3 ? argv[3] : nullptr, 30);
  auto loop = spate::must(spate::Loop::create());
  Crawler crawler(*loop, *start, static_cast<std::size_t>(connections),
                  std::chrono::seconds(seconds));
  loop->run();  // Until the last page was read, or the time is over.
  crawler.report();
  return crawler.is_late() ? 1 : 0;
}
