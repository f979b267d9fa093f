// SPDX-License-Identifier: GPL-2.0
/*
 * Macros and inline functions of the kernel, which bindgen does not see, for rust/kernel-ext. Some
 * are inline in some configurations only. A helper with logic of its own says why that is in C.
 */
#include <linux/bottom_half.h>
#include <linux/cpumask.h>
#include <linux/kernel_stat.h>
#include <linux/memcontrol.h>
#include <linux/percpu.h>
#include <linux/ratelimit.h>
#include <linux/rcupdate.h>
#include <linux/sched/isolation.h>
#include <linux/sched/mm.h>
#include <linux/sched/rt.h>
#include <linux/sched/stat.h>
#include <linux/slab.h>
#include <linux/spinlock.h>
#include <linux/string.h>
#include <linux/tick.h>
#include <linux/topology.h>

#include "kernel.h"

void riw_helper_local_bh_disable(void)
{
	local_bh_disable();
}

void riw_helper_local_bh_enable(void)
{
	local_bh_enable();
}

void riw_helper_spin_lock_bh(spinlock_t *lock)
{
	spin_lock_bh(lock);
}

void riw_helper_spin_unlock_bh(spinlock_t *lock)
{
	spin_unlock_bh(lock);
}

int riw_helper_spin_trylock_bh(spinlock_t *lock)
{
	return spin_trylock_bh(lock);
}

/* All locks initialized here share one lockdep class. */
void riw_helper_rwlock_init(rwlock_t *lock)
{
	rwlock_init(lock);
}

void riw_helper_read_lock_bh(rwlock_t *lock)
{
	read_lock_bh(lock);
}

void riw_helper_read_unlock_bh(rwlock_t *lock)
{
	read_unlock_bh(lock);
}

void riw_helper_write_lock_bh(rwlock_t *lock)
{
	write_lock_bh(lock);
}

void riw_helper_write_unlock_bh(rwlock_t *lock)
{
	write_unlock_bh(lock);
}

/*
 * Copies memory that others may access at the same time. In C: a copy by Rust would be undefined
 * behaviour then, and memcpy() is a macro in some configurations.
 */
void riw_helper_copy_memory(u8 *to, const u8 *from, size_t len)
{
	memcpy(to, from, len);
}

/* Returns the task's memory cgroup with a reference; NULL if memory cgroups are disabled. */
struct mem_cgroup *riw_helper_current_memcg(void)
{
	return get_mem_cgroup_from_mm(current->mm);
}

unsigned int riw_helper_memalloc_flags_save(unsigned int flags)
{
	return memalloc_flags_save(flags);
}

void riw_helper_memalloc_flags_restore(unsigned int flags)
{
	memalloc_flags_restore(flags);
}

/*
 * A task that charges memory above memory.high has to wait for that: when it returns to user mode,
 * or if that comes too late, in a charge. A worker never returns there. So it would wait, for
 * seconds, in the midst of what it does for other users. It does not have to: the processes of the
 * memory cgroup wait, and its limit holds for all.
 *
 * In C: in_task() is a macro, and the member exists with CONFIG_MEMCG only.
 */
void riw_helper_forget_excess(void)
{
#ifdef CONFIG_MEMCG
	if (in_task() && current->flags & PF_KTHREAD)
		current->memcg_nr_pages_over_high = 0;
#endif
}

struct mem_cgroup *riw_helper_set_active_memcg(struct mem_cgroup *memcg)
{
	riw_helper_forget_excess();
	return set_active_memcg(memcg);
}

/* `memcg` is NULL, or the caller has a reference, so that taking another cannot fail. */
struct mem_cgroup *riw_helper_get_memcg(struct mem_cgroup *memcg)
{
	return mem_cgroup_tryget(memcg) ? memcg : NULL;
}

void riw_helper_put_memcg(struct mem_cgroup *memcg)
{
	mem_cgroup_put(memcg);
}

/*
 * Returns zeroed memory that is charged to the active memory cgroup, to be freed by kvfree(). May
 * sleep.
 *
 * At the limit of the memory cgroup, a process meets the OOM killer. A worker gets NULL: a peer
 * decides when it needs memory, and its process may be gone.
 *
 * In C: the allocator is a macro, and the crate `kernel` lacks two of its flags.
 */
