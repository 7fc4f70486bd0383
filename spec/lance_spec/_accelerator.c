/* The loops that cost most in Python: over records, ring frames, LWP frames and runs of batches.
 *
 * Each function only ever goes as far as everything is in order and says where it stopped; what
 * stands there is judged by the Python code beside it, so that there is one place that words
 * errors and one that decides. Both must agree on what is in order, which the tests hold them to.
 */
#define PY_SSIZE_T_CLEAN
#include <Python.h>
#include <structmember.h>
#include <stdint.h>

#include <string.h>

#ifdef __GLIBC__
#include <malloc.h>
#endif

#define RECORD_HEADER 5
#define MAX_RECORD_VALUE (16u * 1024 * 1024)
#define RING_HEADER 8
#define FRAME_HEADER 44
#define FRAME_PREFIX 12
#define SMALL 4096 /* up to so many bytes the processor's own instruction beats a call */

static uint16_t load16(const uint8_t *at) { return (uint16_t)(at[0] | at[1] << 8); }

static uint32_t load32(const uint8_t *at)
{
    return (uint32_t)load16(at) | (uint32_t)load16(at + 2) << 16;
}

static uint64_t load64(const uint8_t *at) { return load32(at) | (uint64_t)load32(at + 4) << 32; }

/* CRC-32C ------------------------------------------------------------------------------------ */

#if defined(__x86_64__) && defined(__GNUC__)
#define HAVE_INSTRUCTION 1

__attribute__((target("sse4.2"))) static uint32_t crc_on(uint32_t begun, const uint8_t *at, size_t size)
{
    uint64_t crc = begun;
    for (; size >= 8; at += 8, size -= 8) {
        uint64_t word;
        memcpy(&word, at, sizeof word);
        crc = __builtin_ia32_crc32di(crc, word);
    }
    uint32_t rest = (uint32_t)crc;
    for (; size; at++, size--)
        rest = __builtin_ia32_crc32qi(rest, *at);
    return ~rest;
}

static uint32_t crc_by_instruction(const uint8_t *at, size_t size) { return crc_on(0xFFFFFFFFu, at, size); }

/* Three frames in step: the instruction takes three cycles, but one can start each cycle. */
__attribute__((target("sse4.2"))) static void crc_in_step(const uint8_t *const at[3], const size_t size[3], uint32_t crc[3])
{
    uint64_t a = 0xFFFFFFFFu, b = a, c = a, words[3];
    size_t least = size[0] < size[1] ? size[0] : size[1];
    least = (least < size[2] ? least : size[2]) & ~(size_t)7;
    for (size_t done = 0; done < least; done += 8) {
        memcpy(&words[0], at[0] + done, 8);
        memcpy(&words[1], at[1] + done, 8);
        memcpy(&words[2], at[2] + done, 8);
        a = __builtin_ia32_crc32di(a, words[0]);
        b = __builtin_ia32_crc32di(b, words[1]);
        c = __builtin_ia32_crc32di(c, words[2]);
    }
    crc[0] = crc_on((uint32_t)a, at[0] + least, size[0] - least);
    crc[1] = crc_on((uint32_t)b, at[1] + least, size[1] - least);
    crc[2] = crc_on((uint32_t)c, at[2] + least, size[2] - least);
}

static int has_instruction(void) { return __builtin_cpu_supports("sse4.2"); }
#else
#define HAVE_INSTRUCTION 0

static uint32_t crc_by_instruction(const uint8_t *at, size_t size) { return (void)at, (void)size, 0; }

static void crc_in_step(const uint8_t *const at[3], const size_t size[3], uint32_t crc[3])
{
    (void)at, (void)size, (void)crc;
}

static int has_instruction(void) { return 0; }
#endif

static int instruction;

#define POLYNOMIAL 0x82F63B78u /* of CRC-32C, its bits reversed as those of all numbers here */

/* Multiply two polynomials over GF(2), modulo that of the checksum. */
static uint32_t multiply(uint32_t a, uint32_t b)
{
    uint32_t product = 0;
    for (uint32_t bit = 1u << 31; a; bit >>= 1) {
        if (a & bit) {
            product ^= b;
            a ^= bit;
        }
        b = b & 1 ? b >> 1 ^ POLYNOMIAL : b >> 1;
    }
    return product;
}

