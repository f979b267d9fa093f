# SPDX-License-Identifier: GPL-2.0
#
# Included first by every make that builds the fast kernel (variable MAKEFILES).

lab_patches := $(dir $(lastword $(MAKEFILE_LIST)))

# User-Mode Linux has no CRC32_ARCH. Define it for crc32-main.c only, which then includes the crc32.h
# in this folder.
CFLAGS_crc32-main.o := -DCONFIG_CRC32_ARCH=1 -mcrc32 -I$(lab_patches)

# Nor does it have the ciphers of x86, with their vector instructions: kconfig excludes them. What they need of x86 is
# in simd.h.
ifeq ($(obj),crypto)
# AES-GCM. crypto_algapi is linked into each kernel with TLS, and takes what is in this variable already.
crypto_algapi-y := $(addprefix ../arch/x86/crypto/,aesni-intel_asm.o aesni-intel_glue.o aes-ctr-avx-x86_64.o \
	aes-gcm-aesni-x86_64.o aes-gcm-vaes-avx2.o aes-gcm-vaes-avx512.o aes-xts-avx-x86_64.o)
CFLAGS_../arch/x86/crypto/aesni-intel_glue.o := -include $(lab_patches)simd.h
endif
ifeq ($(obj),lib/crypto)
# ChaCha20-Poly1305, for WireGuard.
SRCARCH := x86
CONFIG_X86 := y
CONFIG_CRYPTO_LIB_CHACHA_ARCH := y
CONFIG_CRYPTO_LIB_POLY1305_ARCH := y
CFLAGS_chacha.o := -DCONFIG_CRYPTO_LIB_CHACHA_ARCH=1 -include $(lab_patches)simd.h
CFLAGS_poly1305.o := -DCONFIG_CRYPTO_LIB_POLY1305_ARCH=1 -include $(lab_patches)simd.h
endif

# The link between two machines: see vnet.h.
ifeq ($(obj),arch/um/drivers)
CFLAGS_vector_transports.o := -include $(lab_patches)vnet.h
endif

# Interrupts on a machine with one CPU: see irq.h.
ifeq ($(obj),arch/um/kernel)
CFLAGS_irq.o := -include $(lab_patches)irq.h
endif
