//! Views of a kind: other types that stand for the same objects.

/// Implements [`kube::Resource`] for a view of a kind, which has metadata of its own: `view_of!([K: Resource] View<K>, K, metadata)`.
/// With `metadata_api = true` API servers are asked for nothing else.
#[macro_export]
macro_rules! view_of {
    ([$($generics:tt)*] $view:ty, $kind:ident, $($metadata:ident).+ $(, metadata_api = $only:literal)?) => {
        impl<$($generics)*> ::kube::Resource for $view {
            type DynamicType = <$kind as ::kube::Resource>::DynamicType;
            type Scope = <$kind as ::kube::Resource>::Scope;

            fn kind(dt: &Self::DynamicType) -> ::std::borrow::Cow<'_, str> {
                $kind::kind(dt)
            }

            fn group(dt: &Self::DynamicType) -> ::std::borrow::Cow<'_, str> {
                $kind::group(dt)
            }

            fn version(dt: &Self::DynamicType) -> ::std::borrow::Cow<'_, str> {
                $kind::version(dt)
            }

            fn plural(dt: &Self::DynamicType) -> ::std::borrow::Cow<'_, str> {
                $kind::plural(dt)
            }

            $(fn metadata_api() -> bool {
                $only
            })?

            fn meta(&self) -> &::kube::core::ObjectMeta {
                &self.$($metadata).+
            }

            fn meta_mut(&mut self) -> &mut ::kube::core::ObjectMeta {
                &mut self.$($metadata).+
            }
        }
    };
}
