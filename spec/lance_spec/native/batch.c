#include "batch.h"

#include <string.h>
#include <structmember.h>

#include "records.h"

enum { LAST, USED, BOUND, PLAIN_TYPE, OPEN_FIELDS };
enum { HANDLE_BATCH, HANDLE_INDEX, HANDLE_FIELDS };

static const char *const open_names[OPEN_FIELDS] = {"last", "used", "bound", "plain_type"};
static const char *const batch_names[1] = {"values"};
static const char *const handle_names[HANDLE_FIELDS] = {"_batch", "_index"};

/* Where the slots of the classes are, so that they are read and written without a call. */
static struct {
    PyTypeObject *batcher, *batch, *handle;
    Py_ssize_t open[OPEN_FIELDS], values, parts[HANDLE_FIELDS];
} sending;

static int is_slot_of(PyObject *found, PyTypeObject *type)
{
    return Py_IS_TYPE(found, &PyMemberDescr_Type) && ((PyMemberDescrObject *)found)->d_member->type == T_OBJECT_EX &&
           PyType_IsSubtype(type, PyDescr_TYPE(found));
}

/* Find where the slots of a class are: all of them, or none and an error. */
static int find_slots(PyTypeObject *type, const char *const *names, int count, Py_ssize_t *offsets)
{
    Py_ssize_t found[OPEN_FIELDS];
    for (int i = 0; i < count; i++) {
        PyObject *slot = PyObject_GetAttrString((PyObject *)type, names[i]);
        if (slot == NULL)
            return -1;
        int usable = is_slot_of(slot, type);
        if (usable)
            found[i] = ((PyMemberDescrObject *)slot)->d_member->offset;
        else
            PyErr_Format(PyExc_TypeError, "%s.%s is not a slot", type->tp_name, names[i]);
        Py_DECREF(slot);
        if (!usable)
            return -1;
    }
    memcpy(offsets, found, (size_t)count * sizeof *found);
    return 0;
}

static PyObject **at_offset(PyObject *object, Py_ssize_t offset) { return (PyObject **)((char *)object + offset); }

/* Return a number that is not negative, -1 where an object is not such a number or does not fit. */
static Py_ssize_t whole(PyObject *value)
{
    Py_ssize_t number = value != NULL && PyLong_Check(value) ? PyLong_AsSsize_t(value) : -1;
    if (number == -1)
        PyErr_Clear();
    return number < 0 ? -1 : number;
}

static Py_ssize_t whole_slot(PyObject *batcher, int field) { return whole(*at_offset(batcher, sending.open[field])); }

static int learn_batcher(PyObject *batcher)
{
    PyTypeObject *type = Py_TYPE(batcher);
    if (find_slots(type, open_names, OPEN_FIELDS, sending.open) < 0)
        return -1;
    Py_XSETREF(sending.batcher, (PyTypeObject *)Py_NewRef(type));
    return 0;
}

/* Return a handle without its parts. */
static PyObject *empty_handle(PyTypeObject *type)
{
    if (type != sending.handle) {
        if (find_slots(type, handle_names, HANDLE_FIELDS, sending.parts) < 0)
            return NULL;
        Py_XSETREF(sending.handle, (PyTypeObject *)Py_NewRef(type));
    }
    return type->tp_alloc(type, 0);
}

/* Return the list of values of the open batch, borrowed; NULL with or without an error. */
static PyObject *open_values(PyObject *batch)
{
    if (batch == NULL)
        return NULL;
    if (!Py_IS_TYPE(batch, sending.batch)) {
        if (find_slots(Py_TYPE(batch), batch_names, 1, &sending.values) < 0)
            return NULL;
        Py_XSETREF(sending.batch, (PyTypeObject *)Py_NewRef(Py_TYPE(batch)));
    }
    PyObject *values = *at_offset(batch, sending.values);
    return values != NULL && PyList_CheckExact(values) ? values : NULL;
}

PyDoc_STRVAR(add_doc,
"add_to_batch(batcher, value, record_type, handle_type) -> handle or None\n\n"
"Put bytes into the open batch of a `Batcher` if there is plainly room for them, and return their\n"
"handle, with its batch and index; None when `Batcher.append` must have a look. It is one step\n"
"for all other threads.");

static PyObject *add_to_batch(PyObject *module, PyObject *const *arguments, Py_ssize_t count)
{
    if (count != 4 || !PyType_Check(arguments[3]) || !PyLong_Check(arguments[2])) {
        PyErr_SetString(PyExc_TypeError, "expected a batcher, a value, a record type and a class of handles");
        return NULL;
    }
    PyObject *batcher = arguments[0], *value = arguments[1];
    if (!Py_IS_TYPE(batcher, sending.batcher) && learn_batcher(batcher) < 0)
        return NULL;
    if (!PyBytes_CheckExact(value))
        Py_RETURN_NONE;
    PyObject *handle = empty_handle((PyTypeObject *)arguments[3]); /* first: it may run a finalizer, and that anything */
    if (handle == NULL)
        return NULL;
    PyObject *batch = *at_offset(batcher, sending.open[LAST]), *values = open_values(batch);
    if (values == NULL || PyErr_Occurred()) {
        Py_DECREF(handle);
        return PyErr_Occurred() ? NULL : Py_NewRef(Py_None);
    }
    Py_ssize_t used = whole_slot(batcher, USED), bound = whole_slot(batcher, BOUND), type = whole(arguments[2]);
    Py_ssize_t size = RECORD_HEADER + PyBytes_GET_SIZE(value);
    if (used < 0 || bound < used || size >= bound - used || type < 0 || type != whole_slot(batcher, PLAIN_TYPE)) {
        Py_DECREF(handle);
        Py_RETURN_NONE;
    }
    PyObject *filled = PyLong_FromSsize_t(used + size), *index = PyLong_FromSsize_t(PyList_GET_SIZE(values));
    if (filled == NULL || index == NULL || PyList_Append(values, value) < 0) {
        Py_XDECREF(filled);
        Py_XDECREF(index);
        Py_DECREF(handle);
        return NULL;
    }
    Py_XSETREF(*at_offset(batcher, sending.open[USED]), filled);
    *at_offset(handle, sending.parts[HANDLE_BATCH]) = Py_NewRef(batch);
    *at_offset(handle, sending.parts[HANDLE_INDEX]) = index;
    return handle;
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
