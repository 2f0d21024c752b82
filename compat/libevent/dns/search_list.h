// The domains in which names are looked up, and the names that follow from them.
//
// Semantics: event2/dns.h ("Searching"); resolv.conf(5); probed: the order of names, and the
// treatment of odd domains.
//
// A list never changes: a lookup keeps the one that it began with.
#pragma once

#include <cstddef>
#include <string_view>

#include "compat/libevent/dns/message.h"

namespace spate::libevent::dns {

class SearchList {
 public:
  static constexpr int kNdots = 1;
  enum class Place { first, last };

  // Each returns null without memory, and then the old one stays as it is. A null list is empty.
  static SearchList* with_domain(const SearchList* old, std::string_view domain, Place place);
  static SearchList* with_ndots(const SearchList* old, int ndots);

  static SearchList* take(SearchList* list);
  static void give_up(SearchList* list);

  static int ndots_of(const SearchList* list) { return list != nullptr ? list->ndots_ : kNdots; }
  static int count_of(const SearchList* list) { return list != nullptr ? list->count_ : 0; }

  std::string_view domain(int index) const;

 private:
  static SearchList* make(const SearchList* old, int ndots, std::size_t more);

  // The domains follow in memory, each with a zero at its end.
  char* text() { return reinterpret_cast<char*>(this + 1); }
  const char* text() const { return reinterpret_cast<const char*>(this + 1); }

  int references_;
  int ndots_;
  int count_;
  std::size_t size_;
};

// Iterates over the names that one lookup tries.
class Candidates {
 public:
  // Zeroed memory is the name alone.
  void begin(SearchList* list, std::string_view name);
  void end();

  // Returns false at the end, or if the next name is invalid: too long, or an empty name with a
  // domain.
  [[nodiscard]] bool next(std::string_view name, NameText& candidate);

 private:
  enum class Raw : unsigned char { untried, first, last, tried };

  SearchList* list_;
  int next_domain_;
  Raw raw_;
};

}  // namespace spate::libevent::dns
