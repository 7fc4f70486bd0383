/* Records of Fluvio (FLV-01). */
#ifndef LANCE_NATIVE_FLUVIO_H
#define LANCE_NATIVE_FLUVIO_H

#define PY_SSIZE_T_CLEAN
#include <Python.h>

extern PyMethodDef fluvio_methods[];

#endif
