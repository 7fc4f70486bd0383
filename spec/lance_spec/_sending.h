/* Records on their way into a batch (LWP section 8).
 *
 * Part of _accelerator.c, which includes it once.
 */

enum { LAST, USED, BOUND, PLAIN_TYPE, OPEN_FIELDS };

static const char *const open_names[OPEN_FIELDS] = {"last", "used", "bound", "plain_type"};
static const char *const batch_names[1] = {"values"};

/* Where the slots of the classes are, so that they are read and written without a call. */
static struct {
    PyTypeObject *batcher, *batch;
    Py_ssize_t open[OPEN_FIELDS], values;
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
            PyErr_Format(PyExc_TypeError, "%s.%s is no slot", type->tp_name, names[i]);
        Py_DECREF(slot);
        if (!usable)
            return -1;
    }
    memcpy(offsets, found, (size_t)count * sizeof *found);
    return 0;
}

static PyObject **at_offset(PyObject *object, Py_ssize_t offset) { return (PyObject **)((char *)object + offset); }

/* Return a whole number that a slot holds, -1 when it holds none that fits. */
static Py_ssize_t whole(PyObject *batcher, int field)
{
    PyObject *value = *at_offset(batcher, sending.open[field]);
    Py_ssize_t number = value != NULL && PyLong_CheckExact(value) ? PyLong_AsSsize_t(value) : -1;
    if (number == -1)
        PyErr_Clear();
    return number;
}

static int learn_batcher(PyObject *batcher)
{
    PyTypeObject *type = Py_TYPE(batcher);
    if (find_slots(type, open_names, OPEN_FIELDS, sending.open) < 0)
        return -1;
    Py_XSETREF(sending.batcher, (PyTypeObject *)Py_NewRef(type));
    return 0;
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
"add_record(batcher, value, record_type, handle_type) -> handle or None\n\n"
"Put bytes into the open batch of a `Batcher` if there is plainly room for them, and return their\n"
"handle, a tuple of batch and index; None when `Batcher.append` must have a look. It is one step\n"
"for all other threads.");

static PyObject *add_record(PyObject *module, PyObject *const *arguments, Py_ssize_t count)
{
    if (count != 4 || !PyType_Check(arguments[3]) || !PyType_IsSubtype((PyTypeObject *)arguments[3], &PyTuple_Type) ||
        !PyLong_Check(arguments[2])) {
        PyErr_SetString(PyExc_TypeError, "expected a batcher, a value, a record type and a class of tuples");
        return NULL;
    }
    PyObject *batcher = arguments[0], *value = arguments[1];
    if (!Py_IS_TYPE(batcher, sending.batcher) && learn_batcher(batcher) < 0)
        return NULL;
    if (!PyBytes_CheckExact(value))
        Py_RETURN_NONE;
    PyTypeObject *type = (PyTypeObject *)arguments[3];
    PyObject *handle = type->tp_alloc(type, 2); /* first: it may run a finalizer, and that anything */
    if (handle == NULL)
        return NULL;
    PyObject *batch = *at_offset(batcher, sending.open[LAST]), *values = open_values(batch);
    Py_ssize_t used = whole(batcher, USED) + RECORD_HEADER + PyBytes_GET_SIZE(value);
    if (values == NULL || PyErr_Occurred() || used >= whole(batcher, BOUND) ||
        whole(batcher, PLAIN_TYPE) != PyLong_AsSsize_t(arguments[2])) {
        Py_DECREF(handle);
        return PyErr_Occurred() ? NULL : Py_NewRef(Py_None);
    }
    PyObject *filled = PyLong_FromSsize_t(used), *index = PyLong_FromSsize_t(PyList_GET_SIZE(values));
    if (filled == NULL || index == NULL || PyList_Append(values, value) < 0) {
        Py_XDECREF(filled);
        Py_XDECREF(index);
        Py_DECREF(handle);
        return NULL;
    }
    Py_SETREF(*at_offset(batcher, sending.open[USED]), filled);
    PyTuple_SET_ITEM(handle, 0, Py_NewRef(batch));
    PyTuple_SET_ITEM(handle, 1, index);
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
