// Buffer: runs the same operations on three of them and on three strings.
#include "spate/net/buffer.h"

#include <algorithm>
#include <string>
#include <vector>

#include "input.h"

namespace spate::fuzz {
namespace {

constexpr std::size_t kBuffers = 3;
constexpr std::size_t kMax = 300'000;

class Model {
 public:
  explicit Model(Input input) : input_(input) {}
  ~Model() {
    for (Buffer& buffer : buffers_) buffer.clear();
    check(references_ == 0);
  }

  void run() {
    for (int i = 0; i < 300 && !input_.empty(); ++i) {
      step();
      compare();
    }
  }

 private:
  // Short ones as they are in the input; long ones are made of one byte.
  std::string bytes() {
    if (input_.flag()) return std::string(input_.text(40));
    const auto letter = static_cast<char>(input_.byte());
    return std::string(input_.below(70'000), letter);
  }

  void step() {
    const std::size_t which = input_.below(kBuffers);
    Buffer& buffer = buffers_[which];
    std::string& model = models_[which];
    switch (input_.below(12)) {
      case 0:
        return append(buffer, model, bytes());
      case 1:
        return prepend(buffer, model, bytes());
      case 2:
        return fill(buffer, model, bytes());
      case 3:
        return consume(buffer, model, input_.below(model.size() + 1));
      case 4:
        return move_some(which, input_.below(model.size() + 10));
      case 5:
        return move_all(which);
      case 6:
        return refer(buffer, model, bytes());
      case 7:
        return flatten(buffer, model, input_.below(model.size() + 10));
      case 8:
        return find(buffer, model, input_.text(6));
      case 9:
        return take(buffer, model, input_.below(3000));
      case 10:
        return share(which, input_.below(model.size() + 2), input_.below(model.size() + 10));
      default:
        input_.flag() ? buffer.clear() : buffer.recycle();
        model.clear();
    }
  }

  void append(Buffer& buffer, std::string& model, const std::string& part) {
    if (model.size() > kMax) return;
    check(buffer.append(part));
    model += part;
  }
  void prepend(Buffer& buffer, std::string& model, const std::string& part) {
    if (model.size() > kMax) return;
    check(buffer.prepend(bytes_of(part)));
    model.insert(0, part);
  }
  void fill(Buffer& buffer, std::string& model, const std::string& part) {
    if (model.size() > kMax) return;
    const std::span<std::byte> room = buffer.reserve(part.size());
    check(room.size() >= part.size());
    std::ranges::copy(bytes_of(part), room.begin());
    const std::size_t used = input_.below(part.size() + 1);
    buffer.commit(used);
    model += part.substr(0, used);
  }
  void consume(Buffer& buffer, std::string& model, std::size_t count) {
    buffer.consume(count);
    model.erase(0, count);
  }
  void move_some(std::size_t which, std::size_t count) {
    const std::size_t other = (which + 1) % kBuffers;
    check(buffers_[other].append(buffers_[which], count));
    models_[other] += models_[which].substr(0, count);
    models_[which].erase(0, count);
  }
  // Into one of all three.
  void share(std::size_t which, std::size_t offset, std::size_t count) {
    const std::size_t to = input_.below(kBuffers);
    if (models_[to].size() > kMax) return;
    check(buffers_[to].append_shared(buffers_[which], offset, count));
    const std::string& from = models_[which];
    if (offset < from.size()) models_[to] += from.substr(offset, count);
  }
  void move_all(std::size_t which) {
    const std::size_t other = (which + 2) % kBuffers;
    if (input_.flag()) {
      buffers_[other].swap(buffers_[which]);
      std::swap(models_[other], models_[which]);
      return;
    }
    buffers_[other].append(std::move(buffers_[which]));
    models_[other] += models_[which];
    models_[which].clear();
  }
  void refer(Buffer& buffer, std::string& model, const std::string& part) {
    struct Outside {
      std::string bytes;
      int& count;
    };
    if (model.size() > kMax) return;
    auto* outside = new Outside{part, references_};
    ++references_;
    const Buffer::Release release = [](void* context) {
      auto* released = static_cast<Outside*>(context);
      --released->count;
      delete released;
    };
    check(buffer.append_reference(bytes_of(outside->bytes), release, outside));
    model += part;
  }
  void flatten(Buffer& buffer, const std::string& model, std::size_t count) {
    const Bytes flat = buffer.flat(count);
    check(text_of(flat) == (count <= model.size() ? model.substr(0, count) : std::string()));
  }
  void find(const Buffer& buffer, const std::string& model, std::string_view wanted) {
    const std::size_t from = input_.below(model.size() + 1);
    const std::optional<std::size_t> found = buffer.find(wanted, from);
    check((found ? *found : std::string::npos) == model.find(wanted, from));
    if (from < model.size()) check(static_cast<char>(buffer.at(from)) == model[from]);
  }
  void take(Buffer& buffer, std::string& model, std::size_t room) {
    std::vector<std::byte> target(room);
    const std::size_t offset = input_.below(model.size() + 1);
    const std::size_t copied = buffer.copy(target, offset);
    check(text_of(Bytes(target.data(), copied)) == model.substr(offset, room));
    const std::size_t count = buffer.read(target);
    check(text_of(Bytes(target.data(), count)) == model.substr(0, room));
    model.erase(0, count);
  }

  void compare() {
    for (std::size_t i = 0; i < kBuffers; ++i) {
      check(buffers_[i].size() == models_[i].size());
      std::string_view rest = models_[i];
      for (const Bytes piece : buffers_[i].pieces()) {
        check(!piece.empty() && rest.starts_with(text_of(piece)));
        rest.remove_prefix(piece.size());
      }
      check(rest.empty());
    }
  }

  Input input_;
  int references_ = 0;
  Buffer buffers_[kBuffers];
  std::string models_[kBuffers];
};

}  // namespace
}  // namespace spate::fuzz

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  spate::fuzz::Model(spate::fuzz::Input(data, size)).run();
  return 0;
}
