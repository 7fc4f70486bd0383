#include "memory.h"

#ifdef __GLIBC__
#include <malloc.h>
#endif

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

PyMethodDef memory_methods[] = {
    {"unfilled", unfilled, METH_O, unfilled_doc},
    {"keep_freed", keep_freed, METH_VARARGS, keep_doc},
    {"give_back", give_back, METH_NOARGS, give_doc},
    {NULL, NULL, 0, NULL},
};
