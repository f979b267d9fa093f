// SPDX-License-Identifier: GPL-2.0

//! How many connections linger.

use super::{LingerPlaces, LINGERING_MAX, REFUSED_MAX};
use kernel::prelude::*;

#[kunit_tests(riw_linger)]
mod tests {
    use super::*;

    /// Takes `count` places.
    fn taken(count: usize, refused: bool) -> Result<LingerPlaces> {
        let mut places = LingerPlaces::new();

        for _ in 0..count {
            places.take(refused)?;
        }
        Ok(places)
    }

    /// Connections have places up to the limit, and one that ends makes room for one.
    #[test]
    fn all_connections_are_limited() -> Result {
        let mut places = taken(LINGERING_MAX, false)?;

        assert_eq!(places.take(false), Err(EBUSY));
        assert_eq!(places.take(true), Err(EBUSY));
        places.give_back(false);
        places.take(true)?;
        assert_eq!(places.take(false), Err(EBUSY));
        Ok(())
    }

    /// Refused connections have a lower limit, and leave places to others.
    #[test]
    fn refused_connections_are_limited_further() -> Result {
        let mut places = taken(REFUSED_MAX, true)?;

        assert_eq!(places.take(true), Err(EBUSY));
        places.take(false)?;
        places.give_back(false);
        assert_eq!(places.take(true), Err(EBUSY));
        places.give_back(true);
        places.take(true)
    }
}
