#include "http/middleware/access_line.h"

#include <array>
#include <chrono>
#include <string_view>

#include "base/hex.h"
#include "http/content/json_text.h"
#include "spate/http/request.h"

namespace spate::http {

namespace {

using std::chrono::floor;

// Escapes the bytes that could end a quoted value or the line, and all that are not printable, in
// the notation of Apache.
void append_quoted(std::string& line, std::string_view text) {
  for (const char c : text) {
    const auto byte = static_cast<unsigned char>(c);
    if (c == '"' || c == '\\') {
      line.append({'\\', c});
    } else if (byte < 0x20 || byte >= 0x7f) {
      append_hex(line += "\\x", byte);
    } else {
      line += c;
    }
  }
}

void append_two_digits(std::string& line, unsigned number) {
  line += static_cast<char>('0' + number / 10 % 10);
  line += static_cast<char>('0' + number % 10);
}

struct Moment {
  explicit Moment(WallTime time)
      : day(floor<std::chrono::days>(time)), clock(floor<std::chrono::milliseconds>(time - day)) {}

  std::chrono::sys_days day;
  std::chrono::hh_mm_ss<std::chrono::milliseconds> clock;
};

void append_clock(std::string& line, const Moment& moment) {
  append_two_digits(line, static_cast<unsigned>(moment.clock.hours().count()));
  line += ':';
  append_two_digits(line, static_cast<unsigned>(moment.clock.minutes().count()));
  line += ':';
  append_two_digits(line, static_cast<unsigned>(moment.clock.seconds().count()));
}

// Appends "[27/Nov/2026:20:05:15 +0000]".
void append_common_time(std::string& line, WallTime time) {
  constexpr std::array<std::string_view, 12> kMonths = {"Jan", "Feb", "Mar", "Apr", "May", "Jun",
                                                        "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"};
  const Moment moment(time);
  const std::chrono::year_month_day date(moment.day);
  line += '[';
  append_two_digits(line, static_cast<unsigned>(date.day()));
  line.append("/").append(kMonths[static_cast<unsigned>(date.month()) - 1]).append("/");
  line.append(std::to_string(static_cast<int>(date.year()))).append(":");
  append_clock(line, moment);
  line += " +0000]";
}

// Appends "2026-11-27T20:05:15.123Z" (RFC 3339).
void append_json_time(std::string& line, WallTime time) {
  const Moment moment(time);
  const std::chrono::year_month_day date(moment.day);
  line.append("\"").append(std::to_string(static_cast<int>(date.year()))).append("-");
  append_two_digits(line, static_cast<unsigned>(date.month()));
  line += '-';
  append_two_digits(line, static_cast<unsigned>(date.day()));
  line += 'T';
  append_clock(line, moment);
  const std::string milliseconds = std::to_string(1000 + moment.clock.subseconds().count());
  line.append(".").append(milliseconds, 1).append("Z\"");
}

std::string_view name_of(Version version) {
  if (version == Version::http_2) return "HTTP/2.0";
  return version == Version::http_1_1 ? "HTTP/1.1" : "HTTP/1.0";
}

// Returns the address without its port; the path of a unix socket.
std::string text_of_host(const Address& address) {
  const Address plain = address.unmapped();
  return plain.is_ip() ? plain.host() : std::string(plain.name());
}

void append_value(std::string& line, std::string_view value) {
  line += " \"";
  append_quoted(line, value.empty() ? std::string_view("-") : value);
  line += '"';
}

void append_plain_line(std::string& line, const AccessRecord& record, AccessLogFormat format,
                       WallTime time) {
  const Request& request = record.request;
  const std::string client = text_of_host(request.client());
  append_quoted(line, client.empty() ? "-" : client);
  line += " - - ";
  append_common_time(line, time);
  const bool is_parsed = !request.target().empty();
  if (is_parsed) {
    line += " \"";
    append_quoted(line, request.method_name());
    line += ' ';
    append_quoted(line, request.target());
    line.append(" ").append(name_of(request.version())).append("\"");
  } else {
    append_value(line, {});
  }
  line.append(" ").append(std::to_string(static_cast<int>(record.status)));
  line.append(" ").append(std::to_string(record.sent));
  if (format == AccessLogFormat::combined) {
    append_value(line, request[FieldId::referer]);
    append_value(line, request[FieldId::user_agent]);
  }
  line += '\n';
}

void append_member(std::string& line, std::string_view name, std::string_view value) {
  line.append(",\"").append(name).append("\":");
  append_json_text(line, value);
}

void append_member(std::string& line, std::string_view name, std::uint64_t value) {
  line.append(",\"").append(name).append("\":").append(std::to_string(value));
}

void append_json_line(std::string& line, const AccessRecord& record, WallTime time) {
  const Request& request = record.request;
  line += "{\"time\":";
  append_json_time(line, time);
  const std::string client = text_of_host(request.client());
  const std::string peer = text_of_host(request.peer());
  if (client != peer) append_member(line, "client", client);
  append_member(line, "peer", peer);
  append_member(line, "method", request.method_name());
  append_member(line, "target", request.target());
  append_member(line, "host", request.host());
  append_member(line, "version", name_of(request.version()));
  append_member(line, "status", static_cast<std::uint64_t>(record.status));
  append_member(line, "sent", record.sent);
  append_member(line, "received", record.received);
  append_member(line, "duration_us", static_cast<std::uint64_t>(record.duration / Nanos{1000}));
  append_member(line, "referer", request[FieldId::referer]);
  append_member(line, "user_agent", request[FieldId::user_agent]);
  if (!request.route().empty()) append_member(line, "route", request.route());
  if (!record.reason.empty()) append_member(line, "reason", record.reason);
  if (record.error) append_member(line, "error", record.error.message());
  line += "}\n";
}

}  // namespace

void append_access_line(std::string& line, const AccessRecord& record, AccessLogFormat format,
                        WallTime time) {
  format == AccessLogFormat::json ? append_json_line(line, record, time)
                                  : append_plain_line(line, record, format, time);
}

}  // namespace spate::http
