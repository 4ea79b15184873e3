# SPDX-License-Identifier: Apache-2.0
"""Reads and writes ONNX files, and builds graphs node by node, with numpy alone.

Debian 12 has no ONNX package for Python that reads current files. This module has the messages of onnx.proto that models
use, each a class with the fields of the same names. A list stands for a repeated field, None for an absent one. It knows
no operator and checks nothing. Start with GraphBuilder to write a model, or with load() to change one.
"""

import struct

import numpy as np

# The messages of onnx.proto: field=number:type, with * before the type of a repeated field.
SCHEMA = {
    "Model": "ir_version=1:int producer_name=2:str producer_version=3:str domain=4:str model_version=5:int "
             "doc_string=6:str graph=7:Graph opset_import=8:*OperatorSet metadata_props=14:*Entry functions=25:*Function",
    "OperatorSet": "domain=1:str version=2:int",
    "Entry": "key=1:str value=2:str",
    "Function": "name=1:str input=4:*str output=5:*str attribute=6:*str node=7:*Node doc_string=8:str "
                "opset_import=9:*OperatorSet domain=10:str",
    "Graph": "node=1:*Node name=2:str initializer=5:*Tensor doc_string=10:str input=11:*ValueInfo output=12:*ValueInfo "
             "value_info=13:*ValueInfo",
    "Node": "input=1:*str output=2:*str name=3:str op_type=4:str attribute=5:*Attribute doc_string=6:str domain=7:str",
    "Attribute": "name=1:str f=2:float i=3:int s=4:bytes t=5:Tensor g=6:Graph floats=7:*float ints=8:*int "
                 "strings=9:*bytes tensors=10:*Tensor graphs=11:*Graph doc_string=13:str type=20:int ref_attr_name=21:str",
    "Tensor": "dims=1:*int data_type=2:int float_data=4:*float int32_data=5:*int string_data=6:*bytes int64_data=7:*int "
              "name=8:str raw_data=9:bytes double_data=10:*double uint64_data=11:*int doc_string=12:str",
    "ValueInfo": "name=1:str type=2:Type doc_string=3:str",
    "Type": "tensor_type=1:TensorType sequence_type=4:SequenceType denotation=6:str optional_type=9:SequenceType",
    "TensorType": "elem_type=1:int shape=2:Shape",
    "SequenceType": "elem_type=1:Type",
    "Shape": "dim=1:*Dimension",
    "Dimension": "dim_value=1:int dim_param=2:str denotation=3:str",
}
ELEMENT_TYPES = {np.float32: 1, np.uint8: 2, np.int8: 3, np.uint16: 4, np.int16: 5, np.int32: 6, np.int64: 7, np.bool_: 9,
                 np.float16: 10, np.float64: 11, np.uint32: 12, np.uint64: 13}
FIXED = {"float": ("<f", 5), "double": ("<d", 1)}  # format of struct, wire type
VARINT, BYTES = 0, 2  # wire types
OPSET = 17
IR_VERSION = 8


class Message:
    """One message. Its fields are attributes: Message("Node", op_type="Add")."""

    def __init__(self, kind, **fields):
        self.kind = kind
        for name, _, repeated in MESSAGES[kind].values():
            setattr(self, name, [] if repeated else None)
        for name, value in fields.items():
            if not hasattr(self, name):
                raise AttributeError(f"{kind} has no field {name}")
            setattr(self, name, value)


def parse_schema(text):
    fields = {}
    for field in text.split():
        name, rest = field.split("=")
        number, kind = rest.split(":")
        fields[int(number)] = (name, kind.lstrip("*"), kind.startswith("*"))
    return fields


# {kind: {number: (name, type, is repeated)}}
MESSAGES = {kind: parse_schema(text) for kind, text in SCHEMA.items()}


def write_varint(value, out):
    value &= (1 << 64) - 1
    while value >= 0x80:
        out.append(value & 0x7F | 0x80)
        value >>= 7
    out.append(value)


def read_varint(data, at):
    value = shift = 0
    while True:
        byte = data[at]
        value |= (byte & 0x7F) << shift
        at, shift = at + 1, shift + 7
        if byte < 0x80:
            return value, at


def write_field(number, kind, value, out):
    if kind == "int":
        write_varint(number << 3 | VARINT, out)
        write_varint(value, out)
    elif kind in FIXED:
        form, wire = FIXED[kind]
        write_varint(number << 3 | wire, out)
        out += struct.pack(form, value)
    else:
        body = value if kind == "bytes" else value.encode() if kind == "str" else serialise(value)
        write_varint(number << 3 | BYTES, out)
        write_varint(len(body), out)
        out += body


