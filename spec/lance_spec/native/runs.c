#include "runs.h"

#include <string.h>

#include "bytes.h"
#include "checksum.h"
#include "frames.h"
#include "records.h"

#define LASTING_SHIFT 40 /* the bits above are the producer's nonce */
#define ANY_TOPIC (1ull << 32) /* no topic's number, which has 32 bits */
#define ENTRY_SIZE 64

static int is_chain(const uint8_t *at, Py_ssize_t left, uint64_t count)
{
    Py_ssize_t size;
    for (; left; at += size, left -= size, count--)
        if ((size = record_at(at, left)) == 0)
            return 0;
    return count == 0;
}

/* Return whether a frame goes with those before it: 1, 0, or -1 with an error set. */
static int is_plain(const FrameFields *frame, PyObject *kind, uint64_t unwanted, uint64_t topic, uint64_t above,
                    int validates)
{
    uint64_t id = frame->batch_id;
    Py_buffer buffer;
    if (frame->kind != kind || (frame->flags & unwanted) != 0 || (topic != ANY_TOPIC && frame->topic_id != topic) ||
        id <= above || id >> LASTING_SHIFT != above >> LASTING_SHIFT || frame->timestamp_ns == 0)
        return 0;
    if (PyObject_GetBuffer(frame->payload, &buffer, PyBUF_SIMPLE) < 0)
        return -1;
    int plain = buffer.len > 0 && (!validates || is_chain(buffer.buf, buffer.len, frame->record_count));
    PyBuffer_Release(&buffer);
    return plain;
}

/* Return an object as a whole frame, borrowed; NULL with an error set where it is none. */
static const FrameFields *as_frame(PyObject *object)
{
    const FrameFields *frame = (FrameFields *)object;
    if (PyObject_TypeCheck(object, &frame_fields_type) && frame->kind != NULL && frame->payload != NULL &&
        PyMemoryView_Check(frame->payload))
        return frame;
    PyErr_Format(PyExc_TypeError, "expected a whole frame, got %R", Py_TYPE(object));
    return NULL;
}

PyDoc_STRVAR(count_doc,
"count_run(frames, first, most, topic_id, above, kind, unwanted, validates) -> count\n\n"
"Count the frames from `first` on that go with the batch `above` of the topic; of 2^32, of whichever.");

static PyObject *count_run(PyObject *module, PyObject *args)
{
    PyObject *frames, *kind;
    Py_ssize_t first, most, count = 0;
    unsigned long long topic, above, unwanted;
    int validates, plain = 1;
    if (!PyArg_ParseTuple(args, "O!nnKKOKp", &PyList_Type, &frames, &first, &most, &topic, &above, &kind,
                          &unwanted, &validates))
        return NULL;
    if (first < 0 || first > PyList_GET_SIZE(frames))
        return PyErr_Format(PyExc_ValueError, "there is no frame %zd", first);
    Py_ssize_t left = PyList_GET_SIZE(frames) - first;
    for (most = most < left ? most : left; plain > 0 && count < most; count += plain) {
        const FrameFields *frame = as_frame(PyList_GET_ITEM(frames, first + count));
        if (frame == NULL || (plain = is_plain(frame, kind, unwanted, topic, above, validates)) < 0)
            return NULL;
        if (plain)
            above = frame->batch_id;
    }
    return PyLong_FromSsize_t(count);
}

/* Write what is known of a frame where its sidecar entry will be; the rest is zero. -1 with an error set. */
static int store_row(uint8_t *at, const FrameFields *frame, uint64_t server_time, uint32_t flags)
{
    uint64_t count = frame->record_count, crc = frame->payload_crc;
    uint64_t length = (uint64_t)PyMemoryView_GET_BUFFER(frame->payload)->len;
    if ((length | count | crc) > UINT32_MAX) {
        PyErr_SetString(PyExc_OverflowError, "length, record count and CRC have 32 bits");
        return -1;
    }
    memset(at, 0, ENTRY_SIZE);
    store32(at + 8, (uint32_t)length);
    store32(at + 12, (uint32_t)count);
    store64(at + 16, frame->batch_id);
    store64(at + 24, frame->timestamp_ns);
    store64(at + 32, server_time);
    store32(at + 48, (uint32_t)crc);
    store32(at + 52, flags);
    return 0;
}

/* Store the row of each frame, and its payload unless `data` is NULL; -1 with an error set. */
static int store_frames(PyObject *frames, uint8_t *data, uint8_t *rows, uint64_t server_time, uint32_t flags)
{
    for (Py_ssize_t i = 0; i < PyList_GET_SIZE(frames); i++, rows += ENTRY_SIZE) {
        const FrameFields *frame = (FrameFields *)PyList_GET_ITEM(frames, i);
        Py_buffer payload;
        if (store_row(rows, frame, server_time, flags) < 0)
            return -1;
        if (data == NULL)
            continue;
        if (PyObject_GetBuffer(frame->payload, &payload, PyBUF_SIMPLE) < 0)
            return -1;
        memcpy(data, payload.buf, (size_t)payload.len);
        data += payload.len;
        PyBuffer_Release(&payload);
    }
    return 0;
}

