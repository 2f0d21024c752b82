#include <cstring>
#include <new>
#include <utility>

#include "base/memory.h"
#include "http/codec/head.h"

namespace spate::http {

bool HeadEntries<ResponseView>::grow(std::size_t count) {
  if (count <= size()) return false;
  std::unique_ptr<FieldEntry[]> more(new (std::nothrow) FieldEntry[count]);
  if (more == nullptr) return false;
  std::memcpy(more.get(), data(), size() * sizeof(FieldEntry));
  far_ = std::move(more);
  far_size_ = count;
  return true;
}

namespace {

// Returns the same part of a text that was copied from `from` to `to`.
std::string_view moved(std::string_view part, const char* from, const char* to) {
  return {to + (part.data() - from), part.size()};
}

void move_first_line(RequestView& view, const char* from, const char* to) {
  view.method_name = moved(view.method_name, from, to);
  view.target = moved(view.target, from, to);
}
void move_first_line(ResponseView& view, const char* from, const char* to) {
  view.reason = moved(view.reason, from, to);
}

}  // namespace

template <class View>
bool HeadCopy<View>::copy(const char* text, const Head<View>& head) {
  const std::size_t entry_bytes = head.fields.size() * sizeof(FieldEntry);
  void* block = reallocate(nullptr, entry_bytes + head.size);
  if (block == nullptr) return false;
  deallocate(block_);
  block_ = block;
  auto* entries = static_cast<FieldEntry*>(block);
  char* copied = static_cast<char*>(block) + entry_bytes;
  std::memcpy(entries, head.entries.data(), entry_bytes);
  std::memcpy(copied, text, head.size);
  view_ = head.view();
  move_first_line(view_, text, copied);
  view_.fields = head.fields.moved_to(copied, entries);
  return true;
}

template <class View>
void HeadCopy<View>::release() {
  deallocate(block_);
  block_ = nullptr;
  view_ = {};
}

template class HeadCopy<RequestView>;
template class HeadCopy<ResponseView>;

}  // namespace spate::http
