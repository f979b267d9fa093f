// SPDX-License-Identifier: GPL-2.0

//! Events of network devices.

use crate::NetDevice;
use kernel::{
    bindings::notifier_block,
    error::to_result,
    prelude::*,
    types::Opaque, //
};
use riw_bindings as bindings;

/// What happened to a network device.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Event {
    /// It has been registered, or has come into this namespace.
    Register,
    /// It is being unregistered, or leaves its namespace. References to it must be dropped.
    Unregister,
    /// It was set up.
    Up,
    /// It is about to be set down.
    GoingDown,
    /// It was set down.
    Down,
    /// Its state or flags changed, such as the carrier.
    Change,
    /// Its MTU changed.
    ChangeMtu,
    /// Its hardware address changed.
    ChangeAddress,
    /// Its name changed.
    ChangeName,
    /// It became a port of another device, or is none any more.
    ChangeUpper,
    /// Its offloads changed.
    ChangeFeatures,
    /// Something else: `NETDEV_…` in number.
    Other(usize),
}

impl From<usize> for Event {
    fn from(event: usize) -> Self {
        match u32::try_from(event).unwrap_or(0) {
            bindings::netdev_cmd_NETDEV_REGISTER => Self::Register,
            bindings::netdev_cmd_NETDEV_UNREGISTER => Self::Unregister,
            bindings::netdev_cmd_NETDEV_UP => Self::Up,
            bindings::netdev_cmd_NETDEV_GOING_DOWN => Self::GoingDown,
            bindings::netdev_cmd_NETDEV_DOWN => Self::Down,
            bindings::netdev_cmd_NETDEV_CHANGE => Self::Change,
            bindings::netdev_cmd_NETDEV_CHANGEMTU => Self::ChangeMtu,
            bindings::netdev_cmd_NETDEV_CHANGEADDR => Self::ChangeAddress,
            bindings::netdev_cmd_NETDEV_CHANGENAME => Self::ChangeName,
            bindings::netdev_cmd_NETDEV_CHANGEUPPER => Self::ChangeUpper,
            bindings::netdev_cmd_NETDEV_FEAT_CHANGE => Self::ChangeFeatures,
            _ => Self::Other(event),
        }
    }
}

/// Who is told of events.
pub trait Notify: Send + Sync + 'static {
    /// An event, of any network device in any namespace.
    ///
    /// Process context, may sleep; rtnl is held, and for most events except for
    /// [`Event::Unregister`] the device's instance lock as well
    /// (`Documentation/networking/netdevices.rst`).
    fn event(&self, dev: &NetDevice, event: Event);
}

/// A registered listener for events of network devices.
///
/// The kernel replays [`Event::Register`] (and [`Event::Up`]) for all devices there are while it is
/// being registered, and [`Event::Down`] and [`Event::Unregister`] while it is being dropped.
/// Dropping waits for running callbacks. Neither may happen under rtnl.
///
/// # Invariants
///
/// `block` is registered, and is the field of this struct in a [`Pin`]ned place.
#[pin_data(PinnedDrop)]
#[repr(C)]
pub struct Notifier<T: Notify> {
    #[pin]
    block: Opaque<notifier_block>,
    target: T,
}

// SAFETY: `block` is only touched by the kernel's notifier chain, which has its own lock; `target`
// is `Send`.
unsafe impl<T: Notify> Send for Notifier<T> {}
// SAFETY: As above; `target` is `Sync`.
unsafe impl<T: Notify> Sync for Notifier<T> {}

impl<T: Notify> Notifier<T> {
    /// Registers `target` for all events. Process context, may sleep; rtnl must not be held.
    pub fn register(target: T) -> impl PinInit<Self, Error> {
        // `target` comes first, since callbacks begin before the registration returns.
        try_pin_init!(Self {
            target,
            block <- Opaque::try_ffi_init(|slot: *mut notifier_block| {
                // SAFETY: The slot is valid for writes.
                unsafe {
                    slot.write(notifier_block {
                        notifier_call: Some(Self::call),
                        ..Default::default()
                    })
                };
                // SAFETY: The block is initialised, pinned, and unregistered by drop.
                to_result(unsafe { bindings::register_netdevice_notifier(slot) })
            }),
        })
    }

    /// # Safety
    ///
    /// To be called by the notifier chain, with the block of a `Notifier<T>`.
    unsafe extern "C" fn call(
        block: *mut notifier_block,
        event: usize,
        info: *mut c_void,
    ) -> c_int {
        // SAFETY: By the type's invariant the block is a field of a `Notifier`, the target of which
        // was initialised before it was registered.
        let target =
            unsafe { &(*kernel::container_of!(Opaque::cast_from(block), Self, block)).target };
        // SAFETY: `info` is the chain's, whose device is valid during the call.
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
        // SAFETY: By the type's invariant it is registered. Afterwards no callback runs.
        let _ = unsafe { bindings::unregister_netdevice_notifier(self.block.get()) };
    }
}
