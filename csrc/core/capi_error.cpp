// The C interface's errors: in the caller's object, or in one of the thread.
#include "core/capi.h"
#include "core/message.h"

namespace baracuda::capi {

bcu_error& last() {
  thread_local bcu_error error;
  return error;
}

namespace {

std::string reasons_of(const Refusals& refusals) {
  Json out = Json::list();
  for (const Refusal& r : refusals) {
    Json& reason = out.add(Json::object());
    reason.set("code", name(r.code));
    reason.set("field", r.field);
    reason.set("got", r.got);
    reason.set("want", r.want);
    reason.set("hint", r.hint);
  }
  return out.write();
}

}  // namespace

bcu_status fail_with(bcu_error* error, bcu_status status, std::string message, const Refusals& refusals) {
  bcu_error& out = error ? *error : last();
  out.message = std::move(message);
  out.code = refusals.empty() ? "error" : name(refusals.front().code);
  out.reasons = reasons_of(refusals);
  return status;
}

bcu_status fail(bcu_error* error, const Refusals& refusals, const std::string& where) {
  const auto status = static_cast<bcu_status>(status_of(refusals.front().code));
  return fail_with(error, status, message_of(refusals, where), refusals);
}

bcu_status refuse_null(bcu_error* error, const char* argument) {
  return fail(error, {{Code::MissingArgument, argument, "a null pointer", "a pointer", ""}}, "");
}

bcu_status fail_caught(bcu_error* error) noexcept {
  try {
    try {
      throw;
    } catch (const DocumentError& e) {
      return fail(error, {{Code::Document, e.where, e.got, e.want, "documents are what to_bytes() and to_json() give"}},
                  "");
    } catch (const std::bad_alloc&) {
      return fail_with(error, BCU_NO_MEMORY, "no memory is left", {});
    } catch (const std::exception& e) {
      return fail_with(error, BCU_LAUNCH, e.what(), {});
    }
  } catch (...) {  // not even for the message
    return BCU_NO_MEMORY;
  }
}

}  // namespace baracuda::capi

bcu_error* bcu_error_create() { return new (std::nothrow) bcu_error; }
void bcu_error_release(bcu_error* error) { delete error; }
const char* bcu_error_message(const bcu_error* error) { return error ? error->message.c_str() : ""; }
const char* bcu_error_code(const bcu_error* error) { return error ? error->code.c_str() : ""; }
const char* bcu_error_reasons(const bcu_error* error) { return error ? error->reasons.c_str() : "[]"; }
const char* bcu_last_error() { return baracuda::capi::last().message.c_str(); }
