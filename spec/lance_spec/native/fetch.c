#include "fetch.h"

#include <limits.h>
#include <string.h>

#ifdef HAVE_PREADV2
#include <sys/uio.h>
#endif

#include "bytes.h"
#include "checksum.h"
#include "frames.h"

#define RESPONSE_HEADER 16
#define LARGE (256 * 1024) /* reads from so many bytes on let other threads run */
#define WORTHWHILE (16 * 1024) /* bytes that take as long to sum up as to combine one checksum with others */

enum { STARTS, ENDS, COUNTS, CRCS, KINDS, CHECKED, COLUMNS };

static const Py_ssize_t column_widths[COLUMNS] = {8, 8, 4, 4, 1, 1};

/* Batches that answer a Fetch: `batches` from `first` on, to the relative offset `end`. */
typedef struct {
    Py_ssize_t first, batches;
    uint64_t end, records;
    int has_crc;  /* whether their checksum is known already */
    uint32_t crc; /* of all their bytes */
} Run;

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

/* Sum the records of the batches that go together; `stop` is set to `first` where that is none. */
static uint64_t sum_run(const Py_buffer columns[COLUMNS], Py_ssize_t first, Py_ssize_t *stop)
{
    uint64_t sum = 0;
    for (Py_ssize_t place = first; place < *stop; place++) {
        if (u8_of(&columns[KINDS], place)) {
            *stop = place;
            break;
        }
        if (!u8_of(&columns[CHECKED], place)) {
            *stop = first;
            break;
        }
        sum += u32_of(&columns[COUNTS], place);
    }
    return sum;
}

/* Put the checksum of a run together from those of its batches, where that is quicker than summing up. */
static void combine_run(const Py_buffer columns[COLUMNS], uint64_t start, Run *run)
{
    run->has_crc = crc_instruction && run->end - start >= (uint64_t)run->batches * WORTHWHILE;
    run->crc = 0;
    for (Py_ssize_t place = run->first; run->has_crc && place < run->first + run->batches; place++) {
        uint64_t size = u64_of(&columns[ENDS], place) - u64_of(&columns[STARTS], place);
        run->crc = crc_of_both(run->crc, u32_of(&columns[CRCS], place), size);
    }
}

/* Find the batches that begin at `start` and end by `limit`: 1, 0 for none, -1 with an error set. */
static int find_whole(const Py_buffer columns[COLUMNS], PyObject *holes, uint64_t start, uint64_t limit, Run *run)
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
    Py_ssize_t stop = places_to(&columns[ENDS], first, count, limit);
    if ((stop = next_hole(holes, first, stop)) < 0)
        return -1;
    run->records = sum_run(columns, first, &stop);
    if (stop <= first)
        return 0;
    run->first = first;
    run->batches = stop - first;
    run->end = u64_of(&columns[ENDS], stop - 1);
    combine_run(columns, start, run);
    return 1;
}

static int find_in_index(PyObject *const *args, uint64_t start, uint64_t limit, Run *run)
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
        found = find_whole(columns, args[COLUMNS], start, limit, run);
    while (taken > 0)
        PyBuffer_Release(&columns[--taken]);
    return found;
}

PyDoc_STRVAR(whole_doc,
"whole_batches(starts, ends, counts, crcs, kinds, checked, holes, start, limit) -> (end, count) | None\n\n"
"Where the batches end that begin at `start`, end by `limit`, have no hole between them, the kind\n"
"0 and were checked; and their records. None where there is none, or one of them was not checked.");