/* Return what a checksum is multiplied with when `size` bytes follow: x to the power of their bits. */
static uint32_t shift_by(uint64_t size)
{
    static uint64_t last_size; /* batches are often of one size; the interpreter's lock is held */
    static uint32_t last;
    if (last && size == last_size)
        return last;
    uint32_t shift = 1u << 31, power = 1u << 23; /* x^0 and x^8 */
    for (uint64_t left = size; left; left >>= 1, power = multiply(power, power))
        if (left & 1)
            shift = multiply(shift, power);
    last_size = size;
    return last = shift;
}

/* Return the checksum of some bytes and `size` more behind them, from the checksums of both. */
static uint32_t crc_of_both(uint32_t first, uint32_t second, uint64_t size)
{
    return multiply(shift_by(size), first) ^ second;
}

/* Compute a checksum with a Python function over part of a buffer; -1 with an error set. */
static int crc_by_call(PyObject *function, PyObject *view, Py_ssize_t from, Py_ssize_t to, uint32_t *crc)
{
    PyObject *part = PySequence_GetSlice(view, from, to);
    if (part == NULL)
        return -1;
    PyObject *value = PyObject_CallOneArg(function, part);
    Py_DECREF(part);
    if (value == NULL)
        return -1;
    unsigned long number = PyLong_AsUnsignedLong(value);
    Py_DECREF(value);
    if (number == (unsigned long)-1 && PyErr_Occurred())
        return -1;
    *crc = (uint32_t)number;
    return 0;
}

/* Records (LWP section 8.1) ------------------------------------------------------------------ */

/* Return the size of the whole record at `at`, or 0 when there is none. */
static inline Py_ssize_t record_at(const uint8_t *at, Py_ssize_t left)
{
    if (left < RECORD_HEADER)
        return 0;
    uint32_t length = load32(at + 1);
    if (length > MAX_RECORD_VALUE || (Py_ssize_t)length > left - RECORD_HEADER)
        return 0;
    return RECORD_HEADER + (Py_ssize_t)length;
}

/* Return where the whole records from the start on end; counts them. */
static Py_ssize_t walk_records(const Py_buffer *buffer, Py_ssize_t *count)
{
    Py_ssize_t position = 0, size;
    *count = 0;
    while ((size = record_at((const uint8_t *)buffer->buf + position, buffer->len - position)) > 0) {
        position += size;
        ++*count;
    }
    return position;
}

PyDoc_STRVAR(scan_doc,
"scan_records(data) -> (count, end)\n\nCount the whole records from the start on; `end` is behind the last one.");

static PyObject *scan_records(PyObject *module, PyObject *data)
{
    Py_buffer buffer;
    if (PyObject_GetBuffer(data, &buffer, PyBUF_SIMPLE) < 0)
        return NULL;
    Py_ssize_t count, position = walk_records(&buffer, &count);
    PyBuffer_Release(&buffer);
    return Py_BuildValue("nn", count, position);
}

PyDoc_STRVAR(bounds_doc,
"record_bounds(data) -> (bounds, end)\n\nWhere each whole record from the start on begins, and `end` behind the last one, as an array of\n"
"64-bit numbers of this machine.");

static PyObject *record_bounds(PyObject *module, PyObject *data)
{
    Py_buffer buffer;
    if (PyObject_GetBuffer(data, &buffer, PyBUF_SIMPLE) < 0)
        return NULL;
    const uint8_t *base = buffer.buf;
    Py_ssize_t count, position = walk_records(&buffer, &count);
    count++; /* the last one's end is a bound, too */
    PyObject *bounds = PyBytes_FromStringAndSize(NULL, count * (Py_ssize_t)sizeof(int64_t));
    if (bounds != NULL) {
        char *out = PyBytes_AS_STRING(bounds);
        int64_t place = 0;
        for (Py_ssize_t index = 0; index < count; index++, out += sizeof place) {
            memcpy(out, &place, sizeof place);
            if (index + 1 < count)
                place += RECORD_HEADER + (int64_t)load32(base + place + 1);
        }
    }
    PyBuffer_Release(&buffer);
    return bounds == NULL ? NULL : Py_BuildValue("Nn", bounds, position);
}

static PyObject *small_numbers[256];

