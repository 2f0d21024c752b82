// EvbufferModel: performs the same operations on three evbuffers and on three strings, for the
// random test and for the fuzz target. It uses everything that the headers allow, and cases that
// they do not mention, such as stale positions and views of file segments.
//
// A World decides:
//     std::size_t below(std::size_t limit);        // 0 ... limit - 1
//     bool is_over() const;                        // No decision is left.
//     void check(bool holds, const char* what);
#pragma once

#include <event2/buffer.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cstdio>
#include <memory>
#include <random>
#include <string>
#include <string_view>
#include <utility>

namespace spate::dropin {

struct FreeBuffer {
  void operator()(evbuffer* buffer) const { evbuffer_free(buffer); }
};
using Buffer = std::unique_ptr<evbuffer, FreeBuffer>;

inline Buffer make(std::string_view text = {}) {
  Buffer buffer(evbuffer_new());
  evbuffer_add(buffer.get(), text.data(), text.size());
  return buffer;
}

// Returns all that can be copied out, which must be the whole contents.
inline std::string contents(evbuffer* buffer) {
  std::string text(evbuffer_get_length(buffer), '\0');
  const ev_ssize_t copied = evbuffer_copyout(buffer, text.data(), text.size());
  return text.substr(0, static_cast<std::size_t>(std::max<ev_ssize_t>(copied, 0)));
}

// A file without a name.
inline int make_file(std::string_view text) {
  std::FILE* file = std::tmpfile();
  const int fd = ::dup(::fileno(file));
  std::fclose(file);
  return ::write(fd, text.data(), text.size()) == static_cast<ssize_t>(text.size()) ? fd : -1;
}

template <class World>
class EvbufferModel {
 public:
  explicit EvbufferModel(World& world) : world_(world) {
    std::minstd_rand letters(static_cast<unsigned>(world_.below(256)));
    for (std::unique_ptr<std::string>& text : lent_) {
      text = std::make_unique<std::string>(1 + world_.below(3000), 'x');
      for (char& byte : *text) byte = "abab\r\n\0c"[letters() % 8];
    }
    file_ = make_file(*lent_[0]);
    check(::socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK, 0, ends_) == 0, "socketpair");
  }
  ~EvbufferModel() {
    for (Buffer& buffer : buffers_) buffer.reset();
    check(given_back_ == lendings_, "what was lent is given back");
    ::close(file_);
    ::close(ends_[0]);
    ::close(ends_[1]);
  }
  EvbufferModel(const EvbufferModel&) = delete;
  EvbufferModel& operator=(const EvbufferModel&) = delete;

  void run(int steps) {
    for (int step = 0; step < steps && !world_.is_over(); ++step) {
      take_step();
      const std::size_t shown = below(kBuffers);
      check(evbuffer_get_length(buffers_[shown].get()) == models_[shown].size(), "length");
      if (below(3) == 0) check(contents(buffers_[shown].get()) == models_[shown], "contents");
    }
  }

 private:
  static constexpr std::size_t kBuffers = 3;

  std::size_t below(std::size_t limit) { return world_.below(limit); }
  void check(bool holds, const char* what) { world_.check(holds, what); }
  std::size_t some_size() { return below(8) == 0 ? below(9000) : below(60); }
  std::string_view some_text() {
    const std::string_view text = *lent_[below(lent_.size())];
    return text.substr(below(text.size()), some_size());
  }

  static void on_given_back(const void*, std::size_t, void* program) {
    ++static_cast<EvbufferModel*>(program)->given_back_;
  }

  void take_step() {
    const std::size_t to = below(kBuffers);
    const std::size_t from = below(kBuffers);
    switch (below(14)) {
      case 0:
      case 1:
        return add(to);
      case 2:
        return prepend(to);
      case 3:
        return lend(to);
      case 4:
        return reserve(to);
      case 5:
        return show(to, from);
      case 6:
        return add_file(to);
      case 7:
      case 8:
        return move(to, from);
      case 9:
      case 10:
        return take(to);
      case 11:
        return find(to);
      case 12:
        return make_contiguous(to);
      default:
        return transfer(to);
    }
  }

  void add(std::size_t to) {
    const std::string_view text = some_text();
    if (below(3) == 0) {
      const std::string word(text.substr(0, text.find('\0')));
      check(evbuffer_add_printf(buffers_[to].get(), "%s.", word.c_str()) ==
                static_cast<int>(word.size()) + 1,
            "add_printf");
      models_[to] += word + ".";
      return;
    }
    check(evbuffer_add(buffers_[to].get(), text.data(), text.size()) == 0, "add");
    models_[to] += text;
  }

  void prepend(std::size_t to) {
    const std::string_view text = some_text();
    check(evbuffer_prepend(buffers_[to].get(), text.data(), text.size()) == 0, "prepend");
    models_[to].insert(0, text);
  }

  void lend(std::size_t to) {
    const std::string_view text = some_text();
    ++lendings_;
    check(evbuffer_add_reference(buffers_[to].get(), text.data(), text.size(), on_given_back,
                                 this) == 0,
          "add_reference");
    models_[to] += text;
  }

