#include "runs.h"

#include <string.h>

#include "bytes.h"
#include "checksum.h"
#include "frames.h"
#include "records.h"

#define LASTING_SHIFT 40 /* the bits above are the producer's nonce */
#define ANY_TOPIC (1ull << 32) /* no topic's number, which has 32 bits */
#define DIGEST_SIZE 16
#define ENTRY_SIZE 64

static PyObject *slot(PyObject *frame, int field) { return *(PyObject **)((char *)frame + frame_shape.offsets[field]); }

/* Return an unsigned slot; -1 is told from an error by PyErr_Occurred. */
static uint64_t number(PyObject *frame, int field) { return PyLong_AsUnsignedLongLong(slot(frame, field)); }

static int is_chain(const uint8_t *at, Py_ssize_t left, uint64_t count)
{
    Py_ssize_t size;
    for (; left; at += size, left -= size, count--)
        if ((size = record_at(at, left)) == 0)
            return 0;
    return count == 0;
}

/* Return whether a frame goes with those before it: 1, 0, or -1 with an error set. */
static int is_plain(PyObject *frame, PyObject *kind, uint64_t unwanted, uint64_t topic, uint64_t above, int validates)
{
    if (slot(frame, KIND) != kind)
        return 0;
    uint64_t id = number(frame, BATCH_ID);
    int plain = (number(frame, FLAGS) & unwanted) == 0 && (topic == ANY_TOPIC || number(frame, TOPIC) == topic) &&
                id > above && id >> LASTING_SHIFT == above >> LASTING_SHIFT && number(frame, TIMESTAMP) != 0;
    uint64_t count = number(frame, COUNT);
    if (PyErr_Occurred())
        return -1;
    Py_buffer buffer;
    if (!plain)
        return 0;
    if (PyObject_GetBuffer(slot(frame, PAYLOAD), &buffer, PyBUF_SIMPLE) < 0)
        return -1;
    plain = buffer.len > 0 && (!validates || is_chain(buffer.buf, buffer.len, count));
    PyBuffer_Release(&buffer);
    return plain;
}

/* Return whether an object is a frame all of whose slots are filled; sets an error otherwise. */
static int is_frame(PyObject *object, PyTypeObject *type)
{
    int filled = Py_IS_TYPE(object, type);
    for (int i = 0; filled && i < FIELDS; i++)
        filled = slot(object, i) != NULL;
    if (!filled || !PyMemoryView_Check(slot(object, PAYLOAD))) {
        PyErr_Format(PyExc_TypeError, "expected a whole %s, got %R", type->tp_name, Py_TYPE(object));
        return 0;
    }
    return 1;
}

PyDoc_STRVAR(count_doc,
"count_run(frames, first, most, topic_id, above, kind, unwanted, validates, frame_type) -> count\n\n"
"Count the frames from `first` on that go with the batch `above` of the topic; of 2^32, of whichever.");

static PyObject *count_run(PyObject *module, PyObject *args)
{
    PyObject *frames, *kind;
    Py_ssize_t first, most, count = 0;
    unsigned long long topic, above, unwanted;
    int validates, plain = 1;
    PyTypeObject *type;
    if (!PyArg_ParseTuple(args, "O!nnKKOKpO!", &PyList_Type, &frames, &first, &most, &topic, &above, &kind,
                          &unwanted, &validates, &PyType_Type, &type))
        return NULL;
    if (type != frame_shape.type && learn_frame_shape(type) < 0)
        return NULL;
    if (first < 0 || first > PyList_GET_SIZE(frames))
        return PyErr_Format(PyExc_ValueError, "there is no frame %zd", first);
    Py_ssize_t left = PyList_GET_SIZE(frames) - first;
    for (most = most < left ? most : left; plain > 0 && count < most; count += plain) {
        PyObject *frame = PyList_GET_ITEM(frames, first + count);
        if (!is_frame(frame, type) || (plain = is_plain(frame, kind, unwanted, topic, above, validates)) < 0)
            return NULL;
        if (plain)
            above = number(frame, BATCH_ID);
    }
    return PyLong_FromSsize_t(count);
}

/* Build (length, record count, batch id, client time, server time, CRC, flags) as a NamedTuple. */
static PyObject *meta_of(PyObject *frame, PyTypeObject *type, PyObject *server_time, PyObject *flags)
{
    PyObject *length = PyLong_FromSsize_t(PyMemoryView_GET_BUFFER(slot(frame, PAYLOAD))->len);
    PyObject *meta = length == NULL ? NULL : type->tp_alloc(type, 7);
    if (meta == NULL) {
        Py_XDECREF(length);
        return NULL;
    }
    PyTuple_SET_ITEM(meta, 0, length);
    PyTuple_SET_ITEM(meta, 1, Py_NewRef(slot(frame, COUNT)));
    PyTuple_SET_ITEM(meta, 2, Py_NewRef(slot(frame, BATCH_ID)));
    PyTuple_SET_ITEM(meta, 3, Py_NewRef(slot(frame, TIMESTAMP)));
    PyTuple_SET_ITEM(meta, 4, Py_NewRef(server_time));
    PyTuple_SET_ITEM(meta, 5, Py_NewRef(slot(frame, CRC)));
    PyTuple_SET_ITEM(meta, 6, Py_NewRef(flags));
    return meta;
}

static PyObject *digest_of(PyObject *frame)
{
    uint8_t digest[DIGEST_SIZE];
    store32(digest, (uint32_t)number(frame, CRC));
    store32(digest + 4, (uint32_t)PyMemoryView_GET_BUFFER(slot(frame, PAYLOAD))->len);
    store64(digest + 8, number(frame, TIMESTAMP));
    return PyErr_Occurred() ? NULL : PyBytes_FromStringAndSize((const char *)digest, DIGEST_SIZE);
}

