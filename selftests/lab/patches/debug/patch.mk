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

# KASAN checks the accesses of riw, and of the code that gets memory of riw or gives it some: RDMA, TCP, SCTP,
# the kernel users, and the core with its work items, timers and RCU. Without those of the rest (file systems,
# block devices, crypto, netfilter …) the kernel is built and runs faster.
kasan_checks := kernel lib mm rust drivers/dma-buf drivers/infiniband drivers/nvme fs/smb/smbdirect \
	net/core net/ipv4 net/ipv6 net/sctp net/sunrpc net/tls
ifneq ($(obj),)
ifeq ($(filter $(kasan_checks) $(addsuffix /%,$(kasan_checks)),$(obj)),)
KASAN_SANITIZE := n
endif
endif
