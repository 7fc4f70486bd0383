"""Kaitai types that do not depend on the grammar."""

from typing import Final

LEB128: Final = """\
  leb128:
    doc: "An unsigned integer in groups of seven bits, the lowest first, at most ten"
    seq:
      - id: groups
        type: leb128_group(_index)
        repeat: until
        repeat-until: _.byte < 0x80
    instances:
      value:
        value: groups.last.sum
  leb128_group:
    params:
      - id: index
        type: s4
    seq:
      - id: byte
        type: u1
        valid:
          expr: index < 9 or _ <= 1
      - id: forced
        size: 0
        if: sum >= 0
        doc: "No bytes: sums are taken in order, so that none waits for all others"
    instances:
      sum:
        value: "(index == 0 ? 0 : _parent.groups[index - 1].sum.as<u8>) + bits"
      bits:
        value: (byte & 0x7f) << (7 * index)"""

COLUMNS: Final = """\
  nulls:
    doc: "A byte that says whether null bits follow, and one bit for each row if so"
    params:
      - id: rows
        type: u8
    seq:
      - id: flag
        type: u1
        doc: "Any number but 0 says that null bits follow"
      - id: bits
        size: (rows + 7) / 8
        if: flag != 0
      - id: counts
        type: null_count(_index)
        repeat: expr
        repeat-expr: "flag != 0 ? rows : 0"
        doc: "No bytes: how many of the rows up to each are null"
    instances:
      present:
        value: "flag != 0 and rows > 0 ? rows - counts.last.value : rows"
        doc: "Rows that have a value"
  null_count:
    params:
      - id: index
        type: s4
    seq:
      - id: forced
        size: 0
        if: value >= 0
    instances:
      bit:
        value: (_parent.bits[index / 8] >> (index % 8)) & 1
      value:
        value: "(index == 0 ? 0 : _parent.counts[index - 1].value.as<u8>) + bit"
  slices:
    doc: "Bytes of any length for each row that has a value: their offsets, then all of them"
    params:
      - id: count
        type: u8
    seq:
      - id: offsets
        type: slice_offset(_index)
        repeat: expr
        repeat-expr: count + 1
      - id: values
        size: offsets.last.value
  slice_offset:
    params:
      - id: index
        type: s4
    seq:
      - id: value
        type: u4
        valid:
          expr: "index == 0 ? _ == 0 : _ >= _parent.offsets[index - 1].value"
  product:
    params:
      - id: index
        type: s4
    seq:
      - id: forced
        size: 0
        if: value >= 0
    instances:
      value:
        value: "(index == 0 ? 1 : _parent.products[index - 1].value.as<u8>) * _parent.dims[index]"
  times:
    doc: "Times of 8 bytes each, or packed: two as they are, then changes in a few bits"
    params:
      - id: encoding
        type: u1
      - id: count
        type: u8
    seq:
      - id: plain
        type: s8
        repeat: expr
        repeat-expr: "encoding == 0 ? count : (count < 2 ? count : 2)"
      - id: changes
        type: change
        repeat: expr
        repeat-expr: "encoding == 0 or count < 2 ? 0 : count - 2"
        doc: "By how much the distance to the time before has changed"
      - id: padding
        size: 0
        doc: "No bytes: the bits that are left over are passed"
  change:
    doc: "Ones, at most four, that say how many bits the change takes; a zero ends them"
    seq:
      - id: first
        type: b1
      - id: second
        type: b1
        if: first
      - id: third
        type: b1
        if: first and second
      - id: fourth
        type: b1
        if: first and second and third
      - id: value7
        type: b7
        if: first and not second
      - id: value9
        type: b9
        if: first and second and not third
      - id: value12
        type: b12
        if: first and second and third and not fourth
      - id: value32
        type: b32
        if: first and second and third and fourth"""

FRAME: Final = """\
    instances:
      content:
        pos: 12
        size: payload_length
        type:
          switch-on: flags & 0x0c
          cases:
            0x00: local_payload
            0x04: local_gorilla_payload
            0x08: payload
            0x0c: gorilla_payload
        doc: "What the payload holds, as the flags say; read when it is asked for\""""