static PyObject *whole_batches(PyObject *module, PyObject *const *args, Py_ssize_t nargs)
{
    Run run;
    if (nargs != COLUMNS + 3)
        return PyErr_Format(PyExc_TypeError, "expected %d arguments, got %zd", COLUMNS + 3, nargs);
    unsigned long long start = PyLong_AsUnsignedLongLong(args[COLUMNS + 1]);
    if (PyErr_Occurred())
        return NULL;
    unsigned long long limit = PyLong_AsUnsignedLongLong(args[COLUMNS + 2]);
    if (PyErr_Occurred())
        return NULL;
    int found = find_in_index(args, start, limit, &run);
    if (found < 0)
        return NULL;
    if (!found)
        Py_RETURN_NONE;
    return Py_BuildValue("KK", (unsigned long long)run.end, (unsigned long long)run.records);
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

/* Write the header before a payload that follows it in a bytearray. */
static void write_header(PyObject *frame, const char *prefix, uint64_t command, uint32_t topic_id, uint32_t crc)
{
    uint8_t *at = (uint8_t *)PyByteArray_AS_STRING(frame);
    memset(at, 0, FRAME_HEADER);
    memcpy(at, prefix, FRAME_PREFIX);
    store64(at + 12, command);
    store32(at + 32, (uint32_t)(PyByteArray_GET_SIZE(frame) - FRAME_HEADER));
    store32(at + 36, crc);
    store32(at + 40, topic_id);
}

/* Write the same header once the payload is summed up; -1 with an error set. */
static int seal_frame(PyObject *frame, const char *prefix, uint64_t command, uint32_t topic_id, PyObject *function,
                      int is_crc32c)
{
    Py_ssize_t length = PyByteArray_GET_SIZE(frame) - FRAME_HEADER;
    uint32_t crc = 0;
    if (length && payload_crc(frame, length, function, crc_instruction && is_crc32c, &crc) < 0)
        return -1;
    if (PyByteArray_GET_SIZE(frame) != length + FRAME_HEADER) {
        PyErr_SetString(PyExc_BufferError, "the frame changed its size while its checksum was computed");
        return -1;
    }
    write_header(frame, prefix, command, topic_id, crc);
    return 0;
}

/* A whole answer ----------------------------------------------------------------------------- */

/* The items of the two tuples that say what is answered from, and in which form. */
enum { INDEX, BASE, HIGH, SIZE, PLACE };
enum { PREFIX, COMMAND, COUNTED, FUNCTION, IS_CRC32C, FORM };

/* Fill memory from the page cache alone; 0 where that is not all there, for whatever reason. */
static int read_cached(int descriptor, void *at, size_t size, uint64_t offset)
{
#if defined(HAVE_PREADV2) && defined(RWF_NOWAIT)
    struct iovec part = {at, size};
    ssize_t got;
    if (size < LARGE)
        return preadv2(descriptor, &part, 1, (off_t)offset, RWF_NOWAIT) == (ssize_t)size;
    Py_BEGIN_ALLOW_THREADS /* no other thread knows this memory yet, and the caller keeps the file open */
    got = preadv2(descriptor, &part, 1, (off_t)offset, RWF_NOWAIT);
    Py_END_ALLOW_THREADS
    return got == (ssize_t)size;
#else
    return (void)descriptor, (void)at, (void)size, (void)offset, 0;
#endif
}

/* Write the header of an answer; -1 with an error set. */
static int seal_answer(PyObject *frame, const Run *run, uint32_t length, uint64_t command, PyObject *const *form)
{
    const char *prefix = PyBytes_AS_STRING(form[PREFIX]);
    if (!run->has_crc || form[IS_CRC32C] != Py_True)
        return seal_frame(frame, prefix, command, 0, form[FUNCTION], form[IS_CRC32C] == Py_True);
    const uint8_t *payload = (const uint8_t *)PyByteArray_AS_STRING(frame) + FRAME_HEADER;
    uint32_t crc = crc_of_both(crc_by_instruction(payload, RESPONSE_HEADER), run->crc, length);
    write_header(frame, prefix, command, 0, crc);
    return 0;
}

/* Build an answer with a run from `offset` on; NULL without an error where it cannot be read now. */
static PyObject *read_answer(int descriptor, uint64_t base, uint64_t offset, const Run *run, PyObject *const *form)
{
    Py_ssize_t room = FRAME_HEADER + RESPONSE_HEADER;
    uint32_t length = (uint32_t)(run->end - offset);
    unsigned long long command = PyLong_AsUnsignedLongLong(form[COMMAND]);
    PyObject *frame = PyErr_Occurred() ? NULL : PyByteArray_FromStringAndSize(NULL, room + (Py_ssize_t)length);
    if (frame == NULL)
        return NULL;
    uint8_t *at = (uint8_t *)PyByteArray_AS_STRING(frame);
    if (read_cached(descriptor, at + room, length, offset)) {
        store64(at + FRAME_HEADER, base + run->end);
        store32(at + FRAME_HEADER + 8, length);
        store32(at + FRAME_HEADER + 12, form[COUNTED] == Py_True ? (uint32_t)run->records : 1);
        if (seal_answer(frame, run, length, command, form) == 0)
            return frame;
    }
    Py_DECREF(frame);
    return NULL;
}

static int is_tuple_of(PyObject *object, Py_ssize_t size)
{
    return PyTuple_Check(object) && PyTuple_GET_SIZE(object) == size;
}

/* Take the numbers of a request and its place out of their objects; -1 with an error set. */
static int take_numbers(PyObject *const objects[5], unsigned long long numbers[5])
{
    for (int i = 0; i < 5; i++) {
        numbers[i] = PyLong_AsUnsignedLongLong(objects[i]);
        if (PyErr_Occurred())
            return -1;
    }
    return 0;
}

PyDoc_STRVAR(answer_doc,
"answer_fetch(descriptor, place, form, start, most) -> bytearray | None\n\n"
"A whole FetchResponse of up to `most` bytes of whole batches from the offset `start` on.\n\n"
"`place` is (columns, base, high, size): the columns as for\n"
"`whole_batches`, the offset that they are relative to, the one up to which they tell, and the\n"
"end of the file. `form` is (prefix, command, counted, checksum, is_crc32c), where `counted` says\n"
"whether records are counted or the answer only says 1. None where `whole_batches` finds none,\n"
"where more is to be known than the columns tell, or where the disk would have to be waited for.\n\n"
"The checksum of large batches is put together from theirs, so that the receiver also notices\n"
"what the disk has changed since they were checked.");

static PyObject *answer_fetch(PyObject *module, PyObject *const *args, Py_ssize_t nargs)
{
    if (nargs != 5 || !is_tuple_of(args[1], PLACE) || !is_tuple_of(args[2], FORM))
        return PyErr_Format(PyExc_TypeError, "expected a descriptor, %d and %d items, and two numbers", PLACE, FORM);
    PyObject *const *place = &PyTuple_GET_ITEM(args[1], 0), *const *form = &PyTuple_GET_ITEM(args[2], 0);
    if (!is_tuple_of(place[INDEX], COLUMNS + 1))
        return PyErr_Format(PyExc_TypeError, "expected %d columns", COLUMNS + 1);
    if (!PyBytes_Check(form[PREFIX]) || PyBytes_GET_SIZE(form[PREFIX]) != FRAME_PREFIX)
        return PyErr_Format(PyExc_TypeError, "expected a prefix of %d bytes", FRAME_PREFIX);
    long descriptor = PyLong_AsLong(args[0]);
    if (descriptor == -1 && PyErr_Occurred())
        return NULL;
    PyObject *const objects[] = {place[BASE], place[HIGH], place[SIZE], args[3], args[4]};
    unsigned long long numbers[5];
    if (take_numbers(objects, numbers) < 0)
        return NULL;
    uint64_t base = numbers[0], high = numbers[1], size = numbers[2], offset = numbers[3] - base, most = numbers[4];
    if (numbers[3] < base || offset >= size || descriptor < 0 || descriptor > INT_MAX)
        Py_RETURN_NONE;
    uint64_t limit = most < size - offset ? offset + most : size;
    Run run;
    int found = limit > high ? 0 : find_in_index(&PyTuple_GET_ITEM(place[INDEX], 0), offset, limit, &run);
    if (found < 0)
        return NULL;
    if (!found || run.end <= offset || run.end > limit || run.end - offset > UINT32_MAX - RESPONSE_HEADER ||
        run.records > UINT32_MAX)
        Py_RETURN_NONE;
    PyObject *frame = read_answer((int)descriptor, base, offset, &run, form);
    if (frame == NULL && !PyErr_Occurred())
        Py_RETURN_NONE;
    return frame;
}

PyMethodDef fetch_methods[] = {
    {"whole_batches", (PyCFunction)(void (*)(void))whole_batches, METH_FASTCALL, whole_doc},
    {"answer_fetch", (PyCFunction)(void (*)(void))answer_fetch, METH_FASTCALL, answer_doc},
    {NULL, NULL, 0, NULL},
};
