"""The C functions that the generated headers of nested messages rest on."""

from typing import Final

RUNTIME: Final = """\
#ifndef LANCE_NESTED_H
#define LANCE_NESTED_H

#include "lance_bytes.h"

/* Values back to back; a reader over `bytes` takes them one by one. */
struct lance_list {
    uint64_t count;
    struct lance_bytes bytes;
};

/* Bytes of any length for each row: offsets of 4 bytes, one more than rows, then all of them. */
struct lance_slices {
    struct lance_bytes offsets;
    struct lance_bytes values;
};

static inline struct lance_reader lance_reader_of(struct lance_bytes bytes)
{
    struct lance_reader in = {bytes.data, bytes.size, LANCE_OK};
    return in;
}

/* What a reader went over since it stood at `start`. */
static inline struct lance_bytes lance_since(const struct lance_reader *in, const uint8_t *start)
{
    struct lance_bytes passed = {start, (size_t)(in->next - start)};
    return passed;
}

static inline uint64_t lance_take_varint(struct lance_reader *in)
{
    uint64_t value = 0;
    for (unsigned group = 0; group < 10; group++) {
        uint64_t byte = lance_take_uint(in, 1);
        if (group == 9)
            lance_require(&in->result, byte <= 1);
        value |= (byte & 0x7F) << (7 * group);
        if (byte < 0x80)
            return value;
    }
    return value;
}

static inline void lance_put_varint(struct lance_writer *out, uint64_t value)
{
    while (value >= 0x80) {
        lance_put_uint(out, (value & 0x7F) | 0x80, 1);
        value >>= 7;
    }
    lance_put_uint(out, value, 1);
}

static inline uint64_t lance_padded(uint64_t count, uint64_t unit)
{
    return count / unit + (count % unit != 0);
}

/* `count` values of `size` bytes each; a product beyond 64 bits is too much for any buffer. */
static inline struct lance_bytes lance_take_values(
    struct lance_reader *in, uint64_t count, uint64_t size)
{
    if (size != 0 && count > UINT64_MAX / size)
        return lance_take(in, UINT64_MAX);
    return lance_take(in, count * size);
}

/* A list whose values take at least `least` bytes each cannot be longer than what is left. */
static inline int lance_fits(struct lance_reader *in, uint64_t count, size_t least)
{
    if (count > in->left / least)
        lance_require(&in->result, 0);
    return in->result == LANCE_OK;
}

static inline void lance_require_utf8(enum lance_result *result, struct lance_bytes text)
{
    size_t place = 0;
    while (place < text.size && *result == LANCE_OK) {
        uint8_t first = text.data[place++];
        unsigned more = first < 0x80 ? 0 : first < 0xE0 ? 1 : first < 0xF0 ? 2 : 3;
        uint8_t low = first == 0xE0 ? 0xA0 : first == 0xF0 ? 0x90 : 0x80;
        uint8_t high = first == 0xED ? 0x9F : first == 0xF4 ? 0x8F : 0xBF;
        lance_require(result, first < 0x80 || (first >= 0xC2 && first <= 0xF4));
        lance_require(result, more <= text.size - place);
        for (; more > 0 && *result == LANCE_OK; more--, low = 0x80, high = 0xBF) {
            lance_require(result, text.data[place] >= low && text.data[place] <= high);
            place++;
        }
    }
}

/* Null bits of a column, `data` 0 where there are none; `present` becomes the rows with values. */
static inline struct lance_bytes lance_take_nulls(
    struct lance_reader *in, uint64_t rows, uint64_t *present)
{
    struct lance_bytes bits = {0, 0};
    uint64_t flag = lance_take_uint(in, 1);
    *present = rows;
    if (flag == 0)
        return bits;
    bits = lance_take(in, lance_padded(rows, 8));
    if (in->result == LANCE_OK)
        for (uint64_t row = 0; row < rows; row++)
            *present -= bits.data[row / 8] >> (row % 8) & 1;
    return bits;
}

static inline void lance_put_nulls(struct lance_writer *out, struct lance_bytes bits)
{
    lance_put_uint(out, bits.data != 0, 1);
    lance_put(out, bits.data, bits.size);
}

static inline uint32_t lance_offset(struct lance_bytes offsets, size_t number)
{
    const uint8_t *raw = offsets.data + 4 * number;
    return (uint32_t)raw[0] | (uint32_t)raw[1] << 8 | (uint32_t)raw[2] << 16
           | (uint32_t)raw[3] << 24;
}

static inline struct lance_slices lance_take_slices(struct lance_reader *in, uint64_t count)
{
    struct lance_slices found = {{in->next, 0}, {in->next, 0}};
    if (count == UINT64_MAX) {
        lance_require(&in->result, 0);
        return found;
    }
    found.offsets = lance_take_values(in, count + 1, 4);
    if (in->result != LANCE_OK)
        return found;
    lance_require(&in->result, lance_offset(found.offsets, 0) == 0);
    for (size_t n = 1; n < found.offsets.size / 4; n++)
        lance_require(&in->result,
                      lance_offset(found.offsets, n - 1) <= lance_offset(found.offsets, n));
    found.values = lance_take(in, lance_offset(found.offsets, found.offsets.size / 4 - 1));
    return found;
}

/* The value of one row that is not null. */
static inline struct lance_bytes lance_slice(const struct lance_slices *from, size_t number)
{
    uint32_t start = lance_offset(from->offsets, number);
    struct lance_bytes value = {from->values.data + start,
                                lance_offset(from->offsets, number + 1) - start};
    return value;
}

/* Elements of an array whose dimensions stand before, 4 bytes each. */
static inline struct lance_bytes lance_take_elements(
    struct lance_reader *in, struct lance_list dims, uint64_t size)
{
    uint64_t count = 1;
    int empty = 0;
    for (size_t n = 0; n < dims.count && in->result == LANCE_OK; n++) {
        uint32_t dim = lance_offset(dims.bytes, n);
        lance_require(&in->result, dim <= INT32_MAX);
        empty |= dim == 0;
    }
    for (size_t n = 0; !empty && n < dims.count && in->result == LANCE_OK; n++) {
        uint32_t dim = lance_offset(dims.bytes, n);
        if (count > UINT64_MAX / dim / size)
            return lance_take(in, UINT64_MAX);
        count *= dim;
    }
    return lance_take(in, empty ? 0 : count * size);
}

static inline unsigned lance_bit(const uint8_t *data, uint64_t place)
{
    return (unsigned)data[place / 8] >> (place % 8) & 1u;
}

/* Times, 8 bytes each or, after encoding 1, packed: two as they are, then changes in few bits. */
static inline struct lance_bytes lance_take_times(
    struct lance_reader *in, unsigned encoding, uint64_t count)
{
    static const uint8_t widths[] = {0, 7, 9, 12, 32};
    uint64_t seeds = count < 2 ? count : 2;
    uint64_t place = 64 * seeds, end = (uint64_t)in->left * 8;
    if (encoding == 0)
        return lance_take_values(in, count, 8);
    for (uint64_t n = seeds; n < count && in->result == LANCE_OK; n++) {
        unsigned ones = 0;
        while (ones < 4 && place + ones < end && lance_bit(in->next, place + ones))
            ones++;
        if (place + ones >= end)
            return lance_take(in, UINT64_MAX);
        place += (ones < 4 ? ones + 1u : 4u) + widths[ones];
    }
    return lance_take(in, lance_padded(place, 8));
}

#endif
"""
"""``lance_nested.h`` without its notice."""
