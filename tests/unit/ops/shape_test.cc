// SPDX-License-Identifier: Apache-2.0
#include "gtest/gtest.h"
#include "tests/unit/ops/op_case.h"

namespace hone::graph {
namespace {

using ir::DType;

TEST(ReshapeOps, KeepTheOrderOfElements) {
  const Constant x = Counting({2, 3, 2});
  const std::vector<double> all = Numbers(x);
  ExpectOutput({"Reshape", {x, Ints({2}, {4, 3})}}, {4, 3}, all);
  ExpectOutput({"Reshape", {x, Ints({3}, {0, -1, 1})}}, {2, 6, 1}, all);
  ExpectOutput({"Reshape", {x, Ints({2}, {-1, 4})}}, {3, 4}, all);
  ExpectOutput({"Reshape", {Floats({0, 3}, {}), Ints({2}, {3, 0})}, {{"allowzero", Int(1)}}}, {3, 0}, {});
  ExpectOutput({"Flatten", {x}}, {2, 6}, all);
  ExpectOutput({"Flatten", {x}, {{"axis", Int(0)}}}, {1, 12}, all);
  ExpectOutput({"Flatten", {x}, {{"axis", Int(-1)}}}, {6, 2}, all);
}

TEST(ReshapeOps, OldestOpsetsUseAttributes) {
  const Constant x = Counting({2, 1});
  ExpectOutput({"Reshape", {x}, {{"shape", IntList({1, -1})}}, 1}, {1, 2}, {0, 1});
  ExpectOutput({"Concat", {x, x}, {}, 1}, {2, 2}, {0, 0, 1, 1});  // the axis defaults to 1
  ExpectOutput({"Pad", {Counting({2})}, {{"paddings", IntList({1, 0})}}, 1}, {3}, {0, 0, 1});
}

TEST(ReshapeOps, AxesComeAsAttributeOrInput) {
  const Constant x = Counting({1, 3, 1});
  ExpectOutput({"Squeeze", {x}}, {3}, {0, 1, 2});
  ExpectOutput({"Squeeze", {x}, {{"axes", IntList({0})}}, 11}, {3, 1}, {0, 1, 2});
  ExpectOutput({"Squeeze", {x, Ints({1}, {-1})}}, {1, 3}, {0, 1, 2});
  ExpectOutput({"Unsqueeze", {x}, {{"axes", IntList({0, 4})}}, 11}, {1, 1, 3, 1, 1}, {0, 1, 2});
  ExpectOutput({"Unsqueeze", {x, Ints({1}, {-1})}}, {1, 3, 1, 1}, {0, 1, 2});
}

TEST(MovementOps, TransposeAndConcat) {
  const Constant x = Counting({2, 3});
  ExpectOutput({"Transpose", {x}}, {3, 2}, {0, 3, 1, 4, 2, 5});
  ExpectOutput({"Transpose", {Counting({1, 2, 2})}, {{"perm", IntList({2, 0, 1})}}}, {2, 1, 2}, {0, 2, 1, 3});
  const Constant y = Floats({2, 1}, {8, 9});
  ExpectOutput({"Concat", {x, y, y}, {{"axis", Int(1)}}}, {2, 5}, {0, 1, 2, 8, 8, 3, 4, 5, 9, 9});
  ExpectOutput({"Concat", {x, Floats({2, 0}, {})}, {{"axis", Int(-1)}}}, {2, 3}, {0, 1, 2, 3, 4, 5});
}

TEST(MovementOps, SplitInAllItsForms) {
  const Constant x = Counting({5});
  ExpectOutput({"Split", {x}, {{"split", IntList({2, 3})}}, 11, 2}, {3}, {2, 3, 4}, 1);
  ExpectOutput({"Split", {x, Ints({2}, {4, 1})}, {}, 13, 2}, {1}, {4}, 1);
  ExpectOutput({"Split", {x}, {{"num_outputs", Int(2)}}, 18, 2}, {2}, {3, 4}, 1);
  ExpectOutput({"Split", {Counting({4})}, {}, 13, 2}, {2}, {2, 3}, 1);
}

TEST(MovementOps, SliceAsPythonDoes) {
  const Constant x = Counting({6});
  ExpectOutput({"Slice", {x}, {{"starts", IntList({1})}, {"ends", IntList({3})}}, 9}, {2}, {1, 2});
  auto slice = [&](double start, double end, double step) {
    return OpCase{"Slice", {x, Ints({1}, {start}), Ints({1}, {end}), Ints({1}, {0}), Ints({1}, {step})}};
  };
  ExpectNumbers(slice(0, 1e15, 2), {0, 2, 4});
  ExpectNumbers(slice(-2, 6, 1), {4, 5});
  ExpectNumbers(slice(-1, -1e15, -2), {5, 3, 1});
  ExpectNumbers(slice(4, 2, 1), {});
  ExpectNumbers(slice(-10, -1e15, -1), {0});
  ExpectOutput({"Slice", {Floats({0}, {}), Ints({1}, {-1}), Ints({1}, {-9}), Ints({1}, {0}), Ints({1}, {-1})}}, {0},
               {});
}

TEST(MovementOps, ExpandAndTile) {
  const Constant x = Floats({2, 1}, {1, 2});
  ExpectOutput({"Expand", {x, Ints({3}, {2, 1, 2})}}, {2, 2, 2}, {1, 1, 2, 2, 1, 1, 2, 2});
  ExpectOutput({"Tile", {x, Ints({2}, {2, 2})}}, {4, 2}, {1, 1, 2, 2, 1, 1, 2, 2});
}

TEST(MovementOps, PadInAllModes) {
  const Constant x = Floats({3}, {1, 2, 3});
  auto pad = [&](const std::string& mode, double before, double after) {
    return OpCase{"Pad", {x, Ints({2}, {before, after}), Floats({}, {7})}, {{"mode", mode}}, 19};
  };
  ExpectNumbers(pad("constant", 1, 2), {7, 1, 2, 3, 7, 7});
  ExpectNumbers(pad("constant", -1, 1), {2, 3, 7});
  ExpectNumbers(pad("reflect", 2, 2), {3, 2, 1, 2, 3, 2, 1});
  ExpectNumbers(pad("edge", 1, 2), {1, 1, 2, 3, 3, 3});
  ExpectNumbers(pad("wrap", 1, 2), {3, 1, 2, 3, 1, 2});
  // As many elements as one turn has, and more.
  ExpectNumbers(pad("reflect", 3, 3), {2, 3, 2, 1, 2, 3, 2, 1, 2});
  ExpectNumbers(pad("reflect", 5, 4), {2, 1, 2, 3, 2, 1, 2, 3, 2, 1, 2, 3});
  ExpectNumbers(pad("reflect", -1, 2), {2, 3, 2, 1});
  ExpectNumbers(pad("wrap", 3, 3), {1, 2, 3, 1, 2, 3, 1, 2, 3});
  ExpectNumbers(pad("wrap", 4, 5), {3, 1, 2, 3, 1, 2, 3, 1, 2, 3, 1, 2});
  ExpectNumbers(pad("wrap", -1, 2), {2, 3, 1, 2});
  ExpectNumbers({"Pad", {x}, {{"pads", IntList({0, 1})}, {"value", 9.0}}, 10}, {1, 2, 3, 9});
  ExpectOutput({"Pad", {Counting({2, 1}), Ints({2}, {1, 0}), Absent(), Ints({1}, {-1})}, {}, 18}, {2, 2}, {0, 0, 0, 1});
}

TEST(MovementOps, BlocksToDepthAndBack) {
  const Constant x = Counting({1, 4, 1, 2});
  auto attributes = [](const std::string& mode) {
    return std::map<std::string, Attribute>{{"blocksize", Int(2)}, {"mode", mode}};
  };
  ExpectOutput({"DepthToSpace", {x}, attributes("DCR")}, {1, 1, 2, 4}, {0, 2, 1, 3, 4, 6, 5, 7});
  const Constant deep = Counting({1, 8, 1, 1});
  ExpectOutput({"DepthToSpace", {deep}, attributes("DCR")}, {1, 2, 2, 2}, {0, 2, 4, 6, 1, 3, 5, 7});
  ExpectOutput({"DepthToSpace", {deep}, attributes("CRD")}, {1, 2, 2, 2}, {0, 1, 2, 3, 4, 5, 6, 7});
  ExpectOutput({"SpaceToDepth", {Counting({1, 1, 2, 4})}, {{"blocksize", Int(2)}}}, {1, 4, 1, 2},
               {0, 2, 1, 3, 4, 6, 5, 7});
}

TEST(MovementOps, TrianglesAndCenters) {
  const Constant x = Counting({2, 3});
  ExpectOutput({"Trilu", {x}}, {2, 3}, {0, 1, 2, 0, 4, 5});
  ExpectOutput({"Trilu", {x, Ints({}, {-1})}, {{"upper", Int(0)}}}, {2, 3}, {0, 0, 0, 3, 0, 0});
  ExpectOutput({"CenterCropPad", {Counting({4}), Ints({1}, {1})}, {}, 18}, {1}, {1});
  ExpectOutput({"CenterCropPad", {Counting({2}), Ints({1}, {5})}, {}, 18}, {5}, {0, 0, 1, 0, 0});
  ExpectOutput({"CenterCropPad", {Counting({2}), Ints({1}, {3}), Ints({2}, {7, 7})}, {}, 18}, {3}, {0, 1, 0});
}

TEST(GeneratorOps, MakeTheirValues) {
  ExpectNumbers({"Shape", {Counting({2, 3, 4})}}, {2, 3, 4});
  ExpectNumbers({"Shape", {Counting({2, 3, 4})}, {{"start", Int(-2)}, {"end", Int(-1)}}}, {3});
  ExpectOutput({"Size", {Counting({2, 3})}}, {}, {6});
  ExpectOutput({"ConstantOfShape", {Ints({2}, {1, 2})}, {{"value", Ints({1}, {7})}}}, {1, 2}, {7, 7});
  ExpectOutput({"ConstantOfShape", {Ints({0}, {})}}, {}, {0});
  ExpectNumbers({"Range", {Ints({}, {5}), Ints({}, {0}), Ints({}, {-2})}}, {5, 3, 1});
  ExpectNumbers({"Range", {Floats({}, {0}), Floats({}, {1}), Floats({}, {0.4})}}, {0, 0.4, 0.8});
  ExpectOutput({"EyeLike", {Counting({2, 3})}, {{"k", Int(1)}}}, {2, 3}, {0, 1, 0, 0, 0, 1});
  ExpectOutput({"OneHot", {Ints({3}, {0, -1, 5}), Ints({}, {3}), Floats({2}, {2, 9})}}, {3, 3},
               {9, 2, 2, 2, 2, 9, 2, 2, 2});
  ExpectOutput({"OneHot", {Ints({3}, {0, -1, 5}), Ints({}, {3}), Floats({2}, {2, 9})}, {}, 9}, {3, 3},
               {9, 2, 2, 2, 2, 2, 2, 2, 2});
  ExpectOutput({"OneHot", {Ints({2}, {0, 1}), Ints({}, {3}), Floats({2}, {0, 1})}, {{"axis", Int(0)}}}, {3, 2},
               {1, 0, 0, 1, 0, 0});
  ExpectNumbers({"HannWindow", {Ints({}, {4})}}, {0, 0.5, 1, 0.5});
}

TEST(GeneratorOps, LongIntegersKeepTheirBits) {
  std::vector<std::byte> bytes(8, std::byte{0x7f});  // more than the 53 bits of a double
  const Constant value{{DType::kInt64, {1}}, std::make_shared<const std::vector<std::byte>>(bytes)};
  const auto exact = RunCase({"ConstantOfShape", {Ints({1}, {1})}, {{"value", value}}});
  ASSERT_TRUE(exact.ok()) << exact.status();
  EXPECT_EQ(*(*exact)[0].data, bytes);
}

}  // namespace
}  // namespace hone::graph
