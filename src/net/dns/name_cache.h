// NameCache: the answers of name servers, until their time to live is over. Bounded: at the limit,
// the least recently used answer is dropped.
#pragma once

#include <cstddef>
#include <list>
#include <string>
#include <system_error>
#include <unordered_map>
#include <vector>

#include "net/dns/name_channel.h"
#include "spate/net/address.h"
#include "spate/time.h"

namespace spate {

class NameCache {
 public:
  struct Answer {
    std::vector<Address> addresses;  // With port 0.
    std::error_code error;           // Set if there are no addresses.
  };

  // `most` answers; 0 stores nothing.
  explicit NameCache(std::size_t most) : most_(most) {}

  // Returns the answer to a query, valid until the next call; nullptr if it is unknown at `now`.
  const Answer* find(const std::string& host, Families families, Nanos now);
  void store(const std::string& host, Families families, Answer answer, Nanos expiry);
  void clear();

 private:
  struct Entry {
    std::string key;
    Answer answer;
    Nanos expiry;
  };
  using Entries = std::list<Entry>;  // The most recently used is first.

  void remove(Entries::iterator entry);

  std::size_t most_;
  Entries entries_;
  std::unordered_map<std::string, Entries::iterator> by_key_;
};

}  // namespace spate