static PyObject *record_tuple(const uint8_t *at, Py_ssize_t size)
{
    PyObject *pair = PyTuple_New(2);
    if (pair == NULL)
        return NULL;
    PyObject *value = PyBytes_FromStringAndSize((const char *)at + RECORD_HEADER, size - RECORD_HEADER);
    if (value == NULL) {
        Py_DECREF(pair);
        return NULL;
    }
    PyTuple_SET_ITEM(pair, 0, Py_NewRef(small_numbers[at[0]]));
    PyTuple_SET_ITEM(pair, 1, value);
    return pair;
}

PyDoc_STRVAR(decode_doc,
"decode_records(data) -> (records, end)\n\nReturn the whole records from the start on as (type, value).");

static PyObject *decode_records(PyObject *module, PyObject *data)
{
    Py_buffer buffer;
    if (PyObject_GetBuffer(data, &buffer, PyBUF_SIMPLE) < 0)
        return NULL;
    const uint8_t *base = buffer.buf;
    Py_ssize_t position = 0, size;
    PyObject *records = PyList_New(0);
    while (records != NULL && (size = record_at(base + position, buffer.len - position)) > 0) {
        PyObject *record = record_tuple(base + position, size);
        if (record == NULL || PyList_Append(records, record) < 0)
            Py_CLEAR(records);
        Py_XDECREF(record);
        position += size;
    }
    PyBuffer_Release(&buffer);
    return records == NULL ? NULL : Py_BuildValue("Nn", records, position);
}

/* Move the values of whole records together, in place; write their kinds and where each begins. */
static void part(uint8_t *base, Py_ssize_t count, uint8_t *kinds, uint8_t *offsets)
{
    Py_ssize_t from = 0;
    int32_t to = 0;
    for (Py_ssize_t index = 0; index < count; index++, offsets += sizeof to) {
        uint32_t length = load32(base + from + 1);
        kinds[index] = base[from];
        memcpy(offsets, &to, sizeof to);
        memmove(base + to, base + from + RECORD_HEADER, length);
        from += RECORD_HEADER + (Py_ssize_t)length;
        to += (int32_t)length;
    }
    memcpy(offsets, &to, sizeof to);
}

PyDoc_STRVAR(part_doc,
"part_records(buffer) -> (kinds, offsets) | None\n\n"
"Move the values of all records to the front of the buffer, back to back. `kinds` has a byte for\n"
"each record, `offsets` where each value begins and the last one ends, as 32-bit numbers of this\n"
"machine. None, and nothing was moved, where the buffer is not whole records of less than 2 GiB.");

static PyObject *part_records(PyObject *module, PyObject *data)
{
    Py_buffer buffer;
    if (PyObject_GetBuffer(data, &buffer, PyBUF_WRITABLE) < 0)
        return NULL;
    Py_ssize_t count, position = walk_records(&buffer, &count);
    PyObject *found = NULL;
    if (position != buffer.len || position > INT32_MAX) {
        found = Py_NewRef(Py_None);
    } else {
        PyObject *kinds = PyBytes_FromStringAndSize(NULL, count);
        PyObject *offsets = PyBytes_FromStringAndSize(NULL, (count + 1) * (Py_ssize_t)sizeof(int32_t));
        if (kinds != NULL && offsets != NULL) {
            part(buffer.buf, count, (uint8_t *)PyBytes_AS_STRING(kinds), (uint8_t *)PyBytes_AS_STRING(offsets));
            found = PyTuple_Pack(2, kinds, offsets);
        }
        Py_XDECREF(kinds);
        Py_XDECREF(offsets);
    }
    PyBuffer_Release(&buffer);
    return found;
}

/* Frames of a store-and-forward segment: CRC-32C u32, length u32, payload --------------------- */

/* Return the size of the frame at `at` as its length field tells it, or 0 when it does not fit. */
static inline Py_ssize_t ring_frame_at(const uint8_t *at, Py_ssize_t left)
{
    if (left < RING_HEADER)
        return 0;
    uint32_t length = load32(at + 4);
    return (Py_ssize_t)length > left - RING_HEADER ? 0 : RING_HEADER + (Py_ssize_t)length;
}

