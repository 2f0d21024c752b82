#include "compat/libevent/dns/search_list.h"

#include <algorithm>
#include <cstring>
#include <utility>

#include "compat/libevent/memory.h"

namespace spate::libevent::dns {
namespace {

// Returns false if it is too long for a name.
bool join(std::string_view name, std::string_view domain, NameText& joined) {
  const std::string_view dot = domain.data() == nullptr || name.ends_with('.') ? "" : ".";
  const std::size_t size = name.size() + dot.size() + domain.size();
  if (size > kNameMost) return false;
  char* end = std::ranges::copy(name, joined).out;
  end = std::ranges::copy(dot, end).out;
  *std::ranges::copy(domain, end).out = '\0';
  return true;
}

}  // namespace

SearchList* SearchList::make(const SearchList* old, int ndots, std::size_t more) {
  const std::size_t size = old != nullptr ? old->size_ : 0;
  auto* list = static_cast<SearchList*>(allocate_zeroed(sizeof(SearchList) + size + more));
  if (list == nullptr) return nullptr;
  list->references_ = 1;
  list->ndots_ = ndots;
  list->count_ = count_of(old);
  list->size_ = size;
  return list;
}

SearchList* SearchList::with_domain(const SearchList* old, std::string_view domain, Place place) {
  domain.remove_prefix(std::min(domain.find_first_not_of('.'), domain.size()));
  SearchList* list = make(old, ndots_of(old), domain.size() + 1);
  if (list == nullptr) return nullptr;
  const bool is_first = place == Place::first;
  if (old != nullptr) {
    std::memcpy(list->text() + (is_first ? domain.size() + 1 : 0), old->text(), old->size_);
  }
  std::ranges::copy(domain, list->text() + (is_first ? 0 : list->size_));
  list->size_ += domain.size() + 1;
  ++list->count_;
  return list;
}

SearchList* SearchList::with_ndots(const SearchList* old, int ndots) {
  SearchList* list = make(old, ndots, 0);
  if (list != nullptr && old != nullptr) std::memcpy(list->text(), old->text(), old->size_);
  return list;
}

SearchList* SearchList::take(SearchList* list) {
  if (list != nullptr) ++list->references_;
  return list;
}

void SearchList::give_up(SearchList* list) {
  if (list != nullptr && --list->references_ == 0) release(list);
}

std::string_view SearchList::domain(int index) const {
  const char* domain = text();
  for (; index > 0; --index) domain += std::strlen(domain) + 1;
  return domain;
}

void Candidates::begin(SearchList* list, std::string_view name) {
  if (SearchList::count_of(list) == 0) return;
  const auto dots = std::ranges::count(name, '.');
  list_ = SearchList::take(list);
  raw_ = dots >= SearchList::ndots_of(list) ? Raw::first : Raw::last;
}

void Candidates::end() { SearchList::give_up(std::exchange(list_, nullptr)); }

bool Candidates::next(std::string_view name, NameText& candidate) {
  const bool has_domain = next_domain_ < SearchList::count_of(list_);
  if (raw_ == Raw::first || (raw_ != Raw::tried && !has_domain)) {
    raw_ = Raw::tried;
    return join(name, {}, candidate);
  }
  if (!has_domain || name.empty()) return false;
  return join(name, list_->domain(next_domain_++), candidate);
}

}  // namespace spate::libevent::dns