def serialise(message):
    """The message's bytes, its fields in the order of their numbers."""
    out = bytearray()
    for number, (name, kind, repeated) in sorted(MESSAGES[message.kind].items()):
        value = getattr(message, name)
        for one in value if repeated else [] if value is None else [value]:
            write_field(number, kind, one, out)
    return out


def read_packed(data, kind):
    if kind in FIXED:
        return [value for value, in struct.iter_unpack(FIXED[kind][0], data)]
    values, at = [], 0
    while at < len(data):
        value, at = read_varint(data, at)
        values.append(signed(value))
    return values


def signed(value):
    return value - (1 << 64) if value >> 63 else value


def parse(data, kind):
    """The message of that kind in data, a memoryview. Ends with ValueError at a field that SCHEMA does not have."""
    message, at = Message(kind), 0
    while at < len(data):
        key, at = read_varint(data, at)
        if key >> 3 not in MESSAGES[kind]:
            raise ValueError(f"{kind} has an unknown field {key >> 3}")
        name, field_kind, repeated = MESSAGES[kind][key >> 3]
        if key & 7 == VARINT:
            value, at = read_varint(data, at)
            values = [signed(value)]
        elif key & 7 == BYTES:
            size, at = read_varint(data, at)
            body, at = data[at:at + size], at + size
            if field_kind in ("int", "float", "double"):
                values = read_packed(body, field_kind)
            elif field_kind in ("str", "bytes"):
                values = [bytes(body).decode() if field_kind == "str" else bytes(body)]
            else:
                values = [parse(body, field_kind)]
        else:
            form = FIXED[field_kind][0]
            values, at = [struct.unpack_from(form, data, at)[0]], at + struct.calcsize(form)
        if repeated:
            getattr(message, name).extend(values)
        else:
            setattr(message, name, values[-1])
    return message


def load(path):
    with open(path, "rb") as file:
        return parse(memoryview(file.read()), "Model")


def save(model, path):
    with open(path, "wb") as file:
        file.write(serialise(model))


def tensor(name, array):
    """A Tensor with the array's values."""
    array = np.asarray(array)
    return Message("Tensor", name=name, dims=list(array.shape), data_type=ELEMENT_TYPES[array.dtype.type],
                   raw_data=array.tobytes())


def value_info(name, dtype, shape):
    """shape: numbers and names of open sizes, or None where even the rank is open."""
    dims = None if shape is None else Message("Shape", dim=[
        Message("Dimension", dim_param=size) if isinstance(size, str) else Message("Dimension", dim_value=size)
        for size in shape])
    return Message("ValueInfo", name=name, type=Message(
        "Type", tensor_type=Message("TensorType", elem_type=ELEMENT_TYPES[np.dtype(dtype).type], shape=dims)))


def attribute(name, value):
    """The Python value decides the type: int, float, str, array, Graph, and lists of the first two."""
    if isinstance(value, str):
        return Message("Attribute", name=name, type=3, s=value.encode())
    if isinstance(value, np.ndarray):
        return Message("Attribute", name=name, type=4, t=tensor("", value))
    if isinstance(value, Message):
        return Message("Attribute", name=name, type=5, g=value)
    if isinstance(value, (list, tuple)):
        if value and isinstance(value[0], float):
            return Message("Attribute", name=name, type=6, floats=list(value))
        return Message("Attribute", name=name, type=7, ints=list(value))
    if isinstance(value, float):
        return Message("Attribute", name=name, type=1, f=value)
    return Message("Attribute", name=name, type=2, i=int(value))


class GraphBuilder:
    """A graph that grows node by node. A builder of a branch or a loop's body may use the names of the graph around it."""

    def __init__(self, name):
        self.graph = Message("Graph", name=name)

    def input(self, name, dtype, shape):
        self.graph.input.append(value_info(name, dtype, shape))
        return name

    def output(self, name, dtype, shape):
        self.graph.output.append(value_info(name, dtype, shape))

    def constant(self, name, array):
        """An initializer. Returns its name."""
        self.graph.initializer.append(tensor(name, array))
        return name

    def node(self, op_type, inputs, outputs, domain="", **attributes):
        """outputs: one name or several; a path like "/layers.0/mlp/Mul" names the node, too. Returns outputs."""
        names = [outputs] if isinstance(outputs, str) else list(outputs)
        self.graph.node.append(Message(
            "Node", op_type=op_type, input=list(inputs), output=names, name=names[0] + "_node", domain=domain or None,
            attribute=[attribute(key, value) for key, value in attributes.items()]))
        return outputs


def model_of(graph, opset=OPSET, domains=()):
    """domains: those imported in version 1 beside ONNX's own."""
    imports = [Message("OperatorSet", domain="", version=opset)]
    imports += [Message("OperatorSet", domain=domain, version=1) for domain in domains]
    return Message("Model", ir_version=IR_VERSION, producer_name="hone-tests", graph=graph, opset_import=imports)
