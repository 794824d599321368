//! JSON that is exact: numbers keep the digits that were written, of whatever length.
//!
//! [`Value`] has the form that `serde_json`'s has, so that a reader finds nothing new; what differs is [`Number`], which
//! holds text, and [`parse()`], which bounds depth and digits, and repairs half characters. [`wire`] takes values through
//! libraries that know `serde_json`'s values only. Knows nothing of tools, schemas or protocols.
#![warn(missing_docs)]

mod convert;
mod number;
mod parse;
mod repair;
mod value;
pub mod wire;

pub use convert::{from_value, read, to_value};
pub use number::Number;
pub use parse::{Fault, MOST_DEPTH, MOST_DIGITS, ParseError, parse, parse_strictly, parse_within};
pub use repair::repaired;
pub use value::Value;

/// The members of an object, in the order in which they were written.
pub type Map<K = String, V = Value> = indexmap::IndexMap<K, V>;

/// A [`Value`] written as JSON; anything that serialises stands for itself.
#[macro_export]
macro_rules! json {
    (null) => { $crate::Value::Null };
    ([ $($elements:tt)* ]) => {{
        #[allow(unused_mut, reason = "an empty array is not changed")]
        let mut array = ::std::vec::Vec::<$crate::Value>::new();
        $crate::json_elements!(array $($elements)*);
        $crate::Value::Array(array)
    }};
    ({ $($members:tt)* }) => {{
        #[allow(unused_mut, reason = "an empty object is not changed")]
        let mut object = $crate::Map::<::std::string::String, $crate::Value>::new();
        $crate::json_members!(object $($members)*);
        $crate::Value::Object(object)
    }};
    ($value:expr) => { $crate::to_value(&$value).unwrap_or_default() };
}

/// The elements of an array in [`json!`].
#[doc(hidden)]
#[macro_export]
macro_rules! json_elements {
    ($array:ident) => {};
    ($array:ident null $(, $($rest:tt)*)?) => {
        $array.push($crate::Value::Null);
        $($crate::json_elements!($array $($rest)*);)?
    };
    ($array:ident [ $($inner:tt)* ] $(, $($rest:tt)*)?) => {
        $array.push($crate::json!([ $($inner)* ]));
        $($crate::json_elements!($array $($rest)*);)?
    };
    ($array:ident { $($inner:tt)* } $(, $($rest:tt)*)?) => {
        $array.push($crate::json!({ $($inner)* }));
        $($crate::json_elements!($array $($rest)*);)?
    };
    ($array:ident $value:expr $(, $($rest:tt)*)?) => {
        $array.push($crate::json!($value));
        $($crate::json_elements!($array $($rest)*);)?
    };
}

/// The members of an object in [`json!`].
#[doc(hidden)]
#[macro_export]
macro_rules! json_members {
    ($object:ident) => {};
    ($object:ident $key:tt : null $(, $($rest:tt)*)?) => {
        $object.insert(($key).into(), $crate::Value::Null);
        $($crate::json_members!($object $($rest)*);)?
    };
    ($object:ident $key:tt : [ $($inner:tt)* ] $(, $($rest:tt)*)?) => {
        $object.insert(($key).into(), $crate::json!([ $($inner)* ]));
        $($crate::json_members!($object $($rest)*);)?
    };
    ($object:ident $key:tt : { $($inner:tt)* } $(, $($rest:tt)*)?) => {
        $object.insert(($key).into(), $crate::json!({ $($inner)* }));
        $($crate::json_members!($object $($rest)*);)?
    };
    ($object:ident $key:tt : $value:expr $(, $($rest:tt)*)?) => {
        $object.insert(($key).into(), $crate::json!($value));
        $($crate::json_members!($object $($rest)*);)?
    };
}
