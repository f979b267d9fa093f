// SPDX-License-Identifier: GPL-2.0
/*
 * Notes which basic blocks of riw.ko run, if riw.ko is built for the flavour `coverage`: each of its blocks calls
 * __sanitizer_cov_trace_pc(). The file `riw_coverage` in debugfs has the offsets of these calls in the module's code
 * (hexadecimal, one a line, of the instruction behind the call). They are kept when riw is removed.
 */
#include <linux/debugfs.h>
#include <linux/module.h>
#include <linux/seq_file.h>
#include <linux/vmalloc.h>

/* More than the code of riw.ko has. */
#define CODE (8UL << 20)

static u8 *seen;		/* one for each octet of the code */
static unsigned long base, size;	/* of the code of riw */
static struct dentry *file;

/*
 * Any context. Writes of several CPUs do not matter, as all write the same. No instrumentation here, and no lock: it
 * may run in the middle of anything.
 */
void __sanitizer_cov_trace_pc(void);
noinline notrace __no_sanitize_address void __sanitizer_cov_trace_pc(void)
{
	unsigned long at = (unsigned long)__builtin_return_address(0) - READ_ONCE(base);

	if (at < READ_ONCE(size) && !seen[at])
		WRITE_ONCE(seen[at], 1);
}
EXPORT_SYMBOL_GPL(__sanitizer_cov_trace_pc);

/* No code of riw runs before MODULE_STATE_COMING. That of its initialization is elsewhere, and is not noted. */
static int riw_changes(struct notifier_block *block, unsigned long state, void *data)
{
	struct module *module = data;

	if (state == MODULE_STATE_COMING && !strcmp(module->name, "riw")) {
		WRITE_ONCE(base, (unsigned long)module->mem[MOD_TEXT].base);
		WRITE_ONCE(size, min(module->mem[MOD_TEXT].size, (unsigned int)CODE));
	}
	return NOTIFY_OK;
}

static struct notifier_block notifier = { .notifier_call = riw_changes };

static int riw_coverage_show(struct seq_file *seq, void *data)
{
	for (unsigned long at = 0; at < CODE; at++)
		if (READ_ONCE(seen[at]))
			seq_printf(seq, "%lx\n", at);
	return 0;
}
DEFINE_SHOW_ATTRIBUTE(riw_coverage);

static int __init coverage_init(void)
{
	int error;

	seen = vzalloc(CODE);
	if (!seen)
		return -ENOMEM;
	error = register_module_notifier(&notifier);
	if (error) {
		vfree(seen);
		return error;
	}
	file = debugfs_create_file("riw_coverage", 0400, NULL, NULL, &riw_coverage_fops);
	return 0;
}
module_init(coverage_init);

/* Only without riw, which uses this module. */
static void __exit coverage_exit(void)
{
	debugfs_remove(file);
	unregister_module_notifier(&notifier);
	vfree(seen);
}
module_exit(coverage_exit);

MODULE_DESCRIPTION("Notes which basic blocks of riw.ko run");
MODULE_LICENSE("GPL");
