/* Records (LWP section 8.1). */
#ifndef LANCE_NATIVE_RECORDS_H
#define LANCE_NATIVE_RECORDS_H

#define PY_SSIZE_T_CLEAN
#include <Python.h>

#include "bytes.h"

#define RECORD_HEADER 5
#define MAX_RECORD_VALUE (16u * 1024 * 1024)

extern PyMethodDef record_methods[];

/* Create the numbers that record types are given as; -1 with an error set. */
int make_record_types(void);

/* Return the size of the whole record at `at`, or 0 when there is none. */
static inline Py_ssize_t record_at(const uint8_t *at, Py_ssize_t left)
{
    if (left < RECORD_HEADER)
        return 0;
    uint32_t length = load32(at + 1);
    if (length > MAX_RECORD_VALUE || (Py_ssize_t)length > left - RECORD_HEADER)
        return 0;
    return RECORD_HEADER + (Py_ssize_t)length;
}

#endif
