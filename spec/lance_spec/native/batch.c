#include "batch.h"

#include <string.h>
#include <structmember.h>

#include "records.h"

typedef struct {
    PyObject_HEAD
    PyObject *last, *values;
    Py_ssize_t used, bound, plain_type;
} BatcherFields;

typedef struct {
    PyObject_HEAD
    PyObject *batch;
    Py_ssize_t index;
} HandleFields;

static PyMemberDef batcher_members[] = {
    {"last", T_OBJECT_EX, offsetof(BatcherFields, last), 0, NULL},
    {"values", T_OBJECT_EX, offsetof(BatcherFields, values), 0, NULL},
    {"used", T_PYSSIZET, offsetof(BatcherFields, used), 0, NULL},
    {"bound", T_PYSSIZET, offsetof(BatcherFields, bound), 0, NULL},
    {"plain_type", T_PYSSIZET, offsetof(BatcherFields, plain_type), 0, NULL},
    {NULL, 0, 0, 0, NULL},
};

static PyMemberDef handle_members[] = {
    {"_batch", T_OBJECT_EX, offsetof(HandleFields, batch), 0, NULL},
    {"_index", T_PYSSIZET, offsetof(HandleFields, index), 0, NULL},
    {NULL, 0, 0, 0, NULL},
};

static int visit_batcher(PyObject *object, visitproc visit, void *arg)
{
    Py_VISIT(((BatcherFields *)object)->last);
    Py_VISIT(((BatcherFields *)object)->values);
    return 0;
}

static int clear_batcher(PyObject *object)
{
    Py_CLEAR(((BatcherFields *)object)->last);
    Py_CLEAR(((BatcherFields *)object)->values);
    return 0;
}

static int visit_handle(PyObject *object, visitproc visit, void *arg)
{
    Py_VISIT(((HandleFields *)object)->batch);
    return 0;
}

static int clear_handle(PyObject *object)
{
    Py_CLEAR(((HandleFields *)object)->batch);
    return 0;
}

static void free_batcher(PyObject *object)
{
    PyObject_GC_UnTrack(object);
    clear_batcher(object);
    Py_TYPE(object)->tp_free(object);
}

static void free_handle(PyObject *object)
{
    PyObject_GC_UnTrack(object);
    clear_handle(object);
    Py_TYPE(object)->tp_free(object);
}

PyTypeObject batcher_fields_type = {
    PyVarObject_HEAD_INIT(NULL, 0)
    .tp_name = "lance_spec._accelerator.BatcherFields",
    .tp_doc = PyDoc_STR("What tells whether a record plainly fits into the open batch of a batcher."),
    .tp_basicsize = sizeof(BatcherFields),
    .tp_flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_BASETYPE | Py_TPFLAGS_HAVE_GC,
    .tp_new = PyType_GenericNew,
    .tp_dealloc = free_batcher,
    .tp_traverse = visit_batcher,
    .tp_clear = clear_batcher,
    .tp_members = batcher_members,
};

PyTypeObject handle_fields_type = {
    PyVarObject_HEAD_INIT(NULL, 0)
    .tp_name = "lance_spec._accelerator.HandleFields",
    .tp_doc = PyDoc_STR("A batch, and the place of a record in it."),
    .tp_basicsize = sizeof(HandleFields),
    .tp_flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_BASETYPE | Py_TPFLAGS_HAVE_GC,
    .tp_new = PyType_GenericNew,
    .tp_dealloc = free_handle,
    .tp_traverse = visit_handle,
    .tp_clear = clear_handle,
    .tp_members = handle_members,
};

/* Whether a batcher plainly has room for so many bytes of a type. */
static int has_room(const BatcherFields *batcher, Py_ssize_t size, Py_ssize_t type)
{
    return batcher->last != NULL && batcher->values != NULL && PyList_CheckExact(batcher->values) &&
           batcher->used >= 0 && batcher->bound >= batcher->used && size < batcher->bound - batcher->used && type >= 0 &&
           type == batcher->plain_type;
}

