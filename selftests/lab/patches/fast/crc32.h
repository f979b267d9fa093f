/* SPDX-License-Identifier: GPL-2.0 */
/*
 * CRC-32C by the CPU's crc32 instruction, for User-Mode Linux on x86-64.
 *
 * lib/crc/crc32-main.c includes this header as the one of the architecture. User-Mode Linux has
 * none, so its generic code looks up each byte in a table.
 *
 * The instruction has a latency of 3 or 4 cycles and a throughput of one per cycle. So a block is
 * split into four lanes, whose CRCs are computed in parallel. Tables combine them, so this uses
 * general-purpose registers only.
 */
#ifndef RIW_LAB_FAST_CRC32_H
#define RIW_LAB_FAST_CRC32_H

#include <linux/cache.h>
#include <linux/init.h>
#include <linux/printk.h>
#include <linux/unaligned.h>
#include <asm/cpufeature.h>

#define crc32_le_arch crc32_le_base
#define crc32_be_arch crc32_be_base

#define CRC32C_LANES 4

/* Bytes per lane. A page without headers is one long block, a segment at MTU 1500 three short ones. */
#define CRC32C_LONG_LANE 1008
#define CRC32C_SHORT_LANE 112

/* For each byte of a CRC and each value of it: the CRC after a lane of zeros. */
typedef u32 crc32c_zeros[4][256];

static crc32c_zeros crc32c_long_zeros __ro_after_init;
static crc32c_zeros crc32c_short_zeros __ro_after_init;
static bool crc32c_instruction __ro_after_init;

static inline u32 crc32c_skip_lane(const crc32c_zeros zeros, u32 crc)
{
	return zeros[0][crc & 255] ^ zeros[1][crc >> 8 & 255] ^
	       zeros[2][crc >> 16 & 255] ^ zeros[3][crc >> 24];
}

static inline u64 crc32c_word(u64 crc, const u8 *p)
{
	return __builtin_ia32_crc32di(crc, get_unaligned((const u64 *)p));
}

/*
 * Processes whole blocks of CRC32C_LANES lanes of @lane bytes. Advances @p and @len past them. One
 * variable per lane, not an array: gcc keeps an array in memory, which halves the speed.
 */
static __always_inline u32 crc32c_lanes(u32 crc, const u8 **p, size_t *len, size_t lane,
					const crc32c_zeros zeros)
{
	size_t block = CRC32C_LANES * lane;

	for (; *len >= block; *p += block, *len -= block) {
		const u8 *at = *p;
		u64 a = crc, b = 0, c = 0, d = 0;

		for (size_t i = 0; i < lane; i += 8) {
			a = crc32c_word(a, at + i);
			b = crc32c_word(b, at + lane + i);
			c = crc32c_word(c, at + 2 * lane + i);
			d = crc32c_word(d, at + 3 * lane + i);
		}
		crc = crc32c_skip_lane(zeros, a) ^ b;
		crc = crc32c_skip_lane(zeros, crc) ^ c;
		crc = crc32c_skip_lane(zeros, crc) ^ d;
	}
	return crc;
}

static u32 crc32c_arch(u32 crc, const u8 *p, size_t len)
{
	if (!crc32c_instruction)
		return crc32c_base(crc, p, len);
	crc = crc32c_lanes(crc, &p, &len, CRC32C_LONG_LANE, crc32c_long_zeros);
	crc = crc32c_lanes(crc, &p, &len, CRC32C_SHORT_LANE, crc32c_short_zeros);
	for (; len >= 8; p += 8, len -= 8)
		crc = crc32c_word(crc, p);
	for (; len; p++, len--)
		crc = __builtin_ia32_crc32qi(crc, *p);
	return crc;
}

static void __init crc32c_fill_zeros(crc32c_zeros zeros, size_t lane)
{
	static const u8 zero_lane[CRC32C_LONG_LANE] __initconst;

	for (unsigned int byte = 0; byte < 4; byte++)
		for (u32 value = 0; value < 256; value++)
			zeros[byte][value] = crc32c_base(value << 8 * byte, zero_lane, lane);
}

#define crc32_mod_init_arch crc32_mod_init_arch
static void __init crc32_mod_init_arch(void)
{
	if (!boot_cpu_has(X86_FEATURE_XMM4_2))
		return;
	crc32c_fill_zeros(crc32c_long_zeros, CRC32C_LONG_LANE);
	crc32c_fill_zeros(crc32c_short_zeros, CRC32C_SHORT_LANE);
	crc32c_instruction = true;
	pr_info("crc32c: using the CPU's instruction\n");
}

static u32 crc32_optimizations_arch(void)
{
	return crc32c_instruction ? CRC32C_OPTIMIZATION : 0;
}

#endif
