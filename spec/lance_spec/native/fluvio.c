#include "fluvio.h"

#include <stdbool.h>
#include <string.h>

#include "bytes.h"
#include "records.h"

#define COUNT_SIZE 4
#define NO_TIMESTAMP (-1)
#define NS_PER_MS 1000000u
#define MAX_MS ((int64_t)(UINT64_MAX / NS_PER_MS))
#define LAST_SHIFT 56 /* of a number that is read here; longer ones are left to Python */

enum { RAW_DATA = 0x01, KEY_VALUE = 0x10, TIMESTAMPED = 0x11, KEY_TIMESTAMPED = 0x12 };

/* A record as it stands in a batch; `key` is NULL where there is none. */
struct record {
    int64_t time;
    const uint8_t *key, *value;
    int64_t key_size, value_size;
};

/* Read a zigzag number and move after it; false where it is not whole or very long. */
static bool take_number(const uint8_t **at, const uint8_t *end, int64_t *number)
{
    uint64_t bits = 0;
    for (int shift = 0; shift <= LAST_SHIFT && *at < end; shift += 7) {
        uint8_t byte = *(*at)++;
        bits |= (uint64_t)(byte & 0x7F) << shift;
        if (byte < 0x80) {
            *number = (int64_t)(bits >> 1) ^ -(int64_t)(bits & 1);
            return true;
        }
    }
    return false;
}

static bool take_bytes(const uint8_t **at, const uint8_t *end, const uint8_t **bytes, int64_t *size)
{
    if (!take_number(at, end, size) || *size < 0 || *size > end - *at)
        return false;
    *bytes = *at;
    *at += *size;
    return true;
}

static bool take_time(int64_t first, int64_t delta, int64_t *time)
{
    if (first == NO_TIMESTAMP) {
        *time = NO_TIMESTAMP;
        return true;
    }
    return !__builtin_add_overflow(first, delta, time) && *time >= NO_TIMESTAMP && *time <= MAX_MS;
}

/* Read the record at `*at` and move after it; false where anything about it is unusual. */
static bool take_record(const uint8_t **at, const uint8_t *end, int64_t first, struct record *record)
{
    int64_t size, delta, place;
    if (!take_number(at, end, &size) || size < 1 || size > end - *at)
        return false;
    end = *at + size;
    ++*at; /* attributes */
    if (!take_number(at, end, &delta) || !take_number(at, end, &place) || *at == end)
        return false;
    uint8_t has_key = *(*at)++;
    record->key = NULL;
    record->key_size = 0;
    if (has_key > 1 || (has_key && !take_bytes(at, end, &record->key, &record->key_size)))
        return false;
    if (record->key_size > UINT16_MAX || !take_bytes(at, end, &record->value, &record->value_size))
        return false;
    return end - *at == 1 && *(*at)++ == 0 && take_time(first, delta, &record->time);
}

/* Return how many bytes of the log's value stand before the record's. */
static Py_ssize_t head_size(const struct record *record)
{
    Py_ssize_t time = record->time == NO_TIMESTAMP ? 0 : 8;
    return time + (record->key == NULL ? 0 : 2 + (Py_ssize_t)record->key_size);
}

/* Return how many bytes the records take in the log, or -1 where one of them is unusual. */
static Py_ssize_t measure(const Py_buffer *raw, int64_t first, Py_ssize_t limit, Py_ssize_t *count)
{
    const uint8_t *at = raw->buf, *end = at + raw->len;
    struct record record;
    Py_ssize_t total = 0;
    *count = 0;
    for (at += COUNT_SIZE; at < end; ++*count) {
        if (!take_record(&at, end, first, &record))
            return -1;
        Py_ssize_t size = head_size(&record) + (Py_ssize_t)record.value_size;
        total += RECORD_HEADER + size;
        if (size > (Py_ssize_t)MAX_RECORD_VALUE || total > limit)
            return -1;
    }
    return total;
}

static uint8_t *put(uint8_t *out, const uint8_t *bytes, int64_t size)
{
    memcpy(out, bytes, (size_t)size);
    return out + size;
}

static uint8_t *put_record(uint8_t *out, const struct record *record)
{
    bool timed = record->time != NO_TIMESTAMP, keyed = record->key != NULL;
    *out = timed ? (keyed ? KEY_TIMESTAMPED : TIMESTAMPED) : (keyed ? KEY_VALUE : RAW_DATA);
    store32(out + 1, (uint32_t)(head_size(record) + record->value_size));
    out += RECORD_HEADER;
    if (timed) {
        store64(out, (uint64_t)record->time * NS_PER_MS);
        out += 8;
    }
    if (keyed) {
        *out++ = (uint8_t)record->key_size;
        *out++ = (uint8_t)(record->key_size >> 8);
        out = put(out, record->key, record->key_size);
    }
    return put(out, record->value, record->value_size);
}

PyDoc_STRVAR(to_log_doc,
"fluvio_to_log(raw, first_timestamp, limit) -> data | None\n\n"
"The records that stand after their count, as records of the log. None where one of them is\n"
"unusual, where there are more or fewer than counted, or where they take more than `limit` bytes.");

static PyObject *fluvio_to_log(PyObject *module, PyObject *args)
{
    Py_buffer raw;
    long long first;
    Py_ssize_t limit, count;
    if (!PyArg_ParseTuple(args, "y*Ln", &raw, &first, &limit))
        return NULL;
    PyObject *found = NULL;
    const uint8_t *at = raw.buf, *end = at + raw.len;
    Py_ssize_t size = raw.len < COUNT_SIZE ? -1 : measure(&raw, first, limit, &count);
    if (size < 0 || count != (Py_ssize_t)((uint32_t)at[0] << 24 | at[1] << 16 | at[2] << 8 | at[3])) {
        found = Py_NewRef(Py_None);
    } else if ((found = PyBytes_FromStringAndSize(NULL, size)) != NULL) {
        uint8_t *out = (uint8_t *)PyBytes_AS_STRING(found);
        struct record record;
        for (at += COUNT_SIZE; at < end && take_record(&at, end, first, &record);)
            out = put_record(out, &record);
    }
    PyBuffer_Release(&raw);
    return found;
}

PyMethodDef fluvio_methods[] = {
    {"fluvio_to_log", fluvio_to_log, METH_VARARGS, to_log_doc},
    {NULL, NULL, 0, NULL},
};
