// Header fields. FieldsView is a view of the fields inside a received message. Fields owns its
// fields: those that a program sends or keeps.
//
// Names are compared without regard to case, and keep the spelling that was received. Several
// fields may have one name; they keep their order.
//
//   const std::string_view type = request.fields()[FieldId::content_type];
//   for (std::string_view coding : request.fields().list("Accept-Encoding")) ...
//
// Threads: one at a time, or several that only read.
// Lifetime: views (FieldsView, Field, string_views) of a message are valid until the callback that
// receives them returns, unless its documentation extends that. Views of a Fields are valid until
// it is changed, moved or destroyed.
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

// The name to search for: a FieldId or a text.
struct FieldName {
  FieldName(FieldId known) : id(known) {}  // Not FieldId::other.
  template <class Text>
    requires std::convertible_to<const Text&, std::string_view>
  FieldName(const Text& text) : id(field_id_of(text)), name(text) {}

  FieldId id;
  std::string_view name = {};  // Used if `id` is FieldId::other.
};

struct Field {
  std::string_view name;
  std::string_view value;  // Without surrounding blanks.
  FieldId id;
};

// The position of a field, from the beginning of the text.
struct FieldEntry {
  std::uint16_t name_at;
  std::uint16_t name_size;
  std::uint16_t value_at;
  std::uint16_t value_size;
  FieldId id;
};

// Returns the bit of an id in a set of ids.
constexpr std::uint64_t bit_of(FieldId id) { return std::uint64_t{1} << static_cast<int>(id); }

class FieldValues;
class ListValues;

// A view of fields. Cheap to copy.
class SPATE_EXPORT FieldsView {
 public:
  FieldsView() = default;
  // Called by parsers. `known` has a bit for each id among the entries.
  FieldsView(const char* text, const FieldEntry* entries, std::size_t count, std::uint64_t known)
      : text_(text), entries_(entries), count_(count), known_(known) {}

  std::size_t size() const { return count_; }
  bool empty() const { return count_ == 0; }
  // Returns a field. `index` must be less than size().
  Field at(std::size_t index) const {
    const FieldEntry& entry = entries_[index];
    return {{text_ + entry.name_at, entry.name_size},
            {text_ + entry.value_at, entry.value_size},
            entry.id};
  }

  // Returns the value of the first field of that name; empty if there is no such field.
  std::string_view operator[](FieldName name) const { return find(name).value_or(""); }
  std::optional<std::string_view> find(FieldName name) const {
    const std::size_t index = next(name, 0);
    if (index == count_) return {};
    return at(index).value;
  }
  bool contains(FieldName name) const { return next(name, 0) < count_; }
  // Returns whether any id of a set is present: bit_of(FieldId::te) | bit_of(FieldId::upgrade).
  bool contains_any(std::uint64_t ids) const { return (known_ & ids) != 0; }
  std::size_t count(FieldName name) const;
  // Returns all values of that name, in order.
  FieldValues all(FieldName name) const;
  // Returns the members of a comma-separated list, in one field or several of that name.
  ListValues list(FieldName name) const;
  // Returns the index of the first field of that name at or after `from`; size() if there is no
  // more.
  std::size_t next(FieldName name, std::size_t from) const {
    if (name.id == FieldId::other) return next_of(name.name, from);
    if (!contains_any(bit_of(name.id))) return count_;
    while (from < count_ && entries_[from].id != name.id) ++from;
    return from;
  }

  // Returns the same view after the text and the entries were copied.
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
  // Searches by name, for names without a FieldId.
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

// The members of a list (RFC 9110 §5.6.1), without surrounding blanks and without empty members. A
// comma in a quoted string does not separate.
class SPATE_EXPORT ListValues {
 public:
  ListValues(FieldsView view, FieldName name) : view_(view), name_(name) {}

  // Returns whether a member equals `token`, in any case.
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
    std::string_view rest_;  // The rest of the value at index_, after the member.
    std::string_view member_;
  };
  Iterator begin() const { return {this, view_.next(name_, 0)}; }
  Iterator end() const { return {this, view_.size()}; }

 private:
  FieldsView view_;
  FieldName name_;
};

// Owns its fields in one block of memory, stored as the lines that are sent.
class SPATE_EXPORT Fields {
 public:
  static constexpr std::size_t kMostBytes = 64 * 1024;  // Bytes of the lines, with ": " and CR LF.

  Fields() = default;
  Fields(Fields&& other) noexcept { swap(other); }
  Fields& operator=(Fields&& other) noexcept {
    swap(other);
    other.clear();
    return *this;
  }
  ~Fields();

  // Adds a field. This and the next three return false, and add nothing, if `name` is not a token
  // (RFC 9110 §5.6.2), if `value` has a control character other than a tab, beyond kMostBytes, and
  // when memory runs out. Surrounding blanks of the value are dropped. The result may be ignored:
  // an incomplete Fields is not sent (is_complete()).
  bool add(FieldName name, std::string_view value);
  // Replaces all fields of that name by one, which comes last.
  bool set(FieldName name, std::string_view value);
  // Adds all of `fields`, or none.
  bool add_all(FieldsView fields);
  // As above. If `fields` is incomplete, so is this afterwards.
  bool add_all(const Fields& fields);

  // False after add(), set() or add_all() returned false, until clear() or accept_incomplete().
  // Functions that send Fields refuse incomplete ones: without the missing field, the message could
  // have another meaning.
  bool is_complete() const { return !lacks_some_; }
  // Makes is_complete() true, so that the fields can be sent without the missing ones.
  void accept_incomplete() { lacks_some_ = false; }

  // Removes all fields of that name. Returns how many there were.
  std::size_t remove(FieldName name);
  void clear();

  FieldsView view() const { return {text(), entries(), count_, known_}; }
  operator FieldsView() const { return view(); }
  std::size_t size() const { return count_; }
  bool empty() const { return count_ == 0; }
  std::string_view operator[](FieldName name) const { return view()[name]; }
  std::optional<std::string_view> find(FieldName name) const { return view().find(name); }
  // Returns whether there is such a field.
  bool contains(FieldName name) const { return view().contains(name); }

  // Returns "Name: value" and CR LF for each, as they are sent.
  std::string_view lines() const { return {text(), text_size_}; }

  void swap(Fields& other) noexcept {
    std::swap(block_, other.block_);
    std::swap(text_size_, other.text_size_);
    std::swap(text_room_, other.text_room_);
    std::swap(count_, other.count_);
    std::swap(entry_room_, other.entry_room_);
    std::swap(known_, other.known_);
    std::swap(lacks_some_, other.lacks_some_);
  }

 private:
  FieldEntry* entries() const { return reinterpret_cast<FieldEntry*>(block_); }
  char* text() const { return block_ + entry_room_ * sizeof(FieldEntry); }
  bool make_room(std::size_t bytes, std::size_t count);
  bool note_lack();
  void append(std::string_view name, std::string_view value, FieldId id);
  void erase(std::size_t index);

  char* block_ = nullptr;  // entry_room_ entries, and text_room_ bytes of lines.
  std::size_t text_size_ = 0;
  std::size_t text_room_ = 0;
  std::size_t count_ = 0;
  std::size_t entry_room_ = 0;
  std::uint64_t known_ = 0;
  bool lacks_some_ = false;
};

inline FieldValues FieldsView::all(FieldName name) const { return {*this, name}; }
inline ListValues FieldsView::list(FieldName name) const { return {*this, name}; }

}  // namespace spate::http