/* Append payloads of `total` bytes; -1 with an error set, and nothing appended. */
static int append_payloads(PyObject *frames, Py_ssize_t total, PyObject *data)
{
    Py_ssize_t size = PyByteArray_GET_SIZE(data), position = size;
    if (PyByteArray_Resize(data, size + total) < 0)
        return -1;
    for (Py_ssize_t i = 0; i < PyList_GET_SIZE(frames); i++) {
        Py_buffer payload;
        if (PyObject_GetBuffer(slot(PyList_GET_ITEM(frames, i), PAYLOAD), &payload, PyBUF_SIMPLE) < 0) {
            PyByteArray_Resize(data, size);
            return -1;
        }
        memcpy(PyByteArray_AS_STRING(data) + position, payload.buf, (size_t)payload.len);
        position += payload.len;
        PyBuffer_Release(&payload);
    }
    return 0;
}

PyDoc_STRVAR(gather_doc,
"gather_run(frames, server_time_ns, flags, meta_type, frame_type, data) -> (metas, digests)\n\n"
"Append the payloads of frames to `data`, and describe each frame.");

static PyObject *gather_run(PyObject *module, PyObject *args)
{
    PyObject *frames, *server_time, *flags, *data;
    PyTypeObject *meta_type, *type;
    if (!PyArg_ParseTuple(args, "O!OOO!O!O!", &PyList_Type, &frames, &server_time, &flags, &PyType_Type, &meta_type,
                          &PyType_Type, &type, &PyByteArray_Type, &data))
        return NULL;
    if (type != frame_shape.type && learn_frame_shape(type) < 0)
        return NULL;
    if (!PyType_IsSubtype(meta_type, &PyTuple_Type))
        return PyErr_Format(PyExc_TypeError, "%s is not a tuple type", meta_type->tp_name);
    Py_ssize_t count = PyList_GET_SIZE(frames), total = 0;
    PyObject *metas = PyList_New(count), *digests = PyList_New(count);
    int complete = metas != NULL && digests != NULL;
    for (Py_ssize_t i = 0; complete && i < count; i++) {
        PyObject *frame = PyList_GET_ITEM(frames, i);
        if (!(complete = is_frame(frame, type)))
            break;
        PyObject *meta = meta_of(frame, meta_type, server_time, flags), *digest = digest_of(frame);
        complete = meta != NULL && digest != NULL;
        total += PyMemoryView_GET_BUFFER(slot(frame, PAYLOAD))->len;
        PyList_SET_ITEM(metas, i, meta);
        PyList_SET_ITEM(digests, i, digest);
    }
    if (complete && append_payloads(frames, total, data) == 0)
        return Py_BuildValue("NN", metas, digests);
    Py_XDECREF(metas);
    Py_XDECREF(digests);
    return NULL;
}

/* Write one entry; `meta` is a tuple as `meta_of` builds it. -1 with an error set. */
static int store_entry(uint8_t *at, PyObject *meta, uint64_t start, uint64_t durable_end, PyObject *function)
{
    uint64_t numbers[7];
    if (!PyTuple_Check(meta) || PyTuple_GET_SIZE(meta) != 7) {
        PyErr_SetString(PyExc_TypeError, "a batch is described by a tuple of seven");
        return -1;
    }
    for (int i = 0; i < 7; i++)
        numbers[i] = PyLong_AsUnsignedLongLong(PyTuple_GET_ITEM(meta, i));
    if (!PyErr_Occurred() && (numbers[0] | numbers[1] | numbers[5] | numbers[6]) > UINT32_MAX)
        PyErr_SetString(PyExc_OverflowError, "length, record count, CRC and flags have 32 bits");
    if (PyErr_Occurred())
        return -1;
    store64(at, start);
    store32(at + 8, (uint32_t)numbers[0]);
    store32(at + 12, (uint32_t)numbers[1]);
    store64(at + 16, numbers[2]);
    store64(at + 24, numbers[3]);
    store64(at + 32, numbers[4]);
    store64(at + 40, durable_end);
    store32(at + 48, (uint32_t)numbers[5]);
    store32(at + 52, (uint32_t)numbers[6]);
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

PyDoc_STRVAR(entries_doc,
"join_entries(metas, start, durable_end, crc32c) -> entries\n\n"
"Return the sidecar entries of batches that are stored back to back from `start` on.");

static PyObject *join_entries(PyObject *module, PyObject *args)
{
    PyObject *metas, *function;
    unsigned long long start, durable_end;
    if (!PyArg_ParseTuple(args, "O!KKO", &PyList_Type, &metas, &start, &durable_end, &function))
        return NULL;
    Py_ssize_t count = PyList_GET_SIZE(metas);
    PyObject *entries = PyBytes_FromStringAndSize(NULL, count * ENTRY_SIZE);
    uint8_t *at = entries == NULL ? NULL : (uint8_t *)PyBytes_AS_STRING(entries);
    for (Py_ssize_t i = 0; entries != NULL && i < count; i++, at += ENTRY_SIZE) {
        PyObject *meta = PyList_GET_ITEM(metas, i);
        if (store_entry(at, meta, start, durable_end, function) < 0)
            Py_CLEAR(entries);
        else
            start += load32(at + 8);
    }
    return entries;
}

PyMethodDef run_methods[] = {
    {"count_run", count_run, METH_VARARGS, count_doc},
    {"gather_run", gather_run, METH_VARARGS, gather_doc},
    {"join_entries", join_entries, METH_VARARGS, entries_doc},
    {NULL, NULL, 0, NULL},
};
