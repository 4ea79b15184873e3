// SPDX-License-Identifier: Apache-2.0
#include "tuner/cost_model.h"

#include <fmt/format.h>
#include <xgboost/c_api.h>

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <cstring>
#include <map>
#include <string>
#include <utility>

#include "base/status.h"

namespace hone::tuner {
namespace {

constexpr double kWorstLabel = -4;       // label of failures, and of candidates at least e^4 times slower than the best
constexpr size_t kTimedSamplesMin = 16;  // fewest samples with a time
constexpr size_t kHoldOutEvery = 7;      // one of so many samples is held out
constexpr int kPatience = 10;            // rounds without a smaller held-out error that end boosting
// A few thousand rows gain little from more threads. OpenMP's threads spin while they wait, which slows the compilers
// that run on all cores at the same time.
constexpr int kThreads = 1;
// Attributes that Save adds to XGBoost's own.
constexpr const char *kFeaturesAttribute = "features", *kTreesAttribute = "trees",
                     *kPriorWeightAttribute = "prior_weight";

absl::Status Checked(int code, const char* what) {
  if (code == 0) return absl::OkStatus();
  return absl::InternalError(fmt::format("XGBoost could not {}: {}", what, XGBGetLastError()));
}

// Owns a DMatrix.
class Matrix {
 public:
  static absl::StatusOr<Matrix> Create(const std::vector<const Features*>& rows) {
    const size_t width = rows.empty() ? kFeatureCount : rows.front()->size();
    std::vector<float> values;
    values.reserve(rows.size() * width);
    for (const Features* row : rows) values.insert(values.end(), row->begin(), row->end());
    Matrix matrix;
    HONE_RETURN_IF_ERROR(
        Checked(XGDMatrixCreateFromMat_omp(values.data(), rows.size(), width, std::nanf(""), &matrix.handle_, kThreads),
                "read the features"));
    return matrix;
  }
  Matrix(Matrix&& other) noexcept : handle_(std::exchange(other.handle_, nullptr)) {}
  Matrix& operator=(Matrix&&) = delete;
  ~Matrix() {
    if (handle_ != nullptr) XGDMatrixFree(handle_);
  }
  absl::Status Set(const char* field, const std::vector<float>& values) {
    return Checked(XGDMatrixSetFloatInfo(handle_, field, values.data(), values.size()), field);
  }
  DMatrixHandle handle() const { return handle_; }