/* Return whether three small valid frames follow each other, and in `end` where they end. */
static int three_frames(const uint8_t *base, Py_ssize_t offset, Py_ssize_t limit, Py_ssize_t *end)
{
    const uint8_t *at[3];
    size_t sizes[3];
    uint32_t crc[3];
    for (int i = 0; i < 3; i++) {
        Py_ssize_t size = ring_frame_at(base + offset, limit - offset);
        if (size == 0 || size > SMALL)
            return 0;
        at[i] = base + offset + 4; /* the checksum covers the length field and the payload */
        sizes[i] = (size_t)(size - 4);
        offset += size;
    }
    crc_in_step(at, sizes, crc);
    *end = offset;
    return crc[0] == load32(at[0] - 4) && crc[1] == load32(at[1] - 4) && crc[2] == load32(at[2] - 4);
}

/* Return the size of the valid frame at `offset`, 0 when there is none, -1 with an error set. */
static Py_ssize_t valid_ring_frame(PyObject *data, const Py_buffer *buffer, Py_ssize_t offset, PyObject *function)
{
    const uint8_t *at = (const uint8_t *)buffer->buf + offset;
    Py_ssize_t size = ring_frame_at(at, buffer->len - offset);
    uint32_t crc;
    if (size == 0)
        return 0;
    if (instruction && size <= SMALL)
        crc = crc_by_instruction(at + 4, (size_t)(size - 4));
    else if (crc_by_call(function, data, offset + 4, offset + size, &crc) < 0)
        return -1;
    return crc == load32(at) ? size : 0;
}

PyDoc_STRVAR(follow_doc,
"follow_ring(data, offset, crc32c) -> (count, end)\n\n"
"Count the valid ring frames that follow each other from `offset` on; `crc32c` checks large ones.");

static PyObject *follow_ring(PyObject *module, PyObject *args)
{
    PyObject *data, *function;
    Py_ssize_t offset, end, size = 1, count = 0;
    Py_buffer buffer;
    if (!PyArg_ParseTuple(args, "OnO", &data, &offset, &function))
        return NULL;
    if (PyObject_GetBuffer(data, &buffer, PyBUF_SIMPLE) < 0)
        return NULL;
    if (offset < 0 || offset > buffer.len) {
        PyBuffer_Release(&buffer);
        return PyErr_Format(PyExc_ValueError, "offset %zd is outside the data", offset);
    }
    while (size > 0) {
        if (instruction && three_frames(buffer.buf, offset, buffer.len, &end)) {
            offset = end;
            count += 3;
        } else if ((size = valid_ring_frame(data, &buffer, offset, function)) > 0) {
            offset += size;
            count++;
        }
    }
    PyBuffer_Release(&buffer);
    return size < 0 ? NULL : Py_BuildValue("nn", count, offset);
}

/* LWP frames (LWP section 3.1) --------------------------------------------------------------- */

enum { KIND, FLAGS, BATCH_ID, TIMESTAMP, COUNT, TOPIC, PAYLOAD, CRC, FIELDS };

static const char *const field_names[FIELDS] = {
    "kind", "flags", "batch_id", "timestamp_ns", "record_count", "topic_id", "payload", "payload_crc",
};

/* Where the slots of the frame class are: its instances are filled without running __init__. */
typedef struct {
    PyTypeObject *type;
    Py_ssize_t offsets[FIELDS];
} Shape;

static Shape shape;

static int learn_shape(PyTypeObject *type)
{
    for (int i = 0; i < FIELDS; i++) {
        PyObject *slot = PyObject_GetAttrString((PyObject *)type, field_names[i]);
        if (slot == NULL)
            return -1;
        if (!Py_IS_TYPE(slot, &PyMemberDescr_Type)) {
            PyErr_Format(PyExc_TypeError, "%s.%s is no slot", type->tp_name, field_names[i]);
            Py_DECREF(slot);
            return -1;
        }
        shape.offsets[i] = ((PyMemberDescrObject *)slot)->d_member->offset;
        Py_DECREF(slot);
    }
    Py_XSETREF(shape.type, (PyTypeObject *)Py_NewRef(type));
    return 0;
}

static void fill(PyObject *frame, int field, PyObject *value)
{
    *(PyObject **)((char *)frame + shape.offsets[field]) = value;
}

