// The client of latency: one connection, one block to and fro, every round trip timed. It never
// sleeps, so the result is how soon the server wakes and answers.
//
// Runs for --milliseconds, or for --messages.
#include <algorithm>

#include "harness/load.h"

namespace {

constexpr std::size_t kMaxBlock = 65536;
constexpr std::uint64_t kWarmUp = 500;

void bounce(int fd, std::size_t size, std::uint64_t turn) {
  char reply[kMaxBlock];
  const char* block = bench_pattern(0, turn);
  if (send(fd, block, size, MSG_NOSIGNAL) != ssize_t(size)) bench_die("send");
  for (std::size_t got = 0; got < size;) {
    const ssize_t count = recv(fd, reply + got, size - got, MSG_DONTWAIT);
    if (count == 0 || (count < 0 && errno != EAGAIN)) bench_die("recv");
    if (count > 0) got += std::size_t(count);
  }
  if (memcmp(reply, block, size) != 0) ServerProcess::fail("other bytes came back than were sent");
}

double percentile_us(const std::vector<std::uint64_t>& sorted, double share) {
  return double(sorted[std::size_t(share * double(sorted.size() - 1))]) / 1e3;
}

}  // namespace

int main(int argc, char** argv) {
  ServerProcess server(argc, argv, Placement::apart);
  const auto block = std::min(std::size_t(bench_number(argc, argv, "block", 64)), kMaxBlock);
  const auto messages = std::uint64_t(bench_number(argc, argv, "messages", 0));
  const auto length = std::uint64_t(bench_number(argc, argv, "milliseconds", 400)) * 1000000;
  const int fd = bench_connect(server.address(0));
  for (std::uint64_t i = 0; i < kWarmUp; ++i) bounce(fd, block, i);

  std::vector<std::uint64_t> times;
  times.reserve(1 << 20);
  const std::uint64_t begin = bench_now_ns(), begin_processor = server.processor_ns();
  std::uint64_t now = begin;
  do {
    bounce(fd, block, times.size());
    const std::uint64_t after = bench_now_ns();
    times.push_back(after - now);
    now = after;
  } while (messages > 0 ? times.size() < messages : now - begin < length);
  const double processor_ns = double(server.processor_ns() - begin_processor);
  close(fd);
  bench_sleep_ms(10);
  const ServerProcess::Tally told = server.end();
  if (messages > 0) bench_work("bytes_at_the_server", told.bytes);
  std::sort(times.begin(), times.end());
  bench_metric("p50_us", "us", percentile_us(times, 0.5));
  bench_metric("p99_us", "us", percentile_us(times, 0.99));
  bench_metric("p999_us", "us", percentile_us(times, 0.999));
  bench_metric("processor_us", "us", processor_ns / 1e3 / double(times.size()));
  bench_ops("message", told.bytes / block);
  return 0;
}
