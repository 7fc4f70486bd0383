#include "records.h"

#include <string.h>

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
"scan_records(data) -> (count, end)\n\nCount the whole records from the start on; `end` is after the last one.");

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
"record_bounds(data) -> (bounds, end)\n\nWhere each whole record from the start on begins, and `end` after the last one, as an array of\n"
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

static PyObject *record_types[256];

int make_record_types(void)
{
    for (int i = 0; i < 256; i++)
        if ((record_types[i] = PyLong_FromLong(i)) == NULL)
            return -1;
    return 0;
}

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
    PyTuple_SET_ITEM(pair, 0, Py_NewRef(record_types[at[0]]));
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

/* Move the values of whole records together, in place or elsewhere; write their kinds and where each begins. */
static void part(const uint8_t *base, uint8_t *target, Py_ssize_t count, uint8_t *kinds, uint8_t *offsets)
{
    Py_ssize_t from = 0;
    int32_t to = 0;
    for (Py_ssize_t index = 0; index < count; index++, offsets += sizeof to) {
        uint32_t length = load32(base + from + 1);
        kinds[index] = base[from];
        memcpy(offsets, &to, sizeof to);
        memmove(target + to, base + from + RECORD_HEADER, length);
        from += RECORD_HEADER + (Py_ssize_t)length;
        to += (int32_t)length;
    }
    memcpy(offsets, &to, sizeof to);
}

PyDoc_STRVAR(part_doc,
"part_records(data, target) -> (kinds, offsets) | None\n\n"
"Move the values of all records to the front of the target, back to back; it is at least as large\n"
"as the data, and may be the data. `kinds` has a byte for each record, `offsets` where each value\n"
"begins and the last one ends, as 32-bit numbers of this machine. None, and nothing was moved,\n"
"where the data is not whole records of less than 2 GiB.");

static PyObject *part_records(PyObject *module, PyObject *args)
{
    PyObject *from, *to;
    Py_buffer data, target;
    if (!PyArg_ParseTuple(args, "OO", &from, &to) || PyObject_GetBuffer(to, &target, PyBUF_WRITABLE) < 0)
        return NULL;
    if (PyObject_GetBuffer(from, &data, PyBUF_SIMPLE) < 0) {
        PyBuffer_Release(&target);
        return NULL;
    }
    Py_ssize_t count, position = walk_records(&data, &count);
    PyObject *found = NULL;
    if (target.len < data.len) {
        PyErr_SetString(PyExc_ValueError, "the target is smaller than the data");
    } else if (position != data.len || position > INT32_MAX) {
        found = Py_NewRef(Py_None);
    } else {
        PyObject *kinds = PyBytes_FromStringAndSize(NULL, count);
        PyObject *offsets = PyBytes_FromStringAndSize(NULL, (count + 1) * (Py_ssize_t)sizeof(int32_t));
        if (kinds != NULL && offsets != NULL) {
            part(data.buf, target.buf, count, (uint8_t *)PyBytes_AS_STRING(kinds),
                 (uint8_t *)PyBytes_AS_STRING(offsets));
            found = PyTuple_Pack(2, kinds, offsets);
        }
        Py_XDECREF(kinds);
        Py_XDECREF(offsets);
    }
    PyBuffer_Release(&data);
    PyBuffer_Release(&target);
    return found;
}

PyMethodDef record_methods[] = {
    {"scan_records", scan_records, METH_O, scan_doc},
    {"record_bounds", record_bounds, METH_O, bounds_doc},
    {"part_records", part_records, METH_VARARGS, part_doc},
    {"decode_records", decode_records, METH_O, decode_doc},
    {NULL, NULL, 0, NULL},
};
