# SPDX-License-Identifier: GPL-2.0
#
# Included first by every make that builds the kernels debug and check (variable MAKEFILES).

lab_patches := $(dir $(lastword $(MAKEFILE_LIST)))

# Record stack traces faster: see stacktrace.h.
CFLAGS_stacktrace.o := -include $(lab_patches)stacktrace.h

# Do not spin on mutexes: see spin.h.
CFLAGS_mutex.o := -include $(lab_patches)spin.h
CFLAGS_rwsem.o := -include $(lab_patches)spin.h
CFLAGS_osq_lock.o := -include $(lab_patches)spin.h

# Yield the host's CPU while waiting for a spinlock: see qspinlock.h.
CFLAGS_qspinlock.o := -include $(lab_patches)qspinlock.h

# The parameter debug_locks: see debug_locks.h.
CFLAGS_debug_locks.o := -include $(lab_patches)debug_locks.h
