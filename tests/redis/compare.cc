// Compares the client of examples/redis.cc with hiredis: both send the same random commands to a
// redis-server, and get the same replies, byte by byte.
//   redis_compare PORT SEED...
#define main example_main  // The example's framing and encoder, without its program.
#include "redis.cc"
#undef main

#include <hiredis/hiredis.h>

#include <cstdio>
#include <memory>
#include <random>
#include <utility>
#include <vector>

namespace {

using Words = std::vector<std::string>;
using Replies = std::vector<std::string>;

// Draws commands whose replies do not depend on time, and are the same in each run of a script.
class Script {
 public:
  explicit Script(std::uint64_t seed) : random_(seed) {}

  std::vector<Words> draw() {
    commands_ = {{"FLUSHALL"}};
    for (int left = 400; left > 0; --left) draw_one();
    return std::move(commands_);
  }

 private:
  void draw_one() {
    switch (below(8)) {
      case 1:
        return draw_list();
      case 2:
        return draw_sorted();
      case 3:
        return draw_transaction();
      case 4:
        return draw_script();
      case 5:
        return draw_error();
      default:
        return draw_text();
    }
  }
  void draw_text() {
    const Words kinds[] = {{"SET", key(), value()},
                           {"GET", key()},
                           {"APPEND", key(), value()},
                           {"STRLEN", key()},
                           {"INCRBY", key(), number()},
                           {"MGET", key(), key(), "nothing"},
                           {"DEL", key()},
                           {"ECHO", value()},
                           {"GETRANGE", key(), number(), number()},
                           {"SETNX", key(), value()},
                           {"EXISTS", key(), key()}};
    commands_.push_back(kinds[below(std::size(kinds))]);
  }
  void draw_list() {
    const Words kinds[] = {{"RPUSH", key(), value(), value()},
                           {"LPOP", key()},
                           {"LRANGE", key(), "0", "-1"},
                           {"LLEN", key()},
                           {"LPOP", key(), "3"},
                           {"LINDEX", key(), number()}};
    commands_.push_back(kinds[below(std::size(kinds))]);
  }
  void draw_sorted() {
    const Words kinds[] = {
        {"ZADD", key(), number(), word()},          {"ZSCORE", key(), word()},
        {"ZRANGE", key(), "0", "-1", "WITHSCORES"}, {"ZINCRBY", key(), "0.5", word()},
        {"GEOADD", "map", "13.3", "38.1", word()},  {"GEOPOS", "map", word(), "nowhere"}};
    commands_.push_back(kinds[below(std::size(kinds))]);
  }
  // Some are discarded, and some have a command that is refused.
  void draw_transaction() {
    commands_.push_back({"MULTI"});
    for (std::uint64_t left = below(5); left > 0; --left) below(2) == 0 ? draw_text() : draw_list();
    if (below(6) == 0) draw_error();
    commands_.push_back({below(4) == 0 ? "DISCARD" : "EXEC"});
  }
  // Nested replies, and statuses and errors in them.
  void draw_script() {
    constexpr const char* kScripts[] = {
        "return{1,{2,{3,'four',false}},{},redis.status_reply('FINE')}",
        "return(redis.error_reply('MINE'))", "return{redis.call('GET','a'),ARGV[1]}",
        "return(redis.pcall('INCR','list'))", "return(string.rep('x',tonumber(ARGV[2])))"};
    commands_.push_back({"EVAL", kScripts[below(std::size(kScripts))], "0", value(),
                         std::to_string(below(100'000))});
  }
  void draw_error() {
    const Words kinds[] = {
        {"NONSENSE", value()},    {"GET"}, {"SET", "a"}, {"EXEC"}, {"LRANGE", "a", "b", "c"},
        {"OBJECT", "FREQ", key()}};
    commands_.push_back(kinds[below(std::size(kinds))]);
  }

  std::uint64_t below(std::uint64_t bound) { return random_() % bound; }
  std::string key() { return std::string(1, static_cast<char>('a' + below(4))); }
  std::string word() { return "word" + std::to_string(below(5)); }
  std::string number() { return std::to_string(static_cast<int>(below(200)) - 100); }
  // Any bytes, also those of the protocol; a space would separate words for the example's encoder.
  std::string value() {
    constexpr std::size_t kSizes[] = {0, 1, 20, 300, 70'000, 1'000'000};
    const std::size_t size = below(kSizes[below(20) == 0 ? 4 + below(2) : below(4)] + 1);
    constexpr std::string_view kSpecial("\r\n$*+-:\0\xff", 9);
    std::string text(size, 'x');
    for (char& each : text) each = below(4) == 0 ? kSpecial[below(kSpecial.size())] : each;
    return text;
  }

  std::mt19937_64 random_;
  std::vector<Words> commands_;
};

std::string line_of(const Words& words) {
  std::string line = words.front();
  for (const std::string& word : std::span(words).subspan(1)) line += ' ' + word;
  return line;
}

// ---- hiredis

// Encodes a reply as the server has sent it. hiredis does not distinguish the two kinds of nil.
void encode(const redisReply& reply, std::string& text) {
  const std::string_view bytes(reply.str == nullptr ? "" : reply.str, reply.len);
  switch (reply.type) {
    case REDIS_REPLY_STATUS:
      (text += '+').append(bytes).append(kLineEnd);
      break;
    case REDIS_REPLY_ERROR:
      (text += '-').append(bytes).append(kLineEnd);
      break;
    case REDIS_REPLY_INTEGER:
      (text += ':').append(std::to_string(reply.integer)).append(kLineEnd);
      break;
    case REDIS_REPLY_STRING:
      text += '$' + std::to_string(bytes.size()) + "\r\n";
      text.append(bytes).append(kLineEnd);
      break;
    case REDIS_REPLY_ARRAY:
      text += '*' + std::to_string(reply.elements) + "\r\n";
      for (std::size_t i = 0; i < reply.elements; ++i) encode(*reply.element[i], text);
      break;
    default:
      text += "nil\r\n";
  }
}

struct FreeReply {
  void operator()(void* reply) const { freeReplyObject(reply); }
};
struct FreeContext {
  void operator()(redisContext* context) const { redisFree(context); }
};

// All commands are written before the first reply is read.
bool ask_hiredis(int port, const std::vector<Words>& commands, Replies& replies) {
  const std::unique_ptr<redisContext, FreeContext> context(redisConnect("127.0.0.1", port));
  if (context == nullptr || context->err != 0) return false;
  for (const Words& words : commands) {
    std::vector<const char*> texts;
    std::vector<std::size_t> sizes;
    for (const std::string& word : words) {
      texts.push_back(word.data());
      sizes.push_back(word.size());
    }
    redisAppendCommandArgv(context.get(), static_cast<int>(words.size()), texts.data(),
                           sizes.data());
  }
  while (replies.size() < commands.size()) {
    void* reply = nullptr;
    if (redisGetReply(context.get(), &reply) != REDIS_OK) return false;
    const std::unique_ptr<void, FreeReply> owned(reply);
    encode(*static_cast<redisReply*>(reply), replies.emplace_back());
  }
  return true;
}

// ---- the example's client

// Encodes the values of a message one after another, as encode() does: each nil becomes the same.
std::string reply_of(Bytes message) {
  std::string text;
  std::string_view rest = spate::text_of(message);
  while (!rest.empty()) {
    std::size_t size = rest.find(kLineEnd) + kLineEnd.size();
    const std::string_view head = rest.substr(0, size);
    const bool is_nil = head == "$-1\r\n" || head == "*-1\r\n";
    if (head.starts_with('$') && !is_nil)
      size += static_cast<std::size_t>(std::atol(head.data() + 1)) + kLineEnd.size();
    text += is_nil ? "nil\r\n" : rest.substr(0, size);
    rest.remove_prefix(size);
  }
  return text;
}

bool ask_pipe(int port, const std::vector<Words>& commands, Replies& replies) {
  auto loop = spate::must(spate::Loop::create());
  bool is_good = true;
  auto pipe = spate::must(
      spate::RequestPipe<Resp>::create(*loop, "127.0.0.1", static_cast<std::uint16_t>(port), {}, {},
                                       {.limits = {.max_unread = Resp::kMaxText}}));
  for (const Words& words : commands) {
    spate::must(pipe.request(command(line_of(words)), [&](Result<Bytes> response) {
      is_good = is_good && response;
      replies.push_back(response ? reply_of(*response) : response.error().message());
    }));
  }
  pipe.drain([&] { loop->stop(); });
  loop->run();
  return is_good && replies.size() == commands.size();
}

bool compare(int port, std::uint64_t seed) {
  const std::vector<Words> commands = Script(seed).draw();
  Replies expected;
  Replies replies;
  if (!ask_hiredis(port, commands, expected) || !ask_pipe(port, commands, replies)) {
    std::fprintf(stderr, "seed %llu: a client failed after %zu and %zu replies\n",
                 static_cast<unsigned long long>(seed), expected.size(), replies.size());
    return false;
  }
  for (std::size_t i = 0; i < commands.size(); ++i) {
    if (replies[i] == expected[i]) continue;
    std::fprintf(stderr, "seed %llu, command %zu, %.60s: %.200s instead of %.200s\n",
                 static_cast<unsigned long long>(seed), i, line_of(commands[i]).c_str(),
                 replies[i].c_str(), expected[i].c_str());
    return false;
  }
  return true;
}

}  // namespace

int main(int argc, char** argv) {
  if (argc < 3) return 2;
  for (int i = 2; i < argc; ++i) {
    if (!compare(std::atoi(argv[1]), std::strtoull(argv[i], nullptr, 10))) return 1;
  }
  std::printf("%d scripts have the same replies\n", argc - 2);
  return 0;
}
