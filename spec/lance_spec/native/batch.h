/* Records on their way into a batch (LWP section 8). */
#ifndef LANCE_NATIVE_BATCH_H
#define LANCE_NATIVE_BATCH_H

#define PY_SSIZE_T_CLEAN
#include <Python.h>

/* The bases of the Python classes of batchers and handles. */
extern PyTypeObject batcher_fields_type, handle_fields_type;

extern PyMethodDef batch_methods[];

#endif
