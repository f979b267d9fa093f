// SPDX-License-Identifier: GPL-2.0

//! Module parameters that are words. `module!` of Linux 7.3 has numbers only, and none in sysfs.
//!
//! C header: [`include/linux/moduleparam.h`](srctree/include/linux/moduleparam.h)

use core::ptr;
use kernel::{
    error::from_result,
    ffi::{c_char, c_int, c_void},
    prelude::*,
    str::as_char_ptr_in_const_context,
    sync::atomic::{ordering, Atomic},
};
use riw_bindings as bindings;

/// A module parameter that is one of several words: see
/// [`module_param_word`](crate::module_param_word).
pub struct Word {
    words: &'static [&'static CStr],
    chosen: Atomic<u32>,
}

impl Word {
    /// Creates the value of a parameter. The default is the first one of `words`.
    pub const fn new(words: &'static [&'static CStr]) -> Self {
        Self {
            words,
            chosen: Atomic::new(0),
        }
    }

    /// Returns the number of the chosen word: an administrator may change it. Any context.
    pub fn chosen(&self) -> u32 {
        self.chosen.load(ordering::Relaxed)
    }

    /// Called for a value on the kernel's command line, at load, or written to sysfs.
    ///
    /// # Safety
    ///
    /// `value` must be a string, and `param` a [`Param`].
    unsafe extern "C" fn set(value: *const c_char, param: *const bindings::kernel_param) -> c_int {
        // SAFETY: By the safety requirement, and [`Param::new`].
        let word = unsafe { Self::of(param) };

        from_result(|| {
            let found = word.words.iter().position(|known| {
                // SAFETY: Both are strings.
                unsafe { bindings::sysfs_streq(value, known.as_char_ptr()) }
            });
            let number = u32::try_from(found.ok_or(EINVAL)?).map_err(|_| EINVAL)?;

            word.chosen.store(number, ordering::Relaxed);
            Ok(0)
        })
    }

    /// Called when the parameter's file in sysfs is read.
    ///
    /// # Safety
    ///
    /// `to` must be a page that sysfs passes, and `param` a [`Param`].
    unsafe extern "C" fn get(to: *mut c_char, param: *const bindings::kernel_param) -> c_int {
        // SAFETY: By the safety requirement, and [`Param::new`].
        let word = unsafe { Self::of(param) };
        // CAST: Widens.
        let chosen = word.words.get(word.chosen() as usize).copied();
        let text = chosen.unwrap_or(c"").as_char_ptr();

        // SAFETY: `to` is such a page. The format takes one string, which is the argument.
        unsafe { bindings::sysfs_emit(to, c"%s\n".as_char_ptr(), text) }
    }

    /// # Safety
    ///
    /// `param` must be a [`Param`].
    unsafe fn of(param: *const bindings::kernel_param) -> &'static Self {
        // SAFETY: By the safety requirement it is live, and `Param::new` has set the argument from
        // a static reference.
        unsafe { &*(*param).__bindgen_anon_1.arg.cast() }
    }
}

static WORD_OPS: bindings::kernel_param_ops = bindings::kernel_param_ops {
    flags: 0,
    set: Some(Word::set),
    get: Some(Word::get),
    free: None,
};

/// A parameter, as the kernel finds it in the section `__param`.
#[doc(hidden)]
#[repr(transparent)]
pub struct Param(bindings::kernel_param);

// SAFETY: After `new`, only the kernel uses it: it reads it, with a lock of its own.
unsafe impl Sync for Param {}

impl Param {
    /// Defines the parameter `name`, with mode 0644 in sysfs.
    ///
    /// # Safety
    ///
    /// `module` must be the module that has the result in its section `__param`, or null if that is
    /// in the kernel's image.
    pub const unsafe fn new(
        name: &'static CStr,
        module: *const c_void,
        word: &'static Word,
    ) -> Self {
        Self(bindings::kernel_param {
            name: as_char_ptr_in_const_context(name),
            mod_: module.cast_mut().cast(),
            ops: &raw const WORD_OPS,
            perm: 0o644,
            level: -1,
            flags: 0,
            __bindgen_anon_1: bindings::kernel_param__bindgen_ty_1 {
                arg: ptr::from_ref(word).cast_mut().cast(),
            },
        })
    }
}

#[cfg(MODULE)]
extern "C" {
    /// The module that this crate is linked into (`THIS_MODULE`). Only its address is of use.
    #[doc(hidden)]
    pub static __this_module: c_void;
}

/// Defines a parameter of the module `$module` that is one of several words, as a [`Word`], and
/// adds its description to the module's `modinfo` (`module_param_cb()`, `MODULE_PARM_DESC()`).
///
/// ```
/// kernel_ext::module_param_word!(
///     /// How the cat sleeps.
///     "cat", SLEEP: sleep = &[c"curled", c"stretched"],
///     "how the cat sleeps: curled or stretched"
/// );
///
/// fn is_curled() -> bool {
///     SLEEP.chosen() == 0
/// }
/// ```
///
/// [`Word`]: crate::module_param::Word
#[macro_export]
macro_rules! module_param_word {
    (
        $(#[$doc:meta])*
        $module:literal, $word:ident: $name:ident = $words:expr, $description:literal
    ) => {
        $(#[$doc])*
        static $word: $crate::module_param::Word = $crate::module_param::Word::new($words);

        const _: () = {
            use $crate::module_param::Param;

            #[link_section = "__param"]
            #[used(compiler)]
            #[cfg(MODULE)]
            // SAFETY: The module is the one with this section.
            static PARAM: Param = unsafe {
                Param::new(
                    ::kernel::c_str!(stringify!($name)),
                    &raw const $crate::module_param::__this_module,
                    &$word,
                )
            };
            // A kernel's image has the entries of all modules: each begins with the module's name.
            #[link_section = "__param"]
            #[used(compiler)]
            #[cfg(not(MODULE))]
            // SAFETY: This section is part of the kernel's image.
            static PARAM: Param = unsafe {
                Param::new(
                    ::kernel::c_str!(concat!($module, ".", stringify!($name))),
                    ::core::ptr::null(),
                    &$word,
                )
            };

            #[cfg(MODULE)]
            const TEXT: &str = concat!("parm=", stringify!($name), ":", $description, "\0");
            #[cfg(not(MODULE))]
            const TEXT: &str =
                concat!($module, ".parm=", stringify!($name), ":", $description, "\0");

            #[link_section = ".modinfo"]
            #[used(compiler)]
            static MODINFO: [u8; TEXT.len()] = match TEXT.as_bytes().first_chunk() {
                Some(text) => *text,
                // The length always fits.
                None => [0; TEXT.len()],
            };
        };
    };
}
