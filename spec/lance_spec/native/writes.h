/* Positioned writes to many files. */
#ifndef LANCE_NATIVE_WRITES_H
#define LANCE_NATIVE_WRITES_H

#define PY_SSIZE_T_CLEAN
#include <Python.h>

extern PyMethodDef write_methods[];

#endif