/* Build a frame; takes over the reference to `payload`. */
static PyObject *new_frame(PyObject *entry, const uint8_t *at, PyObject *payload)
{
    PyObject *frame = shape.type->tp_alloc(shape.type, 0);
    PyObject *numbers[] = {
        PyLong_FromUnsignedLongLong(load64(at + 12)),
        PyLong_FromUnsignedLongLong(load64(at + 20)),
        PyLong_FromUnsignedLong(load32(at + 28)),
        PyLong_FromUnsignedLong(load32(at + 40)),
        PyLong_FromUnsignedLong(load32(at + 36)),
    };
    int complete = frame != NULL;
    for (int i = 0; i < 5; i++)
        complete &= numbers[i] != NULL;
    if (!complete) {
        Py_XDECREF(frame);
        Py_DECREF(payload);
        for (int i = 0; i < 5; i++)
            Py_XDECREF(numbers[i]);
        return NULL;
    }
    fill(frame, KIND, Py_NewRef(PyTuple_GET_ITEM(entry, 1)));
    fill(frame, FLAGS, Py_NewRef(PyTuple_GET_ITEM(entry, 0)));
    fill(frame, BATCH_ID, numbers[0]);
    fill(frame, TIMESTAMP, numbers[1]);
    fill(frame, COUNT, numbers[2]);
    fill(frame, TOPIC, numbers[3]);
    fill(frame, PAYLOAD, payload);
    fill(frame, CRC, numbers[4]);
    return frame;
}

/* Append the frame at `at` when it is whole and in order; return its size, 0 if not, -1 on error. */
static Py_ssize_t take_frame(PyObject *view, const uint8_t *base, Py_ssize_t position, Py_ssize_t end,
                             PyObject *known, Py_ssize_t limit, PyObject *function, int by_instruction,
                             PyObject *nothing, PyObject *frames)
{
    const uint8_t *at = base + position;
    if (end - position < FRAME_HEADER)
        return 0;
    Py_ssize_t length = load32(at + 32), size = FRAME_HEADER + length;
    if (length > limit || size > end - position)
        return 0;
    PyObject *prefix = PyBytes_FromStringAndSize((const char *)at, FRAME_PREFIX);
    if (prefix == NULL)
        return -1;
    PyObject *entry = PyDict_GetItemWithError(known, prefix);
    Py_DECREF(prefix);
    if (entry == NULL)
        return PyErr_Occurred() ? -1 : 0;
    if (!PyTuple_Check(entry) || PyTuple_GET_SIZE(entry) < 2) {
        PyErr_SetString(PyExc_TypeError, "a known prefix maps to (flags, kind, ...)");
        return -1;
    }
    PyObject *payload = Py_NewRef(nothing);
    if (length) {
        uint32_t crc;
        if (by_instruction && length <= SMALL)
            crc = crc_by_instruction(at + FRAME_HEADER, (size_t)length);
        else if (crc_by_call(function, view, position + FRAME_HEADER, position + size, &crc) < 0)
            goto failed;
        if (crc != load32(at + 36)) {
            Py_DECREF(payload);
            return 0;
        }
        Py_SETREF(payload, PySequence_GetSlice(view, position + FRAME_HEADER, position + size));
        if (payload == NULL)
            return -1;
    }
    PyObject *frame = new_frame(entry, at, payload);
    if (frame == NULL)
        return -1;
    int appended = PyList_Append(frames, frame);
    Py_DECREF(frame);
    return appended < 0 ? -1 : size;
failed:
    Py_DECREF(payload);
    return -1;
}

PyDoc_STRVAR(split_doc,
"split_frames(view, position, known, limit, checksum, is_crc32c, nothing, frame_type, frames) -> end\n\n"
"Append the frames that are whole and in order from `position` on; return where they end.\n\n"
"`known` maps the first twelve bytes of a header to (flags, kind, ...); `nothing` is the payload\n"
"of a frame without one; `frame_type` is a class with slots.");

static PyObject *split_frames(PyObject *module, PyObject *args)
{
    PyObject *view, *known, *function, *nothing, *frames;
    PyTypeObject *type;
    Py_ssize_t position, limit, size;
    int is_crc32c;
    Py_buffer buffer;
    if (!PyArg_ParseTuple(args, "O!nO!nOpOO!O!", &PyMemoryView_Type, &view, &position, &PyDict_Type,
                          &known, &limit, &function, &is_crc32c, &nothing, &PyType_Type, &type,
                          &PyList_Type, &frames))
        return NULL;
    if (type != shape.type && learn_shape(type) < 0)
        return NULL;
    if (PyObject_GetBuffer(view, &buffer, PyBUF_SIMPLE) < 0)
        return NULL;
    if (position < 0 || position > buffer.len) {
        PyBuffer_Release(&buffer);
        return PyErr_Format(PyExc_ValueError, "position %zd is outside the data", position);
    }
    while ((size = take_frame(view, buffer.buf, position, buffer.len, known, limit, function,
                              is_crc32c && instruction, nothing, frames)) > 0)
        position += size;
    PyBuffer_Release(&buffer);
    return size < 0 ? NULL : PyLong_FromSsize_t(position);
}

