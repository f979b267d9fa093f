/* SPDX-License-Identifier: GPL-2.0 */
#ifndef RIW_HELPERS_KERNEL_H
#define RIW_HELPERS_KERNEL_H

#include <linux/memcontrol.h>
#include <linux/percpu.h>
#include <linux/ratelimit_types.h>
#include <linux/spinlock.h>

void riw_helper_local_bh_disable(void);
void riw_helper_local_bh_enable(void);
void riw_helper_spin_lock_bh(spinlock_t *lock);
void riw_helper_spin_unlock_bh(spinlock_t *lock);
int riw_helper_spin_trylock_bh(spinlock_t *lock);
void riw_helper_rwlock_init(rwlock_t *lock);
void riw_helper_read_lock_bh(rwlock_t *lock);
void riw_helper_read_unlock_bh(rwlock_t *lock);
void riw_helper_write_lock_bh(rwlock_t *lock);
void riw_helper_write_unlock_bh(rwlock_t *lock);

void riw_helper_copy_memory(u8 *to, const u8 *from, size_t len);

unsigned int riw_helper_memalloc_flags_save(unsigned int flags);
void riw_helper_memalloc_flags_restore(unsigned int flags);
struct mem_cgroup *riw_helper_current_memcg(void);
void riw_helper_forget_excess(void);
struct mem_cgroup *riw_helper_set_active_memcg(struct mem_cgroup *memcg);
struct mem_cgroup *riw_helper_get_memcg(struct mem_cgroup *memcg);
void riw_helper_put_memcg(struct mem_cgroup *memcg);
void *riw_helper_kvzalloc_charged(size_t size);

void riw_helper_ratelimit_state_init(struct ratelimit_state *rs, int interval, int burst);
int riw_helper_ratelimit_state_reset_miss(struct ratelimit_state *rs);

unsigned int riw_helper_num_possible_cpus(void);
int riw_helper_other_cpu(int last);
u64 riw_helper_cpu_idle_us(int cpu);
bool riw_helper_is_alone(void);
bool riw_helper_is_realtime(void);
void riw_helper_quiesce(void);

u64 __percpu *riw_helper_alloc_percpu_u64(size_t count);
void riw_helper_this_cpu_add_u64(u64 __percpu *counter, u64 n);
u64 *riw_helper_this_cpu_ptr_u64(u64 __percpu *counters);
u64 riw_helper_percpu_sum_u64(u64 __percpu *counter);

#endif