  void reserve(std::size_t to) {
    std::string_view text = some_text();
    std::array<evbuffer_iovec, 2> extents;
    const int count =
        evbuffer_reserve_space(buffers_[to].get(), static_cast<ev_ssize_t>(text.size()),
                               extents.data(), 1 + static_cast<int>(below(2)));
    if (count < 1) return check(text.empty(), "reserve_space");
    if (below(4) == 0) return;  // Never commits the reserved space.
    models_[to] += text;
    for (int i = 0; i < count; ++i) {
      const std::size_t here = std::min(text.size(), extents[static_cast<std::size_t>(i)].iov_len);
      std::copy_n(text.data(), here,
                  static_cast<char*>(extents[static_cast<std::size_t>(i)].iov_base));
      extents[static_cast<std::size_t>(i)].iov_len = here;
      text.remove_prefix(here);
    }
    check(evbuffer_commit_space(buffers_[to].get(), extents.data(), count) == 0, "commit_space");
  }

  void show(std::size_t to, std::size_t from) {
    if (evbuffer_add_buffer_reference(buffers_[to].get(), buffers_[from].get()) != 0) return;
    models_[to] += models_[from];
  }

  void add_file(std::size_t to) {
    const std::size_t offset = below(lent_[0]->size());
    const std::size_t length = 1 + below(lent_[0]->size() - offset);
    if (below(2) == 0) evbuffer_set_flags(buffers_[to].get(), EVBUFFER_FLAG_DRAINS_TO_FD);
    check(evbuffer_add_file(buffers_[to].get(), ::dup(file_), static_cast<ev_off_t>(offset),
                            static_cast<ev_off_t>(length)) == 0,
          "add_file");
    models_[to] += lent_[0]->substr(offset, length);
    evbuffer_clear_flags(buffers_[to].get(), EVBUFFER_FLAG_DRAINS_TO_FD);
  }

  void move(std::size_t to, std::size_t from) {
    const std::size_t size = some_size();
    evbuffer* target = buffers_[to].get();
    evbuffer* source = buffers_[from].get();
    switch (below(3)) {
      case 0:
        check(evbuffer_add_buffer(target, source) == 0, "add_buffer");
        return move_model(to, from, models_[from].size());
      case 1:
        check(evbuffer_prepend_buffer(target, source) == 0, "prepend_buffer");
        if (to != from) models_[to].insert(0, std::exchange(models_[from], {}));
        return;
      default:
        evbuffer_remove_buffer(source, target, size);
        return move_model(to, from, std::min(size, models_[from].size()));
    }
  }

  void move_model(std::size_t to, std::size_t from, std::size_t size) {
    if (to == from) return;
    models_[to] += models_[from].substr(0, size);
    models_[from].erase(0, size);
  }

  void take(std::size_t from) {
    const std::size_t size = some_size();
    std::string text(size, '\0');
    evbuffer* buffer = buffers_[from].get();
    if (below(2) == 0) {
      check(evbuffer_drain(buffer, size) == 0, "drain");
    } else {
      const int got = evbuffer_remove(buffer, text.data(), size);
      text.resize(static_cast<std::size_t>(std::max(got, 0)));
      check(text == models_[from].substr(0, size), "remove");
    }
    models_[from].erase(0, size);
  }

  // Starts at any position, for example where an earlier search ended.
  void find(std::size_t in) {
    const std::string_view what = some_text().substr(0, below(5));
    const std::string& model = models_[in];
    if (below(2) == 0) evbuffer_ptr_set(buffers_[in].get(), &place_, some_size(), EVBUFFER_PTR_SET);
    const auto start = static_cast<std::size_t>(place_.pos);
    const evbuffer_ptr found =
        evbuffer_search(buffers_[in].get(), what.data(), what.size(), &place_);
    if (place_.pos >= 0 && start <= model.size()) {
      const std::size_t expected = model.find(what, start);
      check(found.pos == (expected == std::string::npos ? -1 : static_cast<ev_ssize_t>(expected)),
            "search");
    }
    std::array<char, 16> bytes;
    evbuffer_copyout_from(buffers_[in].get(), &place_, bytes.data(), bytes.size());
    std::size_t length = 0;
    evbuffer_search_eol(buffers_[in].get(), &place_, &length,
                        static_cast<evbuffer_eol_style>(below(5)));
    place_ = found;
  }

  void make_contiguous(std::size_t in) {
    const std::size_t size = below(2) == 0 ? models_[in].size() : some_size();
    const unsigned char* bytes = evbuffer_pullup(buffers_[in].get(), static_cast<ev_ssize_t>(size));
    check((bytes != nullptr) == (size != 0 && size <= models_[in].size()), "pullup");
    if (bytes == nullptr) return;
    check(std::string(bytes, bytes + size) == models_[in].substr(0, size), "pulled up");
  }

  // Writes to the socket, and reads back.
  void transfer(std::size_t from) {
    const int written = evbuffer_write_atmost(buffers_[from].get(), ends_[0],
                                              static_cast<ev_ssize_t>(some_size()) + 1);
    if (written > 0) {
      in_socket_ += models_[from].substr(0, static_cast<std::size_t>(written));
      models_[from].erase(0, static_cast<std::size_t>(written));
    }
    const std::size_t to = below(kBuffers);
    const int got = evbuffer_read(buffers_[to].get(), ends_[1], static_cast<int>(some_size()) + 1);
    if (got <= 0) return;
    models_[to] += in_socket_.substr(0, static_cast<std::size_t>(got));
    in_socket_.erase(0, static_cast<std::size_t>(got));
  }

  World& world_;
  std::array<std::unique_ptr<std::string>, 4> lent_;
  std::array<Buffer, kBuffers> buffers_ = {make(), make(), make()};
  std::array<std::string, kBuffers> models_;
  std::string in_socket_;
  evbuffer_ptr place_{};
  int ends_[2];
  int file_;
  int lendings_ = 0;
  int given_back_ = 0;
};

}  // namespace spate::dropin
