//! Declarations of request fields: one place for a field's name, type and documentation.

/// Declares the fields of one group: their names become the constant `FIELDS`; names, types and
/// documentation become the TypeScript type of the group. Nothing is deserialized into the struct:
/// the group's `read` reads each field with its own checks and error codes.
macro_rules! fields {
    ($(#[$meta:meta])* $group:ident { $($(#[$field_meta:meta])* $field:ident: $type:ty,)* }) => {
        pub(in crate::api) const FIELDS: &[&str] = &[$(stringify!($field)),*];

        $crate::api::fields::declare::wire_types! {
            $(#[$meta])*
            #[ts(optional_fields = nullable)]
            pub(in crate::api) struct $group { $($(#[$field_meta])* $field: $type,)* }
        }
    };
}

/// Types that exist only for their TypeScript form.
macro_rules! wire_types {
    ($($item:item)*) => {
        $(
            #[cfg(test)]
            #[derive(ts_rs::TS)]
            #[allow(dead_code)]
            $item
        )*
    };
}

pub(in crate::api) use {fields, wire_types};
