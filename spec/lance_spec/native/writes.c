#define _FILE_OFFSET_BITS 64 /* on every system, and one name of the call for who watches it */

#include "writes.h"

#ifndef _WIN32

#include <errno.h>
#include <unistd.h>

typedef struct {
    Py_buffer data;
    off_t offset;
    int fd, error;
} Write;

/* Take (fd, data, offset) apart; what is read of the data is held until it is released. */
static int take_write(PyObject *each, Write *write)
{
    if (!PyTuple_Check(each) || PyTuple_GET_SIZE(each) != 3) {
        PyErr_SetString(PyExc_TypeError, "a write is a tuple of a file, data and an offset");
        return -1;
    }
    long fd = PyLong_AsLong(PyTuple_GET_ITEM(each, 0));
    long long offset = PyLong_AsLongLong(PyTuple_GET_ITEM(each, 2));
    if (!PyErr_Occurred() && (fd != (int)fd || offset < 0))
        PyErr_SetString(PyExc_OverflowError, "a file or an offset is out of range");
    if (PyErr_Occurred())
        return -1;
    write->fd = (int)fd;
    write->offset = (off_t)offset;
    write->error = 0;
    return PyObject_GetBuffer(PyTuple_GET_ITEM(each, 1), &write->data, PyBUF_SIMPLE);
}

static int write_all(const Write *write)
{
    const char *at = write->data.buf;
    off_t offset = write->offset;
    for (Py_ssize_t left = write->data.len; left;) {
        ssize_t done = pwrite(write->fd, at, (size_t)left, offset);
        if (done < 0 && errno == EINTR)
            continue;
        if (done <= 0)
            return done < 0 ? errno : EIO;
        at += done;
        left -= done;
        offset += done;
    }
    return 0;
}

PyDoc_STRVAR(write_each_doc,
"write_each(writes) -> errors\n\n"
"Write each of (fd, data, offset) wholly, without the interpreter's lock; return an errno for each, 0 for none.");

static PyObject *write_each(PyObject *module, PyObject *given)
{
    PyObject *sequence = PySequence_Fast(given, "writes are a sequence");
    if (sequence == NULL)
        return NULL;
    Py_ssize_t count = PySequence_Fast_GET_SIZE(sequence), taken = 0;
    Write *writes = PyMem_New(Write, count ? count : 1);
    PyObject *errors = writes == NULL ? PyErr_NoMemory() : PyList_New(count);
    while (errors != NULL && taken < count) {
        if (take_write(PySequence_Fast_GET_ITEM(sequence, taken), &writes[taken]) == 0)
            taken++;
        else
            Py_CLEAR(errors);
    }
    if (errors != NULL) {
        Py_BEGIN_ALLOW_THREADS
        for (Py_ssize_t i = 0; i < count; i++)
            writes[i].error = write_all(&writes[i]);
        Py_END_ALLOW_THREADS
    }
    for (Py_ssize_t i = 0; i < taken; i++)
        PyBuffer_Release(&writes[i].data);
    for (Py_ssize_t i = 0; errors != NULL && i < count; i++) {
        PyObject *error = PyLong_FromLong(writes[i].error);
        if (error == NULL)
            Py_CLEAR(errors);
        else
            PyList_SET_ITEM(errors, i, error);
    }
    PyMem_Free(writes);
    Py_DECREF(sequence);
    return errors;
}

PyMethodDef write_methods[] = {
    {"write_each", write_each, METH_O, write_each_doc},
    {NULL, NULL, 0, NULL},
};

#else

PyMethodDef write_methods[] = {{NULL, NULL, 0, NULL}};

#endif
