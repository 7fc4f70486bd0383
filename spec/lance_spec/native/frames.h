/* LWP frames (LWP section 3.1): what their Python class holds, and how they are cut. */
#ifndef LANCE_NATIVE_FRAMES_H
#define LANCE_NATIVE_FRAMES_H

#define PY_SSIZE_T_CLEAN
#include <Python.h>

#define FRAME_HEADER 44
#define FRAME_PREFIX 12

typedef struct {
    PyObject_HEAD
    PyObject *kind, *payload;
    unsigned long long flags, batch_id, timestamp_ns, record_count, topic_id, payload_crc;
} FrameFields;

/* The base of the Python class: its instances are filled and read without a call. */
extern PyTypeObject frame_fields_type;

extern PyMethodDef frame_methods[];

#endif