void *riw_helper_kvzalloc_charged(size_t size)
{
	gfp_t gfp = GFP_KERNEL_ACCOUNT | __GFP_NOWARN;
	/* Neither reclaims nor compacts for contiguous memory. */
	void *memory = kvzalloc(size, gfp | __GFP_NORETRY);

	if (!memory && current->flags & PF_KTHREAD)
		gfp |= __GFP_RETRY_MAYFAIL;
	return memory ?: kvzalloc(size, gfp);
}

/* At most `burst` events in `interval` jiffies. All states share one lockdep class. */
void riw_helper_ratelimit_state_init(struct ratelimit_state *rs, int interval, int burst)
{
	ratelimit_state_init(rs, interval, burst);
	/* Keeps the number of missed events, which ___ratelimit() would log and reset. */
	ratelimit_set_flags(rs, RATELIMIT_MSG_ON_RELEASE);
}

int riw_helper_ratelimit_state_reset_miss(struct ratelimit_state *rs)
{
	return ratelimit_state_reset_miss(rs);
}

/*
 * READ_ONCE() of another CPU's u64 must not tear. It does not on 64-bit; 32-bit would need
 * u64_stats_sync.
 */
static_assert(BITS_PER_LONG == 64);

/* Returns `count` zeroed words on each CPU, charged to the memory cgroup, or NULL. May sleep. */
u64 __percpu *riw_helper_alloc_percpu_u64(size_t count)
{
	return __alloc_percpu_gfp(array_size(count, sizeof(u64)), sizeof(u64), GFP_KERNEL_ACCOUNT);
}

void riw_helper_this_cpu_add_u64(u64 __percpu *counter, u64 n)
{
	this_cpu_add(*counter, n);
}

/* The caller stays on this CPU. */
u64 *riw_helper_this_cpu_ptr_u64(u64 __percpu *counters)
{
	return this_cpu_ptr(counters);
}

/* In C: macros walk the CPUs. Otherwise two calls for each CPU. */
u64 riw_helper_percpu_sum_u64(u64 __percpu *counter)
{
	u64 sum = 0;
	int cpu;

	for_each_possible_cpu(cpu)
		sum += READ_ONCE(*per_cpu_ptr(counter, cpu));
	return sum;
}

unsigned int riw_helper_num_possible_cpus(void)
{
	return num_possible_cpus();
}

/*
 * Returns the next online CPU of this node behind the running one, or behind `last` if that is not
 * -1, on which work of the kernel may run; -1 if there is no other than the running one. The caller
 * may run on another CPU when this returns.
 *
 * In C: macros walk the mask, under RCU, and each test of a CPU is an inline function.
 */
int riw_helper_other_cpu(int last)
{
	const struct cpumask *node = cpumask_of_node(numa_node_id());
	int this = raw_smp_processor_id(), found = -1, cpu;

	if (last < 0)
		last = this;
	/* The masks of housekeeping CPUs can change. */
	rcu_read_lock();
	for_each_cpu_wrap(cpu, node, last + 1) {
		if (cpu != this && cpu_online(cpu) && housekeeping_test_cpu(cpu, HK_TYPE_DOMAIN) &&
		    housekeeping_test_cpu(cpu, HK_TYPE_KERNEL_NOISE)) {
			found = cpu;
			break;
		}
	}
	rcu_read_unlock();
	return found;
}

/* Without NO_HZ it only grows with the ticks. Some kernels have it inline then. */
u64 riw_helper_cpu_idle_us(int cpu)
{
	return get_cpu_idle_time_us(cpu, NULL);
}

/* Whether no other task is to run on this CPU. One call, as the caller polls. */
bool riw_helper_is_alone(void)
{
	return !need_resched() && single_task_running();
}

bool riw_helper_is_realtime(void)
{
	return rt_or_dl_task_policy(current);
}

/* For a task that runs for long without sleeping: RCU Tasks waits until each task sleeps. */
void riw_helper_quiesce(void)
{
	cond_resched_tasks_rcu_qs();
}
