cimport cython


cdef class TextTable:
    cdef unsigned long long[::1] digests
    cdef int[::1] pages, page

    @cython.locals(added=int, block=Py_ssize_t, place=Py_ssize_t)
    cpdef int learn(
        self, int page, const unsigned long long[::1] texts, const Py_ssize_t[::1] paths, int[::1] new
    ) except -1

    @cython.locals(block=Py_ssize_t, place=Py_ssize_t)
    cpdef int forget(
        self, int page, const unsigned long long[::1] texts, const Py_ssize_t[::1] paths, int[::1] gone
    ) except -1

    @cython.locals(block=Py_ssize_t)
    cpdef int look_up(self, const unsigned long long[::1] texts, int[::1] pages) except -1

    @cython.locals(last=cython.ulonglong, place=cython.ulonglong)
    cdef Py_ssize_t find(self, unsigned long long digest) except -1


@cython.locals(trees=Py_ssize_t, size=Py_ssize_t, tree=Py_ssize_t, first=Py_ssize_t, column=Py_ssize_t)
cpdef int add_leaves(const unsigned char[:, ::1] nodes, const float[::1] leaves, float[::1] sums) except -1
