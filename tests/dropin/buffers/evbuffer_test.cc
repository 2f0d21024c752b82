// evbuffers against strings: random programs that do what the headers allow, and what they do not
// speak of (buffers freed in their own callbacks, positions that have become stale, parts of files
// that are looked at).
#include <event2/buffer.h>
#include <event2/event.h>
#include <gtest/gtest.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cstdio>
#include <memory>
#include <random>
#include <string>
#include <string_view>
#include <vector>

extern "C" {  // Which this header forgets.
#include <event2/buffer_compat.h>
}

namespace spate::dropin {
namespace {

struct FreeBuffer {
  void operator()(evbuffer* buffer) const { evbuffer_free(buffer); }
};
using Buffer = std::unique_ptr<evbuffer, FreeBuffer>;

Buffer make(std::string_view text = {}) {
  Buffer buffer(evbuffer_new());
  evbuffer_add(buffer.get(), text.data(), text.size());
  return buffer;
}

std::string contents(evbuffer* buffer) {
  std::string text(evbuffer_get_length(buffer), '\0');
  EXPECT_EQ(evbuffer_copyout(buffer, text.data(), text.size()),
            static_cast<ev_ssize_t>(text.size()));
  return text;
}

// A file without a name.
int make_file(std::string_view text) {
  std::FILE* file = std::tmpfile();
  const int fd = ::dup(::fileno(file));
  std::fclose(file);
  EXPECT_EQ(::write(fd, text.data(), text.size()), static_cast<ssize_t>(text.size()));
  return fd;
}

// ---- the model

// Of each buffer the bytes, and who has to be given memory back.
class Program {
 public:
  explicit Program(unsigned seed) : random_(seed) {
    for (std::unique_ptr<std::string>& text : lent_) {
      text = std::make_unique<std::string>(1 + below(3000), 'x');
      for (char& byte : *text) byte = "abab\r\n\0c"[below(8)];
    }
    file_ = make_file(*lent_[0]);
    EXPECT_EQ(::socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK, 0, ends_), 0);
  }
  ~Program() {
    for (Buffer& buffer : buffers_) buffer.reset();
    EXPECT_EQ(given_back_, lendings_);
    ::close(file_);
    ::close(ends_[0]);
    ::close(ends_[1]);
  }
  Program(const Program&) = delete;
  Program& operator=(const Program&) = delete;

  void run(int steps) {
    for (int step = 0; step < steps && !testing::Test::HasFailure(); ++step) {
      take_step();
      const std::size_t shown = below(kBuffers);
      ASSERT_EQ(evbuffer_get_length(buffers_[shown].get()), models_[shown].size());
      if (below(3) == 0) {
        ASSERT_EQ(contents(buffers_[shown].get()), models_[shown]);
      }
    }
  }

 private:
  static constexpr std::size_t kBuffers = 3;

  std::size_t below(std::size_t limit) {
    return std::uniform_int_distribution<std::size_t>(0, limit - 1)(random_);
  }
  std::size_t some_size() { return below(8) == 0 ? below(9000) : below(60); }
  std::string_view some_text() {
    const std::string_view text = *lent_[below(lent_.size())];
    return text.substr(below(text.size()), some_size());
  }

  static void on_given_back(const void*, std::size_t, void* program) {
    ++static_cast<Program*>(program)->given_back_;
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
      EXPECT_EQ(evbuffer_add_printf(buffers_[to].get(), "%s.", word.c_str()),
                static_cast<int>(word.size()) + 1);
      models_[to] += word + ".";
      return;
    }
    EXPECT_EQ(evbuffer_add(buffers_[to].get(), text.data(), text.size()), 0);
    models_[to] += text;
  }

  void prepend(std::size_t to) {
    const std::string_view text = some_text();
    EXPECT_EQ(evbuffer_prepend(buffers_[to].get(), text.data(), text.size()), 0);
    models_[to].insert(0, text);
  }

  void lend(std::size_t to) {
    const std::string_view text = some_text();
    ++lendings_;
    EXPECT_EQ(
        evbuffer_add_reference(buffers_[to].get(), text.data(), text.size(), on_given_back, this),
        0);
    models_[to] += text;
  }

  void reserve(std::size_t to) {
    std::string_view text = some_text();
    std::array<evbuffer_iovec, 2> extents;
    const int count =
        evbuffer_reserve_space(buffers_[to].get(), static_cast<ev_ssize_t>(text.size()),
                               extents.data(), 1 + static_cast<int>(below(2)));
    ASSERT_GE(count, 1);
    if (below(4) == 0) return;  // And never commits it.
    models_[to] += text;
    for (int i = 0; i < count; ++i) {
      const std::size_t here = std::min(text.size(), extents[static_cast<std::size_t>(i)].iov_len);
      std::copy_n(text.data(), here,
                  static_cast<char*>(extents[static_cast<std::size_t>(i)].iov_base));
      extents[static_cast<std::size_t>(i)].iov_len = here;
      text.remove_prefix(here);
    }
    EXPECT_EQ(evbuffer_commit_space(buffers_[to].get(), extents.data(), count), 0);
  }

