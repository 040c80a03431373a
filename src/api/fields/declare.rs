//! Declarations of request fields: a field's name, type, bounds, default and documentation, once. The parsers read fields
//! through their declarations; the types in TypeScript and the tables of `docs/api.md` are generated from them.

use super::reader::Fields;
use crate::Result;
use crate::api::switches::Switches;

/// Declares a group of fields: a type that has a constant for each field, and `NAMES`. `uses` lists the types that the
/// group's types in TypeScript name.
macro_rules! fields {
    ($(#[doc = $group_docs:literal])* $(#[allow($lint:ident)])? $group:ident $(uses [$($used:ty),+])? {
        $($(#[doc = $docs:literal])+ $name:ident $(($wire:literal))?: $declared:ty = $field:expr,)*
    }) => {
        $(#[doc = $group_docs])*
        pub(in crate::api) struct $group;

        #[allow(non_upper_case_globals)]
        $(#[allow($lint)])?
        impl $group {
            /// The names of its fields.
            pub(in crate::api) const NAMES: &'static [&'static str] =
                &[$($crate::api::fields::declare::wire_name!($name $($wire)?)),*];
            $(
                $(#[doc = $docs])+
                pub(in crate::api) const $name: $declared =
                    $field.named($crate::api::fields::declare::wire_name!($name $($wire)?));
            )*
        }

        #[cfg(test)]
        impl $crate::api::fields::listed::Group for $group {
            const NAME: &'static str = stringify!($group);

            fn members() -> Vec<$crate::api::fields::listed::Member> {
                let member = $crate::api::fields::listed::Member::new;
                vec![$(member(&[$($docs),+], &$group::$name)),*]
            }

            fn visit_types(_visitor: &mut impl ts_rs::TypeVisitor) {
                $($(_visitor.visit::<$used>();)+)?
            }
        }
    };
}

/// The name of a field in JSON: that of its constant, unless that is no identifier.
macro_rules! wire_name {
    ($name:ident) => {
        stringify!($name)
    };
    ($name:ident $wire:literal) => {
        $wire
    };
}

/// Declares the body of a route: a type that lists the groups of its fields. In TypeScript it is an object with all of them.
macro_rules! request {
    ($(#[doc = $docs:literal])+ $request:ident: $($group:ty),+ $(,)?) => {
        $(#[doc = $docs])+
        pub(in crate::api) struct $request;

        impl $request {
            /// The names of its fields.
            pub(in crate::api) fn names() -> impl Iterator<Item = &'static str> {
                [$(<$group>::NAMES),+].into_iter().flatten().copied()
            }

            /// The groups, for documents.
            #[cfg(test)]
            pub(in crate::api) fn listed() -> Vec<$crate::api::fields::listed::ListedGroup> {
                vec![$($crate::api::fields::listed::ListedGroup::of::<$group>()),+]
            }
        }

        #[cfg(test)]
        impl ts_rs::TS for $request {
            type WithoutGenerics = $request;
            type OptionInnerType = $request;

            fn docs() -> Option<String> {
                Some($crate::api::fields::listed::comment(&[$($docs),+]))
            }

            fn name(_: &ts_rs::Config) -> String {
                stringify!($request).to_owned()
            }

            fn inline(_: &ts_rs::Config) -> String {
                $crate::api::fields::listed::object(&$request::listed())
            }

            fn decl(config: &ts_rs::Config) -> String {
                format!("type {} = {};", Self::name(config), Self::inline(config))
            }

            fn visit_dependencies(visitor: &mut impl ts_rs::TypeVisitor) {
                use $crate::api::fields::listed::Group as _;
                $(<$group>::visit_types(visitor);)+
            }

            fn output_path() -> Option<std::path::PathBuf> {
                Some("types.ts".into())
            }
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

pub(in crate::api) use {fields, request, wire_name, wire_types};

/// A bound or default that is fixed or that a switch sets.
#[derive(Debug, Clone, Copy)]
pub(in crate::api) enum Setting<T> {
    Fixed(T),
    /// The switch, and its value.
    Switch(
        #[cfg_attr(not(test), expect(dead_code, reason = "for documents"))] &'static str,
        fn(&Switches) -> T,
    ),
}

impl<T: Copy> Setting<T> {
    pub(super) fn of(self, switches: &Switches) -> T {
        match self {
            Setting::Fixed(value) => value,
            Setting::Switch(_, value) => value(switches),
        }
    }
}

/// The type of a field, which reads its value.
pub(in crate::api) trait Kind: Copy {
    type Value;

    /// The value of the field `name`; `None` if it is absent or null.
    fn read(self, name: &str, fields: &Fields, switches: &Switches) -> Result<Option<Self::Value>>;
}

/// The declaration of a field. `D` is its default, if the default is a value of the field's own type.
#[derive(Clone, Copy)]
pub(in crate::api) struct Field<K, D = ()> {
    pub name: &'static str,
    pub(super) kind: K,
    pub(super) default: D,
    pub(super) notes: Notes,
}

/// A field that has a default.
pub(in crate::api) type Or<K> = Field<K, Setting<<K as Kind>::Value>>;

/// Further properties of a field, for documents.
#[derive(Clone, Copy)]
pub(super) struct Notes {
    pub is_required: bool,
    /// The default in words, where it is no value of the field's type.
    pub default: &'static str,
    /// Bounds in words, where the type does not say them.
    pub range: &'static str,
    /// A further type of it, in words and in TypeScript.
    pub also: Option<(&'static str, &'static str)>,
    /// The vendors whose field it is; empty for OpenAI's.
    pub vendors: &'static str,
}

impl<K: Copy> Field<K> {
    pub(super) const fn new(kind: K) -> Field<K> {
        let notes = Notes {
            is_required: false,
            default: "none",
            range: "",
            also: None,
            vendors: "",
        };
        Field {
            name: "",
            kind,
            default: (),
            notes,
        }
    }

    /// The body must have it.
    pub(in crate::api) const fn required(mut self) -> Field<K> {
        self.notes.is_required = true;
        self.notes.default = "required";
        self
    }

    /// Sets the default, in words.
    pub(in crate::api) const fn default_is(mut self, words: &'static str) -> Field<K> {
        self.notes.default = words;
        self
    }
}

impl<K: Kind> Field<K> {
    /// Its default.
    pub(in crate::api) const fn or(self, value: K::Value) -> Or<K> {
        self.with_default(Setting::Fixed(value))
    }

    /// The switch that is its default.
    pub(in crate::api) const fn or_switch(
        self,
        switch: &'static str,
        value: fn(&Switches) -> K::Value,
    ) -> Or<K> {
        self.with_default(Setting::Switch(switch, value))
    }

    const fn with_default(self, default: Setting<K::Value>) -> Or<K> {
        Field {
            name: self.name,
            kind: self.kind,
            default,
            notes: self.notes,
        }
    }

    /// The value, unless absent or null.
    pub(in crate::api) fn read(
        &self,
        fields: &Fields,
        switches: &Switches,
    ) -> Result<Option<K::Value>> {
        self.kind.read(self.name, fields, switches)
    }
}

impl<K: Kind> Or<K>
where
    K::Value: Copy,
{
    /// The value, or the default.
    pub(in crate::api) fn read(&self, fields: &Fields, switches: &Switches) -> Result<K::Value> {
        let given = self.given(fields, switches)?;
        Ok(given.unwrap_or_else(|| self.default.of(switches)))
    }

    /// The value, unless absent or null.
    pub(in crate::api) fn given(
        &self,
        fields: &Fields,
        switches: &Switches,
    ) -> Result<Option<K::Value>> {
        self.kind.read(self.name, fields, switches)
    }

    /// The default, which no switch sets.
    pub(in crate::api) const fn fixed_default(&self) -> K::Value {
        match self.default {
            Setting::Fixed(value) => value,
            Setting::Switch(..) => panic!("a switch sets this default"),
        }
    }
}

impl<K: Copy, D: Copy> Field<K, D> {
    pub(in crate::api) const fn named(mut self, name: &'static str) -> Field<K, D> {
        self.name = name;
        self
    }

    /// Sets the bounds, in words, where the type does not say.
    pub(in crate::api) const fn range(mut self, words: &'static str) -> Field<K, D> {
        self.notes.range = words;
        self
    }

    /// A further type of it, in words and in TypeScript.
    pub(in crate::api) const fn also(
        mut self,
        words: &'static str,
        typescript: &'static str,
    ) -> Field<K, D> {
        self.notes.also = Some((words, typescript));
        self
    }

    /// The vendors whose field it is.
    pub(in crate::api) const fn of(mut self, vendors: &'static str) -> Field<K, D> {
        self.notes.vendors = vendors;
        self
    }
}
