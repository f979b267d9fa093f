// SPDX-License-Identifier: GPL-2.0

//! Events of network devices.

use kernel::{
    bindings::notifier_block,
    error::to_result,
    prelude::*,
    types::Opaque, //
};
use kernel_ext::net::NetDevice;
use riw_bindings as bindings;

/// An event of a network device.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NetdevEvent {
    /// The device was registered, or moved into this namespace.
    Register,
    /// The device is being unregistered, or leaves its namespace. Drop all references to it.
    Unregister,
    /// The device was set up.
    Up,
    /// The device was set down.
    Down,
    /// The state or flags changed, such as the carrier.
    Change,
    /// The hardware address changed.
    ChangeAddress,
    /// Another event, by its `NETDEV_…` number.
    Other(usize),
}

impl From<usize> for NetdevEvent {
    fn from(event: usize) -> Self {
        match u32::try_from(event).unwrap_or(0) {
            bindings::netdev_cmd_NETDEV_REGISTER => Self::Register,
            bindings::netdev_cmd_NETDEV_UNREGISTER => Self::Unregister,
            bindings::netdev_cmd_NETDEV_UP => Self::Up,
            bindings::netdev_cmd_NETDEV_DOWN => Self::Down,
            bindings::netdev_cmd_NETDEV_CHANGE => Self::Change,
            bindings::netdev_cmd_NETDEV_CHANGEADDR => Self::ChangeAddress,
            _ => Self::Other(event),
        }
    }
}

/// Receives the events of network devices.
///
/// ```
/// use kernel::{
///     prelude::*,
///     sync::atomic::{Atomic, Relaxed},
/// };
/// use net::{NetDevice, NetdevEvent, Notifier, Notify};
///
/// /// Counts the network devices.
/// struct Devices(Atomic<i32>);
///
/// impl Notify for Devices {
///     fn event(&self, _: &NetDevice, event: NetdevEvent) {
///         match event {
///             NetdevEvent::Register => self.0.fetch_add(1, Relaxed),
///             NetdevEvent::Unregister => self.0.fetch_add(-1, Relaxed),
///             _ => return,
///         };
///     }
/// }
///
/// fn count() -> Result<i32> {
///     let devices = Devices(Atomic::new(0));
///     let notifier = KBox::pin_init(Notifier::register(devices), GFP_KERNEL)?;
///
///     Ok(notifier.0.load(Relaxed))
/// }
/// ```
///
/// The device is lent for the call only. An `ARef` keeps it for longer:
///
/// ```compile_fail,E0521
/// struct Last(kernel::sync::SetOnce<&'static net::NetDevice>);
///
/// impl net::Notify for Last {
///     fn event(&self, dev: &net::NetDevice, _: net::NetdevEvent) {
///         self.0.populate(dev);
///     }
/// }
/// ```
pub trait Notify: Send + Sync + 'static {
    /// Handles an event of any network device in any namespace.
    ///
    /// Process context, may sleep. RTNL is held; for most events, but not for
    /// [`NetdevEvent::Unregister`], the device's instance lock is held, too
    /// (`Documentation/networking/netdevices.rst`).
    fn event(&self, dev: &NetDevice, event: NetdevEvent);
}

/// A registered netdev notifier.
///
/// During registration the kernel replays [`NetdevEvent::Register`] for all devices, and
/// [`NetdevEvent::Up`] for those that are up. During the drop it replays
/// [`NetdevEvent::Down`] and [`NetdevEvent::Unregister`]. The drop waits for running callbacks:
/// process context, may sleep; RTNL must not be held.
///
/// # Invariants
///
/// `block` is registered, and is a field of a pinned [`Notifier`].
#[pin_data(PinnedDrop)]
#[repr(C)]
pub struct Notifier<T: Notify> {
    #[pin]
    block: Opaque<notifier_block>,
    target: T,
}

// SAFETY: Only the notifier chain accesses `block`, under RTNL; any thread may unregister it.
// `target` is `Send`.
unsafe impl<T: Notify> Send for Notifier<T> {}
// SAFETY: A shared reference only gives access to `target`, which is `Sync`. Only the notifier
// chain accesses `block`, under RTNL.
unsafe impl<T: Notify> Sync for Notifier<T> {}

impl<T: Notify> Notifier<T> {
    /// Registers `target` for all events. Process context, may sleep; RTNL must not be held. Fails
    /// with the errors of `register_netdevice_notifier()`.
    pub fn register(target: T) -> impl PinInit<Self, Error> {
        // Initialize `target` first: callbacks begin before the registration returns.
        try_pin_init!(Self {
            target,
            block <- Opaque::try_ffi_init(|slot: *mut notifier_block| {
                // SAFETY: `slot` points to the field that is being initialized: it is valid for
                // writes.
                unsafe {
                    slot.write(notifier_block {
                        notifier_call: Some(Self::call),
                        ..Default::default()
                    })
                };
                // SAFETY: The block is initialized above, pinned, and unregistered by `drop` before
                // its memory is freed.
                to_result(unsafe { bindings::register_netdevice_notifier(slot) })
            }),
        })
    }

    /// Passes an event of the notifier chain to `target`.
    ///
    /// # Safety
    ///
    /// Only the notifier chain may call it, with the block of a `Notifier<T>`.
    unsafe extern "C" fn call(
        block: *mut notifier_block,
        event: usize,
        info: *mut c_void,
    ) -> c_int {
        // SAFETY: The caller promises the block of a `Notifier<T>`, which lives until the block is
        // unregistered. `register` initialized `target` before it registered the block.
        let target =
            unsafe { &(*kernel::container_of!(Opaque::cast_from(block), Self, block)).target };
        // SAFETY: The caller promises that `info` comes from the chain. The chain keeps the device
        // alive during the call.
        let dev = unsafe { NetDevice::from_raw(bindings::netdev_notifier_dev(info)) };

        target.event(dev, event.into());
        /* NOTIFY_DONE */
        0
    }
}

impl<T: Notify> core::ops::Deref for Notifier<T> {
    type Target = T;

    fn deref(&self) -> &T {
        &self.target
    }
}

#[pinned_drop]
impl<T: Notify> PinnedDrop for Notifier<T> {
    fn drop(self: Pin<&mut Self>) {
        // SAFETY: By the type's invariant the block is registered. No callback runs after this, so
        // the memory may be freed.
        let _ = unsafe { bindings::unregister_netdevice_notifier(self.block.get()) };
    }
}