PyDoc_STRVAR(gather_doc,
"gather_run(frames, server_time_ns, flags, data, rows)\n\n"
"Append the payloads of frames to `data`, unless it is None, and a row that describes each to\n"
"`rows`; both or nothing.");

static PyObject *gather_run(PyObject *module, PyObject *args)
{
    PyObject *frames, *data, *rows, *time, *bits;
    if (!PyArg_ParseTuple(args, "O!O!O!OO!", &PyList_Type, &frames, &PyLong_Type, &time, &PyLong_Type, &bits, &data,
                          &PyByteArray_Type, &rows))
        return NULL;
    if (data == Py_None)
        data = NULL;
    if (data == rows || (data != NULL && !PyByteArray_Check(data)))
        return PyErr_Format(PyExc_TypeError, "data is another bytearray than the rows, or None");
    uint64_t server_time = PyLong_AsUnsignedLongLong(time), flags = PyLong_AsUnsignedLongLong(bits);
    if (!PyErr_Occurred() && flags > UINT32_MAX)
        PyErr_SetString(PyExc_OverflowError, "flags have 32 bits");
    if (PyErr_Occurred())
        return NULL;
    Py_ssize_t count = PyList_GET_SIZE(frames), total = 0;
    for (Py_ssize_t i = 0; i < count; i++) {
        const FrameFields *frame = as_frame(PyList_GET_ITEM(frames, i));
        if (frame == NULL)
            return NULL;
        total += PyMemoryView_GET_BUFFER(frame->payload)->len;
    }
    Py_ssize_t before = data == NULL ? 0 : PyByteArray_GET_SIZE(data), described = PyByteArray_GET_SIZE(rows);
    if (data != NULL && PyByteArray_Resize(data, before + total) < 0)
        return NULL;
    if (PyByteArray_Resize(rows, described + count * ENTRY_SIZE) == 0) {
        uint8_t *out = data == NULL ? NULL : (uint8_t *)PyByteArray_AS_STRING(data) + before;
        if (store_frames(frames, out, (uint8_t *)PyByteArray_AS_STRING(rows) + described, server_time,
                         (uint32_t)flags) == 0)
            Py_RETURN_NONE;
        PyByteArray_Resize(rows, described);
    }
    if (data != NULL)
        PyByteArray_Resize(data, before);
    return NULL;
}

/* Complete an entry by its place and its checksum; -1 with an error set. */
static int seal_entry(uint8_t *at, uint64_t start, uint64_t durable_end, PyObject *function)
{
    store64(at, start);
    store64(at + 40, durable_end);
    store32(at + 56, 0);
    uint32_t crc;
    if (crc_instruction) {
        crc = crc_by_instruction(at, ENTRY_SIZE - 4);
    } else {
        PyObject *guarded = PyBytes_FromStringAndSize((const char *)at, ENTRY_SIZE - 4);
        int failed = guarded == NULL || crc_by_call(function, guarded, 0, ENTRY_SIZE - 4, &crc) < 0;
        Py_XDECREF(guarded);
        if (failed)
            return -1;
    }
    store32(at + 60, crc);
    return 0;
}

PyDoc_STRVAR(seal_doc,
"seal_entries(rows, start, durable_end, crc32c)\n\n"
"Make rows the sidecar entries of batches that are stored back to back from `start` on.");

static PyObject *seal_entries(PyObject *module, PyObject *args)
{
    PyObject *rows, *function, *first, *end;
    Py_buffer buffer;
    if (!PyArg_ParseTuple(args, "O!O!O!O", &PyByteArray_Type, &rows, &PyLong_Type, &first, &PyLong_Type, &end,
                          &function))
        return NULL;
    uint64_t start = PyLong_AsUnsignedLongLong(first), durable_end = PyLong_AsUnsignedLongLong(end);
    if (PyErr_Occurred() || PyObject_GetBuffer(rows, &buffer, PyBUF_WRITABLE) < 0)
        return NULL;
    uint8_t *at = buffer.buf;
    int failed = 0;
    for (Py_ssize_t left = buffer.len; !failed && left >= ENTRY_SIZE; left -= ENTRY_SIZE, at += ENTRY_SIZE) {
        failed = seal_entry(at, start, durable_end, function) < 0;
        start += load32(at + 8);
    }
    PyBuffer_Release(&buffer);
    if (failed)
        return NULL;
    Py_RETURN_NONE;
}

PyMethodDef run_methods[] = {
    {"count_run", count_run, METH_VARARGS, count_doc},
    {"gather_run", gather_run, METH_VARARGS, gather_doc},
    {"seal_entries", seal_entries, METH_VARARGS, seal_doc},
    {NULL, NULL, 0, NULL},
};