  void show(std::size_t to, std::size_t from) {
    if (evbuffer_add_buffer_reference(buffers_[to].get(), buffers_[from].get()) != 0) return;
    models_[to] += models_[from];
  }

  void add_file(std::size_t to) {
    const std::size_t offset = below(lent_[0]->size());
    const std::size_t length = 1 + below(lent_[0]->size() - offset);
    if (below(2) == 0) evbuffer_set_flags(buffers_[to].get(), EVBUFFER_FLAG_DRAINS_TO_FD);
    EXPECT_EQ(evbuffer_add_file(buffers_[to].get(), ::dup(file_), static_cast<ev_off_t>(offset),
                                static_cast<ev_off_t>(length)),
              0);
    models_[to] += lent_[0]->substr(offset, length);
    evbuffer_clear_flags(buffers_[to].get(), EVBUFFER_FLAG_DRAINS_TO_FD);
  }

  void move(std::size_t to, std::size_t from) {
    const std::size_t size = some_size();
    evbuffer* target = buffers_[to].get();
    evbuffer* source = buffers_[from].get();
    switch (below(3)) {
      case 0:
        EXPECT_EQ(evbuffer_add_buffer(target, source), 0);
        return move_model(to, from, models_[from].size());
      case 1:
        EXPECT_EQ(evbuffer_prepend_buffer(target, source), 0);
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
      EXPECT_EQ(evbuffer_drain(buffer, size), 0);
    } else {
      const int got = evbuffer_remove(buffer, text.data(), size);
      ASSERT_EQ(got, static_cast<int>(std::min(size, models_[from].size())));
      EXPECT_EQ(text.substr(0, static_cast<std::size_t>(got)),
                models_[from].substr(0, static_cast<std::size_t>(got)));
    }
    models_[from].erase(0, size);
  }

