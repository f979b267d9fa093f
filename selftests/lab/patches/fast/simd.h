/* SPDX-License-Identifier: GPL-2.0 */
/*
 * What the ciphers of x86 need, for User-Mode Linux on x86-64. Included before their sources.
 *
 * A thread of the kernel can use vector registers at any time. It is preempted by a signal, and the host saves all
 * registers then. Otherwise it switches by a function call, across which nobody keeps a vector register.
 */
#ifndef RIW_LAB_FAST_SIMD_H
#define RIW_LAB_FAST_SIMD_H

#include <asm/cpu_device_id.h>
#include <asm/cpufeature.h>
#include <asm/fpu/api.h>

/* The flags of the host's CPU are those that the host's kernel lets processes use. */
#define cpu_has_xfeatures(features, name) true

/* The only match is for the instructions of AES. */
#define x86_match_cpu(match) ((void)(match), boot_cpu_has(X86_FEATURE_AES))

/* The model of the CPU is unknown, so it is never Skylake-X, for which poly1305.h leaves out AVX-512. */
#define X86_VENDOR_INTEL 0
#define x86_vfm cache_alignment

#endif
