// Shared by the tests of Files: a server of a directory, and its responses.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <utility>

#include "base/fault.h"
#include "http/harness.h"
#include "spate/http/files.h"
#include "support/own_tree.h"
#include "support/pool_work.h"

namespace spate::testing {

class FilesServed : public HttpServerTest {
 protected:
  FilesServed() {
    tree_.write("a.txt", "hello\n");
    tree_.write("dir/index.html", "<p>index");
    tree_.write("empty", "");
    tree_.write("../secret", "secret");
    serve_files({});
  }

  // The tests change files, and expect the change in the next response.
  void serve_files(http::FilesOptions options) {
    options.check_every = Nanos{0};
    serve_as(std::move(options));
  }
  void serve_as(http::FilesOptions options) {
    files_.emplace(must(http::Files::open(tree_.root(), std::move(options))));
    server_ = must(http::Server::create(loop_, *files_));
  }
  // Runs the loop until it has nothing left to do, and no thread of the pool works for it.
  void settle() {
    finish_in_pool(loop_, [this] { turns(); });
  }
  std::string talk(std::string_view text) {
    const auto client = connect();
    client->send(text);
    settle();
    return client->received;
  }
  std::string ask(std::string_view request_line, std::string_view fields = "") {
    return talk(std::string(request_line) + " HTTP/1.1\r\nHost: a\r\n" + std::string(fields) +
                "\r\n");
  }
  std::string get(std::string_view path, std::string_view fields = "") {
    return ask("GET " + std::string(path), fields);
  }
  // Returns the value of a field of a response.
  static std::string field(const std::string& answer, const std::string& name) {
    const std::size_t at = answer.find("\r\n" + name + ": ");
    if (at > answer.find("\r\n\r\n")) return "";
    const std::size_t begin = at + name.size() + 4;
    return answer.substr(begin, answer.find("\r\n", begin) - begin);
  }
  static std::string body(const std::string& answer) {
    const std::size_t end = answer.find("\r\n\r\n");
    return end == std::string::npos ? "" : answer.substr(end + 4);
  }
  static std::string status(const std::string& answer) { return answer.substr(9, 3); }
  // Returns the status for a path.
  std::string status_of(std::string_view path) { return status(get(path)); }

  OwnTree tree_;
  std::optional<http::Files> files_;
};

// openat2() fails, so that the loop's thread opens and reads nothing.
class FilesOfAnOldKernel : public FilesServed {
 protected:
  FilesOfAnOldKernel() {
    FaultPlan plan;
    plan.fail_nth(SystemCall::open, 2, ENOSYS);
    const FaultScope scope(plan);
    serve_files({.listing = true});
  }
};

}  // namespace spate::testing
