#include "frames.h"

#include <structmember.h>

#include "bytes.h"
#include "checksum.h"

static PyMemberDef frame_members[] = {
    {"kind", T_OBJECT_EX, offsetof(FrameFields, kind), 0, NULL},
    {"flags", T_ULONGLONG, offsetof(FrameFields, flags), 0, NULL},
    {"batch_id", T_ULONGLONG, offsetof(FrameFields, batch_id), 0, NULL},
    {"timestamp_ns", T_ULONGLONG, offsetof(FrameFields, timestamp_ns), 0, NULL},
    {"record_count", T_ULONGLONG, offsetof(FrameFields, record_count), 0, NULL},
    {"topic_id", T_ULONGLONG, offsetof(FrameFields, topic_id), 0, NULL},
    {"payload", T_OBJECT_EX, offsetof(FrameFields, payload), 0, NULL},
    {"payload_crc", T_ULONGLONG, offsetof(FrameFields, payload_crc), 0, NULL},
    {NULL, 0, 0, 0, NULL},
};

static void free_frame(PyObject *object)
{
    FrameFields *frame = (FrameFields *)object;
    Py_CLEAR(frame->kind);
    Py_CLEAR(frame->payload);
    Py_TYPE(object)->tp_free(object);
}

/* Without garbage collection: what a frame holds are numbers and a view of bytes, which no cycle goes through. */
PyTypeObject frame_fields_type = {
    PyVarObject_HEAD_INIT(NULL, 0)
    .tp_name = "lance_spec._accelerator.FrameFields",
    .tp_doc = PyDoc_STR("What a frame holds, for a class without fields of its own."),
    .tp_basicsize = sizeof(FrameFields),
    .tp_flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_BASETYPE,
    .tp_new = PyType_GenericNew,
    .tp_dealloc = free_frame,
    .tp_members = frame_members,
};

/* Build a frame; takes over the reference to `payload`. */
static PyObject *new_frame(PyTypeObject *type, PyObject *entry, const uint8_t *at, PyObject *payload)
{
    unsigned long long flags = PyLong_AsUnsignedLongLong(PyTuple_GET_ITEM(entry, 0));
    FrameFields *frame = PyErr_Occurred() ? NULL : (FrameFields *)type->tp_alloc(type, 0);
    if (frame == NULL) {
        Py_DECREF(payload);
        return NULL;
    }
    frame->kind = Py_NewRef(PyTuple_GET_ITEM(entry, 1));
    frame->flags = flags;
    frame->batch_id = load64(at + 12);
    frame->timestamp_ns = load64(at + 20);
    frame->record_count = load32(at + 28);
    frame->topic_id = load32(at + 40);
    frame->payload = payload;
    frame->payload_crc = load32(at + 36);
    return (PyObject *)frame;
}

/* Append the frame at `at` when it is whole and in order; return its size, 0 if not, -1 on error. */
static Py_ssize_t take_frame(PyObject *view, const uint8_t *base, Py_ssize_t position, Py_ssize_t end,
                             PyObject *known, Py_ssize_t limit, PyObject *function, int by_instruction,
                             PyObject *nothing, PyTypeObject *type, PyObject *frames)
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
    PyObject *frame = new_frame(type, entry, at, payload);
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
"of a frame without one; `frame_type` is a class derived from `FrameFields`.");

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
    if (!PyType_IsSubtype(type, &frame_fields_type))
        return PyErr_Format(PyExc_TypeError, "%s is not derived from FrameFields", type->tp_name);
    if (PyObject_GetBuffer(view, &buffer, PyBUF_SIMPLE) < 0)
        return NULL;
    if (position < 0 || position > buffer.len) {
        PyBuffer_Release(&buffer);
        return PyErr_Format(PyExc_ValueError, "position %zd is outside the data", position);
    }
    while ((size = take_frame(view, buffer.buf, position, buffer.len, known, limit, function,
                              is_crc32c && crc_instruction, nothing, type, frames)) > 0)
        position += size;
    PyBuffer_Release(&buffer);
    return size < 0 ? NULL : PyLong_FromSsize_t(position);
}

PyMethodDef frame_methods[] = {
    {"split_frames", split_frames, METH_VARARGS, split_doc},
    {NULL, NULL, 0, NULL},
};
