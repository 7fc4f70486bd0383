#include "ring.h"

#include "bytes.h"
#include "checksum.h"

#define RING_HEADER 8

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
    if (crc_instruction && size <= SMALL)
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
        if (crc_instruction && three_frames(buffer.buf, offset, buffer.len, &end)) {
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

PyMethodDef ring_methods[] = {
    {"follow_ring", follow_ring, METH_VARARGS, follow_doc},
    {NULL, NULL, 0, NULL},
};
