// A request with a JSON body.
#pragma once

#include <string>
#include <string_view>

namespace spate::testing {

inline std::string json_request(std::string_view body, std::string_view type = "application/json") {
  return "POST / HTTP/1.1\r\nHost: a\r\nContent-Type: " + std::string(type) +
         "\r\nContent-Length: " + std::to_string(body.size()) + "\r\n\r\n" + std::string(body);
}

}  // namespace spate::testing
