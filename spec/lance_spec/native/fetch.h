/* What a server does for each Fetch: which batches answer it, and the header before them. */
#ifndef LANCE_NATIVE_FETCH_H
#define LANCE_NATIVE_FETCH_H

#define PY_SSIZE_T_CLEAN
#include <Python.h>

extern PyMethodDef fetch_methods[];

#endif
