#include "spate/http/negotiate.h"

#include "http/codec/syntax.h"

namespace spate::http {

namespace {

constexpr int kWhole = 1000;
constexpr int kLeast = 1;

// Returns the weight among valid parameters of an element; nullopt if they are invalid.
std::optional<int> take_weight(std::string_view parameters) {
  int weight = kWhole;
  while (const auto parameter = take_parameter(parameters)) {
    if (!equal_ignoring_case(parameter->name, "q")) continue;
    const auto given = parse_weight(parameter->value);
    if (!given) return {};
    weight = *given;
  }
  if (!parameters.empty()) return {};
  return weight;
}

bool is_coding(std::string_view a, std::string_view b) {
  const auto plain = [](std::string_view coding) {
    return equal_ignoring_case(coding.substr(0, 2), "x-") ? coding.substr(2) : coding;
  };
  return equal_ignoring_case(plain(a), plain(b));
}

// Returns how many parameters a range has, except its weight, if the type has them all; otherwise
// -1.
int count_shared(std::string_view of_range, std::string_view of_type) {
  int count = 0;
  while (const auto wanted = take_parameter(of_range)) {
    if (equal_ignoring_case(wanted->name, "q")) return count;
    std::string_view rest = of_type;
    auto known = take_parameter(rest);
    while (known && !(equal_ignoring_case(known->name, wanted->name) &&
                      equal_ignoring_case(known->value, wanted->value)))
      known = take_parameter(rest);
    if (!known) return -1;
    ++count;
  }
  return count;
}

struct TypeParts {
  std::string_view type;
  std::string_view subtype;
  std::string_view parameters;
};

std::optional<TypeParts> split_type(std::string_view text) {
  const std::string_view type = token_at(text);
  if (type.empty() || !text.substr(type.size()).starts_with('/')) return {};
  text.remove_prefix(type.size() + 1);
  const std::string_view subtype = token_at(text);
  if (subtype.empty()) return {};
  return TypeParts{type, subtype, text.substr(subtype.size())};
}

// Returns how specific a matching range is: 0 for */*, 1 for type/*, then more. -1 if it does not
// match.
int rank_of_range(const TypeParts& range, const TypeParts& type) {
  if (range.type == "*" && range.subtype == "*") return 0;
  if (!equal_ignoring_case(range.type, type.type)) return -1;
  if (range.subtype == "*") return 1;
  if (!equal_ignoring_case(range.subtype, type.subtype)) return -1;
  const int shared = count_shared(range.parameters, type.parameters);
  return shared < 0 ? -1 : 2 + shared;
}

template <class Weigh>
std::optional<std::size_t> choose_best(std::span<const std::string_view> offered, Weigh weigh) {
  std::optional<std::size_t> best;
  int most = 0;
  for (std::size_t i = 0; i < offered.size(); ++i) {
    const int weight = weigh(offered[i]);
    if (weight <= most) continue;
    most = weight;
    best = i;
  }
  return best;
}

}  // namespace

int weight_of_encoding(std::string_view accept_encoding, std::string_view coding) {
  std::optional<int> of_any;
  while (!accept_encoding.empty()) {
    const std::string_view element = take_element(accept_encoding, ',');
    const std::string_view name = token_at(element);
    const auto weight = take_weight(element.substr(name.size()));
    if (name.empty() || !weight) continue;
    if (is_coding(name, coding)) return *weight;
    if (name == "*" && !of_any) of_any = weight;
  }
  return of_any.value_or(equal_ignoring_case(coding, "identity") ? kLeast : 0);
}

int weight_of_type(std::string_view accept, std::string_view type) {
  const auto wanted = split_type(type);
  if (!wanted) return 0;
  if (trimmed(accept).empty()) return kWhole;
  int best = -1;
  int weight = 0;
  while (!accept.empty()) {
    const auto range = split_type(take_element(accept, ','));
    const auto given = range ? take_weight(range->parameters) : std::nullopt;
    const int rank = given ? rank_of_range(*range, *wanted) : -1;
    if (rank <= best) continue;
    best = rank;
    weight = *given;
  }
  return weight;
}

std::optional<std::size_t> choose_encoding(std::string_view accept_encoding,
                                           std::span<const std::string_view> offered) {
  return choose_best(offered, [accept_encoding](std::string_view coding) {
    return weight_of_encoding(accept_encoding, coding);
  });
}

std::optional<std::size_t> choose_type(std::string_view accept,
                                       std::span<const std::string_view> offered) {
  return choose_best(offered,
                     [accept](std::string_view type) { return weight_of_type(accept, type); });
}

}  // namespace spate::http
