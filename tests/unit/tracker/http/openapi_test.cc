// SPDX-License-Identifier: Apache-2.0
// The OpenAPI document that the tracker serves: it has every route, and every answer conforms to its schema.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <set>
#include <string>
#include <vector>

#include "tests/unit/tracker/http/api_fixture.h"
#include "tracker/access.h"

namespace hone::tracker {
namespace {

using ::testing::IsEmpty;

// The part of JSON Schema that the document uses. Stricter in one way: an object may have no other property than those
// of its schema.
class Validator {
 public:
  explicit Validator(const Json& document) : document_(document) {}

  std::vector<std::string> Check(const Json& value, const Json& schema) {
    problems_.clear();
    Visit(value, schema, "answer");
    return problems_;
  }

 private:
  static bool HasType(const Json& value, const std::string& type) {
    if (type == "null") return value.is_null();
    if (type == "boolean") return value.is_boolean();
    if (type == "string") return value.is_string();
    if (type == "number") return value.is_number();
    if (type == "integer") return value.is_number_integer();
    if (type == "array") return value.is_array();
    return type == "object" && value.is_object();
  }
  static bool IsOfTypes(const Json& value, const Json& types) {
    if (types.is_string()) return HasType(value, types.get<std::string>());
    return std::ranges::any_of(types, [&](const Json& type) { return HasType(value, type.get<std::string>()); });
  }
  const Json& Resolved(const Json& schema) const {
    if (!schema.contains("$ref")) return schema;
    const std::string name = schema["$ref"].get<std::string>();
    return document_["components"]["schemas"][name.substr(name.rfind('/') + 1)];
  }
  void Visit(const Json& value, const Json& reference, const std::string& where) {
    const Json& schema = Resolved(reference);
    if (schema.contains("anyOf")) {
      const bool fits = std::ranges::any_of(
          schema["anyOf"], [&](const Json& one) { return Validator(document_).Check(value, one).empty(); });
      if (!fits) problems_.push_back(where + " fits no alternative: " + value.dump());
      return;
    }
    if (!schema.contains("type")) return problems_.push_back(where + " has a schema without a type");
    if (!IsOfTypes(value, schema["type"])) {
      return problems_.push_back(where + " is " + value.dump() + ", not " + schema["type"].dump());
    }
    if (schema.contains("enum") && std::ranges::find(schema["enum"], value) == schema["enum"].end()) {
      problems_.push_back(where + " is " + value.dump() + ", which is not in its list");
    }
    if (value.is_array()) {
      for (const Json& element : value) Visit(element, schema["items"], where + "[]");
    }
    if (value.is_object()) VisitObject(value, schema, where);
  }
  void VisitObject(const Json& value, const Json& schema, const std::string& where) {
    for (const Json& name : schema.value("required", Json::array())) {
      if (!value.contains(name.get<std::string>())) problems_.push_back(where + " lacks " + name.dump());
    }
    const Json properties = schema.value("properties", Json::object());
    for (const auto& [name, property] : value.items()) {
      if (properties.contains(name)) {
        Visit(property, properties[name], where + "." + name);
      } else if (schema.contains("additionalProperties") && schema["additionalProperties"].is_object()) {
        Visit(property, schema["additionalProperties"], where + "." + name);
      } else if (!schema.contains("additionalProperties")) {
        problems_.push_back(where + " has " + name + ", which the schema does not have");
      }
    }
  }

  const Json& document_;
  std::vector<std::string> problems_;
};

class OpenApiTest : public ApiTest {
 protected:
  OpenApiTest() {
    for (const EmbeddedFile& file : DashboardFiles()) {
      if (file.name == "api/v1/openapi.json") document_ = Json::parse(file.bytes, nullptr, false);
    }
  }
  // The operation of a route; null if the document lacks it.
  Json OperationOf(const std::string& method, const std::string& path) const {
    std::string lower = method;
    std::ranges::transform(lower, lower.begin(), [](char c) { return static_cast<char>(tolower(c)); });
    for (const auto& [address, operations] : document_["paths"].items()) {
      if (WithStars(address).compare(path) == 0 && operations.contains(lower)) return operations[lower];
    }
    return nullptr;
  }
  // "/api/v1/jobs/{job}" as a route: "/api/v1/jobs/*".
  static std::string WithStars(std::string address) {
    for (size_t open; (open = address.find('{')) != std::string::npos;) {
      address.replace(open, address.find('}') - open + 1, "*");
    }
    return address;
  }
  void ExpectConforms(const std::string& method, const std::string& path, const HttpResponse& response) {
    ASSERT_EQ(response.status, 200) << method << " " << path << ": " << response.body;
    const Json operation = OperationOf(method, path);
    ASSERT_FALSE(operation.is_null()) << method << " " << path;
    const Json& content = operation["responses"]["200"]["content"];
    const std::string type = response.type.substr(0, response.type.find(';'));
    ASSERT_TRUE(content.contains(type)) << method << " " << path << " answers " << type;
    if (type != "application/json") return;
    EXPECT_THAT(Validator(document_).Check(Json::parse(response.body), content[type]["schema"]), IsEmpty())
        << method << " " << path;
  }

