// h2load loads an HTTP/2 server over plain TCP, by prior knowledge: --streams requests at a time on
// each of --connections, --requests in all, for --kind: `hello`, GET of 13 bytes, or `page`, 20
// KiB.
#include <cinttypes>
#include <cstring>

#include "harness/load.h"
#include "workloads/http/server.h"

namespace {

// The summary that h2load prints.
struct Report {
  double per_second = 0;
  std::uint64_t answered = 0;    // 2xx.
  std::uint64_t body_bytes = 0;  // In DATA.
};

class Load {
 public:
  Load(int argc, char** argv)
      : target_(bench_text(argc, argv, "kind", "hello")),
        connections_(bench_number(argc, argv, "connections", 1)),
        streams_(bench_number(argc, argv, "streams", 1)),
        requests_(bench_number(argc, argv, "requests", 1000)),
        server_(argc, argv, Placement::apart),
        port_(ntohs(server_.address(0).sin_port)) {
    if (target_ != "hello" && target_ != "page") ServerProcess::fail("there is no such --kind");
  }

  int run() {
    const std::uint64_t before = server_.processor_ns();
    const Report report = load();
    const std::uint64_t spent = server_.processor_ns() - before;
    if (report.answered != std::uint64_t(requests_) || report.body_bytes != body_bytes())
      ServerProcess::fail("h2load was not answered what it asked for");
    server_.end();
    bench_metric("requests_per_s", "1/s", report.per_second);
    bench_metric("processor_us", "us", double(spent) / 1e3 / double(requests_));
    bench_work("answers", report.answered);
    bench_work("body_bytes", report.body_bytes);
    bench_ops("request", report.answered);
    return 0;
  }

 private:
  std::uint64_t body_bytes() const {
    return std::uint64_t(requests_) * (target_ == "page" ? kPageSize : kHello.size());
  }

  std::string command() const {
    return "h2load -n " + std::to_string(requests_) + " -c " + std::to_string(connections_) +
           " -m " + std::to_string(streams_) + " http://127.0.0.1:" + std::to_string(port_) + "/" +
           target_;
  }

  Report load() const {
    FILE* output = popen(command().c_str(), "r");
    if (output == nullptr) bench_die("popen");
    Report report;
    char line[1024];
    while (fgets(line, sizeof line, output) != nullptr) read_line(line, report);
    if (pclose(output) != 0) ServerProcess::fail("h2load has failed");
    return report;
  }

  static void read_line(const char* line, Report& report) {
    sscanf(line, "finished in %*[^,], %lf req/s", &report.per_second);
    sscanf(line, "status codes: %" SCNu64 " 2xx", &report.answered);
    if (const char* data = strstr(line, "savings"); data != nullptr)
      sscanf(data, "savings %*[^,], %*[^(](%" SCNu64 ") data", &report.body_bytes);
  }

  const std::string target_;
  const long connections_, streams_, requests_;
  ServerProcess server_;
  const std::uint16_t port_;
};

}  // namespace

int main(int argc, char** argv) { return Load(argc, argv).run(); }