#include "_runs.h"
#include "_fetching.h"
#include "_sending.h"

/* Buffers ------------------------------------------------------------------------------------ */

PyDoc_STRVAR(unfilled_doc,
"unfilled(size) -> bytearray\n\nReturn a buffer whose bytes are whatever its memory held before: every one is to be written.");

static PyObject *unfilled(PyObject *module, PyObject *size)
{
    Py_ssize_t length = PyNumber_AsSsize_t(size, PyExc_OverflowError);
    if (length == -1 && PyErr_Occurred())
        return NULL;
    if (length < 0) {
        PyErr_SetString(PyExc_ValueError, "negative count");
        return NULL;
    }
    return PyByteArray_FromStringAndSize(NULL, length);
}

static int keeping; /* whether this process keeps freed memory */

PyDoc_STRVAR(keep_doc,
"keep_freed(size, largest) -> bool\n\n"
"Keep up to `size` freed bytes, of blocks of up to `largest` bytes, instead of giving them back to\n"
"the system; False where the C library cannot be told.");

static PyObject *keep_freed(PyObject *module, PyObject *args)
{
    int size, largest, told = 0;
    if (!PyArg_ParseTuple(args, "ii", &size, &largest))
        return NULL;
#ifdef __GLIBC__
    told = mallopt(M_MMAP_THRESHOLD, largest) && mallopt(M_TRIM_THRESHOLD, size);
    keeping |= told;
#endif
    return PyBool_FromLong(told);
}

PyDoc_STRVAR(give_doc,
"give_back() -> bool\n\nGive back to the system what `keep_freed` let the process keep; False where it was not told so.");

static PyObject *give_back(PyObject *module, PyObject *nothing)
{
#ifdef __GLIBC__
    if (keeping) {
        Py_BEGIN_ALLOW_THREADS
        malloc_trim(0);
        Py_END_ALLOW_THREADS
    }
#endif
    return PyBool_FromLong(keeping);
}

/* The module --------------------------------------------------------------------------------- */

static PyMethodDef methods[] = {
    {"scan_records", scan_records, METH_O, scan_doc},
    {"record_bounds", record_bounds, METH_O, bounds_doc},
    {"part_records", part_records, METH_O, part_doc},
    {"decode_records", decode_records, METH_O, decode_doc},
    {"follow_ring", follow_ring, METH_VARARGS, follow_doc},
    {"split_frames", split_frames, METH_VARARGS, split_doc},
    {"count_run", count_run, METH_VARARGS, count_doc},
    {"gather_run", gather_run, METH_VARARGS, gather_doc},
    {"join_entries", join_entries, METH_VARARGS, entries_doc},
    {"whole_batches", (PyCFunction)(void (*)(void))whole_batches, METH_FASTCALL, whole_doc},
    {"answer_fetch", (PyCFunction)(void (*)(void))answer_fetch, METH_FASTCALL, answer_doc},
    {"keep_freed", keep_freed, METH_VARARGS, keep_doc},
    {"give_back", give_back, METH_NOARGS, give_doc},
    {"unfilled", unfilled, METH_O, unfilled_doc},
    {"add_to_batch", (PyCFunction)(void (*)(void))add_to_batch, METH_FASTCALL, add_doc},
    {"join_records", (PyCFunction)(void (*)(void))join_records, METH_FASTCALL, join_doc},
    {NULL, NULL, 0, NULL},
};

static struct PyModuleDef definition = {
    PyModuleDef_HEAD_INIT,
    "_accelerator",
    "Loops over records and frames, compiled.",
    -1,
    methods,
    NULL,
    NULL,
    NULL,
    NULL,
};

PyMODINIT_FUNC PyInit__accelerator(void)
{
    instruction = has_instruction();
    for (int i = 0; i < 256; i++)
        if ((small_numbers[i] = PyLong_FromLong(i)) == NULL)
            return NULL;
    return PyModule_Create(&definition);
}
