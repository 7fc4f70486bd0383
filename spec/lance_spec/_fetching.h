/* What a server does for each Fetch: which batches answer it, and the header before them.
 *
 * Part of _accelerator.c, which includes it once.
 */

enum { STARTS, ENDS, COUNTS, KINDS, CHECKED, COLUMNS };

static const Py_ssize_t column_widths[COLUMNS] = {8, 8, 4, 1, 1};

static uint64_t u64_of(const Py_buffer *column, Py_ssize_t place)
{
    uint64_t value;
    memcpy(&value, (const char *)column->buf + 8 * place, sizeof value);
    return value;
}

static uint32_t u32_of(const Py_buffer *column, Py_ssize_t place)
{
    uint32_t value;
    memcpy(&value, (const char *)column->buf + 4 * place, sizeof value);
    return value;
}

static uint8_t u8_of(const Py_buffer *column, Py_ssize_t place) { return ((const uint8_t *)column->buf)[place]; }

/* Return how many of the rising values from `low` on are at most `most`, counted from the beginning. */
static Py_ssize_t places_to(const Py_buffer *column, Py_ssize_t low, Py_ssize_t high, uint64_t most)
{
    while (low < high) {
        Py_ssize_t middle = low + (high - low) / 2;
        if (u64_of(column, middle) <= most)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

/* Return the first of the rising numbers in a list that is above `place`, or `none`; -1 on error. */
static Py_ssize_t next_hole(PyObject *holes, Py_ssize_t place, Py_ssize_t none)
{
    Py_ssize_t low = 0, high = PyList_GET_SIZE(holes);
    Py_ssize_t found = none;
    while (low < high) {
        Py_ssize_t middle = low + (high - low) / 2;
        Py_ssize_t hole = PyLong_AsSsize_t(PyList_GET_ITEM(holes, middle));
        if (hole == -1 && PyErr_Occurred())
            return -1;
        if (hole > place) {
            found = hole;
            high = middle;
        } else
            low = middle + 1;
    }
    return found < none ? found : none;
}

/* Sum the records of the batches that go together; `behind` is set to `first` where that is none. */
static uint64_t sum_run(const Py_buffer columns[COLUMNS], Py_ssize_t first, Py_ssize_t *behind)
{
    uint64_t sum = 0;
    for (Py_ssize_t place = first; place < *behind; place++) {
        if (u8_of(&columns[KINDS], place)) {
            *behind = place;
            break;
        }
        if (!u8_of(&columns[CHECKED], place)) {
            *behind = first;
            break;
        }
        sum += u32_of(&columns[COUNTS], place);
    }
    return sum;
}

/* Find the batches that begin at `start` and end by `limit`: 1, 0 for none, -1 with an error set. */
static int find_whole(const Py_buffer columns[COLUMNS], PyObject *holes, uint64_t start, uint64_t limit, uint64_t *end,
                      uint64_t *records)
{
    Py_ssize_t count = columns[STARTS].len / 8;
    for (int i = 0; i < COLUMNS; i++)
        if (columns[i].len / column_widths[i] < count) {
            PyErr_SetString(PyExc_ValueError, "the columns are not of one length");
            return -1;
        }
    Py_ssize_t first = places_to(&columns[STARTS], 0, count, start) - 1;
    if (first < 0 || u64_of(&columns[STARTS], first) != start)
        return 0;
    Py_ssize_t behind = places_to(&columns[ENDS], first, count, limit);
    if ((behind = next_hole(holes, first, behind)) < 0)
        return -1;
    *records = sum_run(columns, first, &behind);
    if (behind <= first)
        return 0;
    *end = u64_of(&columns[ENDS], behind - 1);
    return 1;
}

static int find_in_index(PyObject *const *args, uint64_t start, uint64_t limit, uint64_t *end, uint64_t *records)
{
    Py_buffer columns[COLUMNS];
    int taken = 0, found = -1;
    if (!PyList_Check(args[COLUMNS])) {
        PyErr_Format(PyExc_TypeError, "holes: expected a list, got %R", Py_TYPE(args[COLUMNS]));
        return -1;
    }
    while (taken < COLUMNS && PyObject_GetBuffer(args[taken], &columns[taken], PyBUF_SIMPLE) == 0)
        taken++;
    if (taken == COLUMNS)
        found = find_whole(columns, args[COLUMNS], start, limit, end, records);
    while (taken > 0)
        PyBuffer_Release(&columns[--taken]);
    return found;
}

PyDoc_STRVAR(whole_doc,
"whole_batches(starts, ends, counts, kinds, checked, holes, start, limit) -> (end, count) | None\n\n"
"Where the batches end that begin at `start`, end by `limit`, have no hole between them, the kind\n"
"0 and were checked; and their records. None where there is none, or one of them was not checked.");

static PyObject *whole_batches(PyObject *module, PyObject *const *args, Py_ssize_t nargs)
{
    uint64_t end = 0, records = 0;
    if (nargs != COLUMNS + 3)
        return PyErr_Format(PyExc_TypeError, "expected %d arguments, got %zd", COLUMNS + 3, nargs);
    unsigned long long start = PyLong_AsUnsignedLongLong(args[COLUMNS + 1]);
    if (PyErr_Occurred())
        return NULL;
    unsigned long long limit = PyLong_AsUnsignedLongLong(args[COLUMNS + 2]);
    if (PyErr_Occurred())
        return NULL;
    int found = find_in_index(args, start, limit, &end, &records);
    if (found < 0)
        return NULL;
    if (!found)
        Py_RETURN_NONE;
    return Py_BuildValue("KK", (unsigned long long)end, (unsigned long long)records);
}

/* Compute the checksum of a frame's payload; -1 with an error set. */
static int payload_crc(PyObject *frame, Py_ssize_t length, PyObject *function, int by_instruction, uint32_t *crc)
{
    if (by_instruction && length <= SMALL) {
        *crc = crc_by_instruction((const uint8_t *)PyByteArray_AS_STRING(frame) + FRAME_HEADER, (size_t)length);
        return 0;
    }
    PyObject *view = PyMemoryView_FromObject(frame);
    if (view == NULL)
        return -1;
    int done = crc_by_call(function, view, FRAME_HEADER, FRAME_HEADER + length, crc);
    Py_DECREF(view);
    return done;
}

PyDoc_STRVAR(seal_doc,
"seal(frame, prefix, command, topic_id, checksum, is_crc32c) -> None\n\n"
"Write the 44 bytes of the header before a payload that stands in a bytearray behind them.");

static PyObject *seal(PyObject *module, PyObject *const *args, Py_ssize_t nargs)
{
    if (nargs != 6)
        return PyErr_Format(PyExc_TypeError, "expected 6 arguments, got %zd", nargs);
    if (!PyByteArray_Check(args[0]) || !PyBytes_Check(args[1]) || PyBytes_GET_SIZE(args[1]) != FRAME_PREFIX)
        return PyErr_Format(PyExc_TypeError, "expected a bytearray and a prefix of %d bytes", FRAME_PREFIX);
    unsigned long long command = PyLong_AsUnsignedLongLong(args[2]);
    if (PyErr_Occurred())
        return NULL;
    unsigned long long topic_id = PyLong_AsUnsignedLongLong(args[3]);
    if (PyErr_Occurred())
        return NULL;
    Py_ssize_t length = PyByteArray_GET_SIZE(args[0]) - FRAME_HEADER;
    if (length < 0 || (uint64_t)length > UINT32_MAX || topic_id > UINT32_MAX)
        return PyErr_Format(PyExc_ValueError, "a frame of %zd bytes for topic %llu cannot be", length + FRAME_HEADER,
                            topic_id);
    uint32_t crc = 0;
    if (length && payload_crc(args[0], length, args[4], instruction && args[5] == Py_True, &crc) < 0)
        return NULL;
    if (PyByteArray_GET_SIZE(args[0]) != length + FRAME_HEADER)
        return PyErr_Format(PyExc_BufferError, "the frame changed its size while its checksum was computed");
    uint8_t *at = (uint8_t *)PyByteArray_AS_STRING(args[0]);
    memset(at, 0, FRAME_HEADER);
    memcpy(at, PyBytes_AS_STRING(args[1]), FRAME_PREFIX);
    store64(at + 12, command);
    store32(at + 32, (uint32_t)length);
    store32(at + 36, crc);
    store32(at + 40, (uint32_t)topic_id);
    Py_RETURN_NONE;
}
