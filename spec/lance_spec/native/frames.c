#include "frames.h"

#include <structmember.h>

#include "bytes.h"
#include "checksum.h"

static const char *const field_names[FIELDS] = {
    "kind", "flags", "batch_id", "timestamp_ns", "record_count", "topic_id", "payload", "payload_crc",
};

FrameShape frame_shape;

int learn_frame_shape(PyTypeObject *type)
{
    for (int i = 0; i < FIELDS; i++) {
        PyObject *slot = PyObject_GetAttrString((PyObject *)type, field_names[i]);
        if (slot == NULL)
            return -1;
        if (!Py_IS_TYPE(slot, &PyMemberDescr_Type)) {
            PyErr_Format(PyExc_TypeError, "%s.%s is not a slot", type->tp_name, field_names[i]);
            Py_DECREF(slot);
            return -1;
        }
        frame_shape.offsets[i] = ((PyMemberDescrObject *)slot)->d_member->offset;
        Py_DECREF(slot);
    }
    Py_XSETREF(frame_shape.type, (PyTypeObject *)Py_NewRef(type));
    return 0;
}

static void fill(PyObject *frame, int field, PyObject *value)
{
    *(PyObject **)((char *)frame + frame_shape.offsets[field]) = value;
}

/* Build a frame; takes over the reference to `payload`. */
static PyObject *new_frame(PyObject *entry, const uint8_t *at, PyObject *payload)
{
    PyObject *frame = frame_shape.type->tp_alloc(frame_shape.type, 0);
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
    if (type != frame_shape.type && learn_frame_shape(type) < 0)
        return NULL;
    if (PyObject_GetBuffer(view, &buffer, PyBUF_SIMPLE) < 0)
        return NULL;
    if (position < 0 || position > buffer.len) {
        PyBuffer_Release(&buffer);
        return PyErr_Format(PyExc_ValueError, "position %zd is outside the data", position);
    }
    while ((size = take_frame(view, buffer.buf, position, buffer.len, known, limit, function,
                              is_crc32c && crc_instruction, nothing, frames)) > 0)
        position += size;
    PyBuffer_Release(&buffer);
    return size < 0 ? NULL : PyLong_FromSsize_t(position);
}

PyMethodDef frame_methods[] = {
    {"split_frames", split_frames, METH_VARARGS, split_doc},
    {NULL, NULL, 0, NULL},
};