  // From where a search of another time has ended, too.
  void find(std::size_t in) {
    const std::string_view what = some_text().substr(0, below(5));
    const std::string& model = models_[in];
    if (below(2) == 0) evbuffer_ptr_set(buffers_[in].get(), &place_, some_size(), EVBUFFER_PTR_SET);
    const auto start = static_cast<std::size_t>(place_.pos);
    const evbuffer_ptr found =
        evbuffer_search(buffers_[in].get(), what.data(), what.size(), &place_);
    if (place_.pos >= 0 && start <= model.size()) {
      const std::size_t expected = model.find(what, start);
      EXPECT_EQ(found.pos, expected == std::string::npos ? -1 : static_cast<ev_ssize_t>(expected));
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
    ASSERT_EQ(bytes != nullptr, size != 0 && size <= models_[in].size());
    if (bytes == nullptr) return;
    EXPECT_EQ(std::string(bytes, bytes + size), models_[in].substr(0, size));
  }

  // Out to the socket, and back in.
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

  std::mt19937 random_;
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

TEST(EvBuffer, HoldsWhatAStringWouldHold) {
  for (unsigned seed = 1; seed <= 300 && !HasFailure(); ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    Program(seed).run(120);
  }
}

// ---- what the headers do not speak of

TEST(EvBuffer, MayBeFreedInItsOwnCallback) {
  evbuffer* buffer = evbuffer_new();
  int calls = 0;
  evbuffer_add_cb(
      buffer, [](evbuffer*, const evbuffer_cb_info*, void* count) { ++*static_cast<int*>(count); },
      &calls);
  evbuffer_add_cb(
      buffer, [](evbuffer* self, const evbuffer_cb_info*, void*) { evbuffer_free(self); }, nullptr);
  EXPECT_EQ(evbuffer_add(buffer, "x", 1), 0);
  EXPECT_EQ(calls, 1);
}

TEST(EvBuffer, ACallbackMayRemoveTheOthers) {
  Buffer buffer = make();
  int calls = 0;
  const evbuffer_cb_func count = [](evbuffer*, const evbuffer_cb_info*, void* calls_made) {
    ++*static_cast<int*>(calls_made);
  };
  evbuffer_add_cb(buffer.get(), count, &calls);
  evbuffer_add_cb(
      buffer.get(),
      [](evbuffer* self, const evbuffer_cb_info*, void*) {
        evbuffer_setcb(self, nullptr, nullptr);
      },
      nullptr);
  evbuffer_add_cb(buffer.get(), count, &calls);
  evbuffer_add(buffer.get(), "x", 1);
  EXPECT_EQ(calls, 1);
  evbuffer_add(buffer.get(), "x", 1);
  EXPECT_EQ(calls, 1);
}

TEST(EvBuffer, MemoryIsGivenBackWhenTheBufferIsInOrder) {
  Buffer buffer = make();
  struct Seen {
    evbuffer* buffer;
    std::string text;
  } seen{buffer.get(), {}};
  evbuffer_add_reference(
      buffer.get(), "lent", 4,
      [](const void*, std::size_t, void* context) {
        auto* at_return = static_cast<Seen*>(context);
        at_return->text = contents(at_return->buffer);
        evbuffer_add(at_return->buffer, "!", 1);
      },
      &seen);
  evbuffer_add(buffer.get(), "own", 3);
  evbuffer_drain(buffer.get(), 5);
  EXPECT_EQ(seen.text, "wn");
  EXPECT_EQ(contents(buffer.get()), "wn!");
}

TEST(EvBuffer, APositionBeyondTheEndFindsNothing) {
  Buffer buffer = make("some text");
  evbuffer_ptr place;
  ASSERT_EQ(evbuffer_ptr_set(buffer.get(), &place, 9, EVBUFFER_PTR_SET), 0);
  evbuffer_drain(buffer.get(), 5);
  char byte;
  EXPECT_EQ(evbuffer_copyout_from(buffer.get(), &place, &byte, 1), -1);
  EXPECT_EQ(evbuffer_search(buffer.get(), "t", 1, &place).pos, -1);
  EXPECT_EQ(evbuffer_search_eol(buffer.get(), &place, nullptr, EVBUFFER_EOL_ANY).pos, -1);
  EXPECT_EQ(evbuffer_peek(buffer.get(), -1, &place, nullptr, 0), 0);
}

TEST(EvBuffer, APartOfAFileThatIsToBeSentCanBeRead) {
  Buffer buffer = make();
  evbuffer_set_flags(buffer.get(), EVBUFFER_FLAG_DRAINS_TO_FD);
  evbuffer_add_file(buffer.get(), make_file("0123456789"), 2, 6);
  Buffer moved = make();
  EXPECT_EQ(evbuffer_remove_buffer(buffer.get(), moved.get(), 2), 2);
  EXPECT_EQ(contents(moved.get()), "23");
  EXPECT_EQ(evbuffer_search(buffer.get(), "67", 2, nullptr).pos, 2);
  EXPECT_EQ(contents(buffer.get()), "4567");
}

TEST(EvBuffer, AFileThatHasBecomeShorterCannotBeRead) {
  Buffer buffer = make();
  evbuffer_set_flags(buffer.get(), EVBUFFER_FLAG_DRAINS_TO_FD);
  const int file = make_file("0123456789");
  evbuffer_add_file(buffer.get(), ::dup(file), 2, 6);
  event_set_log_callback([](int, const char*) {});
  ASSERT_EQ(::ftruncate(file, 4), 0);
  char byte;
  EXPECT_EQ(evbuffer_copyout(buffer.get(), &byte, 1), -1);
  EXPECT_EQ(evbuffer_pullup(buffer.get(), -1), nullptr);
  EXPECT_EQ(evbuffer_remove(buffer.get(), &byte, 1), -1);
  EXPECT_EQ(evbuffer_get_length(buffer.get()), 6U);
  event_set_log_callback(nullptr);
  ::close(file);
}

TEST(EvBuffer, ASegmentIsKeptAfterAPartThatDoesNotExistWasAsked) {
  const int file = make_file("0123456789");
  evbuffer_file_segment* segment = evbuffer_file_segment_new(file, 0, 10, EVBUF_FS_CLOSE_ON_FREE);
  Buffer buffer = make();
  EXPECT_EQ(evbuffer_add_file_segment(buffer.get(), segment, 5, 6), -1);
  EXPECT_EQ(evbuffer_add_file_segment(buffer.get(), segment, -1, 1), -1);
  EXPECT_EQ(evbuffer_add_file_segment(buffer.get(), segment, 5, 5), 0);
  evbuffer_file_segment_free(segment);
  EXPECT_EQ(contents(buffer.get()), "56789");
}

TEST(EvBuffer, CannotGrowBeyondWhatALengthCanSay) {
  Buffer buffer = make("x");
  const char byte = 0;
  EXPECT_EQ(evbuffer_add_reference(buffer.get(), &byte, SIZE_MAX, nullptr, nullptr), -1);
  EXPECT_EQ(evbuffer_add_reference(buffer.get(), &byte, EV_SSIZE_MAX - 1, nullptr, nullptr), 0);
  EXPECT_EQ(evbuffer_add(buffer.get(), &byte, 1), -1);
  EXPECT_EQ(evbuffer_prepend(buffer.get(), &byte, 1), -1);
  EXPECT_EQ(evbuffer_add_printf(buffer.get(), "x"), -1);
  EXPECT_EQ(evbuffer_expand(buffer.get(), 1), -1);
  EXPECT_EQ(evbuffer_get_length(buffer.get()), static_cast<std::size_t>(EV_SSIZE_MAX));
}

}  // namespace
}  // namespace spate::dropin
