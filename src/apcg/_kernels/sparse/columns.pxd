from libc.stdint cimport int32_t, int64_t

cdef extern from "columns.h" nogil:
    ctypedef struct apcg_entry:
        int32_t row
        float x
    ctypedef struct apcg_columns:
        const apcg_entry *entries
        const int64_t *start
        double unit


cdef class Columns:
    cdef apcg_columns at
    cdef readonly object entries, start
