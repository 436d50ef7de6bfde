"""a_j |w_j| + (b_j/2) w_j^2 on intervals, as the kernels of working sets take it."""

cdef extern from "lasso.h" nogil:
    ctypedef struct apcg_penalty:
        const double *a
        const double *b
        const double *lower
        const double *upper
        Py_ssize_t mask[4]


cdef inline apcg_penalty penalty(const double[::1] a, const double[::1] b,
                                 const double[::1] lower, const double[::1] upper) noexcept:
    """Each of them has an entry for each j, or one for all."""
    cdef apcg_penalty made
    made.a, made.b, made.lower, made.upper = &a[0], &b[0], &lower[0], &upper[0]
    made.mask[0] = -1 if a.shape[0] > 1 else 0
    made.mask[1] = -1 if b.shape[0] > 1 else 0
    made.mask[2] = -1 if lower.shape[0] > 1 else 0
    made.mask[3] = -1 if upper.shape[0] > 1 else 0
    return made