 private:
  Matrix() = default;
  DMatrixHandle handle_ = nullptr;
};

// One sample as XGBoost learns it.
struct Row {
  const Features* features;
  int workload;
  double label;       // log of the speed relative to the fastest of its workload, kWorstLabel to 0
  double weight;      // in training
  double prior = 0;   // the prior's score
  double margin = 0;  // prediction that the trees correct
};

std::vector<Row> Label(std::span<const Sample> samples) {
  std::map<int, double> fastest;
  for (const Sample& s : samples) {
    if (!s.seconds.has_value()) continue;
    const auto [it, added] = fastest.try_emplace(s.workload, *s.seconds);
    if (!added) it->second = std::min(it->second, *s.seconds);
  }
  std::vector<Row> rows;
  for (const Sample& s : samples) {
    if (!fastest.contains(s.workload)) continue;
    double label = kWorstLabel;
    if (s.seconds.has_value()) label = std::max(kWorstLabel, std::log(fastest[s.workload] / *s.seconds));
    // Fast samples weigh more, because the next candidates are chosen among fast ones.
    const double trust = 1 / (1 + std::pow(s.noise / 0.05, 2));
    rows.push_back({s.features, s.workload, label, (0.25 + 0.75 * std::exp(label)) * trust});
  }
  return rows;
}

// Fits the labels by the prior's scores with least squares within each workload. Sets every row's margin to the fit.
// Returns the factor on the prior's scores, 0 to 1.
double FitPrior(std::vector<Row>& rows, const CostModel& model) {
  struct Mean {
    double label = 0, prior = 0, weight = 0;
  };
  std::vector<const Features*> features;
  for (const Row& row : rows) features.push_back(row.features);
  const std::vector<double> scores = model.Score(features);
  for (size_t i = 0; i < rows.size(); ++i) rows[i].prior = scores[i];
  std::map<int, Mean> means;
  for (const Row& row : rows) {
    Mean& mean = means[row.workload];
    mean.label += row.weight * row.label;
    mean.prior += row.weight * row.prior;
    mean.weight += row.weight;
  }
  for (auto& [workload, mean] : means) {
    mean.label /= mean.weight;
    mean.prior /= mean.weight;
  }
  double covariance = 0, variance = 1e-9;
  for (const Row& row : rows) {
    const Mean& mean = means[row.workload];
    covariance += row.weight * (row.label - mean.label) * (row.prior - mean.prior);
    variance += row.weight * std::pow(row.prior - mean.prior, 2);
  }
  const double weight = std::clamp(covariance / variance, 0.0, 1.0);
  for (Row& row : rows) {
    const Mean& mean = means[row.workload];
    row.margin = mean.label + weight * (row.prior - mean.prior);
  }
  return weight;
}

absl::StatusOr<Matrix> ToMatrix(const std::vector<Row>& rows) {
  std::vector<const Features*> features;
  std::vector<float> label, weight, margin;
  for (const Row& row : rows) {
    features.push_back(row.features);
    label.push_back(static_cast<float>(row.label));
    weight.push_back(static_cast<float>(row.weight));
    margin.push_back(static_cast<float>(row.margin));
  }
  HONE_ASSIGN_OR_RETURN(Matrix matrix, Matrix::Create(features));
  HONE_RETURN_IF_ERROR(matrix.Set("label", label));
  HONE_RETURN_IF_ERROR(matrix.Set("weight", weight));
  HONE_RETURN_IF_ERROR(matrix.Set("base_margin", margin));
  return matrix;
}

absl::Status Configure(BoosterHandle booster, const BoostedModel::Options& options) {
  const std::pair<const char*, std::string> parameters[] = {
      {"objective", "reg:squarederror"},
      {"eval_metric", "rmse"},
      {"tree_method", "hist"},
      {"max_bin", "64"},
      {"eta", "0.15"},
      {"max_depth", fmt::format("{}", options.depth)},
      {"min_child_weight", "0.5"},
      {"lambda", "1"},
      {"subsample", "0.9"},
      {"colsample_bytree", "0.6"},
      {"seed", fmt::format("{}", options.seed & 0x7fffffff)},
      {"nthread", fmt::format("{}", kThreads)},
      {"verbosity", "0"},
  };
  for (const auto& [name, value] : parameters) {
    HONE_RETURN_IF_ERROR(Checked(XGBoosterSetParam(booster, name, value.c_str()), name));
  }
  return absl::OkStatus();
}

// Adds trees until the error on the held-out rows stops falling. Returns the number of trees to use.
absl::StatusOr<unsigned> Boost(BoosterHandle booster, const Matrix& training, const Matrix& held_out, int rounds) {
  double least = 1e300;
  int best = 0;
  for (int round = 0; round < rounds && round - best <= kPatience; ++round) {
    HONE_RETURN_IF_ERROR(Checked(XGBoosterUpdateOneIter(booster, round, training.handle()), "learn"));
    DMatrixHandle matrices[] = {held_out.handle()};
    const char* names[] = {"held_out"};
    const char* text = nullptr;
    HONE_RETURN_IF_ERROR(Checked(XGBoosterEvalOneIter(booster, round, matrices, names, 1, &text), "evaluate"));
    const char* colon = std::strrchr(text, ':');
    const double error = colon == nullptr ? 0 : std::atof(colon + 1);
    if (error < least - 1e-5) {
      least = error;
      best = round;
    }
  }
  return static_cast<unsigned>(best + 1);
}

}  // namespace

std::vector<double> AnalyticModel::Score(std::span<const Features* const> candidates) const {
  std::vector<double> scores;
  for (const Features* features : candidates) scores.push_back(-(*features)[kAnalyticLogSeconds]);
  return scores;
}

absl::StatusOr<std::unique_ptr<BoostedModel>> BoostedModel::Train(std::span<const Sample> samples,
                                                                  const Options& options,
                                                                  std::shared_ptr<const CostModel> prior) {
  const auto timed =
      std::count_if(samples.begin(), samples.end(), [](const Sample& s) { return s.seconds.has_value(); });
  if (static_cast<size_t>(timed) < kTimedSamplesMin) {
    return absl::FailedPreconditionError(fmt::format("{} timed samples are too few to train the cost model", timed));
  }
  std::vector<Row> rows = Label(samples);
  const double prior_weight = FitPrior(rows, *prior);
  // Hold out rows of all workloads rather than whole workloads: candidates are ranked with samples of their own
  // workload in the training set.
  std::vector<Row> training, held_out;
  for (size_t i = 0; i < rows.size(); ++i) (i % kHoldOutEvery == 3 ? held_out : training).push_back(rows[i]);
  HONE_ASSIGN_OR_RETURN(const Matrix matrix, ToMatrix(training));
  HONE_ASSIGN_OR_RETURN(const Matrix checks, ToMatrix(held_out));
  const DMatrixHandle handles[] = {matrix.handle(), checks.handle()};
  BoosterHandle booster = nullptr;
  HONE_RETURN_IF_ERROR(Checked(XGBoosterCreate(handles, 2, &booster), "start"));
  std::unique_ptr<BoostedModel> model(new BoostedModel(booster, std::move(prior)));
  model->prior_weight_ = prior_weight;
  HONE_RETURN_IF_ERROR(Configure(booster, options));
  HONE_ASSIGN_OR_RETURN(model->trees_, Boost(booster, matrix, checks, options.rounds));
  return model;
}

absl::StatusOr<std::string> BoostedModel::Save() const {
  for (const auto& [name, value] : {std::pair(kFeaturesAttribute, fmt::format("{}", kFeatureCount)),
                                    std::pair(kTreesAttribute, fmt::format("{}", trees_)),
                                    std::pair(kPriorWeightAttribute, fmt::format("{}", prior_weight_))}) {
    HONE_RETURN_IF_ERROR(Checked(XGBoosterSetAttr(booster_, name, value.c_str()), "store an attribute"));
  }
  bst_ulong length = 0;
  const char* bytes = nullptr;
  HONE_RETURN_IF_ERROR(
      Checked(XGBoosterSaveModelToBuffer(booster_, R"({"format": "ubj"})", &length, &bytes), "write the model"));
  return std::string(bytes, length);
}

absl::StatusOr<std::unique_ptr<BoostedModel>> BoostedModel::Load(std::string_view bytes) {
  BoosterHandle booster = nullptr;
  HONE_RETURN_IF_ERROR(Checked(XGBoosterCreate(nullptr, 0, &booster), "start"));
  std::unique_ptr<BoostedModel> model(new BoostedModel(booster, std::make_shared<AnalyticModel>()));
  HONE_RETURN_IF_ERROR(Checked(XGBoosterLoadModelFromBuffer(booster, bytes.data(), bytes.size()), "read the model"));
  HONE_RETURN_IF_ERROR(Checked(XGBoosterSetParam(booster, "nthread", fmt::format("{}", kThreads).c_str()), "nthread"));
  const auto number = [&](const char* name) {
    const char* text = nullptr;
    int found = 0;
    return XGBoosterGetAttr(booster, name, &text, &found) == 0 && found != 0 ? std::atof(text) : 0;
  };
  if (number(kFeaturesAttribute) != static_cast<double>(kFeatureCount)) {
    return absl::FailedPreconditionError(
        fmt::format("the model was trained on {} features, but this version has {}; train it again",
                    number(kFeaturesAttribute), kFeatureCount));
  }
  model->trees_ = static_cast<unsigned>(number(kTreesAttribute));
  model->prior_weight_ = number(kPriorWeightAttribute);
  return model;
}

BoostedModel::~BoostedModel() { XGBoosterFree(booster_); }

std::vector<double> BoostedModel::Score(std::span<const Features* const> candidates) const {
  std::vector<double> scores = prior_->Score(candidates);
  for (double& score : scores) score *= prior_weight_;
  if (candidates.empty()) return scores;
  absl::StatusOr<Matrix> matrix = Matrix::Create({candidates.begin(), candidates.end()});
  if (!matrix.ok() || !matrix->Set("base_margin", {scores.begin(), scores.end()}).ok()) return scores;
  bst_ulong length = 0;
  const float* predicted = nullptr;
  // Option mask 1: the raw margin without transformation. The objective has none.
  if (XGBoosterPredict(booster_, matrix->handle(), 1, trees_, 0, &length, &predicted) != 0) return scores;
  for (size_t i = 0; i < std::min<size_t>(length, scores.size()); ++i) {
    if (std::isfinite(predicted[i])) scores[i] = predicted[i];
  }
  return scores;
}

}  // namespace hone::tuner
