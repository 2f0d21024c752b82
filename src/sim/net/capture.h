// A file of packets, as tcpdump and Wireshark read it (pcap, times in nanoseconds, raw IP).
#pragma once

#include <cstdint>
#include <cstdio>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <system_error>

#include "sim/net/place.h"
#include "sim/net/tcp.h"
#include "spate/error.h"
#include "spate/time.h"

namespace spate::sim {

class Capture {
 public:
  static Result<std::unique_ptr<Capture>> open(const std::string& path);

  // A segment that leaves `connection`'s end `from` at `wall`.
  void segment(Nanos wall, Connection& connection, Side from, const Label& label);
  // It has arrived: what its receiver sends from now on acknowledges it.
  void arrived(std::uint64_t connection, Side from, const Label& label);
  void packet(Nanos wall, const Place& from, const Place& to, std::string_view bytes,
              std::uint8_t traffic_class);

 private:
  struct CloseFile {
    void operator()(std::FILE* file) const { std::fclose(file); }
  };
  using File = std::unique_ptr<std::FILE, CloseFile>;
  // Where both ends of a connection are, from its first segment on.
  struct Numbers {
    std::uint32_t sent[2];      // What comes next.
    std::uint32_t received[2];  // By the end with this index, of the other's.
  };

  explicit Capture(File file) : file_(std::move(file)) {}
  Numbers& numbers_of(std::uint64_t connection);
  void write(Nanos wall, const std::string& packet);

  File file_;
  std::map<std::uint64_t, Numbers> numbers_;
};

}  // namespace spate::sim