PyDoc_STRVAR(add_doc,
"add_to_batch(batcher, value, record_type, handle_type) -> handle or None\n\n"
"Put bytes into the open batch of a `BatcherFields` if there is plainly room for them, and return\n"
"their handle, of a class derived from `HandleFields`; None when `Batcher.append` must have a look.\n"
"It is one step for all other threads.");

static PyObject *add_to_batch(PyObject *module, PyObject *const *arguments, Py_ssize_t count)
{
    if (count != 4 || !PyObject_TypeCheck(arguments[0], &batcher_fields_type) || !PyLong_Check(arguments[2]) ||
        !PyType_Check(arguments[3]) || !PyType_IsSubtype((PyTypeObject *)arguments[3], &handle_fields_type)) {
        PyErr_SetString(PyExc_TypeError, "expected a batcher, a value, a record type and a class of handles");
        return NULL;
    }
    BatcherFields *batcher = (BatcherFields *)arguments[0];
    PyObject *value = arguments[1];
    PyTypeObject *handle_type = (PyTypeObject *)arguments[3];
    Py_ssize_t type = PyLong_AsSsize_t(arguments[2]);
    PyErr_Clear(); /* a type that does not fit is -1, too */
    if (!PyBytes_CheckExact(value))
        Py_RETURN_NONE;
    /* First: it may run a finalizer, and that anything. */
    HandleFields *handle = (HandleFields *)handle_type->tp_alloc(handle_type, 0);
    if (handle == NULL)
        return NULL;
    Py_ssize_t size = RECORD_HEADER + PyBytes_GET_SIZE(value);
    if (!has_room(batcher, size, type)) {
        Py_DECREF(handle);
        Py_RETURN_NONE;
    }
    handle->batch = Py_NewRef(batcher->last);
    handle->index = PyList_GET_SIZE(batcher->values);
    if (PyList_Append(batcher->values, value) < 0) {
        Py_DECREF(handle);
        return NULL;
    }
    batcher->used += size;
    return (PyObject *)handle;
}

PyDoc_STRVAR(join_doc,
"join_records(values, record_type) -> bytes or None\n\n"
"Return a list of bytes as records of one type; None when anything about them needs a look.");

static PyObject *join_records(PyObject *module, PyObject *const *arguments, Py_ssize_t count)
{
    if (count != 2 || !PyList_CheckExact(arguments[0]) || !PyLong_Check(arguments[1]))
        Py_RETURN_NONE;
    PyObject *values = arguments[0];
    long type = PyLong_AsLong(arguments[1]);
    if (type < 0 || type > 255) {
        PyErr_Clear();
        Py_RETURN_NONE;
    }
    Py_ssize_t total = 0, records = PyList_GET_SIZE(values);
    for (Py_ssize_t i = 0; i < records; i++) {
        PyObject *value = PyList_GET_ITEM(values, i);
        if (!PyBytes_CheckExact(value) || PyBytes_GET_SIZE(value) > MAX_RECORD_VALUE)
            Py_RETURN_NONE;
        total += RECORD_HEADER + PyBytes_GET_SIZE(value);
    }
    PyObject *joined = PyBytes_FromStringAndSize(NULL, total);
    if (joined == NULL)
        return NULL;
    uint8_t *out = (uint8_t *)PyBytes_AS_STRING(joined);
    for (Py_ssize_t i = 0; i < records; i++) {
        PyObject *value = PyList_GET_ITEM(values, i);
        Py_ssize_t size = PyBytes_GET_SIZE(value);
        *out++ = (uint8_t)type;
        for (int shift = 0; shift < 32; shift += 8)
            *out++ = (uint8_t)(size >> shift);
        memcpy(out, PyBytes_AS_STRING(value), (size_t)size);
        out += size;
    }
    return joined;
}

PyMethodDef batch_methods[] = {
    {"add_to_batch", (PyCFunction)(void (*)(void))add_to_batch, METH_FASTCALL, add_doc},
    {"join_records", (PyCFunction)(void (*)(void))join_records, METH_FASTCALL, join_doc},
    {NULL, NULL, 0, NULL},
};
