// Header fields. FieldsView looks at the fields of a message where they lie; Fields owns some:
// those that a program sends, or those that it keeps.
//
// Names are compared without regard to case, and keep the spelling that they came with. Fields of
// one name may be several, and keep their order.
//
//   const std::string_view type = request.fields()[FieldId::content_type];
//   for (std::string_view coding : request.fields().list("Accept-Encoding")) ...
//
// Threads: one at a time, or several that only read.
// Views (FieldsView, Field, string_views) are valid as long as the message: for the length of the
// callback that shows it, unless that says more. Those of Fields: until it is changed, moved or
// destroyed.
#pragma once

#include <concepts>
#include <cstddef>
#include <cstdint>
#include <iterator>
#include <optional>
#include <string_view>
#include <utility>

#include "spate/export.h"
#include "spate/http/field_id.h"

namespace spate::http {

// What is looked for: a FieldId or a name.
struct FieldName {
  FieldName(FieldId known) : id(known) {}  // Not `other`.
  template <class Text>
    requires std::convertible_to<const Text&, std::string_view>
  FieldName(const Text& text) : id(field_id_of(text)), name(text) {}

  FieldId id;
  std::string_view name = {};  // If it is none of those known.
};

struct Field {
  std::string_view name;
  std::string_view value;  // Without blanks around it.
  FieldId id;
};

// Where a field lies, from the beginning of the text.
struct FieldEntry {
  std::uint16_t name_at;
  std::uint16_t name_size;
  std::uint16_t value_at;
  std::uint16_t value_size;
  FieldId id;
};

// A set of those that are known.
constexpr std::uint64_t bit_of(FieldId id) { return std::uint64_t{1} << static_cast<int>(id); }

class FieldValues;
class ListValues;

// Copied cheaply.
class SPATE_EXPORT FieldsView {
 public:
  FieldsView() = default;
  // What a parser makes. `known` has a bit of each id that is among the entries.
  FieldsView(const char* text, const FieldEntry* entries, std::size_t count, std::uint64_t known)
      : text_(text), entries_(entries), count_(count), known_(known) {}

  std::size_t size() const { return count_; }
  bool empty() const { return count_ == 0; }
  // `index` is less than size().
  Field at(std::size_t index) const {
    const FieldEntry& entry = entries_[index];
    return {{text_ + entry.name_at, entry.name_size},
            {text_ + entry.value_at, entry.value_size},
            entry.id};
  }

  // The value of the first field of that name; empty if there is none.
  std::string_view operator[](FieldName name) const { return find(name).value_or(""); }
  std::optional<std::string_view> find(FieldName name) const {
    const std::size_t index = next(name, 0);
    if (index == count_) return {};
    return at(index).value;
  }
  bool contains(FieldName name) const { return next(name, 0) < count_; }
  // Whether any of a set is there: bit_of(FieldId::te) | bit_of(FieldId::upgrade).
  bool contains_any(std::uint64_t ids) const { return (known_ & ids) != 0; }
  std::size_t count(FieldName name) const;
  // All values of that name, in order.
  FieldValues all(FieldName name) const;
  // The members of a list that is separated by commas, in one field or several of that name.
  ListValues list(FieldName name) const;
  // The index of the first field of that name at or after `from`; size() if there is none.
  std::size_t next(FieldName name, std::size_t from) const {
    if (name.id == FieldId::other) return next_of(name.name, from);
    if (!contains_any(bit_of(name.id))) return count_;
    while (from < count_ && entries_[from].id != name.id) ++from;
    return from;
  }

  // The same fields, whose text and entries have been copied.
  FieldsView moved_to(const char* text, const FieldEntry* entries) const {
    return {text, entries, count_, known_};
  }

  class Iterator {
   public:
    using value_type = Field;
    using difference_type = std::ptrdiff_t;

    Iterator() = default;
    Iterator(const FieldsView* view, std::size_t index) : view_(view), index_(index) {}
    Field operator*() const { return view_->at(index_); }
    Iterator& operator++() {
      ++index_;
      return *this;
    }
    Iterator operator++(int) {
      Iterator old = *this;
      ++index_;
      return old;
    }
    bool operator==(const Iterator& other) const { return index_ == other.index_; }

   private:
    const FieldsView* view_ = nullptr;
    std::size_t index_ = 0;
  };
  Iterator begin() const { return {this, 0}; }
  Iterator end() const { return {this, count_}; }

 private:
  // Of a name that is none of those known.
  std::size_t next_of(std::string_view name, std::size_t from) const;

  const char* text_ = nullptr;
  const FieldEntry* entries_ = nullptr;
  std::size_t count_ = 0;
  std::uint64_t known_ = 0;
};

// All values of one name.
class SPATE_EXPORT FieldValues {
 public:
  FieldValues(FieldsView view, FieldName name) : view_(view), name_(name) {}