  Json document_;
};

TEST_F(OpenApiTest, HasEveryRouteWithItsRoleAndNoOther) {
  EXPECT_EQ(document_["openapi"], "3.1.0");
  std::set<std::string> routes;
  for (const Route& route : Routes()) {
    const std::string method(route.method), path(route.path);
    routes.insert(method + " " + path);
    const Json operation = OperationOf(method, path);
    ASSERT_FALSE(operation.is_null()) << method << " " << path << " is not in the document";
    EXPECT_FALSE(operation["summary"].get<std::string>().empty()) << path;
    const Json& role = operation["x-role"];
    EXPECT_EQ(role.is_null(), route.needs.empty()) << path;
    if (role.is_null()) continue;
    const std::map<std::string, std::vector<Role>> may = {{"viewer", {Role::kViewer, Role::kClient, Role::kAdmin}},
                                                          {"client", {Role::kClient, Role::kAdmin}},
                                                          {"admin", {Role::kAdmin}}};
    ASSERT_TRUE(may.contains(role.get<std::string>())) << path;
    for (const Role one : {Role::kViewer, Role::kClient, Role::kAdmin}) {
      const std::vector<Role>& allowed = may.at(role.get<std::string>());
      EXPECT_EQ(CheckRole(one, route.needs).ok(), std::ranges::find(allowed, one) != allowed.end())
          << method << " " << path << " for " << Name(one);
    }
  }
  for (const auto& [address, operations] : document_["paths"].items()) {
    for (const auto& [method, operation] : operations.items()) {
      std::string upper = method;
      std::ranges::transform(upper, upper.begin(), [](char c) { return static_cast<char>(toupper(c)); });
      EXPECT_TRUE(routes.contains(upper + " " + WithStars(address))) << upper << " " << address;
    }
  }
}

TEST_F(OpenApiTest, EveryAnswerToAGetConforms) {
  AddWatch();
  MeasureNight();
  const std::string full = SubmitJob(FullSpec()), run = RunPackages(), file = StoreFile("contents");
  const std::vector<std::string> names = {job_, full, run, workload_, file, "1", "3", "nightly"};
  for (const Route& route : Routes()) {
    if (route.method != "GET" || route.path == "/api/v1/events") continue;
    int answered = 0;
    for (const std::string& name : names) {
      std::string target(route.path);
      if (const size_t star = target.find('*'); star != std::string::npos) target.replace(star, 1, name);
      if (const size_t star = target.find('*'); star != std::string::npos) target.replace(star, 1, "0");
      const HttpResponse response = Get(target);
      if (response.status != 200) continue;
      ++answered;
      ExpectConforms("GET", std::string(route.path), response);
    }
    EXPECT_GT(answered, 0) << route.path << " answers nothing";
  }
}

TEST_F(OpenApiTest, AnswersToChangesConform) {
  const std::string file = "/api/v1/files/" + Sha256Hex("a");
  ExpectConforms("PUT", "/api/v1/files/*/contents", Put(file + "/contents", "a"));
  const Json chunk = {{"digest", Sha256Hex("b")}, {"bytes", 1}};
  const Json offer = {{"digest", Sha256Hex("b")}, {"chunks", Json::array({chunk})}};
  ExpectConforms("POST", "/api/v1/files", Post("/api/v1/files", offer.dump()));
  ExpectConforms("PUT", "/api/v1/files/*/chunks/*", Put("/api/v1/files/" + Sha256Hex("b") + "/chunks/0", "b"));
  const Json package = {{"digest", Sha256Hex("a")}, {"bytes", 1}};
  const Json job = {{"run", {{"packages", Json::array({package})}}}};
  const HttpResponse submitted = Post("/api/v1/jobs", job.dump());
  ExpectConforms("POST", "/api/v1/jobs", submitted);
  const std::string id = Json::parse(submitted.body)["job"];
  ExpectConforms("POST", "/api/v1/jobs/*/cancel", Post("/api/v1/jobs/" + id + "/cancel", ""));
  const Json watch = {
      {"name", "n"}, {"devices", {"board"}}, {"at", "03:30"}, {"run", {{"packages", Json::array({package})}}}};
  ExpectConforms("POST", "/api/v1/watches", Post("/api/v1/watches", watch.dump()));
  ExpectConforms("POST", "/api/v1/watches/*/run", Post("/api/v1/watches/n/run", ""));
  ExpectConforms("DELETE", "/api/v1/watches/*", Answer(Request("DELETE", "/api/v1/watches/n")));
  AddWatch();
  MeasureNight();
  ExpectConforms("POST", "/api/v1/watches/*/accept", Post("/api/v1/watches/nightly/accept", "{}"));
  ExpectConforms("POST", "/api/v1/agents/*/drain", Post("/api/v1/agents/board/drain", R"({"reason": "a fan"})"));
  ExpectConforms("POST", "/api/v1/agents/*/release", Post("/api/v1/agents/board/release", ""));
}

TEST_F(OpenApiTest, ABodyIsDescribedByTheFieldsOfAJobSpec) {
  const Json schema = OperationOf("POST", "/api/v1/jobs")["requestBody"]["content"]["application/json"]["schema"];
  std::set<std::string> described, fields;
  for (const auto& [name, property] : schema["properties"].items()) described.insert(name);
  const google::protobuf::Descriptor& spec = *v1::JobSpec::descriptor();
  for (int i = 0; i < spec.field_count(); ++i) fields.insert(spec.field(i)->name());
  for (const char* set_by_tracker : {"submitted_by", "submitter"}) fields.erase(set_by_tracker);
  EXPECT_EQ(described, fields);
  std::set<std::string> described_of_run, fields_of_run;
  for (const auto& [name, property] : schema["properties"]["run"]["properties"].items()) described_of_run.insert(name);
  const google::protobuf::Descriptor& run = *v1::RunTask::descriptor();
  for (int i = 0; i < run.field_count(); ++i) fields_of_run.insert(run.field(i)->name());
  EXPECT_EQ(described_of_run, fields_of_run);
}

TEST_F(OpenApiTest, ABodyIsDescribedByTheFieldsOfAFleetWatchSpec) {
  const Json schema = OperationOf("POST", "/api/v1/watches")["requestBody"]["content"]["application/json"]["schema"];
  std::set<std::string> described, fields;
  for (const auto& [name, property] : schema["properties"].items()) described.insert(name);
  const google::protobuf::Descriptor& spec = *v1::FleetWatchSpec::descriptor();
  for (int i = 0; i < spec.field_count(); ++i) fields.insert(spec.field(i)->name());
  for (const char* set_by_tracker : {"submitted_by", "submitter"}) fields.erase(set_by_tracker);
  EXPECT_EQ(described, fields);
}

TEST_F(OpenApiTest, IsServedToEveryoneWithItsRefusals) {
  const Pages pages(DashboardFiles());
  const Site site(ApiContext{.shell = shell_.get(), .visitors = &visitors_, .pages = &pages});
  HttpRequest request = Request("GET", "/api/v1/openapi.json");
  request.headers.erase("authorization");
  const HttpResponse response = site.Answer(request);
  EXPECT_EQ(response.status, 200);
  EXPECT_EQ(response.type, "application/json");
  const Json refusal = Json::parse(Get("/api/v1/jobs/none").body);
  EXPECT_THAT(Validator(document_).Check(refusal, document_["components"]["schemas"]["Error"]), IsEmpty());
}

TEST_F(OpenApiTest, TheValidatorFindsWhatDoesNotConform) {
  const Json schema = {{"type", "object"}, {"properties", {{"a", {{"type", "number"}}}}}, {"required", {"a"}}};
  EXPECT_EQ(Validator(document_).Check({{"a", "1"}}, schema).size(), 1u);
  EXPECT_EQ(Validator(document_).Check({{"a", 1}, {"b", 1}}, schema).size(), 1u);
  EXPECT_EQ(Validator(document_).Check(Json::object(), schema).size(), 1u);
}

}  // namespace
}  // namespace hone::tracker
