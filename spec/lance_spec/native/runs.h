/* Runs of Ingest frames (LWP section 4.1), their acknowledgements and their sidecar entries. */
#ifndef LANCE_NATIVE_RUNS_H
#define LANCE_NATIVE_RUNS_H

#define PY_SSIZE_T_CLEAN
#include <Python.h>

extern PyMethodDef run_methods[];

#endif