  class Iterator {
   public:
    using value_type = std::string_view;
    using difference_type = std::ptrdiff_t;

    Iterator() = default;
    Iterator(const FieldValues* values, std::size_t index) : values_(values), index_(index) {}
    std::string_view operator*() const { return values_->view_.at(index_).value; }
    Iterator& operator++() {
      index_ = values_->view_.next(values_->name_, index_ + 1);
      return *this;
    }
    Iterator operator++(int) {
      Iterator old = *this;
      ++*this;
      return old;
    }
    bool operator==(const Iterator& other) const { return index_ == other.index_; }

   private:
    const FieldValues* values_ = nullptr;
    std::size_t index_ = 0;
  };
  Iterator begin() const { return {this, view_.next(name_, 0)}; }
  Iterator end() const { return {this, view_.size()}; }

 private:
  FieldsView view_;
  FieldName name_;
};

// The members of a list (RFC 9110 §5.6.1), without blanks around them and without the empty ones. A
// comma in a quoted string does not separate.
class SPATE_EXPORT ListValues {
 public:
  ListValues(FieldsView view, FieldName name) : view_(view), name_(name) {}

  // Whether a member is `token`, in any case.
  bool contains(std::string_view token) const;

  class SPATE_EXPORT Iterator {
   public:
    using value_type = std::string_view;
    using difference_type = std::ptrdiff_t;

    Iterator() = default;
    Iterator(const ListValues* list, std::size_t index);
    std::string_view operator*() const { return member_; }
    Iterator& operator++() {
      advance();
      return *this;
    }
    Iterator operator++(int) {
      Iterator old = *this;
      advance();
      return old;
    }
    bool operator==(const Iterator& other) const {
      return index_ == other.index_ && member_.data() == other.member_.data();
    }

   private:
    void advance();
    bool take_member();

    const ListValues* list_ = nullptr;
    std::size_t index_ = 0;
    std::string_view rest_;  // Of the value at index_, behind the member.
    std::string_view member_;
  };
  Iterator begin() const { return {this, view_.next(name_, 0)}; }
  Iterator end() const { return {this, view_.size()}; }

 private:
  FieldsView view_;
  FieldName name_;
};

// Owns its fields, in one block of memory: the lines as they are sent.
class SPATE_EXPORT Fields {
 public:
  static constexpr std::size_t kMostBytes = 64 * 1024;  // Of the lines, with ": " and CR LF.

  Fields() = default;
  Fields(Fields&& other) noexcept { swap(other); }
  Fields& operator=(Fields&& other) noexcept {
    swap(other);
    other.clear();
    return *this;
  }
  ~Fields();

  // These return false, and have changed nothing, if `name` is not a token (RFC 9110 §5.6.2), if
  // `value` has a control character other than a tab, beyond kMostBytes, and when memory runs out.
  // Blanks around the value are left out.
  bool add(FieldName name, std::string_view value);
  // In the place of all of its name; comes last.
  bool set(FieldName name, std::string_view value);
  // All of `fields`, or none.
  bool add_all(FieldsView fields);

  // Returns how many there were.
  std::size_t remove(FieldName name);
  void clear();

  FieldsView view() const { return {text(), entries(), count_, known_}; }
  operator FieldsView() const { return view(); }
  std::size_t size() const { return count_; }
  bool empty() const { return count_ == 0; }
  std::string_view operator[](FieldName name) const { return view()[name]; }
  std::optional<std::string_view> find(FieldName name) const { return view().find(name); }
  bool contains(FieldName name) const { return view().contains(name); }

  // "Name: value" and CR LF for each, as they are sent.
  std::string_view lines() const { return {text(), text_size_}; }

  void swap(Fields& other) noexcept {
    std::swap(block_, other.block_);
    std::swap(text_size_, other.text_size_);
    std::swap(text_room_, other.text_room_);
    std::swap(count_, other.count_);
    std::swap(entry_room_, other.entry_room_);
    std::swap(known_, other.known_);
  }

 private:
  FieldEntry* entries() const { return reinterpret_cast<FieldEntry*>(block_); }
  char* text() const { return block_ + entry_room_ * sizeof(FieldEntry); }
  bool make_room(std::size_t bytes, std::size_t count);
  void append(std::string_view name, std::string_view value, FieldId id);
  void erase(std::size_t index);

  char* block_ = nullptr;  // entry_room_ entries, and text_room_ bytes of lines.
  std::size_t text_size_ = 0;
  std::size_t text_room_ = 0;
  std::size_t count_ = 0;
  std::size_t entry_room_ = 0;
  std::uint64_t known_ = 0;
};

inline FieldValues FieldsView::all(FieldName name) const { return {*this, name}; }
inline ListValues FieldsView::list(FieldName name) const { return {*this, name}; }

}  // namespace spate::http
