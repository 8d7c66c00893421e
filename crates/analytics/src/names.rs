//! Names that come from outside, each with a type of its own, so that an owner is never passed where a SKU belongs.
//!
//! They are compared and ordered byte by byte, exactly as they came (R13): `a` and `A` are two SKUs.

use std::fmt;

use serde::{Deserialize, Serialize};

macro_rules! name {
    ($(#[$doc:meta])* $name:ident) => {
        $(#[$doc])*
        #[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
        #[serde(transparent)]
        pub struct $name(String);

        impl $name {
            pub fn new(name: impl Into<String>) -> Self {
                Self(name.into())
            }

            pub fn as_str(&self) -> &str {
                &self.0
            }
        }

        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str(&self.0)
            }
        }
    };
}

name!(
    /// An upstream account: one App Key. Never the key itself.
    AccountCode
);
name!(
    /// `whCode`.
    WarehouseCode
);
name!(
    /// `customerCode`: whose goods they are (货主).
    OwnerCode
);
name!(
    /// `productSku`.
    Sku
);
