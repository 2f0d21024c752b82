#include "spate/http/fields.h"

#include <algorithm>
#include <bit>
#include <cstring>

#include "base/memory.h"
#include "http/codec/characters.h"

namespace spate::http {

namespace {

constexpr std::string_view kColon = ": ";
constexpr std::string_view kLineEnd = "\r\n";

// Compares with a name that has no FieldId.
bool names(std::string_view wanted, const Field& field) {
  return field.id == FieldId::other && equal_ignoring_case(wanted, field.name);
}

bool is_same_name(const Field& a, const Field& b) {
  return a.id == b.id && (a.id != FieldId::other || equal_ignoring_case(a.name, b.name));
}

std::string_view spelling_of(FieldName name) {
  return name.name.data() == nullptr ? name_of(name.id) : name.name;
}

std::size_t line_size(std::string_view name, std::string_view value) {
  return name.size() + kColon.size() + value.size() + kLineEnd.size();
}

char* copy_to(char* at, std::string_view text) {
  if (!text.empty()) std::memcpy(at, text.data(), text.size());
  return at + text.size();
}

// Returns the size of the first member of a list, which ends at a comma or at the end.
std::size_t member_size(std::string_view text) {
  bool is_quoted = false;
  std::size_t at = 0;
  for (; at < text.size() && (is_quoted || text[at] != ','); ++at) {
    if (text[at] == '"') is_quoted = !is_quoted;
    if (text[at] == '\\' && is_quoted && at + 1 < text.size()) ++at;
  }
  return at;
}

}  // namespace

std::size_t FieldsView::next_of(std::string_view name, std::size_t from) const {
  while (from < count_ && !names(name, at(from))) ++from;
  return from;
}

std::size_t FieldsView::count(FieldName name) const {
  std::size_t found = 0;
  for (std::size_t i = next(name, 0); i < count_; i = next(name, i + 1)) ++found;
  return found;
}

ListValues::Iterator::Iterator(const ListValues* list, std::size_t index)
    : list_(list), index_(index) {
  if (index_ == list_->view_.size()) return;
  rest_ = list_->view_.at(index_).value;
  advance();
}

void ListValues::Iterator::advance() {
  while (!take_member()) {
    index_ = list_->view_.next(list_->name_, index_ + 1);
    member_ = {};
    if (index_ == list_->view_.size()) return;
    rest_ = list_->view_.at(index_).value;
  }
}

// Moves to the next member of rest_ that is not empty.
bool ListValues::Iterator::take_member() {
  while (!rest_.empty()) {
    const std::size_t size = member_size(rest_);
    member_ = trimmed(rest_.substr(0, size));
    rest_.remove_prefix(std::min(size + 1, rest_.size()));
    if (!member_.empty()) return true;
  }
  return false;
}

bool ListValues::contains(std::string_view token) const {
  return std::ranges::any_of(
      *this, [token](std::string_view member) { return equal_ignoring_case(member, token); });
}

Fields::~Fields() { deallocate(block_); }

bool Fields::add(FieldName name, std::string_view value) {
  const std::string_view spelling = spelling_of(name);
  value = trimmed(value);
  if (!is_token(spelling) || !is_field_value(value)) return note_lack();
  // The arguments may point into the block that make_room() replaces.
  char* const old = block_;
  const bool has_room = make_room(line_size(spelling, value), 1);
  if (has_room) append(spelling, value, name.id);
  if (block_ != old) deallocate(old);
  return has_room || note_lack();
}

bool Fields::set(FieldName name, std::string_view value) {
  if (!add(name, value)) return false;
  for (std::size_t i = count_ - 1; i-- > 0;)
    if (is_same_name(view().at(i), view().at(count_ - 1))) erase(i);
  return true;
}

bool Fields::add_all(FieldsView fields) {
  std::size_t bytes = 0;
  for (const Field field : fields) bytes += line_size(field.name, field.value);
  char* const old = block_;
  const bool has_room = make_room(bytes, fields.size());
  if (has_room)
    for (std::size_t i = 0; i < fields.size(); ++i) {
      const Field field = fields.at(i);
      append(field.name, field.value, field.id);
    }
  if (block_ != old) deallocate(old);
  return has_room || note_lack();
}

bool Fields::add_all(const Fields& fields) {
  return add_all(fields.view()) && (fields.is_complete() || note_lack());
}

bool Fields::note_lack() {
  lacks_some_ = true;
  return false;
}

std::size_t Fields::remove(FieldName name) {
  const std::size_t before = count_;
  for (std::size_t i = view().next(name, 0); i < count_; i = view().next(name, i)) erase(i);
  return before - count_;
}

void Fields::clear() {
  deallocate(block_);
  block_ = nullptr;
  text_size_ = text_room_ = count_ = entry_room_ = 0;
  known_ = 0;
  lacks_some_ = false;
}

// Makes room for `bytes` and `count` more. A new block has the old contents; the caller frees the
// old block.
bool Fields::make_room(std::size_t bytes, std::size_t count) {
  if (bytes > kMostBytes - text_size_) return false;
  if (text_size_ + bytes <= text_room_ && count_ + count <= entry_room_) return true;
  const std::size_t entry_room = std::bit_ceil(std::max<std::size_t>(count_ + count, 8));
  const std::size_t text_room = std::bit_ceil(std::max<std::size_t>(text_size_ + bytes, 256));
  const std::size_t entry_bytes = entry_room * sizeof(FieldEntry);
  auto* block = static_cast<char*>(reallocate(nullptr, entry_bytes + text_room));
  if (block == nullptr) return false;
  if (block_ != nullptr) {
    std::memcpy(block, block_, count_ * sizeof(FieldEntry));
    std::memcpy(block + entry_bytes, text(), text_size_);
  }
  block_ = block;
  entry_room_ = entry_room;
  text_room_ = text_room;
  return true;
}

void Fields::append(std::string_view name, std::string_view value, FieldId id) {
  const std::size_t value_at = text_size_ + name.size() + kColon.size();
  entries()[count_++] = {
      static_cast<std::uint16_t>(text_size_), static_cast<std::uint16_t>(name.size()),
      static_cast<std::uint16_t>(value_at), static_cast<std::uint16_t>(value.size()), id};
  char* at = copy_to(text() + text_size_, name);
  at = copy_to(copy_to(copy_to(at, kColon), value), kLineEnd);
  text_size_ = static_cast<std::size_t>(at - text());
  if (id != FieldId::other) known_ |= bit_of(id);
}

void Fields::erase(std::size_t index) {
  const FieldEntry gone = entries()[index];
  const std::size_t end = gone.value_at + gone.value_size + kLineEnd.size();
  const std::size_t size = end - gone.name_at;
  std::memmove(text() + gone.name_at, text() + end, text_size_ - end);
  text_size_ -= size;
  --count_;
  for (std::size_t i = index; i < count_; ++i) {
    entries()[i] = entries()[i + 1];
    entries()[i].name_at = static_cast<std::uint16_t>(entries()[i].name_at - size);
    entries()[i].value_at = static_cast<std::uint16_t>(entries()[i].value_at - size);
  }
  known_ = 0;
  for (std::size_t i = 0; i < count_; ++i)
    if (entries()[i].id != FieldId::other) known_ |= bit_of(entries()[i].id);
}

}  // namespace spate::http
