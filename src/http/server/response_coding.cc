#include "http/server/response_coding.h"

#include <new>
#include <string>
#include <utility>

#include "spate/http/conditional.h"
#include "spate/http/media_type.h"
#include "spate/http/negotiate.h"

namespace spate::http {

namespace {

// Responses with one of these fields are not compressed: they are encoded already, are a part, or
// offer ranges of the uncompressed bytes.
constexpr std::uint64_t kAsItIs = bit_of(FieldId::content_encoding) |
                                  bit_of(FieldId::content_range) | bit_of(FieldId::accept_ranges);

std::string joined(const FieldsView& fields, FieldId id) {
  std::string all;
  for (const std::string_view value : fields.all(id))
    all.append(all.empty() ? "" : ",").append(value);
  return all;
}

bool is_suitable(const ServerResponseHead& response) {
  if (response.size && (*response.size < kLeastCompressed || *response.size > kMostCompressed))
    return false;
  if (response.fields == nullptr) return is_compressible(response.content_type);
  const FieldsView fields = response.fields->view();
  const std::string_view type =
      response.content_type.empty() ? fields[FieldId::content_type] : response.content_type;
  return is_compressible(type) && !fields.contains_any(kAsItIs) &&
         !fields.list(FieldId::cache_control).contains("no-transform");
}

}  // namespace

CodingChoice choose_coding(const FieldsView& request, const ServerResponseHead& response) {
  if (!is_suitable(response)) return CodingChoice::unsuitable;
  const std::string accepted = joined(request, FieldId::accept_encoding);
  const int weight = weight_of_encoding(accepted, "gzip");
  const bool is_wanted = weight > 0 && weight >= weight_of_encoding(accepted, "identity");
  return is_wanted ? CodingChoice::wanted : CodingChoice::refused;
}

// A strong tag becomes weak, because it identified the uncompressed bytes.
bool describe_coding(const ServerResponseHead& response, IsCoded is_coded, Fields& target) {
  if (response.fields != nullptr && !target.add_all(*response.fields)) return false;
  if (!target.view().list(FieldId::vary).contains("Accept-Encoding") &&
      !target.add(FieldId::vary, "Accept-Encoding"))
    return false;
  if (is_coded == IsCoded::no) return true;
  const std::string tag(target[FieldId::etag]);
  const auto parsed = parse_entity_tag(tag);
  if (parsed && !parsed->is_weak && !target.set(FieldId::etag, "W/" + tag)) return false;
  return target.add(FieldId::content_encoding, "gzip");
}

std::unique_ptr<Compressor> Compressors::take() {
  if (in_use_ == kMostInUse) return nullptr;
  std::unique_ptr<Compressor> taken;
  if (kept_.empty()) {
    Result<Compressor> made = Compressor::make(Coding::gzip, level_);
    if (made) taken.reset(new (std::nothrow) Compressor(std::move(*made)));
  } else {
    taken = std::move(kept_.back());
    kept_.pop_back();
  }
  if (taken != nullptr) ++in_use_;
  return taken;
}

void Compressors::give_back(std::unique_ptr<Compressor> compressor) {
  --in_use_;
  if (kept_.size() == kMostKept) return;
  compressor->reset();
  kept_.push_back(std::move(compressor));
}

bool Compressors::compress(Bytes bytes, Buffer& target) {
  std::unique_ptr<Compressor> compressor = take();
  if (compressor == nullptr) return false;
  const bool is_done = compressor->write(bytes, target) && compressor->end(target);
  give_back(std::move(compressor));
  return is_done;
}

}  // namespace spate::http
