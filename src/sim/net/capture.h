// A packet capture file for tcpdump and Wireshark (pcap, nanoseconds, raw IP).
#pragma once

#include <cstdint>
#include <cstdio>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <system_error>

#include "sim/net/socket_address.h"
#include "sim/net/tcp.h"
#include "spate/error.h"
#include "spate/time.h"

namespace spate::sim {

class Capture {
 public:
  static Result<std::unique_ptr<Capture>> open(const std::string& path);

  // Records a segment that leaves `connection`'s end `from` at `wall`.
  void segment(Nanos wall, Connection& connection, Side from, const SegmentHeader& header);
  // Records its arrival: later segments of the receiver acknowledge it.
  void arrived(std::uint64_t connection, Side from, const SegmentHeader& header);
  void packet(Nanos wall, const SocketAddress& from, const SocketAddress& to,
              std::string_view bytes, std::uint8_t traffic_class);

 private:
  struct CloseFile {
    void operator()(std::FILE* file) const { std::fclose(file); }
  };
  using File = std::unique_ptr<std::FILE, CloseFile>;
  // The sequence numbers of both ends of a connection.
  struct Numbers {
    std::uint32_t sent[2];      // The next one.
    std::uint32_t received[2];  // Received by the end with this index from the other.
  };

  explicit Capture(File file) : file_(std::move(file)) {}
  Numbers& numbers_of(std::uint64_t connection);
  void write(Nanos wall, const std::string& packet);

  File file_;
  std::map<std::uint64_t, Numbers> numbers_;
};

}  // namespace spate::sim
