"""The C functions that every generated header rests on."""

from typing import Final

RUNTIME: Final = """\
#ifndef LANCE_BYTES_H
#define LANCE_BYTES_H

#include <assert.h>
#include <stddef.h>
#include <stdint.h>

/* What reading or writing came to. */
enum lance_result {
    LANCE_OK = 0,
    LANCE_SHORT,      /* the bytes end inside the message, or there is no room for it */
    LANCE_TRAILING,   /* bytes follow the message */
    LANCE_BAD_VALUE   /* a field has a value that it must not have */
};

/* Bytes inside somebody else's buffer. */
struct lance_bytes {
    const uint8_t *data;
    size_t size;
};

/* A place in bytes that are read; the first failure stays and reads go on as zeros. */
struct lance_reader {
    const uint8_t *next;
    size_t left;
    enum lance_result result;
};

/* A place in a buffer that is written; the first failure stays and nothing more is written. */
struct lance_writer {
    uint8_t *next;
    size_t left;
    enum lance_result result;
};

static inline void lance_require(enum lance_result *result, int holds)
{
    if (!holds && *result == LANCE_OK)
        *result = LANCE_BAD_VALUE;
}

static inline struct lance_bytes lance_take(struct lance_reader *in, uint64_t size)
{
    struct lance_bytes taken = {in->next, 0};
    if (in->result == LANCE_OK && size > in->left)
        in->result = LANCE_SHORT;
    if (in->result != LANCE_OK)
        return taken;
    taken.size = (size_t)size;
    in->next += taken.size;
    in->left -= taken.size;
    return taken;
}

static inline uint64_t lance_take_uint(struct lance_reader *in, size_t size)
{
    struct lance_bytes taken = lance_take(in, size);
    uint64_t value = 0;
    while (taken.size > 0)
        value = value << 8 | taken.data[--taken.size];
    return value;
}

static inline void lance_take_const(struct lance_reader *in, const uint8_t *wanted, size_t size)
{
    struct lance_bytes taken = lance_take(in, size);
    while (taken.size > 0) {
        taken.size--;
        lance_require(&in->result, taken.data[taken.size] == wanted[taken.size]);
    }
}

static inline void lance_take_zeros(struct lance_reader *in, size_t size)
{
    struct lance_bytes taken = lance_take(in, size);
    while (taken.size > 0)
        lance_require(&in->result, taken.data[--taken.size] == 0);
}

static inline enum lance_result lance_finish_read(const struct lance_reader *in)
{
    return in->result == LANCE_OK && in->left > 0 ? LANCE_TRAILING : in->result;
}

static inline void lance_put(struct lance_writer *out, const uint8_t *data, size_t size)
{
    if (out->result == LANCE_OK && size > out->left)
        out->result = LANCE_SHORT;
    if (out->result != LANCE_OK)
        return;
    out->left -= size;
    while (size-- > 0)
        *out->next++ = *data++;
}

static inline void lance_put_zeros(struct lance_writer *out, size_t size)
{
    while (size-- > 0)
        lance_put(out, (const uint8_t *)"", 1);
}

static inline void lance_put_uint(struct lance_writer *out, uint64_t value, size_t size)
{
    uint8_t raw[8];
    for (size_t place = 0; place < size; place++)
        raw[place] = (uint8_t)(value >> (8 * place));
    lance_put(out, raw, size);
}

#endif
"""
"""``lance_bytes.h`` without its notice."""
